#include "trace/chunk_builder.h"

#include <protozero/pbf_builder.hpp>

#include "base/crc32c.h"
#include "base/utf8.h"
#include "cupti/call_table.h"
#include "trace/trace_fields.h"

namespace gpuperf::trace {
namespace {

using collector::Batches;
using collector::CallBatch;
using collector::Column;
using collector::CopyBatch;
using collector::DeviceColumns;
using collector::KernelBatch;
using collector::MemsetBatch;
using collector::OptionalColumn;
using protozero::pbf_builder;
using Body = fields::ChunkBody;

// proto3 leaves zeros out.
template <typename Field>
void Put(pbf_builder<Field>& message, Field field, uint64_t value) {
  if (value != 0) message.add_uint64(field, value);
}

template <typename Field>
void Put(pbf_builder<Field>& message, Field field, const Column& column) {
  if (!column.bytes().empty()) message.add_bytes(field, column.bytes());
}

template <typename Field>
void Put(pbf_builder<Field>& message, Field field, const OptionalColumn& column) {
  const std::string bytes = column.Bytes();
  if (!bytes.empty()) message.add_bytes(field, bytes);
}

void AddStrings(pbf_builder<Body>& body, const collector::StringTable& table, size_t first) {
  for (size_t i = first; i < table.entries().size(); ++i) {
    pbf_builder<fields::InternedString> entry(body, Body::kStrings);
    entry.add_uint32(fields::InternedString::kIid, table.IidOf(i));
    entry.add_bytes(fields::InternedString::kValue, table.entries()[i]);
  }
}

void AddThreads(pbf_builder<Body>& body, const std::vector<collector::Thread>& threads, size_t first) {
  using F = fields::Thread;
  for (size_t i = first; i < threads.size(); ++i) {
    pbf_builder<F> entry(body, Body::kThreads);
    entry.add_uint32(F::kIid, static_cast<uint32_t>(i) + 1);
    Put(entry, F::kTid, threads[i].tid);
    Put(entry, F::kNameIid, threads[i].name_iid);
  }
}

void AddStreams(pbf_builder<Body>& body, const collector::StreamTable& table, size_t first) {
  using F = fields::Stream;
  for (size_t i = first; i < table.entries().size(); ++i) {
    const collector::Stream& stream = table.entries()[i];
    pbf_builder<F> entry(body, Body::kStreams);
    entry.add_uint32(F::kIid, table.IidOf(i));
    Put(entry, F::kDevice, stream.device);
    Put(entry, F::kContext, stream.context);
    Put(entry, F::kStream, stream.stream);
    entry.add_uint32(F::kChannel, stream.channel);
    entry.add_uint32(F::kChannelType, stream.channel_type);
    if (stream.priority != collector::Stream::kNoPriority) entry.add_int32(F::kPriority, stream.priority);
  }
}

void AddKernels(pbf_builder<Body>& body, const collector::KernelTable& table, size_t first) {
  using F = fields::Kernel;
  for (size_t i = first; i < table.entries().size(); ++i) {
    const collector::Kernel& kernel = table.entries()[i];
    pbf_builder<F> entry(body, Body::kKernels);
    entry.add_uint32(F::kIid, table.IidOf(i));
    Put(entry, F::kNameIid, kernel.name_iid);
    Put(entry, F::kGridX, kernel.grid_x);
    Put(entry, F::kGridY, kernel.grid_y);
    Put(entry, F::kGridZ, kernel.grid_z);
    Put(entry, F::kBlockX, kernel.block_x);
    Put(entry, F::kBlockY, kernel.block_y);
    Put(entry, F::kBlockZ, kernel.block_z);
    Put(entry, F::kClusterX, kernel.cluster_x);
    Put(entry, F::kClusterY, kernel.cluster_y);
    Put(entry, F::kClusterZ, kernel.cluster_z);
    Put(entry, F::kRegistersPerThread, kernel.registers_per_thread);
    Put(entry, F::kStaticSharedBytes, kernel.static_shared_bytes);
    Put(entry, F::kDynamicSharedBytes, kernel.dynamic_shared_bytes);
    Put(entry, F::kExecutedSharedBytes, kernel.executed_shared_bytes);
    Put(entry, F::kLocalBytesPerThread, kernel.local_bytes_per_thread);
    Put(entry, F::kLocalBytesTotal, kernel.local_bytes_total);
    Put(entry, F::kLaunchType, kernel.launch_type);
    Put(entry, F::kCacheConfig, kernel.cache_config);
    Put(entry, F::kClusterSchedulingPolicy, kernel.cluster_scheduling_policy);
    Put(entry, F::kMaxPotentialClusterSize, kernel.max_potential_cluster_size);
    Put(entry, F::kMaxActiveClusters, kernel.max_active_clusters);
    Put(entry, F::kDeviceLaunched, kernel.device_launched);
    if (kernel.carveout != 0) {
      Put(entry, F::kSharedCarveoutPercent, kernel.carveout - 1);
      entry.add_bool(F::kSharedCarveoutRequested, true);
    }
  }
}

void AddCallSites(pbf_builder<Body>& body, const collector::CallSiteTable& table, size_t first,
                  const std::vector<uint32_t>& name_iids) {
  using F = fields::CallSite;
  for (size_t i = first; i < table.entries().size(); ++i) {
    const collector::CallSite& site = table.entries()[i];
    const bool driver = site.domain == cupti::kDriverDomain;
    const cupti::CallDescriptor& call = driver ? cupti::kDriverCalls[site.cbid] : cupti::kRuntimeCalls[site.cbid];
    pbf_builder<F> entry(body, Body::kCallSites);
    entry.add_uint32(F::kIid, table.IidOf(i));
    entry.add_uint32(F::kDomain, driver ? 2 : 1);
    Put(entry, F::kCbid, site.cbid);
    Put(entry, F::kNameIid, name_iids[i - first]);
    Put(entry, F::kKind, static_cast<uint64_t>(call.kind));
    Put(entry, F::kFunctionNameIid, site.function_name_iid);
    Put(entry, F::kStreamHandle, site.stream_handle);
    Put(entry, F::kContext, site.context);
    Put(entry, F::kCapture, site.capture);
    Put(entry, F::kPerThreadStream, call.per_thread_stream ? 1 : 0);
    Put(entry, F::kHasStream, call.stream != cupti::kNone || call.config != cupti::kNone ? 1 : 0);
  }
}

// The columns that KernelBatch, CopyBatch and MemsetBatch share; Field is one of their enums.
template <typename Field>
void AddDeviceColumns(pbf_builder<Field>& message, const DeviceColumns& columns) {
  Put(message, Field::kStreamIid, columns.stream_iid);
  Put(message, Field::kBaseDeviceNs, columns.base_device_ns);
  Put(message, Field::kBaseCorrelation, columns.base_correlation);
  Put(message, Field::kGapNs, columns.gap_ns);
  Put(message, Field::kDurationNs, columns.duration_ns);
  Put(message, Field::kCorrelationDelta, columns.correlation_delta);
  Put(message, Field::kGraphId, columns.graph_id);
  Put(message, Field::kGraphNodeId, columns.graph_node_id);
}

void AddKernelBatch(pbf_builder<Body>& body, const KernelBatch& batch) {
  using F = fields::KernelBatch;
  pbf_builder<F> message(body, Body::kKernelBatches);
  AddDeviceColumns(message, batch.device);
  Put(message, F::kKernelIid, batch.kernel_iid);
  Put(message, F::kQueuedNs, batch.queued_ns);
  Put(message, F::kSubmittedNs, batch.submitted_ns);
}

void AddCopyBatch(pbf_builder<Body>& body, const CopyBatch& batch) {
  using F = fields::CopyBatch;
  pbf_builder<F> message(body, Body::kCopyBatches);
  AddDeviceColumns(message, batch.device);
  Put(message, F::kBytes, batch.bytes);
  Put(message, F::kCopyKind, batch.copy_kind);
  Put(message, F::kSourceKind, batch.source_kind);
  Put(message, F::kDestinationKind, batch.destination_kind);
  Put(message, F::kFlags, batch.flags);
  if (batch.batched) Put(message, F::kCopyCount, batch.copy_count);
  Put(message, F::kSourceDevice, batch.source_device);
  Put(message, F::kSourceContext, batch.source_context);
  Put(message, F::kDestinationDevice, batch.destination_device);
  Put(message, F::kDestinationContext, batch.destination_context);
}

void AddMemsetBatch(pbf_builder<Body>& body, const MemsetBatch& batch) {
  using F = fields::MemsetBatch;
  pbf_builder<F> message(body, Body::kMemsetBatches);
  AddDeviceColumns(message, batch.device);
  Put(message, F::kBytes, batch.bytes);
  Put(message, F::kValue, batch.value);
  Put(message, F::kMemoryKind, batch.memory_kind);
  Put(message, F::kFlags, batch.flags);
}

void AddCallBatch(pbf_builder<Body>& body, const CallBatch& batch) {
  using F = fields::CallBatch;
  pbf_builder<F> message(body, Body::kCallBatches);
  Put(message, F::kThreadIid, batch.thread_iid);
  Put(message, F::kBaseHostNs, batch.base_host_ns);
  Put(message, F::kBaseCorrelation, batch.base_correlation);
  Put(message, F::kGapNs, batch.gap_ns);
  Put(message, F::kDurationNs, batch.duration_ns);
  Put(message, F::kCallSiteIid, batch.call_site_iid);
  Put(message, F::kCorrelationDelta, batch.correlation_delta);
  Put(message, F::kResultRow, batch.result_row);
  Put(message, F::kResultCode, batch.result_code);
  Put(message, F::kCopyRow, batch.copy_row);
  Put(message, F::kCopyDestination, batch.copy_destination);
  Put(message, F::kCopySource, batch.copy_source);
  Put(message, F::kCopyBytes, batch.copy_bytes);
  Put(message, F::kCopyKind, batch.copy_kind);
  Put(message, F::kEventRow, batch.event_row);
  Put(message, F::kEventHandle, batch.event_handle);
  Put(message, F::kMemoryRow, batch.memory_row);
  Put(message, F::kMemoryAddress, batch.memory_address);
  Put(message, F::kMemoryBytes, batch.memory_bytes);
  Put(message, F::kGraphRow, batch.graph_row);
  Put(message, F::kGraphHandle, batch.graph_handle);
}

// Name, source and NVTX's attributes of a row that has them (annotations and marks).
template <typename F>
void AddLabel(pbf_builder<F>& row, const collector::MarkerLabel& label) {
  Put(row, F::kNameIid, label.name_iid);
  Put(row, F::kSource, static_cast<uint64_t>(label.source));
  const ring::MarkerAttributes& given = label.attributes;
  const bool has_payload = given.payload_kind != ring::PayloadKind::kNone;
  if (label.domain_iid == 0 && given.category == 0 && !given.has_color && !has_payload) return;
  using N = fields::NvtxAttributes;
  pbf_builder<N> nvtx(row, F::kNvtx);
  Put(nvtx, N::kDomainIid, label.domain_iid);
  Put(nvtx, N::kCategory, given.category);
  if (given.has_color) nvtx.add_fixed32(N::kColor, given.color);
  if (!has_payload) return;
  Put(nvtx, N::kPayloadKind, static_cast<uint64_t>(given.payload_kind));
  nvtx.add_fixed64(N::kPayload, given.payload);
  if (given.payload_kind == ring::PayloadKind::kExtended && given.payload_bytes != UINT32_MAX) {
    nvtx.add_uint32(N::kPayloadBytes, given.payload_bytes);
  }
}

void AddMarkers(pbf_builder<Body>& body, const Batches& batches) {
  for (const collector::OpenCall& call : batches.open_calls) {
    using F = fields::OpenCall;
    pbf_builder<F> row(body, Body::kOpenCalls);
    Put(row, F::kThreadIid, call.thread_iid);
    Put(row, F::kCallSiteIid, call.call_site_iid);
    Put(row, F::kCorrelation, call.correlation);
    Put(row, F::kEnterHostNs, call.enter_ns);
  }
  for (const collector::Step& step : batches.steps) {
    using F = fields::Step;
    pbf_builder<F> row(body, Body::kSteps);
    Put(row, F::kHostNs, step.time_ns);
    Put(row, F::kIndex, step.index);
    Put(row, F::kThreadIid, step.thread_iid);
    if (step.samples >= 0) row.add_uint64(F::kSamples, static_cast<uint64_t>(step.samples));
    if (step.tokens >= 0) row.add_uint64(F::kTokens, static_cast<uint64_t>(step.tokens));
  }
  for (const collector::Annotation& annotation : batches.annotations) {
    using F = fields::Annotation;
    pbf_builder<F> row(body, Body::kAnnotations);
    Put(row, F::kBeginHostNs, annotation.begin_ns);
    Put(row, F::kDurationNs, annotation.end_ns - annotation.begin_ns);
    AddLabel(row, annotation.label);
    Put(row, F::kThreadIid, annotation.thread_iid);
    Put(row, F::kEndThreadIid, annotation.end_thread_iid);
  }
  for (const collector::Annotation& annotation : batches.open_annotations) {
    using F = fields::OpenAnnotation;
    pbf_builder<F> row(body, Body::kOpenAnnotations);
    Put(row, F::kBeginHostNs, annotation.begin_ns);
    AddLabel(row, annotation.label);
    Put(row, F::kThreadIid, annotation.thread_iid);
  }
  for (const collector::Mark& mark : batches.marks) {
    using F = fields::Mark;
    pbf_builder<F> row(body, Body::kMarks);
    Put(row, F::kHostNs, mark.time_ns);
    AddLabel(row, mark.label);
    Put(row, F::kThreadIid, mark.thread_iid);
  }
  for (const collector::ResourceName& named : batches.resource_names) {
    using F = fields::ResourceName;
    pbf_builder<F> row(body, Body::kResourceNames);
    Put(row, F::kKind, static_cast<uint64_t>(named.kind));
    Put(row, F::kId, named.id);
    Put(row, F::kDomainIid, named.domain_iid);
    Put(row, F::kNameIid, named.name_iid);
  }
  for (const collector::ResourceEvent& event : batches.resource_events) {
    using F = fields::ResourceEvent;
    pbf_builder<F> row(body, Body::kResourceEvents);
    Put(row, F::kHostNs, event.time_ns);
    Put(row, F::kChange, static_cast<uint64_t>(event.event.change));
    Put(row, F::kThreadIid, event.thread_iid);
    Put(row, F::kDevice, event.event.device);
    Put(row, F::kContext, event.event.context);
    Put(row, F::kStream, event.event.stream);
    row.add_fixed64(F::kHandle, event.event.handle);
  }
  for (const collector::Counter& counter : batches.counters) {
    using F = fields::Counter;
    pbf_builder<F> row(body, Body::kCounters);
    Put(row, F::kHostNs, counter.time_ns);
    Put(row, F::kNameIid, counter.name_iid);
    Put(row, F::kThreadIid, counter.thread_iid);
    row.add_double(F::kValue, counter.value);
  }
}

void AddSelf(pbf_builder<Body>& body, const Batches& batches, uint64_t written_bytes) {
  for (const collector::ClockPair& pair : batches.clock_pairs) {
    using F = fields::ClockPair;
    pbf_builder<F> row(body, Body::kClockPairs);
    Put(row, F::kHostNs, pair.host_ns);
    Put(row, F::kDeviceNs, pair.device_ns);
    Put(row, F::kWidthNs, pair.width_ns);
  }
  if (!batches.run_info.empty()) body.add_bytes(Body::kRunInfo, batches.run_info);
  for (const collector::Loss& loss : batches.losses) {
    using F = fields::Loss;
    pbf_builder<F> row(body, Body::kLosses);
    Put(row, F::kReason, static_cast<uint64_t>(loss.reason));
    Put(row, F::kKind, static_cast<uint64_t>(loss.kind));
    Put(row, F::kCount, loss.count);
    Put(row, F::kFirstHostNs, loss.first_ns);
    Put(row, F::kLastHostNs, loss.last_ns);
    Put(row, F::kThreadIid, loss.thread_iid);
  }
  for (const collector::Outage& outage : batches.outages) {
    using F = fields::Outage;
    pbf_builder<F> row(body, Body::kOutages);
    Put(row, F::kReason, outage.reason);
    Put(row, F::kBeginHostNs, outage.begin_ns);
    Put(row, F::kEndHostNs, outage.end_ns);
    if (!outage.detail.empty()) row.add_string(F::kDetail, base::ValidUtf8(outage.detail));
  }
  for (const collector::LevelChange& change : batches.level_changes) {
    using F = fields::LevelChange;
    pbf_builder<F> row(body, Body::kLevelChanges);
    Put(row, F::kHostNs, change.host_ns);
    Put(row, F::kLevel, change.level);
  }
  for (const collector::OpaqueInterval& opaque : batches.opaque_intervals) {
    using F = fields::OpaqueInterval;
    pbf_builder<F> row(body, Body::kOpaqueIntervals);
    Put(row, F::kStreamIid, opaque.stream_iid);
    Put(row, F::kBeginDeviceNs, opaque.begin_device_ns);
    Put(row, F::kEndDeviceNs, opaque.end_device_ns);
    Put(row, F::kCorrelation, opaque.correlation);
    Put(row, F::kGraphId, opaque.graph_id);
  }
  using F = fields::SelfCost;
  pbf_builder<F> cost(body, Body::kSelfCost);
  Put(cost, F::kHostNs, batches.self_cost.time_ns);
  Put(cost, F::kCallbacks, batches.self_cost.callbacks);
  Put(cost, F::kCallbackNs, batches.self_cost.callback_ns);
  Put(cost, F::kCallbackSamples, batches.self_cost.callback_samples);
  Put(cost, F::kCollectorCpuNs, batches.self_cost.collector_cpu_ns);
  Put(cost, F::kFlushCpuNs, batches.self_cost.flush_cpu_ns);
  Put(cost, F::kBufferBytesPeak, batches.self_cost.buffer_bytes_peak);
  Put(cost, F::kRingBytes, batches.self_cost.ring_bytes);
  Put(cost, F::kWrittenBytes, written_bytes);
}

}  // namespace

std::string BuildBody(Batches& batches, bool checkpoint, uint64_t written_bytes) {
  collector::Dictionaries& dictionaries = batches.dictionaries;
  const size_t first_call_site = checkpoint ? 0 : dictionaries.call_sites.written();
  // API names become strings only now: few, and only the collector's thread may intern.
  std::vector<uint32_t> name_iids;
  for (size_t i = first_call_site; i < dictionaries.call_sites.entries().size(); ++i) {
    const collector::CallSite& site = dictionaries.call_sites.entries()[i];
    const char* name = cupti::CallName(site.domain, site.cbid);
    name_iids.push_back(name == nullptr ? 0 : dictionaries.strings.Intern(name));
  }

  std::string bytes;
  pbf_builder<Body> body(bytes);
  AddStrings(body, dictionaries.strings, checkpoint ? 0 : dictionaries.strings.written());
  AddThreads(body, dictionaries.threads, checkpoint ? 0 : dictionaries.threads_written);
  AddStreams(body, dictionaries.streams, checkpoint ? 0 : dictionaries.streams.written());
  AddKernels(body, dictionaries.kernels, checkpoint ? 0 : dictionaries.kernels.written());
  AddCallSites(body, dictionaries.call_sites, first_call_site, name_iids);
  for (const KernelBatch& batch : batches.kernels) {
    if (batch.device.rows != 0) AddKernelBatch(body, batch);
  }
  for (const CopyBatch& batch : batches.copies) {
    if (batch.device.rows != 0) AddCopyBatch(body, batch);
  }
  for (const MemsetBatch& batch : batches.memsets) {
    if (batch.device.rows != 0) AddMemsetBatch(body, batch);
  }
  for (const CallBatch& batch : batches.calls) AddCallBatch(body, batch);
  AddMarkers(body, batches);
  AddSelf(body, batches, written_bytes);
  return bytes;
}

std::string FrameChunk(std::string_view body, const Batches& batches, uint64_t sequence, bool checkpoint) {
  using H = fields::ChunkHeader;
  std::string header;
  pbf_builder<H> head(header);
  head.add_bytes(H::kSyncMarker, kSyncMarker.data(), kSyncMarker.size());
  Put(head, H::kSequence, sequence);
  head.add_fixed32(H::kBodyCrc32C, base::Crc32c(body.data(), body.size()));
  Put(head, H::kBodySize, body.size());
  Put(head, H::kFirstHostNs, batches.begin_ns);
  Put(head, H::kLastHostNs, batches.end_ns);
  Put(head, H::kEventCount, batches.EventCount());
  if (checkpoint) head.add_bool(H::kDictionaryCheckpoint, true);

  std::string chunk;
  pbf_builder<fields::Chunk> message(chunk);
  message.add_message(fields::Chunk::kHeader, header);
  message.add_message(fields::Chunk::kBody, body.data(), body.size());
  std::string framed;
  pbf_builder<fields::TraceFile> file(framed);
  file.add_message(fields::TraceFile::kChunks, chunk);
  return framed;
}

}  // namespace gpuperf::trace
