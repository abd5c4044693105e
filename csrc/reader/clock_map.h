// Carries device times to the host clock: piecewise linear through the trace's clock pairs.
//
//   host = h0 + floor((device - d0) × (h1 - h0) / (d1 - d0))    between the pairs (h0, d0) and (h1, d1)
//
// Before the first and after the last pair the nearest segment goes on; with a single pair the two clocks run equally
// fast. Integers throughout (128 bit in between), so a pair's device time maps to its host time exactly and equal
// input gives equal output everywhere. Monotone: pairs that would make it fall back (a clock that was set) are left out
// and counted. Built once, then read from any thread.
#ifndef GPUPERF_READER_CLOCK_MAP_H_
#define GPUPERF_READER_CLOCK_MAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuperf::reader {

struct ClockPoint {
  int64_t host_ns = 0;
  int64_t device_ns = 0;
};

class ClockMap {
 public:
  ClockMap() = default;
  explicit ClockMap(std::vector<ClockPoint> points);

  // False: the trace has no usable clock pair, and ToHost must not be called.
  bool known() const { return !points_.empty(); }
  size_t size() const { return points_.size(); }
  size_t left_out() const { return left_out_; }

  int64_t ToHost(int64_t device_ns) const {
    size_t hint = 0;
    return ToHost(device_ns, &hint);
  }
  // The same, faster for times that come almost in order: `hint` begins as 0 and is of one caller and one map.
  int64_t ToHost(int64_t device_ns, size_t* hint) const;
  // The least device time that ToHost carries to `host_ns` or later: what begins at or after it began at or after
  // `host_ns`.
  int64_t ToDevice(int64_t host_ns) const;

 private:
  std::vector<ClockPoint> points_;  // both clocks strictly rising
  size_t left_out_ = 0;
};

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_CLOCK_MAP_H_
