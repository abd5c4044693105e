// A set of 64-bit ids that are mostly dense: a bit for each, in pages of 512. A correlation id costs a fraction of a
// byte where a hash set would cost 16. One thread.
#ifndef GPUPERF_ANALYSIS_ID_SET_H_
#define GPUPERF_ANALYSIS_ID_SET_H_

#include <array>
#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_map.h"

namespace gpuperf::analysis {

class IdSet {
 public:
  void Insert(uint64_t id);
  bool Contains(uint64_t id) const;
  // How many are in this set and not in `other`.
  uint64_t CountWithout(const IdSet& other) const;

 private:
  static constexpr uint64_t kPageBits = 512;
  using Page = std::array<uint64_t, kPageBits / 64>;

  std::deque<Page> storage_;  // stable addresses
  absl::flat_hash_map<uint64_t, Page*> pages_;
  uint64_t last_number_ = 0;  // the page used last: ids come in runs
  Page* last_ = nullptr;
};

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_ID_SET_H_
