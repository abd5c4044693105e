// The calls of a trace by their correlation ids. One thread.
//
// Ids are mostly dense, so places lie in pages of 64: four bytes for each id that a page spans, and neighbours in the
// same cache line.
#ifndef GPUPERF_TABLES_CALL_INDEX_H_
#define GPUPERF_TABLES_CALL_INDEX_H_

#include <array>
#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "reader/rows.h"
#include "reader/visitor.h"
#include "tables/rows.h"

namespace gpuperf::tables {

// What device work tells of its call.
struct CallFacts {
  int64_t enter_host_ns = 0;
  int64_t exit_host_ns = -1;  // -1: did not return
  const reader::ThreadEntry* thread = nullptr;
  const reader::CallSiteEntry* site = nullptr;
};

// Correlation id → the number that it was given first.
class PlaceByCorrelation {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // False: the id has a number already, which it keeps.
  bool Add(uint64_t correlation, uint32_t place) {
    const uint64_t number = correlation / kPage;
    if (last_ == nullptr || number != last_number_) {
      Page*& page = pages_[number];
      if (page == nullptr) {
        page = &storage_.emplace_back();
        page->fill(kNone);
      }
      last_ = page;
      last_number_ = number;
    }
    uint32_t& slot = (*last_)[correlation % kPage];
    if (slot != kNone) return false;
    slot = place;
    return true;
  }

  uint32_t Find(uint64_t correlation) {
    const uint64_t number = correlation / kPage;
    if (last_ == nullptr || number != last_number_) {
      const auto found = pages_.find(number);
      if (found == pages_.end()) return kNone;
      last_ = found->second;
      last_number_ = number;
    }
    return (*last_)[correlation % kPage];
  }

 private:
  static constexpr uint64_t kPage = 64;
  using Page = std::array<uint32_t, kPage>;

  std::deque<Page> storage_;  // stable addresses
  absl::flat_hash_map<uint64_t, Page*> pages_;
  uint64_t last_number_ = 0;  // the page used last: ids come in runs
  Page* last_ = nullptr;
};

class CallIndex {
 public:
  void Add(const reader::CallRow& row) {
    if (places_.Add(row.correlation, static_cast<uint32_t>(calls_.size()))) {
      calls_.Add({row.enter_host_ns, row.exit_host_ns, row.thread, row.site});
    }
  }
  // After all calls that returned.
  void Add(const reader::OpenCallRow& row) {
    if (places_.Add(row.row.correlation(), static_cast<uint32_t>(calls_.size()))) {
      calls_.Add({static_cast<int64_t>(row.row.enter_host_ns()), -1, row.thread, row.site});
    }
  }
  // nullptr: no call with that id is in what was read.
  const CallFacts* Find(uint64_t correlation) {
    const uint32_t place = places_.Find(correlation);
    return place == PlaceByCorrelation::kNone ? nullptr : &calls_[place];
  }

 private:
  PlaceByCorrelation places_;
  Rows<CallFacts> calls_;
};

}  // namespace gpuperf::tables

#endif  // GPUPERF_TABLES_CALL_INDEX_H_
