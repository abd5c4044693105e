// ClockMap: exact at its points, linear between, the nearest slope beyond, monotone whatever it is given.
#include <vector>

#include "catch.h"
#include "reader/clock_map.h"

namespace gpuperf::reader {
namespace {

constexpr int64_t kEpoch = 1'796'089'427'000'000'000;

TEST_CASE("no pair: not known; one pair: a shift") {
  CHECK(!ClockMap().known());
  const ClockMap map({{1000, kEpoch}});
  CHECK(map.ToHost(kEpoch) == 1000);
  CHECK(map.ToHost(kEpoch - 5000) == -4000);
  CHECK(map.ToHost(kEpoch + 7) == 1007);
}

TEST_CASE("pairs map exactly, between them it is linear and floored, beyond them the nearest slope goes on") {
  const ClockMap map({{1000, kEpoch}, {2000, kEpoch + 500}, {2300, kEpoch + 800}});
  CHECK(map.ToHost(kEpoch) == 1000);
  CHECK(map.ToHost(kEpoch + 500) == 2000);
  CHECK(map.ToHost(kEpoch + 800) == 2300);
  CHECK(map.ToHost(kEpoch + 250) == 1500);
  CHECK(map.ToHost(kEpoch - 10) == 980);
  CHECK(map.ToHost(kEpoch + 810) == 2310);
  const ClockMap slow({{0, 0}, {1, 3}});
  CHECK(slow.ToHost(1) == 0);
  CHECK(slow.ToHost(2) == 0);
  CHECK(slow.ToHost(-1) == -1);  // floor, not towards 0
}

TEST_CASE("differences of hours keep every ns") {
  constexpr int64_t kDay = 86'400'000'000'000;
  const ClockMap map({{5, kEpoch}, {5 + kDay, kEpoch + kDay + 1}});
  CHECK(map.ToHost(kEpoch + kDay / 2) == 5 + kDay / 2 - 1);
  CHECK(map.ToHost(kEpoch + kDay + 1) == 5 + kDay);
}

TEST_CASE("pairs out of order are sorted; those that would fall back are left out; twice the same is once") {
  const ClockMap map({{300, 3000}, {100, 1000}, {200, 900}, {100, 1000}, {150, 1500}});
  CHECK(map.size() == 3);
  CHECK(map.left_out() == 1);
  int64_t before = map.ToHost(0);
  for (int64_t device = 1; device < 4000; ++device) {
    const int64_t host = map.ToHost(device);
    REQUIRE(host >= before);
    before = host;
  }
}

TEST_CASE("the device time of a host time is the least that is not before it") {
  const std::vector<ClockMap> maps = {
      ClockMap({{100, 1000}}),
      ClockMap({{100, 1000}, {200, 1300}}),               // the device's clock runs faster
      ClockMap({{100, 1000}, {400, 1100}, {410, 1410}}),  // slower, then faster
      ClockMap({{100, 1000}, {101, 1001}, {102, 1050}, {300, 1051}}),
  };
  for (const ClockMap& map : maps) {
    for (int64_t host = -50; host < 600; ++host) {
      const int64_t device = map.ToDevice(host);
      REQUIRE(map.ToHost(device) >= host);
      REQUIRE(map.ToHost(device - 1) < host);
    }
  }
}

TEST_CASE("a hint changes the speed and nothing else") {
  const ClockMap map({{0, 0}, {1000, 900}, {5'000'000'000, 4'999'999'000}, {5'000'000'100, 5'000'000'000}});
  size_t hint = 0;
  for (const int64_t device : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{899}, int64_t{900}, int64_t{4'000'000'000},
                               int64_t{5'000'000'000}, int64_t{901}, INT64_MAX, int64_t{1}}) {
    CHECK(map.ToHost(device, &hint) == map.ToHost(device));
  }
  hint = 99;  // of another map
  CHECK(map.ToHost(900, &hint) == 1000);
}

TEST_CASE("extreme times stay within 64 bits") {
  const ClockMap steep({{0, 0}, {int64_t{1} << 61, 1}});
  CHECK(steep.ToHost(INT64_MAX) == INT64_MAX);
  CHECK(steep.ToHost(INT64_MIN) == INT64_MIN);
  CHECK(ClockMap({{int64_t{1} << 61, 0}}).ToHost(INT64_MAX) == INT64_MAX);
}

}  // namespace
}  // namespace gpuperf::reader
