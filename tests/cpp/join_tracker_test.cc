#include "collector/join_tracker.h"

#include "catch.h"

using gpuperf::collector::JoinTracker;

namespace {
constexpr uint64_t kWrap = uint64_t{1} << 32;
}

TEST_CASE("correlation ids go on through 2^32, also when they arrive out of order") {
  JoinTracker tracker;
  CHECK(tracker.Unwrap(0xFFFFFFF0U) == 0xFFFFFFF0U);
  CHECK(tracker.Unwrap(0xFFFFFFFFU) == 0xFFFFFFFFU);
  CHECK(tracker.Unwrap(5) == kWrap + 5);
  CHECK(tracker.Unwrap(0xFFFFFFFEU) == 0xFFFFFFFEU);  // a record from before the wrap comes late
  CHECK(tracker.Unwrap(6) == kWrap + 6);
}

TEST_CASE("a first id beyond 2^31 is no wrap") {
  JoinTracker tracker;
  CHECK(tracker.Unwrap(0xC0000000U) == 0xC0000000U);
  CHECK(tracker.Unwrap(0xC0000001U) == 0xC0000001U);
}

TEST_CASE("what lies before the first call that was surely seen is told from what lies behind") {
  JoinTracker tracker;
  CHECK(tracker.IsBeforeFirst(tracker.Unwrap(3)));  // no such call so far
  CHECK(tracker.Unwrap(12) == 12);
  tracker.AddFirst(12);
  tracker.AddFirst(10);  // another thread's, drained later
  CHECK(tracker.IsBeforeFirst(9));
  CHECK_FALSE(tracker.IsBeforeFirst(10));
  CHECK_FALSE(tracker.IsBeforeFirst(11));
  CHECK(tracker.IsBeforeFirst(tracker.Unwrap(0xFFFFFFF0U)));  // before the wrap
  tracker.AddCall(12);
  CHECK_FALSE(tracker.IsBehindLastCall(12));
  CHECK(tracker.IsBehindLastCall(13));
  tracker.AddLostCall(14);
  CHECK_FALSE(tracker.IsBehindLastCall(13));
  CHECK(tracker.IsBehindLastCall(15));
}

TEST_CASE("calls are known by their ids until four million later") {
  JoinTracker tracker;
  for (uint64_t id = 10; id < 20; id += 2) tracker.AddCall(id);
  CHECK(tracker.HasCall(12));
  CHECK_FALSE(tracker.HasCall(13));
  CHECK_FALSE(tracker.HasCall(100));
  tracker.AddCall(11);  // another thread's, out of order
  CHECK(tracker.HasCall(11));

  constexpr uint64_t kWindow = uint64_t{1} << 22;
  tracker.AddCall(kWindow + 15);
  CHECK(tracker.HasCall(16));
  CHECK(tracker.HasCall(18));
  CHECK_FALSE(tracker.HasCall(14));            // fell out
  CHECK_FALSE(tracker.HasCall(kWindow + 12));  // not 12's bit again
  tracker.AddCall(10 * kWindow);
  CHECK_FALSE(tracker.HasCall(18));
  CHECK(tracker.HasCall(10 * kWindow));
}
