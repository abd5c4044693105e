#include "analysis/summarizer.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analysis/arithmetic.h"
#include "analysis/demangle.h"

namespace gpuperf::analysis {
namespace {

using ::gpuperf::reader::ClockMap;
using ::gpuperf::reader::Damage;
using ::gpuperf::reader::kMaxNs;
using ::gpuperf::reader::Name;

constexpr uint32_t kPageable = 1;  // CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE

std::optional<std::string> TextOf(Name name) {
  return name == nullptr ? std::nullopt : std::optional<std::string>(*name);
}

template <class T>
T& At(std::vector<T>& items, uint32_t index) {
  if (index >= items.size()) items.resize(index + 1);
  return items[index];
}

DurationFigures FiguresOf(ExactDistribution& durations) {
  return {durations.count(),         durations.total(),         durations.min(),          durations.max(),
          durations.Percentile(500), durations.Percentile(950), durations.Percentile(990)};
}

template <class Figures>
void SortByTotal(std::vector<Figures>& figures) {
  std::stable_sort(figures.begin(), figures.end(),
                   [](const Figures& a, const Figures& b) { return a.total_ns > b.total_ns; });
}

// Device-clock intervals on the host clock: the clock map is monotone, so a union stays one.
Intervals OnHostClock(Intervals intervals, const ClockMap& clock) {
  for (Interval& interval : intervals) interval = {clock.ToHost(interval.begin), clock.ToHost(interval.end)};
  return Union(std::move(intervals));
}

}  // namespace

void Summarizer::CallState::Add(int64_t duration_ns) {
  ++count;
  total_ns = AddSaturated(total_ns, duration_ns);
  max_ns = std::max(max_ns, duration_ns);
}

void Summarizer::OnChunk(const reader::Frame& frame) {
  const auto first = static_cast<int64_t>(std::min<uint64_t>(frame.header.first_host_ns(), kMaxNs));
  first_host_ns_ = std::min(first_host_ns_.value_or(first), first);
}

// Kernels of one name share a state, whatever their launch configurations; a name that is not known yet may come with a
// checkpoint, so until then the entry itself is the key.
Summarizer::KernelState& Summarizer::StateOf(const reader::KernelEntry& entry) {
  KernelState*& cached = At(kernel_by_index_, entry.index);
  if (cached == nullptr) {
    const void* key = entry.name != nullptr ? static_cast<const void*>(entry.name) : &entry;
    KernelState*& state = kernel_by_name_[key];
    if (state == nullptr) {
      state = &kernels_.emplace_back();
      state->entry = &entry;
    }
    cached = state;
  }
  return *cached;
}

// Streams are told by device, context and stream: one that a later part of the trace defines again is the same.
Summarizer::StreamState& Summarizer::StateOf(const reader::StreamEntry& stream) {
  StreamState*& cached = At(stream_by_index_, stream.index);
  if (cached != nullptr) return *cached;
  StreamFigures figures;
  if (stream.known) {
    figures.device = stream.definition.device();
    figures.context = stream.definition.context();
    figures.stream = stream.definition.stream();
    if (stream.definition.has_priority()) figures.priority = stream.definition.priority();
  }
  cached = &streams_[{figures.device, figures.context, figures.stream}];
  if (cached->device == nullptr) {
    cached->figures = figures;
    cached->device = &devices_[figures.device];
    cached->device->figures.device = figures.device;
  }
  return *cached;
}

// How much of the row's time is in the region; absent: it is not in the region.
std::optional<int64_t> Summarizer::DeviceTime(const reader::DeviceRow& row) const {
  if (!region_) return row.duration_ns();
  return Overlap(device_region_, row.begin_device_ns, row.end_device_ns);
}

std::optional<int64_t> Summarizer::HostTime(int64_t begin, int64_t end) const {
  return region_ ? Overlap(*region_, begin, end) : end - begin;
}

void Summarizer::AddDeviceRow(const reader::DeviceRow& row, Join* join) {
  StateOf(*row.stream).busy.Add(row.begin_device_ns, row.end_device_ns);
  if (row.graph_id != 0) return;  // its call is the graph's launch, one for many
  ++join->records;
  if (!call_ids_.Contains(row.correlation)) join->pending.push_back(row.correlation);
}

void Summarizer::OnKernel(const reader::KernelRow& row) {
  // Also outside the region: its launch may lie in it.
  if (row.graph_id == 0) kernel_ids_.Insert(row.correlation);
  StreamState& stream = StateOf(*row.stream);
  const std::optional<int64_t> ns = DeviceTime(row);
  if (!ns) return;
  StateOf(*row.kernel).durations.Add(*ns);
  for (auto* count : {&stream.figures.kernels, &stream.device->figures.kernels}) ++*count;
  for (auto* sum : {&stream.figures.kernel_ns, &stream.device->figures.kernel_ns}) *sum = AddSaturated(*sum, *ns);
  AddDeviceRow(row, &kernel_join_);
}

void Summarizer::OnCopy(const reader::CopyRow& row) {
  // Also outside the region: its call may lie in it.
  if (row.source_kind == kPageable || row.destination_kind == kPageable) pageable_copies_.Insert(row.correlation);
  StreamState& stream = StateOf(*row.stream);
  const std::optional<int64_t> ns = DeviceTime(row);
  if (!ns) return;
  transfers_.Add(row, *ns);
  for (auto* count : {&stream.figures.copies, &stream.device->figures.copies}) ++*count;
  for (auto* sum : {&stream.figures.copy_ns, &stream.device->figures.copy_ns}) *sum = AddSaturated(*sum, *ns);
  AddDeviceRow(row, &copy_join_);
}

void Summarizer::OnMemset(const reader::MemsetRow& row) {
  StreamState& stream = StateOf(*row.stream);
  const std::optional<int64_t> ns = DeviceTime(row);
  if (!ns) return;
  transfers_.Add(row, *ns);
  for (auto* count : {&stream.figures.memsets, &stream.device->figures.memsets}) ++*count;
  for (auto* sum : {&stream.figures.memset_ns, &stream.device->figures.memset_ns}) *sum = AddSaturated(*sum, *ns);
  AddDeviceRow(row, &memset_join_);
}

void Summarizer::OnCall(const reader::CallRow& row) {
  call_ids_.Insert(row.correlation);
  const std::optional<int64_t> ns = HostTime(row.enter_host_ns, row.exit_host_ns);
  if (!ns) return;
  CallState& call = At(calls_, row.site->index);
  call.site = row.site;
  call.Add(*ns);
  call.errors += row.result != 0;
  if (row.site->definition.kind() == v1::CALL_KIND_LAUNCH && row.result == 0 &&
      row.site->definition.capture() == v1::CAPTURE_STATE_NONE) {
    launch_ids_.Insert(row.correlation);
  }
  if (row.site->definition.kind() == v1::CALL_KIND_COPY) copy_calls_.push_back({row.correlation, row.site, *ns});
}

void Summarizer::OnOpenCall(const reader::OpenCallRow& row) { call_ids_.Insert(row.row.correlation()); }

void Summarizer::OnUnfinishedCall(const reader::OpenCallRow& row) {
  ++unfinished_call_count_;
  if (unfinished_calls_.size() == Summary::kKeptCalls) return;
  UnfinishedCall& call = unfinished_calls_.emplace_back();
  call.function = TextOf(row.site->name);
  if (row.thread->known) call.tid = row.thread->definition.tid();
  call.enter_host_ns = static_cast<int64_t>(row.row.enter_host_ns());
}

void Summarizer::OnStep(const reader::StepRow& row) {
  Step& step = steps_.emplace_back();
  step.host_ns = static_cast<int64_t>(row.row.host_ns());
  step.index = row.row.index();
  if (row.row.has_samples()) step.samples = row.row.samples();
  if (row.row.has_tokens()) step.tokens = row.row.tokens();
}

void Summarizer::OnAnnotation(const reader::AnnotationRow& row) {
  ranges_.AddInstance(row);
  const auto begin = static_cast<int64_t>(row.row.begin_host_ns());
  const std::optional<int64_t> ns = HostTime(begin, begin + static_cast<int64_t>(row.row.duration_ns()));
  if (!ns) return;
  AnnotationFigures& figures = annotations_[row.name == nullptr ? std::string() : *row.name];
  figures.name = TextOf(row.name);
  ++figures.count;
  figures.total_ns = AddSaturated(figures.total_ns, *ns);
  figures.max_ns = std::max(figures.max_ns, *ns);
}

void Summarizer::OnClockPair(const v1::ClockPair& row) {
  clock_width_ns_ = std::max<uint64_t>(clock_width_ns_, row.width_ns());
}

void Summarizer::OnLoss(const reader::LossRow& row) {
  const auto first = static_cast<int64_t>(row.row.first_host_ns());
  const auto last = static_cast<int64_t>(row.row.last_host_ns());
  const auto [place, is_new] = losses_.try_emplace({row.row.reason(), row.row.kind()});
  LossFigures& loss = place->second;
  if (is_new) loss = {row.row.reason(), row.row.kind(), 0, first, last};
  loss.count = AddSaturated(loss.count, row.row.count());
  loss.first_host_ns = std::min(loss.first_host_ns, first);
  loss.last_host_ns = std::max(loss.last_host_ns, last);
}

void Summarizer::OnOutage(const v1::Outage& row) { outages_.push_back(row); }

void Summarizer::OnOpaqueInterval(const reader::OpaqueRow& row) {
  const auto begin = static_cast<int64_t>(row.row.begin_device_ns());
  const auto end = static_cast<int64_t>(row.row.end_device_ns());
  if (begin < end) StateOf(*row.stream).device->opaque.Add(begin, end);
}

void Summarizer::OnLevelChange(const v1::LevelChange& row) { levels_.push_back(row); }

Summary Summarizer::Finish(const reader::TraceReader& reader) {
  Summary summary;
  summary.path = reader.path();
  summary.parts = reader.parts();
  summary.bytes = reader.bytes();
  summary.chunks = reader.chunks();
  summary.events = reader.events();
  summary.cleanly_closed = reader.cleanly_closed();
  summary.header = reader.header();
  summary.run_info = reader.run_info();
  summary.self_cost = reader.self_cost();
  summary.damages = reader.damages().kept();
  summary.damage_count = reader.damages().count();
  for (const auto& [key, loss] : losses_) {
    summary.losses.push_back(loss);
    // Refused buffers are no records (CUPTI counts those that it then drops), and records without their call are here.
    if (loss.reason != v1::LOSS_REASON_POOL_EMPTY && loss.reason != v1::LOSS_REASON_NO_LAUNCH) {
      summary.lost = AddSaturated(summary.lost, loss.count);
    }
  }
  summary.outages = std::move(outages_);
  summary.unfinished_calls = std::move(unfinished_calls_);
  summary.unfinished_call_count = unfinished_call_count_;
  summary.clock_pairs = reader.clock_map().size();
  summary.clock_pairs_left_out = reader.clock_map().left_out();
  summary.clock_width_ns = clock_width_ns_;

  summary.region_spec = spec_;
  if (region_) summary.region = *region_;
  FinishSpan(reader, &summary);
  FinishSteps(&summary);
  FinishStreams(reader.clock_map(), &summary);
  FinishDevices(reader.clock_map(), &summary);
  FinishKernels(&summary);
  FinishCalls(&summary);
  transfers_.Finish(&summary);
  SortByTotal(summary.copies);
  SortByTotal(summary.memsets);
  for (const auto& [key, annotation] : annotations_) summary.annotations.push_back(annotation);
  SortByTotal(summary.annotations);
  summary.joined_kernels = Joined(kernel_join_);
  summary.joined_copies = Joined(copy_join_);
  summary.joined_memsets = Joined(memset_join_);
  summary.launches_without_kernel = launch_ids_.CountWithout(kernel_ids_);
  summary.levels = std::move(levels_);
  return summary;
}

void Summarizer::FinishSpan(const reader::TraceReader& reader, Summary* summary) {
  SpanFigures& span = summary->span;
  const auto start = static_cast<int64_t>(std::min<uint64_t>(reader.header().start().monotonic_ns(), kMaxNs));
  span.begin_host_ns = start != 0 ? start : first_host_ns_.value_or(0);
  span.end_host_ns = std::max(reader.last_host_ns(), span.begin_host_ns);
  const Intervals whole = region_ ? *region_ : Union({{span.begin_host_ns, span.end_host_ns}});

  Intervals outages;
  for (const v1::Outage& outage : summary->outages) {
    const auto end = static_cast<int64_t>(outage.end_host_ns());
    outages.push_back({static_cast<int64_t>(outage.begin_host_ns()), end != 0 ? end : span.end_host_ns});
  }
  outages = Intersection(whole, Union(std::move(outages)));
  span.outage_ns = Length(outages);

  Intervals unreadable;
  for (const Damage& damage : summary->damages) {
    const auto after = static_cast<int64_t>(std::min<uint64_t>(damage.after_host_ns, kMaxNs));
    const auto before = static_cast<int64_t>(std::min<uint64_t>(damage.before_host_ns, kMaxNs));
    unreadable.push_back({after != 0 ? after : span.begin_host_ns, before});
  }
  unreadable = Difference(Intersection(whole, Union(std::move(unreadable))), outages);
  span.unreadable_ns = Length(unreadable);

  captured_ = Difference(Difference(whole, outages), unreadable);
  span.captured_ns = Length(captured_);
}

void Summarizer::FinishSteps(Summary* summary) {
  StepFigures& figures = summary->steps;
  // The interval of the region that a time ends in; a step that lies in one interval begins in it, too. Half-open the
  // other way round: the step that ends with the region is in it.
  constexpr Interval kAlways = {INT64_MIN, INT64_MAX};
  const auto ends_in = [&](int64_t host_ns) -> const Interval* {
    if (!region_) return &kAlways;
    const Intervals& host = *region_;
    const auto at = std::lower_bound(host.begin(), host.end(), host_ns,
                                     [](const Interval& interval, int64_t time) { return interval.end < time; });
    return at != host.end() && at->begin < host_ns ? &*at : nullptr;
  };
  std::stable_sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) { return a.host_ns < b.host_ns; });
  ExactDistribution durations;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    const Interval* interval = ends_in(step.host_ns);
    if (interval == nullptr) continue;
    ++figures.count;
    if (!figures.first_host_ns) figures.first_host_ns = step.host_ns;
    figures.last_host_ns = step.host_ns;
    if (i == 0 || steps_[i - 1].host_ns < interval->begin) continue;
    const Step& before = steps_[i - 1];
    if (step.index != before.index + 1) {
      // Not one step's time. An index that does not rise is another session's.
      if (step.index > before.index) {
        figures.not_seen = AddSaturated(figures.not_seen, step.index - before.index - 1);
      }
      continue;
    }
    const int64_t duration = step.host_ns - before.host_ns;
    durations.Add(duration);
    if (step.samples) {
      figures.samples = AddSaturated(figures.samples.value_or(0), *step.samples);
      figures.samples_ns = AddSaturated(figures.samples_ns, duration);
    }
    if (step.tokens) {
      figures.tokens = AddSaturated(figures.tokens.value_or(0), *step.tokens);
      figures.tokens_ns = AddSaturated(figures.tokens_ns, duration);
    }
  }
  figures.durations = FiguresOf(durations);
}

// Among all steps of the trace, which are sorted: also in a region.
void Summarizer::PlaceLongestIdle(DeviceFigures* figures) const {
  if (!figures->longest_idle_begin_host_ns || !figures->longest_idle_ns) return;
  const int64_t begin = *figures->longest_idle_begin_host_ns;
  const int64_t end = begin + *figures->longest_idle_ns;
  const auto before = std::upper_bound(steps_.begin(), steps_.end(), begin,
                                       [](int64_t time, const Step& step) { return time < step.host_ns; });
  const auto behind = std::lower_bound(steps_.begin(), steps_.end(), end,
                                       [](const Step& step, int64_t time) { return step.host_ns < time; });
  if (before != steps_.begin()) figures->longest_idle_after_step = std::prev(before)->index;
  if (behind != steps_.end()) figures->longest_idle_before_step = behind->index;
}

void Summarizer::FinishDevices(const ClockMap& clock, Summary* summary) {
  Intervals in_steps;
  if (steps_.size() >= 2) {
    in_steps = Intersection(captured_, Union({{steps_.front().host_ns, steps_.back().host_ns}}));
  }
  for (auto& [key, state] : devices_) {
    DeviceFigures& figures = state.figures;
    Intervals busy_on_device;
    for (const Intervals& stream : state.busy)
      busy_on_device.insert(busy_on_device.end(), stream.begin(), stream.end());
    busy_on_device = Union(std::move(busy_on_device));
    const Intervals opaque_on_device = state.opaque.Take();
    if (clock.known() || (busy_on_device.empty() && opaque_on_device.empty())) {
      const Intervals busy = Intersection(OnHostClock(busy_on_device, clock), captured_);
      const Intervals opaque = Difference(Intersection(OnHostClock(opaque_on_device, clock), captured_), busy);
      const Intervals idle = Difference(Difference(captured_, busy), opaque);
      figures.busy_ns = Length(busy);
      figures.opaque_ns = Length(opaque);
      figures.idle_ns = Length(idle);
      figures.idle_intervals = idle.size();
      figures.longest_idle_ns = 0;
      for (const Interval& interval : idle) {
        const int64_t ns = interval.end - interval.begin;
        if (ns <= *figures.longest_idle_ns) continue;
        figures.longest_idle_ns = ns;
        figures.longest_idle_begin_host_ns = interval.begin;
      }
      PlaceLongestIdle(&figures);
      if (!in_steps.empty()) {
        figures.steps_captured_ns = Length(in_steps);
        figures.steps_busy_ns = Length(Intersection(busy, in_steps));
        figures.steps_idle_ns = Length(Intersection(idle, in_steps));
      }
    }
    summary->devices.push_back(figures);
  }
}

// Before the devices, which are what their streams are together.
void Summarizer::FinishStreams(const ClockMap& clock, Summary* summary) {
  for (auto& [key, state] : streams_) {
    StreamFigures& figures = state.figures;
    Intervals busy = state.busy.Take();
    if (clock.known() || busy.empty()) figures.busy_ns = Length(Intersection(OnHostClock(busy, clock), captured_));
    state.device->busy.push_back(std::move(busy));
    if (figures.kernels + figures.copies + figures.memsets != 0) summary->streams.push_back(figures);
  }
  std::stable_sort(summary->streams.begin(), summary->streams.end(),
                   [](const StreamFigures& a, const StreamFigures& b) { return a.total_ns() > b.total_ns(); });
}

void Summarizer::FinishKernels(Summary* summary) {
  std::map<std::optional<std::string>, ExactDistribution> by_name;
  for (KernelState& kernel : kernels_) {
    std::optional<std::string> name = TextOf(kernel.entry->name);
    if (name) name = Demangle(*name);
    by_name[std::move(name)].Add(kernel.durations);
  }
  for (auto& [name, durations] : by_name) summary->kernels.push_back({name, FiguresOf(durations)});
  std::stable_sort(
      summary->kernels.begin(), summary->kernels.end(),
      [](const KernelFigures& a, const KernelFigures& b) { return a.durations.total_ns > b.durations.total_ns; });
}

void Summarizer::FinishCalls(Summary* summary) {
  std::map<std::pair<int, std::optional<std::string>>, CallFigures> by_function;
  std::map<std::pair<WaitReason, std::optional<std::string>>, WaitFigures> waits;
  const auto add_wait = [&](WaitReason reason, const std::optional<std::string>& function, const CallState& call) {
    WaitFigures& wait = waits[{reason, function}];
    wait.reason = reason;
    wait.function = function;
    wait.count += call.count;
    wait.total_ns = AddSaturated(wait.total_ns, call.total_ns);
    wait.max_ns = std::max(wait.max_ns, call.max_ns);
  };
  const auto is_asynchronous = [](const reader::CallSiteEntry& site) {
    return site.name == nullptr || absl::StrContains(*site.name, "Async") || absl::StrContains(*site.name, "Batch");
  };

  for (const CallState& call : calls_) {
    if (call.site == nullptr) continue;
    const v1::CallKind kind = call.site->definition.kind();
    const std::optional<std::string> function = TextOf(call.site->name);
    CallFigures& figures = by_function[{kind, function}];
    figures.kind = kind;
    figures.function = function;
    figures.count += call.count;
    figures.total_ns = AddSaturated(figures.total_ns, call.total_ns);
    figures.max_ns = std::max(figures.max_ns, call.max_ns);
    figures.errors += call.errors;
    if (call.site->definition.capture() == v1::CAPTURE_STATE_CAPTURING) continue;  // became a graph node at once
    if (kind == v1::CALL_KIND_SYNCHRONIZE) add_wait(WaitReason::kSynchronize, function, call);
    if (kind == v1::CALL_KIND_COPY && !is_asynchronous(*call.site)) {
      add_wait(WaitReason::kBlockingCopy, function, call);
    }
  }
  for (const CopyCall& copy : copy_calls_) {
    if (!is_asynchronous(*copy.site) || !pageable_copies_.Contains(copy.correlation)) continue;
    CallState one;
    one.Add(copy.duration_ns);
    add_wait(WaitReason::kPageableCopy, TextOf(copy.site->name), one);
  }
  for (const auto& [key, figures] : by_function) summary->calls.push_back(figures);
  SortByTotal(summary->calls);
  for (const auto& [key, figures] : waits) summary->waits.push_back(figures);
  SortByTotal(summary->waits);
}

JoinFigures Summarizer::Joined(const Join& join) const {
  uint64_t without_call = 0;
  for (const uint64_t id : join.pending) without_call += !call_ids_.Contains(id);
  return {join.records, join.records - without_call};
}

absl::StatusOr<Summary> Summarize(const std::string& path, const RegionSpec& spec,
                                  const reader::TraceReader::Progress& progress) {
  absl::StatusOr<reader::TraceReader> reader = reader::TraceReader::Open(path);
  if (!reader.ok()) return reader.status();
  const absl::Status stopped = absl::CancelledError(absl::StrCat(path, ": stopped"));
  Summarizer summarizer;
  if (!spec.is_whole()) {
    Timeline timeline;
    const auto still_begins = [&](uint64_t) { return progress == nullptr || progress(0); };
    if (!reader->Read(&timeline, still_begins, {Timeline::kFields})) return stopped;
    timeline.Finish(*reader);
    absl::StatusOr<Region> region = Resolve(spec, timeline);
    const auto no_region = [&](absl::string_view why) { return absl::OutOfRangeError(absl::StrCat(path, ": ", why)); };
    if (!region.ok()) return no_region(region.status().message());
    if (region->host.empty()) return no_region("the region holds no time of the trace");
    if (!region->device) {
      return no_region("no clock pair carries device times to the host clock, so no work can be placed in a region");
    }
    summarizer = Summarizer(spec, *std::move(region));
  }
  if (!reader->Read(&summarizer, progress)) return stopped;
  Summary summary = summarizer.Finish(*reader);
  RangeProjection& ranges = summarizer.ranges();
  if (ranges.empty()) return summary;
  ranges.Prepare(summary.span.end_host_ns);
  const auto still_reads = [&](uint64_t) { return progress == nullptr || progress(summary.bytes); };
  if (!reader->Read(&ranges, still_reads, {RangeProjection::kFields})) return stopped;
  summary.ranges = ranges.Finish();
  summary.ranges_complete = ranges.complete();
  return summary;
}

}  // namespace gpuperf::analysis
