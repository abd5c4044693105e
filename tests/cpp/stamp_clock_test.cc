#include "base/stamp_clock.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "catch.h"

using gpuperf::base::ChooseStamps;
using gpuperf::base::NowNs;
using gpuperf::base::Stamp;
using gpuperf::base::StampClock;
using gpuperf::base::StampPair;

namespace {

constexpr uint64_t kMs = 1'000'000;

// A machine with a counter of 3 ticks a ns, as long as nothing happens to it.
struct Machine {
  uint64_t ticks = 9'000'000'000;
  uint64_t ns = 1'000'000'000;
  uint64_t ticks_per_us = 3'000;

  void Pass(uint64_t some_ns) {
    ns += some_ns;
    ticks += some_ns * ticks_per_us / 1'000;
  }
} g_machine;

StampPair ReadMachine() noexcept {
  g_machine.Pass(1'000);
  return {g_machine.ticks, g_machine.ns, 30};
}

uint64_t Off(uint64_t time) { return time < g_machine.ns ? g_machine.ns - time : time - g_machine.ns; }

// A clock that has followed the machine for a while.
StampClock Follow() {
  g_machine = Machine{};
  StampClock clock(ReadMachine);
  for (int i = 0; i < 20; ++i) {
    g_machine.Pass(5 * kMs);
    clock.Update();
  }
  REQUIRE(Off(clock.ToNs(g_machine.ticks)) < 100);
  return clock;
}

}  // namespace

// One test: the choice is made once in a process.
TEST_CASE("stamps become host times, in order and within microseconds") {
  {
    // Before the choice a stamp is the host time itself.
    StampClock clock;
    const uint64_t before = NowNs();
    const uint64_t stamp = Stamp();
    CHECK(clock.ToNs(stamp) == stamp);
    CHECK(stamp >= before);
    CHECK(stamp <= NowNs());
  }

  ChooseStamps();
  StampClock clock;
  std::vector<uint64_t> stamps;
  std::vector<uint64_t> times;
  std::vector<uint64_t> off;
  uint64_t previous = 0;
  for (int round = 0; round < 100; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const uint64_t before = NowNs();
    const uint64_t stamp = Stamp();
    const uint64_t after = NowNs();
    stamps.push_back(stamp);
    // Half of the stamps are read before the clocks are compared again, as the collector does, half after.
    if (round % 2 == 0) clock.Update();
    const uint64_t time = clock.ToNs(stamp);
    times.push_back(time);
    REQUIRE(time > previous);
    previous = time;
    // How far outside the two readings of the host clock around it.
    off.push_back(time < before ? before - time : time > after ? time - after : 0);
  }
  std::sort(off.begin(), off.end());
  INFO("median " << off[50] << " ns, worst " << off.back() << " ns");
  CHECK(off[50] < 1'000);
  CHECK(off[95] < 20'000);

  // Old stamps keep their times when the clock goes on, and their order.
  for (size_t i = 1; i < stamps.size(); ++i) {
    CHECK(clock.ToNs(stamps[i - 1]) < clock.ToNs(stamps[i]));
    CHECK(std::llabs(static_cast<long long>(clock.ToNs(stamps[i]) - times[i])) < 2'000);
  }
}

TEST_CASE("a counter that counted on while the machine slept is followed at once, and no time falls") {
  StampClock clock = Follow();
  const uint64_t before_ticks = g_machine.ticks;
  g_machine.Pass(2 * kMs);
  const uint64_t before = clock.ToNs(g_machine.ticks);
  g_machine.ticks += uint64_t{3'600} * 3'000'000'000;  // an hour that CLOCK_MONOTONIC does not count
  g_machine.Pass(kMs / 10);
  uint64_t previous = before;
  // Whether the collector compares the clocks first, or first meets a stamp from after the sleep.
  SECTION("compared first") { clock.Update(); }
  SECTION("a stamp first") {}
  for (int i = 0; i < 100; ++i) {
    const uint64_t time = clock.ToNs(g_machine.ticks);
    REQUIRE(Off(time) < 10'000);
    REQUIRE(time >= previous);
    previous = time;
    g_machine.Pass(kMs);
    if (i % 5 == 4) clock.Update();
  }
  // A stamp of before the sleep that was still in a ring.
  CHECK(clock.ToNs(before_ticks) <= before);
}

TEST_CASE("a host clock that jumps forward is followed at once") {
  StampClock clock = Follow();
  const uint64_t old_ticks = g_machine.ticks;
  const uint64_t old_ns = g_machine.ns;
  g_machine.ns += 30 * kMs;
  g_machine.Pass(5 * kMs);
  clock.Update();
  CHECK(Off(clock.ToNs(g_machine.ticks)) < 10'000);
  CHECK(clock.ToNs(old_ticks) < old_ns + 1'000);
  CHECK(clock.ToNs(old_ticks) + 1'000 > old_ns);
}

TEST_CASE("a counter of another speed is measured anew") {
  StampClock clock = Follow();
  g_machine.ticks_per_us = 2'400;
  uint64_t previous = 0;
  for (int i = 0; i < 200; ++i) {
    g_machine.Pass(kMs);
    const uint64_t time = clock.ToNs(g_machine.ticks);
    REQUIRE(time >= previous);
    previous = time;
    if (i % 5 == 4) clock.Update();
    if (i > 20) REQUIRE(Off(clock.ToNs(g_machine.ticks)) < 10'000);
  }
}

TEST_CASE("a counter that begins anew does not stop the clock") {
  StampClock clock = Follow();
  const uint64_t old_ticks = g_machine.ticks;
  const uint64_t before = clock.ToNs(old_ticks);
  g_machine.ticks = 1'000;
  for (int i = 0; i < 10; ++i) {
    g_machine.Pass(5 * kMs);
    clock.Update();
    CHECK(Off(clock.ToNs(g_machine.ticks)) < 10'000);
    CHECK(clock.ToNs(g_machine.ticks) >= before);
  }
  CHECK(clock.ToNs(old_ticks) <= g_machine.ns);
}
