// Ranges of the process (NVTX start/end): they need not nest and may end on another thread, whose ring may be drained
// before the one that holds the start. Collector thread only; bounded.
#ifndef GPUPERF_COLLECTOR_RANGE_TABLE_H_
#define GPUPERF_COLLECTOR_RANGE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ring/app_names.h"
#include "ring/event_record.h"

namespace gpuperf::collector {

class RangeTable {
 public:
  struct End {
    uint64_t time_ns;
    uint32_t thread_iid;
  };
  struct Range {
    uint64_t begin_ns;
    uint32_t thread_iid;
    ring::DomainIndex domain;
    ring::MarkerAttributes attributes;
    std::string name;     // not its iid: dictionaries may restart before the end
    bool listed = false;  // among the open ones of a chunk
  };

  // Calls finish(range, end) if its end is known already. False: too many are open, and this one is not kept.
  template <typename Finish>
  bool Start(uint64_t id, Range range, Finish&& finish) {
    if (const auto early = early_ends_.find(id);
        early != early_ends_.end() && early->second.end.time_ns >= range.begin_ns) {
      finish(range, early->second.end);
      early_ends_.erase(early);
      return true;
    }
    if (open_.size() >= kMostOpen) return false;
    open_.insert_or_assign(id, std::move(range));
    return true;
  }

  template <typename Finish>
  void Finished(uint64_t id, const End& end, Finish&& finish) {
    const auto range = open_.find(id);
    if (range != open_.end()) {
      finish(range->second, end);
      open_.erase(range);
    } else if (early_ends_.size() < kMostOpen) {
      early_ends_.insert_or_assign(id, EarlyEnd{end, round_});
    }
  }

  // All rings were drained once more: an end that is older than that has no start in this session.
  void NextRound() {
    ++round_;
    for (auto end = early_ends_.begin(); end != early_ends_.end();) {
      end = round_ - end->second.round > 1 ? early_ends_.erase(end) : ++end;
    }
  }

  // Calls list(range) for each open range that was not listed yet.
  template <typename List>
  void ListNew(List&& list) {
    for (auto& [id, range] : open_) {
      if (!range.listed) list(range);
      range.listed = true;
    }
  }

 private:
  static constexpr size_t kMostOpen = 65536;
  struct EarlyEnd {
    End end;
    uint64_t round;
  };

  std::unordered_map<uint64_t, Range> open_;
  std::unordered_map<uint64_t, EarlyEnd> early_ends_;
  uint64_t round_ = 0;
};

}  // namespace gpuperf::collector

#endif  // GPUPERF_COLLECTOR_RANGE_TABLE_H_
