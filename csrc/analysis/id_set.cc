#include "analysis/id_set.h"

#include <bitset>

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

uint64_t IdSet::CountWithout(const IdSet& other) const {
  static constexpr Page kEmpty{};
  uint64_t count = 0;
  for (const auto& [number, page] : pages_) {
    const auto found = other.pages_.find(number);
    const Page& theirs = found == other.pages_.end() ? kEmpty : *found->second;
    for (size_t i = 0; i < page->size(); ++i) count += std::bitset<64>((*page)[i] & ~theirs[i]).count();
  }
  return count;
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
