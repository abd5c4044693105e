// What the decoders of one session share. Collector thread only, but for the counts, which anybody may read.
#ifndef GPUPERF_COLLECTOR_CONTEXT_H_
#define GPUPERF_COLLECTOR_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/stamp_clock.h"
#include "collector/batches.h"
#include "collector/join_tracker.h"

namespace gpuperf::collector {

struct Counts {
  std::atomic<uint64_t> kernels{0};
  std::atomic<uint64_t> copies{0};
  std::atomic<uint64_t> memsets{0};
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> opened_calls{0};
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> lost{0};
  std::atomic<uint64_t> unjoined{0};
};

inline void AddTo(std::atomic<uint64_t>& count, uint64_t more) {
  // One writer: no read-modify-write needed.
  count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// A device record whose call has not been seen yet.
struct Unjoined {
  uint64_t correlation;
  uint64_t seen_ns;
  EventKind kind;
};

struct Context {
  Batches batches;
  JoinTracker joins;
  std::vector<Unjoined> unjoined;
  Counts counts;
  base::StampClock clock;

  void AddLoss(LossReason reason, EventKind kind, uint32_t thread_iid, uint64_t count, uint64_t first_ns,
               uint64_t last_ns) {
    if (count == 0) return;
    if (reason == LossReason::kNoLaunch) {
      AddTo(counts.unjoined, count);
    } else if (reason != LossReason::kPoolEmpty) {  // refused requests: CUPTI counts the records
      AddTo(counts.lost, count);
    }
    for (Loss& loss : batches.losses) {
      if (loss.reason != reason || loss.kind != kind || loss.thread_iid != thread_iid) continue;
      loss.count += count;
      if (first_ns < loss.first_ns) loss.first_ns = first_ns;
      if (last_ns > loss.last_ns) loss.last_ns = last_ns;
      return;
    }
    batches.losses.push_back({reason, kind, thread_iid, count, first_ns, last_ns});
  }
};

}  // namespace gpuperf::collector

#endif  // GPUPERF_COLLECTOR_CONTEXT_H_
