// Cheap stamps for the hot path, and their way back to the host clock.
//
// Reading CLOCK_MONOTONIC would be the dearest part of our callbacks, twice in every CUDA call. Where the processor has
// an invariant time-stamp counter and the kernel trusts it, producers therefore stamp their records with the counter
// alone, and the collector turns stamps into CLOCK_MONOTONIC ns by pairs of both that it reads all the time. Elsewhere,
// and before ChooseStamps(), a stamp is CLOCK_MONOTONIC itself.
//
// Stamp(): any thread, hot path. StampClock: one thread (the collector).
#ifndef GPUPERF_BASE_STAMP_CLOCK_H_
#define GPUPERF_BASE_STAMP_CLOCK_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace gpuperf::base {

extern std::atomic<bool> g_stamps_are_ticks;

inline uint64_t Stamp() noexcept { return g_stamps_are_ticks.load(std::memory_order_relaxed) ? Ticks() : NowNs(); }

// Decides, once in a process and before its first session, what a stamp is.
void ChooseStamps() noexcept;

// Piecewise linear, continuous and increasing: two stamps of one thread keep their order and, to some ns, their
// distance. Follows the host clock's own changes of rate within some tens of ms.
class StampClock {
 public:
  StampClock() noexcept;

  // Compares both clocks; call it every few ms.
  void Update() noexcept;

  // Host time of a stamp; stamps up to about a second old, and new ones.
  uint64_t ToNs(uint64_t stamp) const noexcept;

 private:
  // From `stamp` on, host time is ns + (stamp' - stamp) × rate / 2^32.
  struct Segment {
    uint64_t stamp = 0;
    uint64_t ns = 0;
    uint64_t rate = 0;
  };
  static constexpr size_t kSegments = 256;

  static uint64_t Along(const Segment& segment, uint64_t stamp) noexcept;
  const Segment& Latest() const noexcept { return segments_[(count_ - 1) % kSegments]; }
  void Add(const Segment& segment) noexcept { segments_[count_++ % kSegments] = segment; }

  const bool ticks_;
  size_t count_ = 0;
  std::array<Segment, kSegments> segments_{};
};

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_STAMP_CLOCK_H_
