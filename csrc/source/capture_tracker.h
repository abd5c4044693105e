// Which streams are capturing into a CUDA graph: a launch there becomes a graph node and will never have a device
// record. CUDA may not be asked inside a CUPTI callback, so this follows the calls themselves: begin and end of a
// capture, and the event record → wait edges by which a capture spreads to other streams.
//
// Any thread, from callbacks. While no capture is going on StateOf costs one load, and it never waits; begin and end of
// captures, rare and never in a launch's way, take turns (a few ns each). Tables are small and fixed; when they
// overflow, or a capture began before we did, the answer is kUnknown, never a guess.
#ifndef GPUPERF_SOURCE_CAPTURE_TRACKER_H_
#define GPUPERF_SOURCE_CAPTURE_TRACKER_H_

#include <atomic>
#include <cstdint>

#include "ring/event_record.h"
#include "source/small_set.h"
#include "source/turn.h"

namespace gpuperf::source {

class CaptureTracker {
 public:
  bool Active() const noexcept { return captures_.load(std::memory_order_relaxed) != 0; }

  ring::CaptureState StateOf(uint64_t stream) const noexcept {
    if (captures_.load(std::memory_order_relaxed) == 0) return ring::CaptureState::kNone;
    if (streams_.Contains(stream)) {
      return mixed_.load(std::memory_order_relaxed) ? ring::CaptureState::kUnknown : ring::CaptureState::kCapturing;
    }
    return overflowed_.load(std::memory_order_relaxed) ? ring::CaptureState::kUnknown : ring::CaptureState::kNone;
  }

  // Each after its call returned without error.
  void Begin(uint64_t stream) noexcept {
    const Turn turn(turn_);
    AddStream(stream);
    captures_.fetch_add(1, std::memory_order_relaxed);
  }
  void End() noexcept {
    const Turn turn(turn_);
    const int64_t captures = captures_.load(std::memory_order_relaxed);
    if (captures == 0) return;  // began before we did
    // Streams of one of several captures stay marked until the last of them ends: rather unknown than wrong.
    if (captures == 1) {
      Clear();
    } else {
      captures_.store(captures - 1, std::memory_order_relaxed);
      mixed_.store(true, std::memory_order_relaxed);
    }
  }
  void EventRecorded(uint64_t event, uint64_t stream) noexcept {
    if (captures_.load(std::memory_order_relaxed) == 0) return;
    if (!streams_.Contains(stream)) {
      events_.Erase(event);  // whatever it stood for before
      return;
    }
    if (!events_.Insert(event)) overflowed_.store(true, std::memory_order_relaxed);
  }
  void StreamWaits(uint64_t stream, uint64_t event) noexcept {
    if (captures_.load(std::memory_order_relaxed) != 0 && events_.Contains(event)) AddStream(stream);
  }

  void Reset() noexcept {
    const Turn turn(turn_);
    Clear();
  }

 private:
  void Clear() noexcept {
    captures_.store(0, std::memory_order_relaxed);
    overflowed_.store(false, std::memory_order_relaxed);
    mixed_.store(false, std::memory_order_relaxed);
    streams_.Clear();
    events_.Clear();
  }
  void AddStream(uint64_t stream) noexcept {
    if (!streams_.Insert(stream)) overflowed_.store(true, std::memory_order_relaxed);
  }

  std::atomic_flag turn_ = ATOMIC_FLAG_INIT;  // else the end of the last capture would clear away what begins meanwhile
  std::atomic<int64_t> captures_{0};
  std::atomic<bool> overflowed_{false};
  std::atomic<bool> mixed_{false};  // one of several captures has ended: whose streams are left is not known
  SmallSet<64> streams_;
  SmallSet<256> events_;
};

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_CAPTURE_TRACKER_H_
