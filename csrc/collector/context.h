// What the decoders of one session share. Collector thread only, but for the counts, which anybody may read.
#ifndef GPUPERF_COLLECTOR_CONTEXT_H_
#define GPUPERF_COLLECTOR_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/stamp_clock.h"
#include "collector/batches.h"
#include "collector/join_tracker.h"
#include "collector/range_table.h"
#include "ring/call_span.h"

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
  uint64_t begin_device_ns;
  uint64_t seen_ns;
  EventKind kind;
};

struct Context {
  Batches batches;
  JoinTracker joins;
  RangeTable ranges;
  std::vector<Unjoined> unjoined;  // few: see AddUnjoined
  Counts counts;
  base::StampClock clock;
  ClockPair clock_pair{};  // the latest

  MarkerLabel LabelOf(MarkerSource source, ring::DomainIndex domain, const ring::MarkerAttributes& attributes,
                      std::string_view name) {
    StringTable& strings = batches.dictionaries.strings;
    const std::string_view domain_name = ring::DomainName(domain);
    return {strings.Intern(name), source, domain_name.empty() ? 0 : strings.Intern(domain_name), attributes};
  }

  void AddRange(const RangeTable::Range& range, const RangeTable::End& end) {
    const MarkerLabel label = LabelOf(MarkerSource::kNvtxStartEnd, range.domain, range.attributes, range.name);
    const uint32_t end_thread = end.thread_iid == range.thread_iid ? 0 : end.thread_iid;
    batches.annotations.push_back({range.begin_ns, end.time_ns, label, range.thread_iid, end_thread});
    ++batches.events;
  }

  // Calls are drained before device records are decoded, so hardly any record is early. When very many are, their calls
  // are lost, and waiting for them would only cost memory.
  void AddUnjoined(const Unjoined& record) {
    constexpr size_t kMaxUnjoined = 65536;
    if (unjoined.size() < kMaxUnjoined) {
      unjoined.push_back(record);
    } else {
      GiveUp(record);
    }
  }

  // The call will not come. A loss, unless it was made when not all calls were seen yet or any more, or so long ago
  // that nobody remembers: a thread that polls makes four million calls while one kernel runs. The reader joins these,
  // too.
  void GiveUp(const Unjoined& record) {
    // CUPTI's clock conversion lets a kernel begin some microseconds before its launch.
    constexpr int64_t kClockSlackNs = 100'000;
    if (joins.IsForgotten(record.correlation)) return;
    const ring::CallSpan& span = ring::TracedCalls();
    if (span.begin.load(std::memory_order_relaxed) != 0 && joins.IsBeforeFirst(record.correlation)) return;
    const uint64_t end = span.end.load(std::memory_order_relaxed);
    if (end != 0 && clock_pair.host_ns != 0 && joins.IsBehindLastCall(record.correlation)) {
      const uint64_t begin_ns = clock_pair.host_ns + (record.begin_device_ns - clock_pair.device_ns);
      if (static_cast<int64_t>(begin_ns - clock.ToNs(end)) > -kClockSlackNs) return;
    }
    AddLoss(LossReason::kNoLaunch, record.kind, 0, 1, record.seen_ns, record.seen_ns);
  }

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
