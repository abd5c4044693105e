// A part of a trace's time: told in steps, by an annotation or NVTX range, or in times, and resolved to intervals on
// both clocks.
//
// Pure; any thread. docs/report.md ("A region of the trace") is the normative text.
#ifndef GPUPERF_ANALYSIS_REGION_H_
#define GPUPERF_ANALYSIS_REGION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "analysis/intervals.h"
#include "analysis/timeline.h"

namespace gpuperf::analysis {

struct TimePoint {
  enum class Origin { kHostClock, kStart, kEnd };  // of the session's span

  Origin origin = Origin::kHostClock;
  int64_t ns = 0;
};

// What is asked for. Several ways of telling it at once mean what lies in all of them.
struct RegionSpec {
  struct Steps {  // as a Python slice of the steps 0, 1, 2 …
    std::optional<int64_t> begin;
    std::optional<int64_t> end;
  };
  struct Times {
    std::optional<TimePoint> begin;
    std::optional<TimePoint> end;
  };

  struct Nvtx {
    std::string name;
    std::optional<std::string> domain;  // "": the default domain; absent: any
  };

  std::optional<Steps> steps;
  std::optional<std::string> annotation;
  std::optional<Nvtx> nvtx;
  std::optional<Times> time;

  bool is_whole() const { return !steps && !annotation && !nvtx && !time; }
};

struct Region {
  Intervals host;  // within the session's span
  // The same on the device clock: [ToDevice(begin), ToDevice(end)). Absent: no clock pair tells.
  std::optional<Intervals> device;
};

// Errors (OutOfRange, one line): steps of which the trace does not tell when they began or ended; an annotation or
// NVTX range that it does not have. A region may well be empty.
absl::StatusOr<Region> Resolve(const RegionSpec& spec, const Timeline& timeline);

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_REGION_H_
