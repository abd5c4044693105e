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

// One test: the choice is made once in a process.
TEST_CASE("stamps become host times, in order and within microseconds") {
  {
    // Before the choice a stamp is the host time itself.
    const StampClock clock;
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
