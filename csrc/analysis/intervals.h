// Sets of time as sorted, disjoint, half-open intervals [begin, end). Exact integers, pure functions, any thread.
#ifndef GPUPERF_ANALYSIS_INTERVALS_H_
#define GPUPERF_ANALYSIS_INTERVALS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gpuperf::analysis {

struct Interval {
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const Interval& other) const { return begin == other.begin && end == other.end; }
};
using Intervals = std::vector<Interval>;

// Sorts, joins what overlaps or touches, drops what is empty.
Intervals Union(Intervals intervals);

// The functions below take what Union returns.
int64_t Length(const Intervals& set);
Intervals Intersection(const Intervals& a, const Intervals& b);
Intervals Difference(const Intervals& a, const Intervals& b);

// How much of [begin, end) lies in the set. Absent: it does not touch the set. An empty one (begin == end) touches it
// where it begins in it.
std::optional<int64_t> Overlap(const Intervals& set, int64_t begin, int64_t end);

// Gathers intervals that come almost in order (one stream after the other) in little more memory than their union
// needs.
class IntervalCollector {
 public:
  void Add(int64_t begin, int64_t end) {
    if (!pending_.empty() && begin >= pending_.back().begin && begin <= pending_.back().end) {
      if (end > pending_.back().end) pending_.back().end = end;
      return;
    }
    pending_.push_back({begin, end});
    if (pending_.size() >= compact_at_) Compact();
  }
  Intervals Take();

 private:
  static constexpr size_t kLeastCompaction = 1 << 16;

  void Compact();

  Intervals pending_;
  size_t compact_at_ = kLeastCompaction;
};

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_INTERVALS_H_
