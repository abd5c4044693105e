#include "analysis/region.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analysis/arithmetic.h"

namespace gpuperf::analysis {
namespace {

absl::StatusOr<Intervals> OfSteps(const RegionSpec::Steps& slice, const Timeline& timeline) {
  const std::vector<Timeline::StepEnd>& steps = timeline.steps();
  if (steps.empty()) return absl::OutOfRangeError("the trace has no steps (gpuperf.step() tells them)");
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].index <= steps[i - 1].index) {
      return absl::OutOfRangeError("the numbers of the trace's steps do not rise, so they do not name a part of it");
    }
  }
  constexpr uint64_t kMost = uint64_t{1} << 62;
  const auto count = static_cast<int64_t>(std::min(steps.back().index, kMost) + 1);
  const auto place = [&](const std::optional<int64_t>& index, int64_t otherwise) {
    if (!index) return otherwise;
    return std::clamp<int64_t>(*index < 0 ? AddSaturated(*index, count) : *index, 0, count);
  };
  const int64_t first = place(slice.begin, 0);
  const int64_t end = place(slice.end, count);
  if (first >= end) return Intervals();
  const auto end_of = [&](int64_t index) -> std::optional<int64_t> {
    const auto found =
        std::lower_bound(steps.begin(), steps.end(), static_cast<uint64_t>(index),
                         [](const Timeline::StepEnd& step, uint64_t number) { return step.index < number; });
    if (found == steps.end() || found->index != static_cast<uint64_t>(index)) return std::nullopt;
    return found->host_ns;
  };
  // Nothing tells when step 0 began: all that was before its end is taken for it.
  const std::optional<int64_t> from = first == 0 ? timeline.span().begin : end_of(first - 1);
  const std::optional<int64_t> to = end_of(end - 1);
  if (from && to) return Union({{*from, *to}});
  return absl::OutOfRangeError(absl::StrCat("the end of step ", from ? end - 1 : first - 1,
                                            " is not in the trace, so it is not known where the region ",
                                            from ? "ends" : "begins"));
}

// Absent: there is none that `wants(const Timeline::NamedInterval&)`.
template <class Wants>
std::optional<Intervals> OfAnnotations(const Timeline& timeline, const Wants& wants) {
  Intervals intervals;
  bool found = false;
  for (const Timeline::NamedInterval& annotation : timeline.annotations()) {
    if (!wants(annotation)) continue;
    found = true;
    intervals.push_back(annotation.interval);
  }
  if (!found) return std::nullopt;
  return Union(std::move(intervals));
}

absl::StatusOr<Intervals> OfAnnotation(const std::string& name, const Timeline& timeline) {
  std::optional<Intervals> intervals =
      OfAnnotations(timeline, [&](const Timeline::NamedInterval& row) { return *row.name == name; });
  if (intervals) return *std::move(intervals);
  return absl::OutOfRangeError(absl::StrCat("the trace has no annotation \"", name, "\""));
}

absl::StatusOr<Intervals> OfNvtx(const RegionSpec::Nvtx& nvtx, const Timeline& timeline) {
  std::optional<Intervals> intervals = OfAnnotations(timeline, [&](const Timeline::NamedInterval& row) {
    if (!row.is_nvtx || *row.name != nvtx.name) return false;
    return !nvtx.domain || (row.domain != nullptr && *row.domain == *nvtx.domain);
  });
  if (intervals) return *std::move(intervals);
  std::string where;
  if (nvtx.domain) {
    where = nvtx.domain->empty() ? " in the default domain" : absl::StrCat(" in a domain \"", *nvtx.domain, "\"");
  }
  return absl::OutOfRangeError(absl::StrCat("the trace has no NVTX range \"", nvtx.name, "\"", where));
}

int64_t HostTime(const TimePoint& point, const Interval& span) {
  switch (point.origin) {
    case TimePoint::Origin::kStart:
      return AddSaturated(span.begin, point.ns);
    case TimePoint::Origin::kEnd:
      return AddSaturated(span.end, point.ns);
    case TimePoint::Origin::kHostClock:
      break;
  }
  return point.ns;
}

}  // namespace

absl::StatusOr<Region> Resolve(const RegionSpec& spec, const Timeline& timeline) {
  const Interval& span = timeline.span();
  Region region;
  region.host = Union({span});
  if (spec.time) {
    const int64_t begin = spec.time->begin ? HostTime(*spec.time->begin, span) : span.begin;
    const int64_t end = spec.time->end ? HostTime(*spec.time->end, span) : span.end;
    region.host = Intersection(region.host, Union({{begin, end}}));
  }
  if (spec.steps) {
    const absl::StatusOr<Intervals> intervals = OfSteps(*spec.steps, timeline);
    if (!intervals.ok()) return intervals.status();
    region.host = Intersection(region.host, *intervals);
  }
  if (spec.annotation) {
    const absl::StatusOr<Intervals> intervals = OfAnnotation(*spec.annotation, timeline);
    if (!intervals.ok()) return intervals.status();
    region.host = Intersection(region.host, *intervals);
  }
  if (spec.nvtx) {
    const absl::StatusOr<Intervals> intervals = OfNvtx(*spec.nvtx, timeline);
    if (!intervals.ok()) return intervals.status();
    region.host = Intersection(region.host, *intervals);
  }
  if (timeline.clock().known()) {
    Intervals device;
    for (const Interval& interval : region.host) {
      device.push_back({timeline.clock().ToDevice(interval.begin), timeline.clock().ToDevice(interval.end)});
    }
    region.device = Union(std::move(device));
  }
  return region;
}

}  // namespace gpuperf::analysis
