#include "analysis/id_set.h"

namespace gpuperf::analysis {

void IdSet::Insert(uint64_t id) {
  const uint64_t number = id / kPageBits;
  if (last_ == nullptr || number != last_number_) {
    Page*& page = pages_[number];
    if (page == nullptr) page = &storage_.emplace_back();
    last_ = page;
    last_number_ = number;
  }
  (*last_)[id % kPageBits / 64] |= uint64_t{1} << (id % 64);
}

bool IdSet::Contains(uint64_t id) const {
  const uint64_t number = id / kPageBits;
  const Page* page = last_;
  if (page == nullptr || number != last_number_) {
    const auto found = pages_.find(number);
    if (found == pages_.end()) return false;
    page = found->second;
  }
  return ((*page)[id % kPageBits / 64] >> (id % 64) & 1) != 0;
}

}  // namespace gpuperf::analysis
