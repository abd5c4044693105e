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

int64_t Clamped(int128 time) { return static_cast<int64_t>(std::clamp<int128>(time, INT64_MIN, INT64_MAX)); }

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

int64_t ClockMap::ToHost(int64_t device_ns, size_t* hint) const {
  if (points_.size() == 1) return Clamped(int128{device_ns} - points_[0].device_ns + points_[0].host_ns);
  // `hint` is the first point of a segment; the segment before the first and behind the last point is the nearest.
  const size_t last = points_.size() - 2;
  const auto is_in = [&](size_t segment) {
    return (segment == 0 || points_[segment].device_ns <= device_ns) &&
           (segment == last || device_ns < points_[segment + 1].device_ns);
  };
  if (*hint > last || !is_in(*hint)) {
    const auto behind = std::upper_bound(points_.begin() + 1, points_.end() - 1, device_ns,
                                         [](int64_t time, const ClockPoint& point) { return time < point.device_ns; });
    *hint = static_cast<size_t>(behind - points_.begin()) - 1;
  }
  const ClockPoint& from = points_[*hint];
  const ClockPoint& to = points_[*hint + 1];
  const int64_t host_span = to.host_ns - from.host_ns;
  const int64_t device_span = to.device_ns - from.device_ns;
  constexpr int64_t kSmall = int64_t{1} << 31;
  if (device_ns >= from.device_ns && device_ns - from.device_ns < kSmall && host_span < kSmall) {
    return from.host_ns + (device_ns - from.device_ns) * host_span / device_span;  // most times; below 2^62
  }
  // |difference| < 2^64 and |slope's numerator| < 2^63: the product fits 128 bits.
  return Clamped(from.host_ns + FloorDivide((int128{device_ns} - from.device_ns) * host_span, device_span));
}

int64_t ClockMap::ToDevice(int64_t host_ns) const {
  if (points_.size() == 1) return Clamped(int128{host_ns} - points_[0].host_ns + points_[0].device_ns);
  const auto behind = std::upper_bound(points_.begin() + 1, points_.end() - 1, host_ns,
                                       [](int64_t time, const ClockPoint& point) { return time < point.host_ns; });
  const ClockPoint& from = *(behind - 1);
  const ClockPoint& to = *behind;
  // floor(x × H / D) >= k  <=>  x >= ceil(k × D / H)
  const int128 ahead = (int128{host_ns} - from.host_ns) * (to.device_ns - from.device_ns);
  return Clamped(from.device_ns - FloorDivide(-ahead, to.host_ns - from.host_ns));
}

}  // namespace gpuperf::reader
