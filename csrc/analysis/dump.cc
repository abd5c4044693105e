#include "analysis/dump.h"

#include <utility>

#include "absl/base/casts.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analysis/json_writer.h"
#include "analysis/names.h"
#include "reader/trace_reader.h"

namespace gpuperf::analysis {
namespace {

using ::gpuperf::reader::Name;

// Bytes as they are where they are printable ASCII, else \xNN: nothing is lost, and no line breaks.
std::string Quoted(absl::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte >= 0x20 && byte < 0x7F) {
      text += c;
    } else {
      absl::StrAppendFormat(&text, "\\x%02x", static_cast<unsigned>(byte));
    }
  }
  text += '"';
  return text;
}

// One line: `kind key=value key=value …`. Written when it goes.
class LineWriter {
 public:
  LineWriter(std::string* out, absl::string_view kind) : out_(out) { absl::StrAppend(out_, kind); }
  ~LineWriter() { *out_ += '\n'; }
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  template <class Number>
  LineWriter& Put(absl::string_view key, const Number& value) {
    absl::StrAppend(out_, " ", key, "=", value);
    return *this;
  }
  LineWriter& Text(absl::string_view key, absl::string_view value) {
    absl::StrAppend(out_, " ", key, "=", Quoted(value));
    return *this;
  }
  LineWriter& Address(absl::string_view key, uint64_t value) {
    absl::StrAppend(out_, " ", key, "=0x", absl::Hex(value));
    return *this;
  }
  LineWriter& Bool(absl::string_view key, bool value) { return Put(key, value ? "yes" : "no"); }
  // Left out where it is 0, "" or false: a field that says nothing then.
  template <class Number>
  LineWriter& PutIf(absl::string_view key, Number value) {
    return value != 0 ? Put(key, value) : *this;
  }
  LineWriter& TextIf(absl::string_view key, absl::string_view value) {
    return value.empty() ? *this : Text(key, value);
  }
  // A name: left out where it is not set, `?` where its definition is lost.
  LineWriter& Named(absl::string_view key, Name name) { return name == nullptr ? Put(key, "?") : TextIf(key, *name); }

 private:
  std::string* out_;
};

// The lines of `--chunks`.
class ChunkDumper : public reader::Visitor {
 public:
  explicit ChunkDumper(const DumpSink& sink) : sink_(sink) {}

  // Hands on what has been written; false when the sink wants no more.
  bool Flush() {
    const bool more = text_.empty() || sink_(text_);
    text_.clear();
    return more;
  }

  void OnFile(const std::string&, const v1::FileHeader& header) override {
    Line("file")
        .Put("part", header.part())
        .Put("format_version", header.format_version())
        .Put("uuid", absl::BytesToHexString(header.trace_uuid()))
        .Text("producer", header.producer());
  }

  void OnChunk(const reader::Frame& frame) override {
    const v1::ChunkHeader& header = frame.header;
    Line("chunk")
        .Put("sequence", header.sequence())
        .Put("offset", frame.offset)
        .Put("bytes", frame.bytes)
        .Put("body_bytes", header.body_size())
        .Put("crc32c", absl::StrFormat("%08x", header.body_crc32c()))
        .Put("first_host_ns", header.first_host_ns())
        .Put("last_host_ns", header.last_host_ns())
        .Put("events", header.event_count())
        .Bool("checkpoint", header.dictionary_checkpoint());
  }

  void PutEnd(const reader::TraceReader& reader) {
    for (const reader::Damage& damage : reader.damages().kept()) {
      auto line = Line("damage");
      line.Put("offset", damage.offset).Put("bytes", damage.bytes).Text("what", damage.what);
      if (damage.file != reader.path()) line.Text("file", damage.file);
    }
    Line("end")
        .Put("chunks", reader.chunks())
        .Put("events", reader.events())
        .Put("damages", reader.damages().count())
        .Bool("cleanly_closed", reader.cleanly_closed());
  }

 protected:
  LineWriter Line(absl::string_view kind) { return LineWriter(&text_, kind); }

 private:
  const DumpSink& sink_;
  std::string text_;
};

// The lines of everything.
class Dumper : public ChunkDumper {
 public:
  using ChunkDumper::ChunkDumper;

  void OnFile(const std::string& path, const v1::FileHeader& header) override {
    ChunkDumper::OnFile(path, header);
    Line("start")
        .Put("monotonic_ns", header.start().monotonic_ns())
        .Put("realtime_ns", header.start().realtime_ns())
        .Put("boottime_ns", header.start().boottime_ns());
    const v1::ProcessInfo& process = header.process();
    auto line = Line("process");
    line.Put("pid", process.pid()).Put("parent_pid", process.parent_pid()).Text("host", process.host());
    line.Text("executable", process.executable());
    for (const std::string& argument : process.command_line()) line.Text("argument", argument);
  }

  void OnString(const v1::InternedString& string) override {
    Line("define_string").Put("iid", string.iid()).Text("value", string.value());
  }

  void OnThread(const reader::ThreadEntry& entry) override {
    Line("define_thread")
        .Put("iid", entry.definition.iid())
        .Put("tid", entry.definition.tid())
        .Named("name", entry.name);
  }

  void OnStream(const reader::StreamEntry& entry) override {
    const v1::Stream& stream = entry.definition;
    auto line = Line("define_stream");
    line.Put("iid", stream.iid()).Put("device", stream.device()).Put("context", stream.context());
    line.Put("stream", stream.stream());
    if (stream.has_channel()) line.Put("channel", stream.channel());
    if (stream.has_channel_type()) line.Put("channel_type", stream.channel_type());
    if (stream.has_priority()) line.Put("priority", stream.priority());
  }

  void OnKernelDefinition(const reader::KernelEntry& entry) override {
    const v1::Kernel& kernel = entry.definition;
    const auto size = [](uint32_t x, uint32_t y, uint32_t z) { return absl::StrCat(x, "x", y, "x", z); };
    Line("define_kernel")
        .Put("iid", kernel.iid())
        .Named("name", entry.name)
        .Put("grid", size(kernel.grid_x(), kernel.grid_y(), kernel.grid_z()))
        .Put("block", size(kernel.block_x(), kernel.block_y(), kernel.block_z()))
        .Put("cluster", size(kernel.cluster_x(), kernel.cluster_y(), kernel.cluster_z()))
        .Put("registers_per_thread", kernel.registers_per_thread())
        .Put("static_shared_bytes", kernel.static_shared_bytes())
        .Put("dynamic_shared_bytes", kernel.dynamic_shared_bytes())
        .Put("executed_shared_bytes", kernel.executed_shared_bytes())
        .Put("local_bytes_per_thread", kernel.local_bytes_per_thread())
        .Put("local_bytes_total", kernel.local_bytes_total())
        .PutIf("launch_type", kernel.launch_type())
        .PutIf("cache_config", kernel.cache_config())
        .PutIf("cluster_scheduling_policy", kernel.cluster_scheduling_policy())
        .PutIf("max_potential_cluster_size", kernel.max_potential_cluster_size())
        .PutIf("max_active_clusters", kernel.max_active_clusters())
        .PutIf("device_launched", static_cast<int>(kernel.device_launched()))
        .PutIf("shared_carveout_percent", kernel.shared_carveout_percent())
        .PutIf("shared_carveout_requested", static_cast<int>(kernel.shared_carveout_requested()));
  }

  void OnCallSite(const reader::CallSiteEntry& entry) override {
    const v1::CallSite& site = entry.definition;
    auto line = Line("define_call_site");
    line.Put("iid", site.iid()).Put("domain", CallDomainName(site.domain())).Put("cbid", site.cbid());
    line.Named("name", entry.name).Put("kind", CallKindName(site.kind())).Named("function", entry.function_name);
    if (site.has_stream()) line.Address("stream_handle", site.stream_handle());
    line.PutIf("per_thread_stream", static_cast<int>(site.per_thread_stream())).Put("context", site.context());
    line.Put("capture", CaptureStateName(site.capture()));
  }

  void OnKernel(const reader::KernelRow& row) override {
    auto line = Line("kernel");
    PutDeviceRow(line, row);
    line.Put("kernel_iid", row.kernel_iid).Named("name", row.kernel->name);
    line.PutIf("queued_ns", row.queued_device_ns).PutIf("submitted_ns", row.submitted_device_ns);
    PutGraph(line, row);
  }

  void OnCopy(const reader::CopyRow& row) override {
    auto line = Line("copy");
    PutDeviceRow(line, row);
    line.Put("bytes", row.bytes).Put("direction", CopyKindName(row.copy_kind));
    line.Put("source", MemoryKindName(row.source_kind)).Put("destination", MemoryKindName(row.destination_kind));
    line.Put("flags", row.flags).Put("copies", row.copy_count);
    if (row.peer) {
      line.Put("source_device", row.source_device).Put("source_context", row.source_context);
      line.Put("destination_device", row.destination_device).Put("destination_context", row.destination_context);
    }
    PutGraph(line, row);
  }

  void OnMemset(const reader::MemsetRow& row) override {
    auto line = Line("memset");
    PutDeviceRow(line, row);
    line.Put("bytes", row.bytes).Put("value", row.value).Put("memory", MemoryKindName(row.memory_kind));
    line.Put("flags", row.flags);
    PutGraph(line, row);
  }

  void OnCall(const reader::CallRow& row) override {
    auto line = Line("call");
    line.Put("enter_ns", row.enter_host_ns).Put("duration_ns", row.duration_ns());
    PutThread(line, row.thread_iid, *row.thread);
    line.Put("call_site_iid", row.site_iid).Named("name", row.site->name).Put("correlation", row.correlation);
    line.Put("result", row.result);
    if (row.has_copy) {
      line.Address("copy_destination", row.copy_destination).Address("copy_source", row.copy_source);
      line.Put("copy_bytes", row.copy_bytes).Put("copy_kind", row.copy_kind);
    }
    if (row.has_event) line.Address("event_handle", row.event_handle);
    if (row.has_memory) line.Address("memory_address", row.memory_address).Put("memory_bytes", row.memory_bytes);
    if (row.has_graph) line.Address("graph_handle", row.graph_handle);
  }

  void OnOpenCall(const reader::OpenCallRow& row) override { PutOpenCall("open_call", row); }
  void OnUnfinishedCall(const reader::OpenCallRow& row) override { PutOpenCall("unfinished_call", row); }
  void OnOpenAnnotation(const reader::OpenAnnotationRow& row) override { PutOpenAnnotation("open_annotation", row); }
  void OnUnfinishedAnnotation(const reader::OpenAnnotationRow& row) override {
    PutOpenAnnotation("unfinished_annotation", row);
  }

  void OnStep(const reader::StepRow& row) override {
    auto line = Line("step");
    line.Put("host_ns", row.row.host_ns()).Put("index", row.row.index());
    PutThread(line, row.row.thread_iid(), *row.thread);
    if (row.row.has_samples()) line.Put("samples", row.row.samples());
    if (row.row.has_tokens()) line.Put("tokens", row.row.tokens());
  }

  void OnAnnotation(const reader::AnnotationRow& row) override {
    auto line = Line("annotation");
    line.Put("begin_ns", row.row.begin_host_ns()).Put("duration_ns", row.row.duration_ns());
    PutThread(line, row.row.thread_iid(), *row.thread);
    PutLabel(line, row);
    if (row.row.end_thread_iid() != 0) line.Put("end_thread_iid", row.row.end_thread_iid());
  }

  void OnMark(const reader::MarkRow& row) override {
    auto line = Line("mark");
    line.Put("host_ns", row.row.host_ns());
    PutThread(line, row.row.thread_iid(), *row.thread);
    PutLabel(line, row);
  }

  void OnResourceName(const reader::ResourceNameRow& row) override {
    auto line = Line("resource_name");
    line.Put("kind", ResourceKindName(row.row.kind())).Put("id", row.row.id()).Named("name", row.name);
    if (row.row.domain_iid() != 0) line.Named("domain", row.domain);
  }

  void OnResourceEvent(const reader::ResourceEventRow& row) override {
    auto line = Line("resource");
    line.Put("host_ns", row.row.host_ns()).Put("change", ResourceChangeName(row.row.change()));
    line.Put("device", row.row.device()).Put("context", row.row.context()).Put("stream", row.row.stream());
    line.Put("handle", row.row.handle());
    PutThread(line, row.row.thread_iid(), *row.thread);
  }

  void OnCounter(const reader::CounterRow& row) override {
    auto line = Line("counter");
    line.Put("host_ns", row.row.host_ns());
    PutThread(line, row.row.thread_iid(), *row.thread);
    // 17 digits: every double comes back from its text.
    line.Named("name", row.name).Put("value", absl::StrFormat("%.17g", row.row.value()));
  }

  void OnClockPair(const v1::ClockPair& row) override {
    Line("clock_pair").Put("host_ns", row.host_ns()).Put("device_ns", row.device_ns()).Put("width_ns", row.width_ns());
  }

  void OnRunInfo(const v1::RunInfo& info) override {
    PutRunInfo(info);
    for (const v1::Device& device : info.devices()) PutDevice(device);
  }

  void OnLoss(const reader::LossRow& row) override {
    auto line = Line("loss");
    line.Put("reason", LossReasonName(row.row.reason())).Put("kind", EventKindName(row.row.kind()));
    line.Put("count", row.row.count()).Put("first_ns", row.row.first_host_ns()).Put("last_ns", row.row.last_host_ns());
    if (row.row.thread_iid() != 0) PutThread(line, row.row.thread_iid(), *row.thread);
  }

  void OnOutage(const v1::Outage& row) override {
    Line("outage")
        .Put("reason", OutageReasonName(row.reason()))
        .Put("begin_ns", row.begin_host_ns())
        .Put("end_ns", row.end_host_ns())
        .TextIf("detail", row.detail());
  }

  void OnLevelChange(const v1::LevelChange& row) override {
    Line("level").Put("host_ns", row.host_ns()).Put("level", LevelName(row.level()));
  }

  void OnOpaqueInterval(const reader::OpaqueRow& row) override {
    auto line = Line("opaque");
    line.Put("begin_ns", row.row.begin_device_ns()).Put("end_ns", row.row.end_device_ns());
    PutStream(line, row.row.stream_iid(), *row.stream);
    line.Put("correlation", row.row.correlation()).Put("graph_id", row.row.graph_id());
  }

  void OnCertificate(const v1::Certificate& row) override {
    Line("certificate")
        .Put("begin_ns", row.begin_host_ns())
        .Put("end_ns", row.end_host_ns())
        .Bool("complete", row.complete())
        .Put("lost", row.lost())
        .Put("retired", row.retired())
        .Put("outage_ns", row.outage_ns())
        .Put("opaque_ns", row.opaque_ns())
        .Put("unknown_ns", row.unknown_ns())
        .Put("epsilon_ns", row.epsilon_ns());
  }

  void OnSelfCost(const v1::SelfCost& row) override {
    Line("self_cost")
        .Put("host_ns", row.host_ns())
        .Put("callbacks", row.callbacks())
        .Put("callback_ns", row.callback_ns())
        .Put("callback_samples", row.callback_samples())
        .Put("collector_cpu_ns", row.collector_cpu_ns())
        .Put("flush_cpu_ns", row.flush_cpu_ns())
        .Put("buffer_bytes_peak", row.buffer_bytes_peak())
        .Put("ring_bytes", row.ring_bytes())
        .Put("written_bytes", row.written_bytes());
  }

 private:
  void PutRunInfo(const v1::RunInfo& info) {
    auto line = Line("run_info");
    if (info.has_rank()) line.Put("rank", info.rank());
    if (info.has_world_size()) line.Put("world_size", info.world_size());
    if (info.has_local_rank()) line.Put("local_rank", info.local_rank());
    line.TextIf("driver_version", info.driver_version()).PutIf("cuda_driver_api", info.cuda_driver_api());
    line.PutIf("cupti_version", info.cupti().version()).TextIf("cupti_path", info.cupti().path());
    line.TextIf("cupti_found_by", info.cupti().found_by());
    for (int i = 0; i < info.cupti().record_kind_size() && i < info.cupti().record_bytes_size(); ++i) {
      line.Put(absl::StrCat("record_", info.cupti().record_kind(i)), info.cupti().record_bytes(i));
    }
    for (const v1::KeyValue& pair : info.versions()) line.Text("version", absl::StrCat(pair.key(), "=", pair.value()));
    for (const v1::KeyValue& pair : info.options()) line.Text("option", absl::StrCat(pair.key(), "=", pair.value()));
    for (const std::string& warning : info.warnings()) line.Text("warning", warning);
  }

  void PutDevice(const v1::Device& device) {
    auto line = Line("run_device");
    line.Put("device", device.device()).Text("name", device.name()).Text("uuid", device.uuid());
    line.Text("pci_bus_id", device.pci_bus_id());
    line.Put("compute", absl::StrCat(device.compute_major(), ".", device.compute_minor()));
    line.Put("multiprocessors", device.multiprocessors()).Put("memory_bytes", device.memory_bytes());
    line.Put("sm_clock_khz", device.sm_clock_khz()).Put("memory_clock_khz", device.memory_clock_khz());
    line.Put("memory_bus_bits", device.memory_bus_bits()).Put("l2_bytes", device.l2_bytes());
    line.Put("max_threads_per_multiprocessor", device.max_threads_per_multiprocessor());
    line.Put("max_blocks_per_multiprocessor", device.max_blocks_per_multiprocessor());
    line.Put("registers_per_multiprocessor", device.registers_per_multiprocessor());
    line.Put("registers_per_block", device.registers_per_block());
    line.Put("shared_bytes_per_multiprocessor", device.shared_bytes_per_multiprocessor());
    line.Put("shared_bytes_per_block", device.shared_bytes_per_block());
    line.Put("shared_bytes_per_block_optin", device.shared_bytes_per_block_optin());
    line.Put("reserved_shared_bytes_per_block", device.reserved_shared_bytes_per_block());
    line.Put("warp_size", device.warp_size()).Put("async_engines", device.async_engines());
    if (device.has_pcie_generation()) line.Put("pcie_generation", device.pcie_generation());
    if (device.has_pcie_generation_max()) line.Put("pcie_generation_max", device.pcie_generation_max());
    if (device.has_pcie_width()) line.Put("pcie_width", device.pcie_width());
    if (device.has_pcie_width_max()) line.Put("pcie_width_max", device.pcie_width_max());
    if (device.has_ecc()) line.Bool("ecc", device.ecc());
    if (device.has_mig()) line.Bool("mig", device.mig());
    line.Bool("nvlink_known", device.nvlink_known());
    for (const v1::NvLink& link : device.nvlinks()) {
      std::string text = absl::StrCat(link.link(), ":", link.active() ? "active" : "inactive");
      if (link.has_version()) absl::StrAppend(&text, ":v", link.version());
      if (link.has_megabytes_per_second()) absl::StrAppend(&text, ":", link.megabytes_per_second(), "MB/s");
      line.Put("nvlink", text);
    }
  }

  static void PutThread(LineWriter& line, uint32_t iid, const reader::ThreadEntry& thread) {
    line.Put("thread_iid", iid);
    if (thread.known) {
      line.Put("tid", thread.definition.tid());
    } else {
      line.Put("tid", "?");
    }
  }

  static void PutStream(LineWriter& line, uint32_t iid, const reader::StreamEntry& stream) {
    line.Put("stream_iid", iid);
    if (!stream.known) {
      line.Put("device", "?");
      return;
    }
    line.Put("device", stream.definition.device()).Put("context", stream.definition.context());
    line.Put("stream", stream.definition.stream());
  }

  static void PutDeviceRow(LineWriter& line, const reader::DeviceRow& row) {
    line.Put("begin_ns", row.begin_device_ns).Put("duration_ns", row.duration_ns());
    PutStream(line, row.stream_iid, *row.stream);
    line.Put("correlation", row.correlation);
  }

  static void PutGraph(LineWriter& line, const reader::DeviceRow& row) {
    if (row.graph_id != 0) line.Put("graph_id", row.graph_id).Put("graph_node_id", row.graph_node_id);
  }

  void PutOpenCall(absl::string_view kind, const reader::OpenCallRow& row) {
    auto line = Line(kind);
    line.Put("enter_ns", row.row.enter_host_ns());
    PutThread(line, row.row.thread_iid(), *row.thread);
    line.Put("call_site_iid", row.row.call_site_iid()).Named("name", row.site->name);
    line.Put("correlation", row.row.correlation());
  }

  void PutOpenAnnotation(absl::string_view kind, const reader::OpenAnnotationRow& row) {
    auto line = Line(kind);
    line.Put("begin_ns", row.row.begin_host_ns());
    PutThread(line, row.row.thread_iid(), *row.thread);
    PutLabel(line, row);
  }

  // Name, source and what NVTX says of an annotation or mark.
  template <typename Row>
  static void PutLabel(LineWriter& line, const Row& row) {
    line.Named("name", row.name);
    if (row.row.source() != v1::MARKER_SOURCE_GPUPERF) line.Put("source", MarkerSourceName(row.row.source()));
    if (!row.row.has_nvtx()) return;
    const v1::NvtxAttributes& nvtx = row.row.nvtx();
    if (nvtx.domain_iid() != 0) line.Named("domain", row.domain);
    if (nvtx.category() != 0) line.Put("category", nvtx.category());
    if (nvtx.has_color()) line.Put("color", absl::StrFormat("#%08x", nvtx.color()));
    switch (nvtx.payload_kind()) {
      case v1::PAYLOAD_KIND_NONE:
        break;
      case v1::PAYLOAD_KIND_SIGNED:
        line.Put("payload", static_cast<int64_t>(nvtx.payload()));
        break;
      case v1::PAYLOAD_KIND_DOUBLE:
        line.Put("payload", absl::StrFormat("%.17g", absl::bit_cast<double>(nvtx.payload())));
        break;
      case v1::PAYLOAD_KIND_EXTENDED:
        line.Put("payload_schema", nvtx.payload());
        if (nvtx.has_payload_bytes()) line.Put("payload_bytes", nvtx.payload_bytes());
        break;
      default:
        line.Put("payload", nvtx.payload());
        break;
    }
  }
};

}  // namespace

absl::Status Dump(const std::string& path, bool chunks_only, const DumpSink& sink, DumpResult* result) {
  absl::StatusOr<reader::TraceReader> reader = reader::TraceReader::Open(path);
  if (!reader.ok()) return reader.status();
  Dumper dumper(sink);
  ChunkDumper chunk_dumper(sink);
  ChunkDumper& chosen = chunks_only ? chunk_dumper : dumper;
  if (!reader->Read(&chosen, [&](uint64_t) { return chosen.Flush(); })) return absl::CancelledError("stopped");
  chosen.PutEnd(*reader);
  if (!chosen.Flush()) return absl::CancelledError("stopped");
  result->damaged = reader->damages().count() != 0 || !reader->cleanly_closed();
  return absl::OkStatus();
}

}  // namespace gpuperf::analysis
