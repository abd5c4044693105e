#include "reader/clock_map.h"

#include <algorithm>
#include <utility>

namespace gpuperf::reader {
namespace {

__extension__ using int128 = __int128;

int128 FloorDivide(int128 value, int128 divisor) {
  const int128 quotient = value / divisor;
  return value % divisor != 0 && (value < 0) != (divisor < 0) ? quotient - 1 : quotient;
}

}  // namespace

ClockMap::ClockMap(std::vector<ClockPoint> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const ClockPoint& a, const ClockPoint& b) { return a.host_ns < b.host_ns; });
  for (const ClockPoint& point : points) {
    if (points_.empty() || (point.host_ns > points_.back().host_ns && point.device_ns > points_.back().device_ns)) {
      points_.push_back(point);
    } else if (point.host_ns != points_.back().host_ns || point.device_ns != points_.back().device_ns) {
      ++left_out_;  // and not the same pair twice
    }
  }
}

int64_t ClockMap::ToHost(int64_t device_ns) const {
  if (points_.size() == 1) {
    const int128 host = int128{device_ns} - points_[0].device_ns + points_[0].host_ns;
    return static_cast<int64_t>(std::clamp<int128>(host, INT64_MIN, INT64_MAX));
  }
  // The last point of the segment; at the ends the nearest segment.
  const auto behind = std::upper_bound(points_.begin() + 1, points_.end() - 1, device_ns,
                                       [](int64_t time, const ClockPoint& point) { return time < point.device_ns; });
  const ClockPoint& from = *(behind - 1);
  const ClockPoint& to = *behind;
  // |difference| < 2^64 and |slope's numerator| < 2^63: the product fits 128 bits.
  const int128 host = from.host_ns + FloorDivide((int128{device_ns} - from.device_ns) * (to.host_ns - from.host_ns),
                                                 int128{to.device_ns} - from.device_ns);
  return static_cast<int64_t>(std::clamp<int128>(host, INT64_MIN, INT64_MAX));
}

}  // namespace gpuperf::reader
