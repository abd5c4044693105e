#include "source/capture_tracker.h"

#include <atomic>
#include <thread>

#include "catch.h"

using gpuperf::ring::CaptureState;
using gpuperf::source::CaptureTracker;

TEST_CASE("a stream captures from begin to end, and others do not") {
  CaptureTracker tracker;
  CHECK(tracker.StateOf(1) == CaptureState::kNone);
  tracker.Begin(1);
  CHECK(tracker.Active());
  CHECK(tracker.StateOf(1) == CaptureState::kCapturing);
  CHECK(tracker.StateOf(2) == CaptureState::kNone);
  tracker.End();
  CHECK(tracker.StateOf(1) == CaptureState::kNone);
  CHECK_FALSE(tracker.Active());
}

TEST_CASE("a capture spreads along event record and wait") {
  CaptureTracker tracker;
  tracker.EventRecorded(/*event=*/70, /*stream=*/2);
  tracker.Begin(1);
  tracker.StreamWaits(/*stream=*/3, /*event=*/70);  // recorded before the capture
  CHECK(tracker.StateOf(3) == CaptureState::kNone);
  tracker.EventRecorded(71, 1);
  tracker.StreamWaits(2, 71);
  CHECK(tracker.StateOf(2) == CaptureState::kCapturing);
  tracker.End();
  CHECK(tracker.StateOf(2) == CaptureState::kNone);
}

TEST_CASE("the default stream is not the one that captures") {
  CaptureTracker tracker;
  tracker.Begin(1);
  CHECK(tracker.StateOf(0) == CaptureState::kNone);
  tracker.EventRecorded(/*event=*/70, /*stream=*/0);
  tracker.StreamWaits(/*stream=*/3, /*event=*/70);
  tracker.StreamWaits(/*stream=*/4, /*event=*/0);
  CHECK(tracker.StateOf(3) == CaptureState::kNone);
  CHECK(tracker.StateOf(4) == CaptureState::kNone);
}

TEST_CASE("an event recorded anew elsewhere no longer leads into the capture") {
  CaptureTracker tracker;
  tracker.Begin(1);
  tracker.EventRecorded(/*event=*/70, /*stream=*/1);
  tracker.EventRecorded(/*event=*/70, /*stream=*/5);
  tracker.StreamWaits(/*stream=*/6, /*event=*/70);
  CHECK(tracker.StateOf(6) == CaptureState::kNone);
}

TEST_CASE("what cannot be told is unknown, never a guess") {
  SECTION("a per-thread default stream, whose handle is 0, captures") {
    CaptureTracker tracker;
    tracker.Begin(0);
    CHECK(tracker.StateOf(0) == CaptureState::kUnknown);
    CHECK(tracker.StateOf(1) == CaptureState::kUnknown);
    tracker.End();
    CHECK(tracker.StateOf(0) == CaptureState::kNone);
  }
  SECTION("of two captures one has ended") {
    CaptureTracker tracker;
    tracker.Begin(1);
    tracker.Begin(2);
    tracker.End();
    CHECK(tracker.StateOf(1) == CaptureState::kUnknown);
    CHECK(tracker.StateOf(2) == CaptureState::kUnknown);
    CHECK(tracker.StateOf(3) == CaptureState::kNone);
    tracker.End();
    CHECK(tracker.StateOf(1) == CaptureState::kNone);
  }
  SECTION("more streams than the table holds") {
    CaptureTracker tracker;
    for (uint64_t stream = 1; stream <= 100; ++stream) tracker.Begin(stream);
    CHECK(tracker.StateOf(1) == CaptureState::kCapturing);
    CHECK(tracker.StateOf(100) == CaptureState::kUnknown);
  }
  SECTION("an end without a begin is a capture from before the session") {
    CaptureTracker tracker;
    tracker.End();
    CHECK_FALSE(tracker.Active());
    tracker.Begin(1);
    CHECK(tracker.StateOf(1) == CaptureState::kCapturing);
  }
}

TEST_CASE("the end of one capture does not take away another that begins at that moment") {
  CaptureTracker tracker;
  std::atomic<int> forgotten{0};
  const auto capture = [&](uint64_t stream) {
    for (int i = 0; i < 50000; ++i) {
      tracker.Begin(stream);
      if (tracker.StateOf(stream) == CaptureState::kNone) ++forgotten;
      tracker.End();
    }
  };
  std::thread other(capture, 1);
  capture(2);
  other.join();
  CHECK(forgotten == 0);
  CHECK_FALSE(tracker.Active());
}
