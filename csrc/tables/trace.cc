#include "tables/trace.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tables/builders.h"
#include "tables/call_index.h"
#include "tables/rows.h"

namespace gpuperf::tables {
namespace {

using Body = v1::ChunkBody;
using reader::FieldBit;
using reader::Fields;

constexpr Fields kCallFields = FieldBit(Body::kCallBatchesFieldNumber) | FieldBit(Body::kOpenCallsFieldNumber);
constexpr Fields kKernels = FieldBit(Body::kKernelBatchesFieldNumber);
constexpr Fields kCopies = FieldBit(Body::kCopyBatchesFieldNumber);
constexpr Fields kMemsets = FieldBit(Body::kMemsetBatchesFieldNumber);

// How far around a region calls and work are looked for that belong to its rows: times of two clocks are compared, and
// a launch comes before its work. What lies further away is read when a row turns out to need it.
constexpr int64_t kReachNs = 1'000'000'000;

int64_t Earlier(int64_t time, int64_t ns) { return time < INT64_MIN + ns ? INT64_MIN : time - ns; }

bool Wants(RowFilter* filter, const reader::KernelRow& row) {
  return filter->WantsStream(*row.stream) && filter->WantsKernelName(row.kernel->name);
}
bool Wants(RowFilter* filter, const reader::CopyRow& row) { return filter->WantsStream(*row.stream); }
bool Wants(RowFilter* filter, const reader::MemsetRow& row) { return filter->WantsStream(*row.stream); }

// Gathers the device rows of one kind, and all calls for their joins.
template <class Row>
class DeviceCollector : public reader::Visitor {
 public:
  explicit DeviceCollector(RowFilter* filter) : filter_(filter) {}

  void OnKernel(const reader::KernelRow& row) override { Add(row); }
  void OnCopy(const reader::CopyRow& row) override { Add(row); }
  void OnMemset(const reader::MemsetRow& row) override { Add(row); }
  void OnCall(const reader::CallRow& row) override { calls_.Add(row); }
  void OnUnfinishedCall(const reader::OpenCallRow& row) override { calls_.Add(row); }

  const Rows<Row>& rows() const { return rows_; }
  CallIndex* calls() { return &calls_; }
  // Whether every row has its call, and that has returned: else more of the trace may tell more.
  bool all_have_whole_calls() {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const CallFacts* call = calls_.Find(rows_[i].correlation);
      if (call == nullptr || call->exit_host_ns < 0) return false;
    }
    return true;
  }

 private:
  template <class Other>
  void Add(const Other& row) {
    if constexpr (std::is_same_v<Row, Other>) {
      if (filter_->WantsDeviceTime(row.begin_device_ns, row.end_device_ns) && Wants(filter_, row)) rows_.Add(row);
    }
  }

  RowFilter* filter_;
  Rows<Row> rows_;
  CallIndex calls_;
};

enum class CallTable { kCalls, kLaunches, kSyncs, kAllocations };

// Gathers calls, and of all device rows what came of them.
class CallCollector : public reader::Visitor {
 public:
  CallCollector(CallTable table, RowFilter* filter, int64_t end_of_trace)
      : table_(table), filter_(filter), end_of_trace_(end_of_trace) {}

  void OnKernel(const reader::KernelRow& row) override { AddWork(row); }
  void OnCopy(const reader::CopyRow& row) override { AddWork(row); }
  void OnMemset(const reader::MemsetRow& row) override { AddWork(row); }

  void OnCall(const reader::CallRow& row) override {
    if (!IsOfTable(row) || !WantsName(*row.site)) return;
    if (!filter_->WantsHostTime(row.enter_host_ns, row.exit_host_ns)) return;
    CallWithWork call;
    call.thread = row.thread;
    call.site = row.site;
    call.enter_host_ns = row.enter_host_ns;
    call.exit_host_ns = row.exit_host_ns;
    call.correlation = row.correlation;
    call.result = row.result;
    if (row.has_copy || row.has_event || row.has_memory || row.has_graph) {
      call.detail = static_cast<int32_t>(details.size());
      details.push_back(row);
    }
    calls.push_back(call);
  }

  void OnUnfinishedCall(const reader::OpenCallRow& row) override {
    reader::CallRow probe;
    probe.site = row.site;
    if (!IsOfTable(probe) || !WantsName(*row.site)) return;
    const auto enter = static_cast<int64_t>(row.row.enter_host_ns());
    if (!filter_->WantsHostTime(enter, std::max(enter, end_of_trace_))) return;
    CallWithWork call;
    call.thread = row.thread;
    call.site = row.site;
    call.enter_host_ns = enter;
    call.correlation = row.row.correlation();
    calls.push_back(call);
  }

  // After the reading: joins, and drops what the filter's streams and devices do not want.
  void Finish() {
    PlaceByCorrelation places;
    for (size_t i = 0; i < calls.size(); ++i) places.Add(calls[i].correlation, static_cast<uint32_t>(i));
    for (size_t i = 0; i < work_.size(); ++i) {
      const Work& work = work_[i];
      const uint32_t place = places.Find(work.correlation);
      if (place == PlaceByCorrelation::kNone) continue;
      CallWithWork& call = calls[place];
      const bool is_first = call.work_rows++ == 0;
      if (is_first || work.begin_device_ns < call.work_begin_device_ns) {
        call.work_begin_device_ns = work.begin_device_ns;
        call.work_stream = work.stream;
      }
      if (is_first || work.end_device_ns > call.work_end_device_ns) call.work_end_device_ns = work.end_device_ns;
    }
    if (!filter_->has_streams()) return;
    calls.erase(std::remove_if(calls.begin(), calls.end(),
                               [&](const CallWithWork& call) {
                                 return call.work_stream == nullptr || !filter_->WantsStream(*call.work_stream);
                               }),
                calls.end());
  }

  // No work comes before its call, so only that of calls which had been entered by then may lie elsewhere.
  bool MayLackWork(int64_t from) const {
    return std::any_of(calls.begin(), calls.end(), [&](const CallWithWork& call) { return call.enter_host_ns < from; });
  }

  std::vector<CallWithWork> calls;
  std::vector<reader::CallRow> details;

 private:
  struct Work {
    uint64_t correlation;
    int64_t begin_device_ns;
    int64_t end_device_ns;
    const reader::StreamEntry* stream;
  };

  bool IsOfTable(const reader::CallRow& row) const {
    const v1::CallKind kind = row.site->definition.kind();
    switch (table_) {
      case CallTable::kLaunches:
        return kind == v1::CALL_KIND_LAUNCH || kind == v1::CALL_KIND_GRAPH_LAUNCH;
      case CallTable::kSyncs:
        return kind == v1::CALL_KIND_SYNCHRONIZE;
      case CallTable::kAllocations:
        return row.has_memory || kind == v1::CALL_KIND_ALLOCATE || kind == v1::CALL_KIND_FREE;
      case CallTable::kCalls:
        break;
    }
    return true;
  }

  bool WantsName(const reader::CallSiteEntry& site) {
    if (!filter_->has_names() || filter_->WantsName(site.name)) return true;
    return site.function_name != nullptr && !site.function_name->empty() &&
           filter_->WantsKernelName(site.function_name);
  }

  void AddWork(const reader::DeviceRow& row) {
    work_.Add({row.correlation, row.begin_device_ns, row.end_device_ns, row.stream});
  }

  CallTable table_;
  RowFilter* filter_;
  int64_t end_of_trace_;
  Rows<Work> work_;
};

std::optional<CallTable> CallTableOf(const std::string& name) {
  if (name == "calls") return CallTable::kCalls;
  if (name == "launches") return CallTable::kLaunches;
  if (name == "syncs") return CallTable::kSyncs;
  if (name == "allocations") return CallTable::kAllocations;
  return std::nullopt;
}

}  // namespace

Trace::Trace(reader::TraceReader reader) : reader_(std::move(reader)) {}

absl::StatusOr<std::unique_ptr<Trace>> Trace::Open(const std::string& path) {
  absl::StatusOr<reader::TraceReader> reader = reader::TraceReader::Open(path);
  if (!reader.ok()) return reader.status();
  std::unique_ptr<Trace> trace(new Trace(*std::move(reader)));
  TraceFacts& facts = trace->facts_;
  facts.parts = trace->reader_.parts();
  facts.bytes = trace->reader_.bytes();
  facts.cleanly_closed = trace->reader_.cleanly_closed();
  facts.header = trace->reader_.header();
  if (facts.cleanly_closed) {
    facts.chunks = 0;
    facts.events = 0;
    for (const v1::IndexEntry& entry : trace->reader_.ListChunks()) {
      ++*facts.chunks;
      *facts.events += entry.event_count();
    }
  }
  return trace;
}

absl::Status Trace::Read(reader::Visitor* visitor, Fields fields, const Selection& chunks, const Progress& progress) {
  if (!reader_.Read(visitor, progress, {fields, chunks})) return absl::CancelledError("stopped");
  // A batch that breaks a rule is met only by the readings that parse it.
  if (reader_.damages().count() > damages_.count()) damages_ = reader_.damages();
  return absl::OkStatus();
}

absl::Status Trace::ScanOnce(const Progress& progress) {
  if (scan_ != nullptr) return absl::OkStatus();
  scan_ = std::make_unique<Scan>();
  const absl::Status status = Read(scan_.get(), Scan::kFields, {}, progress);
  if (!status.ok()) {
    scan_.reset();
    return status;
  }
  scan_->Complete(reader_);
  run_info_ = reader_.run_info();
  return absl::OkStatus();
}

absl::StatusOr<TraceCompleteness> Trace::Completeness(const Progress& progress) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Status status = ScanOnce(progress);
  if (!status.ok()) return status;
  return TraceCompleteness{reader_.cleanly_closed(), scan_->lost, damages_, run_info_, scan_->span()};
}

template <class Row, class Build>
absl::StatusOr<std::shared_ptr<const Table>> Trace::LoadDeviceRows(Fields fields, const Selection& chunks,
                                                                   const RowFilter& filter, const Progress& progress,
                                                                   const Build& build) {
  RowFilter filter_of_reading = filter;
  DeviceCollector<Row> collector(&filter_of_reading);
  const absl::Status status = Read(&collector, reader::kDictionaries | kCallFields | fields, chunks, progress);
  if (!status.ok()) return status;
  if (!chunks.empty() && !collector.all_have_whole_calls()) {
    return LoadDeviceRows<Row>(fields, {}, filter, progress, build);  // a call lies far away, or is lost
  }
  return build(collector.rows(), collector.calls(), scan_->clock());
}

absl::StatusOr<std::shared_ptr<const Table>> Trace::LoadCalls(const std::string& table, const Selection& chunks,
                                                              int64_t safe_from, const RowFilter& filter,
                                                              const Progress& progress) {
  const CallTable call_table = CallTableOf(table).value_or(CallTable::kCalls);
  RowFilter filter_of_reading = filter;
  CallCollector collector(call_table, &filter_of_reading, scan_->span().end);
  const Fields fields = reader::kDictionaries | kCallFields | kKernels | kCopies | kMemsets;
  const absl::Status status = Read(&collector, fields, chunks, progress);
  if (!status.ok()) return status;
  collector.Finish();
  if (!chunks.empty() && collector.MayLackWork(safe_from)) return LoadCalls(table, {}, safe_from, filter, progress);
  if (call_table == CallTable::kAllocations) return BuildAllocations(collector.calls, collector.details);
  return BuildCalls(table.c_str(), collector.calls, collector.details, scan_->clock());
}

absl::StatusOr<std::shared_ptr<const Table>> Trace::Load(const std::string& table, const Filter& filter,
                                                         const Progress& progress) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Status scanned = ScanOnce(progress);
  if (!scanned.ok()) return scanned;

  std::optional<analysis::Region> region;
  if (!filter.region.is_whole()) {
    absl::StatusOr<analysis::Region> resolved = analysis::Resolve(filter.region, *scan_);
    if (!resolved.ok()) return resolved.status();
    region = *std::move(resolved);
  }
  RowFilter rows(filter, region ? &*region : nullptr);
  if (std::shared_ptr<const Table> small = BuildSmall(table, *scan_, &rows)) return small;

  const bool is_of_device = table == "kernels" || table == "copies" || table == "memsets";
  if (is_of_device && region && !region->device) {
    return absl::OutOfRangeError(
        "no clock pair carries device times to the host clock, so no work can be placed in a region");
  }
  // The region's ends; an empty one is before all times.
  analysis::Interval host = {INT64_MIN, INT64_MIN};
  analysis::Interval device = {INT64_MIN, INT64_MIN};
  if (region && !region->host.empty()) host = {region->host.front().begin, region->host.back().end};
  if (region && region->device && !region->device->empty()) {
    device = {region->device->front().begin, region->device->back().end};
  }
  if (is_of_device) {
    Selection chunks;
    if (region) {
      chunks = scan_->Select([&](const reader::ChunkTimes& times) {
        return times.device.MayTouch(device.begin, device.end) ||
               times.host.MayTouch(Earlier(host.begin, kReachNs), host.end + kReachNs);
      });
    }
    if (table == "kernels") return LoadDeviceRows<reader::KernelRow>(kKernels, chunks, rows, progress, &BuildKernels);
    if (table == "copies") return LoadDeviceRows<reader::CopyRow>(kCopies, chunks, rows, progress, &BuildCopies);
    return LoadDeviceRows<reader::MemsetRow>(kMemsets, chunks, rows, progress, &BuildMemsets);
  }
  if (CallTableOf(table)) {
    Selection chunks;
    if (region) {
      // Nothing tells up to when the work of a call comes.
      const bool needs_work = (table != "allocations" || rows.has_streams()) && !region->host.empty();
      const int64_t work_from = Earlier(device.begin, 2 * kReachNs);
      chunks = scan_->Select([&](const reader::ChunkTimes& times) {
        return times.host.MayTouch(host.begin, host.end) || (needs_work && times.device.MayTouch(work_from, INT64_MAX));
      });
    }
    return LoadCalls(table, chunks, Earlier(host.begin, kReachNs), rows, progress);
  }
  return absl::NotFoundError(absl::StrCat("there is no table ", table));
}

}  // namespace gpuperf::tables
