// What a first report says of one trace. Plain data, filled by Summarizer, written by ToJson; docs/report.md defines
// every figure. Times in ns, exact integers; shares and averages are for whoever shows them. What is not known is
// absent, never 0.
#ifndef GPUPERF_ANALYSIS_SUMMARY_H_
#define GPUPERF_ANALYSIS_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ranges.h"
#include "analysis/region.h"
#include "gpuperf/trace/v1/trace.pb.h"
#include "reader/frames.h"

namespace gpuperf::analysis {

namespace v1 = ::gpuperf::trace::v1;

// Of some durations; percentiles by nearest rank.
struct DurationFigures {
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  int64_t p50_ns = 0;
  int64_t p95_ns = 0;
  int64_t p99_ns = 0;
};

struct SpanFigures {
  int64_t begin_host_ns = 0;  // the session's start
  int64_t end_host_ns = 0;    // when the last chunk was cut
  int64_t outage_ns = 0;      // within the span (and the region): told not to be captured …
  int64_t unreadable_ns = 0;  // … captured, and lost with damaged chunks
  int64_t captured_ns = 0;    // the rest: what idle time is a share of
};

struct StepFigures {
  uint64_t count = 0;                    // step() calls …
  std::optional<int64_t> first_host_ns;  // … the first of them …
  std::optional<int64_t> last_host_ns;   // … and the last
  uint64_t not_seen = 0;                 // by their index there were more
  DurationFigures durations;             // from one step() to the next: one fewer than step() calls
  std::optional<uint64_t> samples;       // in the steps that have a duration and tell them …
  int64_t samples_ns = 0;                // … which took this long
  std::optional<uint64_t> tokens;
  int64_t tokens_ns = 0;
};

struct DeviceFigures {
  std::optional<uint32_t> device;  // CUDA ordinal
  uint64_t kernels = 0;
  uint64_t copies = 0;
  uint64_t memsets = 0;
  int64_t kernel_ns = 0;  // sums, overlaps counted as often as they are
  int64_t copy_ns = 0;
  int64_t memset_ns = 0;
  // Unions, within the captured time; absent if no clock pair tells when that was.
  std::optional<int64_t> busy_ns;
  std::optional<int64_t> opaque_ns;  // inside graph launches recorded as one, and not known to be busy
  std::optional<int64_t> idle_ns;    // captured - busy - opaque
  std::optional<uint64_t> idle_intervals;
  std::optional<int64_t> longest_idle_ns;
  std::optional<int64_t> longest_idle_begin_host_ns;  // the first of that length; absent without idle time
  std::optional<uint64_t> longest_idle_after_step;    // the last one that was over when it began …
  std::optional<uint64_t> longest_idle_before_step;   // … and the first that was not over before it ended
  // The same between the first and the last step(); absent without two steps.
  std::optional<int64_t> steps_captured_ns;
  std::optional<int64_t> steps_busy_ns;
  std::optional<int64_t> steps_idle_ns;
};

struct StreamFigures {
  std::optional<uint32_t> device;  // absent, as the other ids: the stream's definition is lost
  std::optional<uint32_t> context;
  std::optional<uint32_t> stream;
  std::optional<int32_t> priority;  // told by CUPTI 13.1 and later
  uint64_t kernels = 0;
  uint64_t copies = 0;
  uint64_t memsets = 0;
  int64_t kernel_ns = 0;  // sums
  int64_t copy_ns = 0;
  int64_t memset_ns = 0;
  std::optional<int64_t> busy_ns;  // union, as a device's

  int64_t total_ns() const { return kernel_ns + copy_ns + memset_ns; }
};

struct KernelFigures {
  std::optional<std::string> name;  // demangled
  DurationFigures durations;
};

// Bytes moved, and how long that took.
struct TransferFigures {
  uint64_t operations = 0;
  uint64_t bytes = 0;
  int64_t total_ns = 0;  // within the region
  int64_t whole_ns = 0;  // of the same operations from begin to end: what bandwidth is told by
};

struct CopyFigures : TransferFigures {
  uint32_t copy_kind = 0;
  uint32_t source_kind = 0;
  uint32_t destination_kind = 0;
  uint64_t copies = 0;                            // greater where operations are batched
  std::optional<uint64_t> link_bytes_per_second;  // the most that the link carries; absent: no link, or not known
};

// The copies of one direction whose size is in [least_bytes, least_bytes of the next class).
struct CopySizeFigures : TransferFigures {
  uint32_t copy_kind = 0;
  uint64_t least_bytes = 0;
  std::optional<uint64_t> below_bytes;  // absent: no limit
  std::optional<uint64_t> link_bytes_per_second;
};

struct MemsetFigures : TransferFigures {
  uint32_t memory_kind = 0;
};

struct CallFigures {
  v1::CallKind kind = v1::CALL_KIND_UNSPECIFIED;
  std::optional<std::string> function;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t max_ns = 0;
  uint64_t errors = 0;  // calls that returned other than 0
};

enum class WaitReason { kSynchronize, kBlockingCopy, kPageableCopy };

struct WaitFigures {
  WaitReason reason = WaitReason::kSynchronize;
  std::optional<std::string> function;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t max_ns = 0;
};

// Device records outside graphs, and how many of them have their call in the trace.
struct JoinFigures {
  uint64_t records = 0;
  uint64_t joined = 0;
};

struct AnnotationFigures {
  std::optional<std::string> name;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t max_ns = 0;
};

struct LossFigures {
  v1::LossReason reason = v1::LOSS_REASON_UNSPECIFIED;
  v1::EventKind kind = v1::EVENT_KIND_UNSPECIFIED;
  uint64_t count = 0;
  int64_t first_host_ns = 0;
  int64_t last_host_ns = 0;
};

struct UnfinishedCall {
  std::optional<std::string> function;
  std::optional<uint32_t> tid;
  int64_t enter_host_ns = 0;
};

struct Summary {
  std::string path;
  uint64_t parts = 0;
  uint64_t bytes = 0;
  uint64_t chunks = 0;
  uint64_t events = 0;
  bool cleanly_closed = false;
  v1::FileHeader header;
  std::optional<v1::RunInfo> run_info;
  std::optional<v1::SelfCost> self_cost;

  std::vector<reader::Damage> damages;
  uint64_t damage_count = 0;
  std::vector<LossFigures> losses;  // by reason and kind
  uint64_t lost = 0;                // records that are known not to be in the trace
  std::vector<v1::Outage> outages;
  std::vector<UnfinishedCall> unfinished_calls;  // the first kKeptCalls
  uint64_t unfinished_call_count = 0;
  static constexpr size_t kKeptCalls = 100;

  uint64_t clock_pairs = 0;
  uint64_t clock_pairs_left_out = 0;
  uint64_t clock_width_ns = 0;  // the widest

  std::optional<RegionSpec> region_spec;  // what was asked for; absent: the whole trace
  Intervals region;                       // host clock
  SpanFigures span;
  StepFigures steps;
  std::vector<DeviceFigures> devices;       // by ordinal
  std::vector<StreamFigures> streams;       // by total time, falling
  std::vector<KernelFigures> kernels;       // by total time, falling
  std::vector<CopyFigures> copies;          // by total time, falling
  std::vector<CopySizeFigures> copy_sizes;  // by direction and size
  std::vector<MemsetFigures> memsets;
  std::vector<CallFigures> calls;  // by function; by total time, falling
  std::vector<WaitFigures> waits;  // by total time, falling
  std::vector<AnnotationFigures> annotations;
  std::vector<RangeFigures> ranges;  // by total time, falling
  bool ranges_complete = true;       // false: see RangeProjection::kMostDepth
  JoinFigures joined_kernels;
  JoinFigures joined_copies;
  JoinFigures joined_memsets;
  // Launches outside graphs that returned without error, and whose kernel is not in the trace.
  uint64_t launches_without_kernel = 0;
  std::vector<v1::LevelChange> levels;  // what was recorded from when on; empty: all of it

  // Nothing is known to be missing from the captured time.
  bool complete() const {
    return cleanly_closed && damage_count == 0 && losses.empty() && launches_without_kernel == 0;
  }
};

// The JSON object of docs/report.md.
std::string ToJson(const Summary& summary);

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_SUMMARY_H_
