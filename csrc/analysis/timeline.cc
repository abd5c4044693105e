#include "analysis/timeline.h"

#include <algorithm>
#include <utility>

namespace gpuperf::analysis {

using ::gpuperf::reader::kMaxNs;

void Timeline::OnChunk(const reader::Frame& frame) {
  const auto first = static_cast<int64_t>(std::min<uint64_t>(frame.header.first_host_ns(), kMaxNs));
  first_host_ns_ = std::min(first_host_ns_.value_or(first), first);
}

void Timeline::OnStep(const reader::StepRow& row) {
  steps_.push_back({static_cast<int64_t>(row.row.host_ns()), row.row.index()});
}

template <class Row>
Timeline::NamedInterval Timeline::Named(const Row& row, Interval interval) {
  const bool is_nvtx = row.row.source() != v1::MARKER_SOURCE_GPUPERF;
  return {Keep(row.name), is_nvtx ? DomainOf(row) : nullptr, is_nvtx, interval};
}

void Timeline::OnAnnotation(const reader::AnnotationRow& row) {
  if (row.name == nullptr) return;
  const auto begin = static_cast<int64_t>(row.row.begin_host_ns());
  annotations_.push_back(Named(row, {begin, begin + static_cast<int64_t>(row.row.duration_ns())}));
}

void Timeline::OnUnfinishedAnnotation(const reader::OpenAnnotationRow& row) {
  if (row.name == nullptr) return;
  unfinished_.push_back(Named(row, {static_cast<int64_t>(row.row.begin_host_ns()), 0}));
}

void Timeline::Finish(const reader::TraceReader& reader) {
  const auto start = static_cast<int64_t>(std::min<uint64_t>(reader.header().start().monotonic_ns(), kMaxNs));
  span_.begin = start != 0 ? start : first_host_ns_.value_or(0);
  span_.end = std::max(reader.last_host_ns(), span_.begin);
  for (NamedInterval& open : unfinished_) {
    open.interval.end = std::max(open.interval.begin, span_.end);
    annotations_.push_back(open);
  }
  unfinished_.clear();
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const StepEnd& a, const StepEnd& b) { return a.host_ns < b.host_ns; });
  clock_ = reader.clock_map();
}

}  // namespace gpuperf::analysis
