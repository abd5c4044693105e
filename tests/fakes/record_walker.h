// Walks activity records: with cuptiActivityGetNextRecord of a real libcupti where one is at hand, else by itself.
//
// The real library is taken from GPUPERF_FAKE_REAL_CUPTI, else from where the build found one; it needs no driver for
// this. It is used only if its record sizes are those of the records that are replayed. Chosen once, when the stand-in
// is loaded; read from any thread after that.
#ifndef GPUPERF_TESTS_FAKES_RECORD_WALKER_H_
#define GPUPERF_TESTS_FAKES_RECORD_WALKER_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace gpuperf::fakes {

class RecordWalker {
 public:
  // CUPTI 12.6's sizes and always the own walker.
  void UseCupti12();
  // Looks for a real library.
  void FindReal();

  // A CUptiResult: 0, 12 (no further record) or 21 (a kind that is not known).
  int Next(uint8_t* buffer, size_t valid_size, void** record) const;
  size_t RecordBytes(uint32_t kind) const;
  // Path of the real library in use, "own" if none.
  const std::string& Name() const { return name_; }

 private:
  using GetNextRecord = int (*)(uint8_t*, size_t, void**);
  bool SameSizes(GetNextRecord next) const;

  GetNextRecord real_ = nullptr;
  bool cupti_12_ = false;
  std::string name_ = "own";
};

}  // namespace gpuperf::fakes

#endif  // GPUPERF_TESTS_FAKES_RECORD_WALKER_H_
