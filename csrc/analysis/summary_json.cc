// The JSON form of a Summary. Keys are documented in docs/report.md and never change their meaning.
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "analysis/json_writer.h"
#include "analysis/names.h"
#include "analysis/summary.h"

namespace gpuperf::analysis {
namespace {

using Text = std::optional<std::string>;

void Write(JsonWriter& json, absl::string_view key, const Text& text) {
  json.Key(key);
  if (text) {
    json.String(*text);
  } else {
    json.Null();
  }
}

// A string that is "" where it is not set.
void WriteIfSet(JsonWriter& json, absl::string_view key, const std::string& text) {
  Write(json, key, text.empty() ? Text() : Text(text));
}

// 0 is how the schema says that it is not known, or open.
void WriteUnlessZero(JsonWriter& json, absl::string_view key, uint64_t time) {
  json.Uint(key, time != 0 ? std::optional<uint64_t>(time) : std::nullopt);
}

// floor(amount × 10^9 / ns); null without time.
void WriteRate(JsonWriter& json, absl::string_view key, const std::optional<uint64_t>& amount, int64_t ns) {
  json.Key(key);
  if (!amount || ns <= 0) {
    json.Null();
    return;
  }
  __extension__ const auto rate = static_cast<unsigned __int128>(*amount) * 1'000'000'000U / static_cast<uint64_t>(ns);
  if (rate > UINT64_MAX) {
    json.Null();
  } else {
    json.Uint(static_cast<uint64_t>(rate));
  }
}

void WriteFigures(JsonWriter& json, const DurationFigures& figures) {
  json.Uint("count", figures.count);
  const bool some = figures.count != 0;
  const auto known = [&](int64_t value) { return some ? std::optional<int64_t>(value) : std::nullopt; };
  json.Int("total_ns", figures.total_ns);
  json.Int("average_ns", known(some ? figures.total_ns / static_cast<int64_t>(figures.count) : 0));
  json.Int("min_ns", known(figures.min_ns));
  json.Int("max_ns", known(figures.max_ns));
  json.Int("p50_ns", known(figures.p50_ns));
  json.Int("p95_ns", known(figures.p95_ns));
  json.Int("p99_ns", known(figures.p99_ns));
}

void WriteKeyValues(JsonWriter& json, absl::string_view key,
                    const google::protobuf::RepeatedPtrField<v1::KeyValue>& pairs) {
  json.Key(key).BeginObject();
  for (const v1::KeyValue& pair : pairs) json.String(pair.key(), pair.value());
  json.EndObject();
}

template <class Message, class Has, class Get>
void WriteOptional(JsonWriter& json, absl::string_view key, const Message& message, Has has, Get get) {
  json.Key(key);
  if ((message.*has)()) {
    json.Uint(static_cast<uint64_t>((message.*get)()));
  } else {
    json.Null();
  }
}

void WriteTrace(JsonWriter& json, const Summary& summary) {
  json.Key("trace").BeginObject();
  json.String("path", summary.path);
  json.Uint("parts", summary.parts);
  json.Uint("bytes", summary.bytes);
  json.Uint("format_version", summary.header.format_version());
  json.String("producer", summary.header.producer());
  json.String("uuid", absl::BytesToHexString(summary.header.trace_uuid()));
  json.Uint("chunks", summary.chunks);
  json.Uint("events", summary.events);
  json.Uint("clock_pairs", summary.clock_pairs);
  json.Uint("clock_pairs_left_out", summary.clock_pairs_left_out);
  json.Uint("clock_width_ns",
            summary.clock_pairs != 0 ? std::optional<uint64_t>(summary.clock_width_ns) : std::nullopt);
  json.EndObject();
}

void WriteProcess(JsonWriter& json, const Summary& summary) {
  const v1::ProcessInfo& process = summary.header.process();
  json.Key("process").BeginObject();
  json.Uint("pid", process.pid() != 0 ? std::optional<uint64_t>(process.pid()) : std::nullopt);
  WriteIfSet(json, "host", process.host());
  WriteIfSet(json, "executable", process.executable());
  json.Key("command_line").BeginArray();
  for (const std::string& argument : process.command_line()) json.String(argument);
  json.EndArray();
  const v1::RunInfo run = summary.run_info.value_or(v1::RunInfo());
  WriteOptional(json, "rank", run, &v1::RunInfo::has_rank, &v1::RunInfo::rank);
  WriteOptional(json, "world_size", run, &v1::RunInfo::has_world_size, &v1::RunInfo::world_size);
  WriteOptional(json, "local_rank", run, &v1::RunInfo::has_local_rank, &v1::RunInfo::local_rank);
  json.EndObject();
}

void WriteHardware(JsonWriter& json, const v1::Device& device) {
  json.BeginObject();
  json.Uint("device", device.device());
  WriteIfSet(json, "name", device.name());
  WriteIfSet(json, "uuid", device.uuid());
  WriteIfSet(json, "pci_bus_id", device.pci_bus_id());
  WriteIfSet(json, "compute",
             device.compute_major() == 0 ? "" : absl::StrCat(device.compute_major(), ".", device.compute_minor()));
  WriteUnlessZero(json, "multiprocessors", device.multiprocessors());
  WriteUnlessZero(json, "memory_bytes", device.memory_bytes());
  WriteOptional(json, "pcie_generation", device, &v1::Device::has_pcie_generation, &v1::Device::pcie_generation);
  WriteOptional(json, "pcie_width", device, &v1::Device::has_pcie_width, &v1::Device::pcie_width);
  uint64_t active = 0;
  for (const v1::NvLink& link : device.nvlinks()) active += link.active();
  json.Uint("nvlinks_active", device.nvlink_known() ? std::optional<uint64_t>(active) : std::nullopt);
  json.EndObject();
}

void WriteRun(JsonWriter& json, const Summary& summary) {
  json.Key("run");
  if (!summary.run_info) {
    json.Null();
    return;
  }
  const v1::RunInfo& run = *summary.run_info;
  json.BeginObject();
  WriteIfSet(json, "driver_version", run.driver_version());
  WriteUnlessZero(json, "cuda_driver_api", run.cuda_driver_api());
  WriteUnlessZero(json, "cupti_version", run.cupti().version());
  WriteIfSet(json, "cupti_path", run.cupti().path());
  WriteIfSet(json, "cupti_found_by", run.cupti().found_by());
  WriteKeyValues(json, "versions", run.versions());
  WriteKeyValues(json, "options", run.options());
  json.Key("warnings").BeginArray();
  for (const std::string& warning : run.warnings()) json.String(warning);
  json.EndArray();
  json.Key("hardware").BeginArray();
  for (const v1::Device& device : run.devices()) WriteHardware(json, device);
  json.EndArray();
  json.EndObject();
}

void WriteTimePoint(JsonWriter& json, absl::string_view key, const std::optional<TimePoint>& point) {
  json.Key(key);
  if (!point) {
    json.Null();
    return;
  }
  constexpr const char* kOrigins[] = {"host_clock", "start", "end"};
  json.BeginObject().String("from", kOrigins[static_cast<int>(point->origin)]).Int("ns", point->ns).EndObject();
}

void WriteRegion(JsonWriter& json, const Summary& summary) {
  json.Key("region");
  if (!summary.region_spec) {
    json.Null();
    return;
  }
  const RegionSpec& spec = *summary.region_spec;
  json.BeginObject().Key("steps");
  if (spec.steps) {
    json.BeginObject().Int("begin", spec.steps->begin).Int("end", spec.steps->end).EndObject();
  } else {
    json.Null();
  }
  Write(json, "annotation", spec.annotation);
  json.Key("nvtx");
  if (spec.nvtx) {
    json.BeginObject();
    Write(json, "name", spec.nvtx->name);
    Write(json, "domain", spec.nvtx->domain);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("time");
  if (spec.time) {
    json.BeginObject();
    WriteTimePoint(json, "begin", spec.time->begin);
    WriteTimePoint(json, "end", spec.time->end);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Int("begin_host_ns", summary.region.front().begin).Int("end_host_ns", summary.region.back().end);
  json.Uint("intervals", summary.region.size()).Int("ns", Length(summary.region)).EndObject();
}

void WriteCompleteness(JsonWriter& json, const Summary& summary) {
  json.Key("completeness").BeginObject();
  json.Bool("complete", summary.complete());
  json.Bool("cleanly_closed", summary.cleanly_closed);
  json.Uint("lost", summary.lost);
  json.Key("losses").BeginArray();
  for (const LossFigures& loss : summary.losses) {
    json.BeginObject().String("reason", LossReasonName(loss.reason)).String("kind", EventKindName(loss.kind));
    json.Uint("count", loss.count).Int("first_host_ns", loss.first_host_ns).Int("last_host_ns", loss.last_host_ns);
    json.EndObject();
  }
  json.EndArray();
  json.Uint("damage_count", summary.damage_count);
  json.Key("damages").BeginArray();
  for (const reader::Damage& damage : summary.damages) {
    json.BeginObject().String("file", damage.file).Uint("offset", damage.offset).Uint("bytes", damage.bytes);
    json.String("what", damage.what);
    WriteUnlessZero(json, "after_host_ns", damage.after_host_ns);
    WriteUnlessZero(json, "before_host_ns", damage.before_host_ns);
    json.EndObject();
  }
  json.EndArray();
  json.Key("outages").BeginArray();
  for (const v1::Outage& outage : summary.outages) {
    json.BeginObject().String("reason", OutageReasonName(outage.reason()));
    json.Uint("begin_host_ns", outage.begin_host_ns());
    WriteUnlessZero(json, "end_host_ns", outage.end_host_ns());
    WriteIfSet(json, "detail", outage.detail());
    json.EndObject();
  }
  json.EndArray();
  json.Uint("unfinished_call_count", summary.unfinished_call_count);
  json.Key("unfinished_calls").BeginArray();
  for (const UnfinishedCall& call : summary.unfinished_calls) {
    json.BeginObject();
    Write(json, "function", call.function);
    json.Uint("tid", call.tid ? std::optional<uint64_t>(*call.tid) : std::nullopt);
    json.Int("enter_host_ns", call.enter_host_ns).EndObject();
  }
  json.EndArray();
  const auto join = [&](absl::string_view key, const JoinFigures& figures) {
    json.Key(key).BeginObject().Uint("records", figures.records).Uint("joined", figures.joined).EndObject();
  };
  json.Key("launches").BeginObject();
  join("kernels", summary.joined_kernels);
  join("copies", summary.joined_copies);
  join("memsets", summary.joined_memsets);
  json.EndObject();
  json.Uint("launches_without_kernel", summary.launches_without_kernel);
  json.Key("levels").BeginArray();
  for (const v1::LevelChange& change : summary.levels) {
    json.BeginObject().String("level", LevelName(change.level())).Uint("host_ns", change.host_ns()).EndObject();
  }
  json.EndArray();
  json.EndObject();
}

void WriteSteps(JsonWriter& json, const StepFigures& steps) {
  json.Key("steps").BeginObject();
  json.Uint("count", steps.count).Int("first_host_ns", steps.first_host_ns).Int("last_host_ns", steps.last_host_ns);
  json.Uint("not_seen", steps.not_seen);
  json.Key("durations").BeginObject();
  WriteFigures(json, steps.durations);
  json.EndObject();
  json.Uint("samples", steps.samples);
  json.Int("samples_ns", steps.samples_ns);
  WriteRate(json, "samples_per_second", steps.samples, steps.samples_ns);
  json.Uint("tokens", steps.tokens);
  json.Int("tokens_ns", steps.tokens_ns);
  WriteRate(json, "tokens_per_second", steps.tokens, steps.tokens_ns);
  json.EndObject();
}

void WriteDevice(JsonWriter& json, const DeviceFigures& device) {
  json.BeginObject();
  json.Uint("device", device.device ? std::optional<uint64_t>(*device.device) : std::nullopt);
  json.Uint("kernels", device.kernels).Uint("copies", device.copies).Uint("memsets", device.memsets);
  json.Int("kernel_ns", device.kernel_ns).Int("copy_ns", device.copy_ns).Int("memset_ns", device.memset_ns);
  json.Int("busy_ns", device.busy_ns).Int("opaque_ns", device.opaque_ns).Int("idle_ns", device.idle_ns);
  json.Uint("idle_intervals", device.idle_intervals).Int("longest_idle_ns", device.longest_idle_ns);
  json.Int("longest_idle_begin_host_ns", device.longest_idle_begin_host_ns);
  json.Uint("longest_idle_after_step", device.longest_idle_after_step);
  json.Uint("longest_idle_before_step", device.longest_idle_before_step);
  json.Int("steps_captured_ns", device.steps_captured_ns);
  json.Int("steps_busy_ns", device.steps_busy_ns).Int("steps_idle_ns", device.steps_idle_ns);
  json.EndObject();
}

void WriteStream(JsonWriter& json, const StreamFigures& stream) {
  const auto id = [&](absl::string_view key, const std::optional<uint32_t>& value) {
    json.Uint(key, value ? std::optional<uint64_t>(*value) : std::nullopt);
  };
  json.BeginObject();
  id("device", stream.device);
  id("context", stream.context);
  id("stream", stream.stream);
  json.Int("priority", stream.priority ? std::optional<int64_t>(*stream.priority) : std::nullopt);
  json.Uint("kernels", stream.kernels).Uint("copies", stream.copies).Uint("memsets", stream.memsets);
  json.Int("kernel_ns", stream.kernel_ns).Int("copy_ns", stream.copy_ns).Int("memset_ns", stream.memset_ns);
  json.Int("total_ns", stream.total_ns()).Int("busy_ns", stream.busy_ns).EndObject();
}

void WriteTransfer(JsonWriter& json, const TransferFigures& figures) {
  json.Uint("operations", figures.operations).Uint("bytes", figures.bytes);
  json.Int("total_ns", figures.total_ns).Int("whole_ns", figures.whole_ns);
  WriteRate(json, "bytes_per_second", figures.bytes, figures.whole_ns);
}

const char* WaitReasonName(WaitReason reason) {
  switch (reason) {
    case WaitReason::kSynchronize:
      return "synchronize";
    case WaitReason::kBlockingCopy:
      return "blocking_copy";
    case WaitReason::kPageableCopy:
      return "pageable_copy";
  }
  return "";
}

void WriteSelfCost(JsonWriter& json, const Summary& summary) {
  json.Key("self_cost");
  if (!summary.self_cost) {
    json.Null();
    return;
  }
  const v1::SelfCost& cost = *summary.self_cost;
  json.BeginObject();
  json.Uint("callbacks", cost.callbacks());
  json.Uint("callback_ns", cost.callback_samples() != 0 || cost.callbacks() == 0
                               ? std::optional<uint64_t>(cost.callback_ns())
                               : std::nullopt);
  json.Uint("callback_samples", cost.callback_samples());
  // A thread that measured itself has used some.
  WriteUnlessZero(json, "collector_cpu_ns", cost.collector_cpu_ns());
  WriteUnlessZero(json, "flush_cpu_ns", cost.flush_cpu_ns());
  json.Uint("buffer_bytes_peak", cost.buffer_bytes_peak()).Uint("ring_bytes", cost.ring_bytes());
  json.Uint("written_bytes", cost.written_bytes());
  json.EndObject();
}

}  // namespace

std::string ToJson(const Summary& summary) {
  JsonWriter json;
  json.BeginObject();
  WriteTrace(json, summary);
  WriteProcess(json, summary);
  WriteRun(json, summary);
  const SpanFigures& span = summary.span;
  json.Key("span").BeginObject();
  json.Int("begin_host_ns", span.begin_host_ns).Int("end_host_ns", span.end_host_ns);
  json.Int("wall_ns", span.end_host_ns - span.begin_host_ns).Int("outage_ns", span.outage_ns);
  json.Int("unreadable_ns", span.unreadable_ns).Int("captured_ns", span.captured_ns).EndObject();
  WriteRegion(json, summary);
  WriteCompleteness(json, summary);
  WriteSteps(json, summary.steps);
  json.Key("devices").BeginArray();
  for (const DeviceFigures& device : summary.devices) WriteDevice(json, device);
  json.EndArray();
  json.Key("streams").BeginArray();
  for (const StreamFigures& stream : summary.streams) WriteStream(json, stream);
  json.EndArray();
  json.Key("kernels").BeginArray();
  for (const KernelFigures& kernel : summary.kernels) {
    json.BeginObject();
    Write(json, "name", kernel.name);
    WriteFigures(json, kernel.durations);
    json.EndObject();
  }
  json.EndArray();
  json.Key("copies").BeginArray();
  for (const CopyFigures& copies : summary.copies) {
    json.BeginObject().String("direction", CopyKindName(copies.copy_kind));
    json.String("source", MemoryKindName(copies.source_kind));
    json.String("destination", MemoryKindName(copies.destination_kind));
    json.Uint("copies", copies.copies);
    WriteTransfer(json, copies);
    json.Uint("link_bytes_per_second", copies.link_bytes_per_second).EndObject();
  }
  json.EndArray();
  json.Key("copy_sizes").BeginArray();
  for (const CopySizeFigures& sizes : summary.copy_sizes) {
    json.BeginObject().String("direction", CopyKindName(sizes.copy_kind));
    json.Uint("least_bytes", sizes.least_bytes).Uint("below_bytes", sizes.below_bytes);
    WriteTransfer(json, sizes);
    json.Uint("link_bytes_per_second", sizes.link_bytes_per_second).EndObject();
  }
  json.EndArray();
  json.Key("memsets").BeginArray();
  for (const MemsetFigures& memsets : summary.memsets) {
    json.BeginObject().String("memory", MemoryKindName(memsets.memory_kind));
    WriteTransfer(json, memsets);
    json.EndObject();
  }
  json.EndArray();
  json.Key("waits").BeginArray();
  for (const WaitFigures& wait : summary.waits) {
    json.BeginObject();
    Write(json, "function", wait.function);
    json.String("reason", WaitReasonName(wait.reason)).Uint("count", wait.count);
    json.Int("total_ns", wait.total_ns).Int("max_ns", wait.max_ns).EndObject();
  }
  json.EndArray();
  json.Key("calls").BeginArray();
  for (const CallFigures& call : summary.calls) {
    json.BeginObject();
    Write(json, "function", call.function);
    json.String("kind", CallKindName(call.kind)).Uint("count", call.count).Int("total_ns", call.total_ns);
    json.Int("max_ns", call.max_ns).Uint("errors", call.errors).EndObject();
  }
  json.EndArray();
  json.Key("annotations").BeginArray();
  for (const AnnotationFigures& annotation : summary.annotations) {
    json.BeginObject();
    Write(json, "name", annotation.name);
    json.Uint("count", annotation.count).Int("total_ns", annotation.total_ns).Int("max_ns", annotation.max_ns);
    json.EndObject();
  }
  json.EndArray();
  json.Key("ranges").BeginArray();
  for (const RangeFigures& range : summary.ranges) {
    json.BeginObject().String("source", MarkerSourceName(range.source));
    Write(json, "domain", range.domain);
    json.Bool("domain_lost", range.domain_lost);
    Write(json, "name", range.name);
    json.Uint("count", range.count).Int("total_ns", range.total_ns).Int("max_ns", range.max_ns);
    json.Uint("open", range.open).Uint("launches", range.launches).Uint("operations", range.operations);
    json.Int("gpu_ns", range.gpu_ns).Int("gpu_idle_ns", range.gpu_idle_ns).EndObject();
  }
  json.EndArray();
  json.Bool("ranges_complete", summary.ranges_complete);
  WriteSelfCost(json, summary);
  json.EndObject();
  return json.Take();
}

}  // namespace gpuperf::analysis
