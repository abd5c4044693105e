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
constexpr uint64_t kHorizonNs = 50'000'000;      // within which a difference between the clocks is made good
constexpr uint64_t kLargestDriftNs = 1'000'000;  // more than this is a jump, not drift
constexpr uint64_t kShortestStepNs = 1'000'000;

struct Pair {
  uint64_t ticks = 0;
  uint64_t ns = 0;
};

// The pair that every rate of this process is reckoned from; the longer ago, the better.
Pair g_first;

Pair ReadPair() noexcept {
  Pair best;
  uint64_t narrowest = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = Ticks();
    const uint64_t ns = NowNs();
    const uint64_t width = Ticks() - before;
    if (width >= narrowest) continue;
    narrowest = width;
    best = {before + width / 2, ns};
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

uint64_t Rate(uint64_t ns, uint64_t ticks) noexcept {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(ns) << 32) / std::max<uint64_t>(ticks, 1));
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

StampClock::StampClock() noexcept : ticks_(g_stamps_are_ticks.load(std::memory_order_relaxed)) {
  if (!ticks_) return;
  Pair now = ReadPair();
  while (now.ns - g_first.ns < kShortestBaseNs) now = ReadPair();  // only in a process that has just begun
  Add({now.ticks, now.ns, Rate(now.ns - g_first.ns, now.ticks - g_first.ticks)});
}

uint64_t StampClock::Along(const Segment& segment, uint64_t stamp) noexcept {
  if (stamp >= segment.stamp) {
    return segment.ns +
           static_cast<uint64_t>((static_cast<unsigned __int128>(stamp - segment.stamp) * segment.rate) >> 32);
  }
  return segment.ns -
         static_cast<uint64_t>((static_cast<unsigned __int128>(segment.stamp - stamp) * segment.rate) >> 32);
}

void StampClock::Update() noexcept {
  if (!ticks_) return;
  const Pair now = ReadPair();
  const uint64_t reckoned = Along(Latest(), now.ticks);
  if (now.ticks <= Latest().stamp || now.ns < Latest().ns + kShortestStepNs) return;
  const auto error = static_cast<int64_t>(now.ns - reckoned);
  const uint64_t rate = Rate(now.ns - g_first.ns, now.ticks - g_first.ticks);
  if (error > static_cast<int64_t>(kLargestDriftNs)) {
    Add({now.ticks, now.ns, rate});  // the machine slept or was moved
    return;
  }
  // Never backwards: a clock that is ahead is slowed down, at most to half.
  const double correction = std::max(-0.5, static_cast<double>(error) / static_cast<double>(kHorizonNs));
  Add({now.ticks, reckoned, static_cast<uint64_t>(static_cast<double>(rate) * (1 + correction))});
}

uint64_t StampClock::ToNs(uint64_t stamp) const noexcept {
  if (!ticks_) return stamp;
  const size_t oldest = count_ > kSegments ? count_ - kSegments : 0;
  for (size_t i = count_; i-- > oldest;) {
    const Segment& segment = segments_[i % kSegments];
    if (stamp >= segment.stamp || i == oldest) return Along(segment, stamp);
  }
  return 0;  // not reached: the constructor adds a segment
}

}  // namespace gpuperf::base
