// What the collector has decoded since the last chunk: columns and rows as the schema has them
// (proto/gpuperf/trace/v1/events.proto), ready to be written. Collector thread only.
#ifndef GPUPERF_COLLECTOR_BATCHES_H_
#define GPUPERF_COLLECTOR_BATCHES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/columns.h"
#include "collector/dictionary.h"
#include "ring/app_names.h"
#include "ring/event_record.h"

namespace gpuperf::collector {

// The columns that all device-side batches share. Times and correlation ids are differences to the row before.
struct DeviceColumns {
  uint32_t stream_iid = 0;
  size_t rows = 0;
  uint64_t base_device_ns = 0;
  uint64_t base_correlation = 0;
  Column gap_ns;
  Column duration_ns;
  Column correlation_delta;
  OptionalColumn graph_id;
  OptionalColumn graph_node_id;

  // Opens row number `rows`; the caller appends its own columns for that row before the next call.
  void Append(uint64_t start_ns, uint64_t end_ns, uint64_t correlation, uint32_t graph, uint64_t node) {
    if (rows == 0) {
      base_device_ns = previous_end_ns_ = start_ns;
      base_correlation = previous_correlation_ = correlation;
    }
    gap_ns.AppendSigned(static_cast<int64_t>(start_ns - previous_end_ns_));
    duration_ns.Append(end_ns - start_ns);
    correlation_delta.AppendSigned(static_cast<int64_t>(correlation - previous_correlation_));
    graph_id.Append(rows, graph);
    graph_node_id.Append(rows, node);
    previous_end_ns_ = end_ns;
    previous_correlation_ = correlation;
    ++rows;
  }
  size_t bytes() const {
    return gap_ns.bytes().size() + duration_ns.bytes().size() + correlation_delta.bytes().size() + graph_id.size() +
           graph_node_id.size();
  }
  void Clear() {
    rows = 0;
    gap_ns.Clear();
    duration_ns.Clear();
    correlation_delta.Clear();
    graph_id.Clear();
    graph_node_id.Clear();
  }

 private:
  uint64_t previous_end_ns_ = 0;
  uint64_t previous_correlation_ = 0;
};

struct KernelBatch {
  DeviceColumns device;
  Column kernel_iid;
  OptionalColumn queued_ns;
  OptionalColumn submitted_ns;
};

struct CopyBatch {
  DeviceColumns device;
  Column bytes;
  Column copy_kind;
  Column source_kind;
  Column destination_kind;
  Column flags;
  bool batched = false;  // any copy_count other than 1
  Column copy_count;
  Column source_device;
  Column source_context;
  Column destination_device;
  Column destination_context;
};

struct MemsetBatch {
  DeviceColumns device;
  Column bytes;
  Column value;
  Column memory_kind;
  Column flags;
};

struct CallBatch {
  uint32_t thread_iid = 0;
  size_t rows = 0;
  uint64_t base_host_ns = 0;
  uint64_t base_correlation = 0;
  Column gap_ns;
  Column duration_ns;
  Column call_site_iid;
  Column correlation_delta;
  Column result_row, result_code;
  Column copy_row, copy_destination, copy_source, copy_bytes, copy_kind;
  Column event_row, event_handle;
  Column memory_row, memory_address, memory_bytes;
  Column graph_row, graph_handle;

  void Append(uint64_t enter_ns, uint64_t exit_ns, uint32_t site, uint64_t correlation) {
    if (rows == 0) {
      base_host_ns = previous_exit_ns_ = enter_ns;
      base_correlation = previous_correlation_ = correlation;
    }
    gap_ns.AppendSigned(static_cast<int64_t>(enter_ns - previous_exit_ns_));
    duration_ns.Append(exit_ns - enter_ns);
    call_site_iid.Append(site);
    correlation_delta.AppendSigned(static_cast<int64_t>(correlation - previous_correlation_));
    previous_exit_ns_ = exit_ns;
    previous_correlation_ = correlation;
    ++rows;
  }

 private:
  uint64_t previous_exit_ns_ = 0;
  uint64_t previous_correlation_ = 0;
};

struct OpenCall {
  uint32_t thread_iid;
  uint32_t call_site_iid;
  uint64_t correlation;
  uint64_t enter_ns;
};

struct Step {
  uint64_t time_ns;
  uint64_t index;
  uint32_t thread_iid;
  int64_t samples;  // -1 = not given
  int64_t tokens;
};

// Values of the schema's enum.
enum class MarkerSource : uint8_t { kGpuperf = 0, kNvtx = 1, kNvtxStartEnd = 2 };

struct MarkerLabel {
  uint32_t name_iid = 0;
  MarkerSource source = MarkerSource::kGpuperf;
  uint32_t domain_iid = 0;              // string; 0: the default domain
  ring::MarkerAttributes attributes{};  // all 0: none
};

struct Annotation {
  uint64_t begin_ns;
  uint64_t end_ns;
  MarkerLabel label;
  uint32_t thread_iid;
  uint32_t end_thread_iid = 0;  // 0: the same
};

struct Mark {
  uint64_t time_ns;
  MarkerLabel label;
  uint32_t thread_iid;
};

struct ResourceName {
  ring::ResourceKind kind;
  uint64_t id;
  uint32_t domain_iid;
  uint32_t name_iid;
};

struct Counter {
  uint64_t time_ns;
  uint32_t name_iid;
  uint32_t thread_iid;
  double value;
};

struct ClockPair {
  uint64_t host_ns;
  uint64_t device_ns;
  uint32_t width_ns;
};

// Values of the schema's enums.
enum class LossReason : uint8_t {
  kRingFull = 1,
  kPoolEmpty = 2,
  kCuptiDropped = 3,
  kZeroTimestamp = 4,
  kReversedTimestamp = 5,
  kNoLaunch = 6,
  kUnreadable = 7,
  kWriteFailed = 8,
  kNoRing = 9,
  kQueueFull = 10,
};
enum class EventKind : uint8_t { kKernel = 1, kCopy = 2, kMemset = 3, kCall = 4, kMarker = 5, kDevice = 6, kAny = 7 };

struct Loss {
  LossReason reason;
  EventKind kind;
  uint32_t thread_iid;
  uint64_t count;
  uint64_t first_ns;
  uint64_t last_ns;
};

// Work of a graph launch whose insides were not recorded.
struct OpaqueInterval {
  uint32_t stream_iid;
  uint64_t begin_device_ns;
  uint64_t end_device_ns;
  uint64_t correlation;
  uint32_t graph_id;
};

// What is recorded from host_ns on.
struct LevelChange {
  uint64_t host_ns;
  uint8_t level;  // schema Level
};

struct ResourceEvent {
  uint64_t time_ns;
  uint32_t thread_iid;
  ring::ResourceEvent event;
};

struct Outage {
  uint8_t reason;  // schema OutageReason
  uint64_t begin_ns;
  uint64_t end_ns;
  std::string detail;
};

struct SelfCost {
  uint64_t time_ns = 0;
  uint64_t callbacks = 0;
  uint64_t callback_ns = 0;
  uint64_t callback_samples = 0;
  uint64_t collector_cpu_ns = 0;
  uint64_t flush_cpu_ns = 0;
  uint64_t buffer_bytes_peak = 0;
  uint64_t ring_bytes = 0;
};

struct Batches {
  Dictionaries dictionaries;

  std::vector<KernelBatch> kernels;  // one per stream; empty ones are kept for reuse
  std::vector<CopyBatch> copies;
  std::vector<MemsetBatch> memsets;
  std::vector<CallBatch> calls;  // finished ones, handed over by the threads' decoders at the cut
  std::vector<OpenCall> open_calls;
  std::vector<Step> steps;
  std::vector<Annotation> annotations;
  std::vector<Annotation> open_annotations;  // end_ns unused
  std::vector<Mark> marks;
  std::vector<ResourceName> resource_names;
  std::vector<Counter> counters;
  std::vector<ClockPair> clock_pairs;
  std::vector<Loss> losses;
  std::vector<Outage> outages;
  std::vector<OpaqueInterval> opaque_intervals;
  std::vector<LevelChange> level_changes;
  std::vector<ResourceEvent> resource_events;
  SelfCost self_cost;
  std::string run_info;  // serialised RunInfo; "" = unchanged

  // ChunkHeader.event_count.
  size_t EventCount() const { return events - opaque_intervals.size(); }

  uint64_t begin_ns = 0;  // host times of this chunk
  uint64_t end_ns = 0;
  size_t events = 0;       // rows, opaque intervals among them
  bool opened = false;     // a call or annotation has begun since the last chunk
  bool cuda_seen = false;  // any call or device record so far in the session
};

}  // namespace gpuperf::collector

#endif  // GPUPERF_COLLECTOR_BATCHES_H_
