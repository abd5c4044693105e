// What the benchmarks share: percentiles, and results as the JSON lines that benchmarks/run.py reads.
#ifndef GPUPERF_BENCHMARKS_CPP_REPORT_H_
#define GPUPERF_BENCHMARKS_CPP_REPORT_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/clock.h"

namespace gpuperf::benchmarks {

inline void Print(const char* name, double value, const char* unit, const char* better) {
  std::printf("{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\", \"better\": \"%s\"}\n", name, value, unit, better);
}

// Nearest rank; reorders the values.
inline uint64_t Percentile(std::vector<uint64_t>& values, double share) {
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<size_t>(rank)];
}

// Ticks between two reads of the tick counter with nothing between them: the cost of the timer itself.
inline uint64_t TimerTicks() {
  std::vector<uint64_t> ticks(200'000);
  for (uint64_t& tick : ticks) {
    const uint64_t begin = base::Ticks();
    tick = base::Ticks() - begin;
  }
  return Percentile(ticks, 0.5);
}

inline double NsPerTick() {
  const uint64_t begin_ns = base::NowNs();
  const uint64_t begin = base::Ticks();
  while (base::NowNs() - begin_ns < 50'000'000) {
  }
  return static_cast<double>(base::NowNs() - begin_ns) / static_cast<double>(base::Ticks() - begin);
}

// p50 and p99.9 of `ticks` less the timer's own cost, in ns, and that cost.
inline void PrintLatencies(const char* p50, const char* p999, const char* timer, std::vector<uint64_t>& ticks) {
  const double ns = NsPerTick();
  const uint64_t own = TimerTicks();
  const auto net = [&](uint64_t value) { return ns * static_cast<double>(value > own ? value - own : 0); };
  Print(p50, net(Percentile(ticks, 0.5)), "ns", "lower");
  Print(p999, net(Percentile(ticks, 0.999)), "ns", "lower");
  Print(timer, ns * static_cast<double>(own), "ns", "lower");
}

// Lets about `ns` pass without a system call.
inline void Pause(uint64_t ns) {
  const uint64_t begin = base::NowNs();
  while (base::NowNs() - begin < ns) {
  }
}

}  // namespace gpuperf::benchmarks

#endif  // GPUPERF_BENCHMARKS_CPP_REPORT_H_
