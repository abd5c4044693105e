#include "analysis/intervals.h"

#include <algorithm>
#include <utility>

#include "analysis/arithmetic.h"

namespace gpuperf::analysis {

Intervals Union(Intervals intervals) {
  const auto by_begin = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), by_begin)) {
    std::sort(intervals.begin(), intervals.end(), by_begin);
  }
  size_t size = 0;
  for (const Interval& interval : intervals) {
    if (interval.begin >= interval.end) continue;
    if (size != 0 && interval.begin <= intervals[size - 1].end) {
      intervals[size - 1].end = std::max(intervals[size - 1].end, interval.end);
    } else {
      intervals[size++] = interval;
    }
  }
  intervals.resize(size);
  return intervals;
}

int64_t Length(const Intervals& set) {
  int64_t sum = 0;
  for (const Interval& interval : set) sum = AddSaturated(sum, interval.end - interval.begin);
  return sum;
}

Intervals Intersection(const Intervals& a, const Intervals& b) {
  Intervals common;
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const int64_t begin = std::max(a[i].begin, b[j].begin);
    const int64_t end = std::min(a[i].end, b[j].end);
    if (begin < end) common.push_back({begin, end});
    if (a[i].end < b[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  return common;
}

Intervals Difference(const Intervals& a, const Intervals& b) {
  Intervals rest;
  size_t j = 0;
  for (const Interval& interval : a) {
    int64_t begin = interval.begin;
    while (j < b.size() && b[j].end <= begin) ++j;
    for (size_t k = j; k < b.size() && b[k].begin < interval.end; ++k) {
      if (b[k].begin > begin) rest.push_back({begin, b[k].begin});
      begin = std::max(begin, b[k].end);
    }
    if (begin < interval.end) rest.push_back({begin, interval.end});
  }
  return rest;
}

std::optional<int64_t> Overlap(const Intervals& set, int64_t begin, int64_t end) {
  auto at = std::upper_bound(set.begin(), set.end(), begin,
                             [](int64_t time, const Interval& interval) { return time < interval.end; });
  if (begin == end) {
    return at != set.end() && at->begin <= begin ? std::optional<int64_t>(0) : std::nullopt;
  }
  std::optional<int64_t> length;
  for (; at != set.end() && at->begin < end; ++at) {
    length = length.value_or(0) + std::min(end, at->end) - std::max(begin, at->begin);
  }
  return length;
}

void IntervalCollector::Compact() {
  pending_ = Union(std::move(pending_));
  compact_at_ = std::max(kLeastCompaction, 2 * pending_.size());
}

Intervals IntervalCollector::Take() {
  compact_at_ = kLeastCompaction;
  return Union(std::exchange(pending_, {}));
}

}  // namespace gpuperf::analysis
