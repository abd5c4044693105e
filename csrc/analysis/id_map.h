// A map from 64-bit ids that are mostly dense to small numbers: 4 bytes for each id, in pages of 512. What is not in it
// is 0. One thread.
#ifndef GPUPERF_ANALYSIS_ID_MAP_H_
#define GPUPERF_ANALYSIS_ID_MAP_H_

#include <array>
#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_map.h"

namespace gpuperf::analysis {

class IdMap {
 public:
  uint32_t& operator[](uint64_t id) {
    const uint64_t number = id / kPageSize;
    if (last_ == nullptr || number != last_number_) {
      Page*& page = pages_[number];
      if (page == nullptr) page = &storage_.emplace_back();
      last_ = page;
      last_number_ = number;
    }
    return (*last_)[id % kPageSize];
  }
  uint32_t Find(uint64_t id) const {
    const uint64_t number = id / kPageSize;
    if (last_ != nullptr && number == last_number_) return (*last_)[id % kPageSize];
    const auto found = pages_.find(number);
    return found == pages_.end() ? 0 : (*found->second)[id % kPageSize];
  }

 private:
  static constexpr uint64_t kPageSize = 512;
  using Page = std::array<uint32_t, kPageSize>;

  std::deque<Page> storage_;  // stable addresses, zeroed
  absl::flat_hash_map<uint64_t, Page*> pages_;
  uint64_t last_number_ = 0;  // the page used last: ids come in runs
  Page* last_ = nullptr;
};

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_ID_MAP_H_
