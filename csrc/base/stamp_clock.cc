#include "base/stamp_clock.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace gpuperf::base {

std::atomic<bool> g_stamps_are_ticks{false};

namespace {

constexpr int kTries = 3;
constexpr uint64_t kShortestBaseNs = 2'000'000;  // two pairs this far apart give the rate to some 20 ppm
constexpr uint64_t kLongestBaseNs = 10'000'000'000;
constexpr uint64_t kHorizonNs = 50'000'000;  // within which a difference between the clocks is made good
constexpr uint64_t kShortestStepNs = 1'000'000;
// A clock may be slewed by 500 ppm; what is beyond this share of the time since the last pair is a jump, unless it is
// so little that the reading itself may be to blame.
constexpr uint64_t kJumpShare = 100;  // a hundredth
constexpr uint64_t kSmallestJumpNs = 50'000;
// A stamp that is this far ahead of the last pair is looked at only after another pair was read.
constexpr uint64_t kFarAheadNs = 100'000'000;

// The pair that the first rates of this process are reckoned from.
StampPair g_first;

StampPair ReadPair() noexcept {
  StampPair best;
  best.width = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = Ticks();
    const uint64_t ns = NowNs();
    const uint64_t width = Ticks() - before;
    if (width < best.width) best = {before + width / 2, ns, width};
  }
  return best;
}

bool CounterIsInvariant() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kPowerManagementLeaf = 0x80000007;
  constexpr unsigned kInvariantBit = 1U << 8;
  return __get_cpuid(kPowerManagementLeaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantBit) != 0;
#else
  return false;
#endif
}

// The kernel takes another clock source when it finds the counters of the processors to disagree.
bool KernelTrustsCounter() noexcept {
  std::FILE* file = std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
  if (file == nullptr) return false;
  char text[64] = {};
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const std::string_view source(text, size);
  return source == "tsc\n" || source == "kvm-clock\n" || source == "hyperv_clocksource_tsc_page\n";
}

uint64_t Rate(const StampPair& from, const StampPair& to) noexcept {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(to.ns - from.ns) << 32) /
                               std::max<uint64_t>(to.ticks - from.ticks, 1));
}

uint64_t Scale(uint64_t ticks, uint64_t rate) noexcept {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(ticks) * rate) >> 32);
}

}  // namespace

void ChooseStamps() noexcept {
  static const bool kChosen = [] {
    g_first = ReadPair();
    g_stamps_are_ticks.store(CounterIsInvariant() && KernelTrustsCounter(), std::memory_order_relaxed);
    return true;
  }();
  static_cast<void>(kChosen);
}

StampClock::StampClock() noexcept
    : StampClock(g_stamps_are_ticks.load(std::memory_order_relaxed) ? ReadPair : nullptr, g_first) {}

StampClock::StampClock(StampPair (*read)() noexcept) noexcept : StampClock(read, read()) {}

StampClock::StampClock(StampPair (*read)() noexcept, const StampPair& base) noexcept : read_(read), base_(base) {
  if (read_ == nullptr) return;
  StampPair now = read_();
  while (now.ns - base_.ns < kShortestBaseNs) now = read_();  // only in a process that has just begun
  next_base_ = now;
  Add(now, now.ns, Rate(base_, now));
}

uint64_t StampClock::Along(const Segment& segment, uint64_t stamp) noexcept {
  if (stamp >= segment.stamp) return segment.ns + Scale(stamp - segment.stamp, segment.rate);
  return segment.ns - Scale(segment.stamp - stamp, segment.rate);
}

void StampClock::Add(const StampPair& at, uint64_t ns, uint64_t rate) noexcept {
  const uint64_t floor = count_ == 0 ? ns : std::max(Latest().floor, ns);
  segments_[count_++ % kSegments] = {at.ticks, ns, rate, floor};
}

void StampClock::Step(const StampPair& to) noexcept {
  // A jump right after a step is no jump: the counter has another speed.
  const bool again = base_.ticks == Latest().stamp && to.ticks > base_.ticks && to.ns >= base_.ns + kShortestBaseNs;
  const uint64_t rate = again ? Rate(base_, to) : Latest().rate;
  const uint64_t floor = std::max({Latest().floor, latest_ns_, to.ns});
  if (to.ticks < Latest().stamp) count_ = 0;  // the counter began anew: its old values say nothing
  Add(to, to.ns, rate);
  segments_[(count_ - 1) % kSegments].floor = floor;
  base_ = next_base_ = to;  // the rate before it may have been another, too
}

void StampClock::Update() noexcept {
  if (read_ == nullptr) return;
  const StampPair now = read_();
  const Segment& latest = Latest();
  const uint64_t reckoned = Along(latest, now.ticks);
  const auto error = static_cast<int64_t>(now.ns - reckoned);
  const uint64_t passed = std::max(now.ns, latest.ns) - latest.ns;
  const uint64_t jump = std::max(passed / kJumpShare, kSmallestJumpNs + Scale(now.width, latest.rate));
  if (now.ticks < latest.stamp || error > static_cast<int64_t>(jump) || error < -static_cast<int64_t>(jump)) {
    Step(now);
    return;
  }
  if (passed < kShortestStepNs) return;
  if (now.ns - next_base_.ns > kLongestBaseNs) {
    base_ = next_base_;
    next_base_ = now;
  }
  // After a step the rate is known again only when its base is long enough.
  const uint64_t rate = now.ns - base_.ns < kShortestBaseNs ? latest.rate : Rate(base_, now);
  // Never backwards: a clock that is ahead is slowed down.
  const double correction = static_cast<double>(error) / static_cast<double>(kHorizonNs);
  Add(now, reckoned, static_cast<uint64_t>(static_cast<double>(rate) * (1 + std::max(correction, -0.5))));
}

bool StampClock::IsFarAhead(uint64_t stamp) const noexcept {
  return stamp > Latest().stamp && Scale(stamp - Latest().stamp, Latest().rate) > kFarAheadNs;
}

uint64_t StampClock::ToNs(uint64_t stamp) noexcept {
  if (read_ == nullptr) return stamp;
  if (IsFarAhead(stamp)) {
    Update();                                      // the machine slept since the last pair, and with it this thread
    if (IsFarAhead(stamp)) return Latest().floor;  // of a counter that began anew meanwhile
  }
  const size_t oldest = count_ > kSegments ? count_ - kSegments : 0;
  size_t i = count_ - 1;
  while (i > oldest && stamp < segments_[i % kSegments].stamp) --i;
  const Segment& segment = segments_[i % kSegments];
  uint64_t ns = Along(segment, stamp);
  if (stamp >= segment.stamp) ns = std::max(ns, segment.floor);
  if (i + 1 < count_) ns = std::min(ns, segments_[(i + 1) % kSegments].floor);
  latest_ns_ = std::max(latest_ns_, ns);
  return ns;
}

}  // namespace gpuperf::base
