// The clocks that gpuperf reads. All in ns unless the name says otherwise.
// Any thread; no state; none of these enters the kernel where the vDSO serves the clock (x86-64 and arm64 Linux).
#ifndef GPUPERF_BASE_CLOCK_H_
#define GPUPERF_BASE_CLOCK_H_

#include <cstdint>
#include <ctime>

namespace gpuperf::base {

inline uint64_t ReadClock(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(time.tv_nsec);
}

// The host clock of every record (CLOCK_MONOTONIC).
inline uint64_t NowNs() noexcept { return ReadClock(CLOCK_MONOTONIC); }

// CPU time of the calling thread.
inline uint64_t ThreadCpuNs() noexcept { return ReadClock(CLOCK_THREAD_CPUTIME_ID); }

// Cheapest counter that there is, for costs of some ns: ticks of unknown length, to be scaled by a calibration.
inline uint64_t Ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return NowNs();
#endif
}

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_CLOCK_H_
