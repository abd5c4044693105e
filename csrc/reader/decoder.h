// One chunk body → dictionary entries and rows, handed to a Visitor.
//
// One thread. A batch is checked before its first row is handed out: columns of unequal length, sparse rows that do not
// rise, and times outside [0, kMaxNs) cost that batch (or row) and become a Damage. Keeps what reaches over chunks: the
// dictionaries, and the open calls and annotations that no later row has finished yet.
#ifndef GPUPERF_READER_DECODER_H_
#define GPUPERF_READER_DECODER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "reader/clock_map.h"
#include "reader/dictionary.h"
#include "reader/frames.h"
#include "reader/visitor.h"

namespace gpuperf::reader {

class Decoder {
 public:
  explicit Decoder(Damages* damages) : damages_(damages) {}

  void BeginFile(const std::string& path);
  // Decodes these fields of one sound frame.
  void Decode(const Frame& frame, Fields fields, Visitor* visitor);
  // Hands out the calls and annotations that stayed open, in order of thread and begin, and forgets them.
  void Finish(Visitor* visitor);

  // So far: all clock pairs, and the last of what the last of holds.
  const std::vector<ClockPoint>& clock_points() const { return clock_points_; }
  const std::optional<v1::RunInfo>& run_info() const { return run_info_; }
  const std::optional<v1::SelfCost>& self_cost() const { return self_cost_; }

 private:
  // By thread (tid: iids are of one file) and correlation id.
  using OpenCalls = absl::flat_hash_map<uint64_t, OpenCallRow>;
  struct OpenAnnotation {
    const ThreadEntry* thread;
    Name name;
    v1::OpenAnnotation row;
    Name domain;
  };

  bool Parse(absl::string_view bytes, Fields fields);
  void Define(const v1::ChunkBody& body, Visitor* visitor);
  template <class Definition, class Callback>
  void DefineAll(const Definition& definitions, const char* what, Callback callback);
  bool Decode(const v1::KernelBatch& batch, Visitor* visitor);
  bool Decode(const v1::CopyBatch& batch, Visitor* visitor);
  bool Decode(const v1::MemsetBatch& batch, Visitor* visitor);
  bool Decode(const v1::CallBatch& batch, Visitor* visitor);
  void DecodeMarkers(const v1::ChunkBody& body, Visitor* visitor);
  // Of an annotation or mark.
  template <typename Message>
  Name DomainOf(const Message& message) const;
  void DecodeRest(const v1::ChunkBody& body, Visitor* visitor);
  bool InTime(uint64_t time, const char* what);
  void Report(std::string what);

  Damages* damages_;
  std::string path_;
  uint64_t offset_ = 0;  // of the chunk being decoded
  v1::ChunkBody body_;   // kept for its memory
  std::string chosen_;   // bytes of the fields that are decoded; kept likewise
  Dictionary dictionary_;
  absl::flat_hash_map<uint32_t, OpenCalls> open_calls_;
  absl::flat_hash_map<std::tuple<uint32_t, uint64_t, Name>, OpenAnnotation> open_annotations_;
  std::vector<ClockPoint> clock_points_;
  std::optional<v1::RunInfo> run_info_;
  std::optional<v1::SelfCost> self_cost_;
};

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_DECODER_H_
