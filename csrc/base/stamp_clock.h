// Cheap stamps for the hot path, and their way back to the host clock.
//
// Reading CLOCK_MONOTONIC would be the dearest part of our callbacks, twice in every CUDA call. Where the processor has
// an invariant time-stamp counter and the kernel trusts it, producers therefore stamp their records with the counter
// alone, and the collector turns stamps into CLOCK_MONOTONIC ns by pairs of both that it reads all the time. Elsewhere,
// and before ChooseStamps(), a stamp is CLOCK_MONOTONIC itself.
//
// The counter and CLOCK_MONOTONIC may part: the one counts on while the machine sleeps and the other does not, a
// virtual machine moves to a host with another counter, the counter begins anew. Then the map steps to the host clock
// at once.
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

// Both clocks at one instant, and how many ticks the reading took.
struct StampPair {
  uint64_t ticks = 0;
  uint64_t ns = 0;
  uint64_t width = 0;
};

// Piecewise linear and never falling: two stamps of one thread keep their order and, to some ns, their distance.
// Follows the host clock's own changes of rate within some tens of ms, and a jump of either clock at once.
class StampClock {
 public:
  StampClock() noexcept;
  // For tests: stamps are ticks of a clock that `read` reads.
  explicit StampClock(StampPair (*read)() noexcept) noexcept;

  // Compares both clocks; call it every few ms.
  void Update() noexcept;

  // Host time of a stamp; stamps up to about a second old, and new ones.
  uint64_t ToNs(uint64_t stamp) noexcept;

 private:
  StampClock(StampPair (*read)() noexcept, const StampPair& base) noexcept;

  // From `stamp` on, host time is ns + (stamp' - stamp) × rate / 2^32, but at least `floor`. Stamps before it are at
  // most `floor`. The floor is above the line only after a step back, until host time has caught up with times that
  // were handed out.
  struct Segment {
    uint64_t stamp = 0;
    uint64_t ns = 0;
    uint64_t rate = 0;
    uint64_t floor = 0;
  };
  static constexpr size_t kSegments = 256;

  static uint64_t Along(const Segment& segment, uint64_t stamp) noexcept;
  const Segment& Latest() const noexcept { return segments_[(count_ - 1) % kSegments]; }
  bool IsFarAhead(uint64_t stamp) const noexcept;
  void Add(const StampPair& at, uint64_t ns, uint64_t rate) noexcept;
  void Step(const StampPair& to) noexcept;

  StampPair (*const read_)() noexcept;  // nullptr: stamps are host times
  // The pair that the rate is reckoned from, some seconds ago, and the one that takes its place.
  StampPair base_;
  StampPair next_base_;
  uint64_t latest_ns_ = 0;  // the greatest time handed out
  size_t count_ = 0;
  std::array<Segment, kSegments> segments_{};
};

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_STAMP_CLOCK_H_
