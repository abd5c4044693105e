#include "collector/activity_decoder.h"

#include <string_view>

namespace gpuperf::collector {

using cupti::KernelRecord;
using cupti::MemcpyRecord;
using cupti::MemsetRecord;
using cupti::PeerMemcpyRecord;

ActivityDecoder::ActivityDecoder(const cupti::Api& api, Context& context)
    : api_(api),
      context_(context),
      kernel_bytes_(api.record_bytes[cupti::kConcurrentKernelKind]),
      memcpy_bytes_(api.record_bytes[cupti::kMemcpyKind]) {}

void ActivityDecoder::Decode(const ring::ActivityBuffer& buffer) {
  ++name_generation_;
  buffer_begin_ns_ = buffer.taken_ns != 0 ? buffer.taken_ns : buffer.filled_ns;
  buffer_end_ns_ = buffer.filled_ns;
  void* record = nullptr;
  for (;;) {
    const int result = api_.ActivityGetNextRecord(buffer.data, buffer.valid, &record);
    if (result == cupti::kMaxLimitReached || (result != cupti::kSuccess && buffer.valid == 0)) return;
    if (result != cupti::kSuccess) {
      // A kind that this CUPTI cannot size: what follows in the buffer cannot be found.
      context_.AddLoss(LossReason::kUnreadable, EventKind::kDevice, 0, 1, buffer_begin_ns_, buffer_end_ns_);
      return;
    }
    uint32_t kind = 0;
    std::memcpy(&kind, record, sizeof kind);
    switch (kind) {
      case cupti::kConcurrentKernelKind:
        DecodeKernel(*static_cast<const KernelRecord*>(record));
        break;
      case cupti::kMemcpyKind:
        DecodeCopy(*static_cast<const MemcpyRecord*>(record));
        break;
      case cupti::kPeerMemcpyKind:
        DecodePeerCopy(*static_cast<const PeerMemcpyRecord*>(record));
        break;
      case cupti::kMemsetKind:
        DecodeMemset(*static_cast<const MemsetRecord*>(record));
        break;
      case cupti::kGraphTraceKind:
        DecodeGraph(*static_cast<const cupti::GraphTraceRecord*>(record));
        break;
      default:  // a kind that another client turned on
        break;
    }
  }
}

bool ActivityDecoder::Valid(uint64_t start, uint64_t end, EventKind kind) {
  if (start != 0 && end >= start) return true;
  const LossReason reason = start == 0 || end == 0 ? LossReason::kZeroTimestamp : LossReason::kReversedTimestamp;
  context_.AddLoss(reason, kind, 0, 1, buffer_begin_ns_, buffer_end_ns_);
  return false;
}

template <typename Record>
uint64_t ActivityDecoder::Join(const Record& record, EventKind kind) {
  const uint64_t unwrapped = context_.joins.Unwrap(record.correlation);
  if (!context_.joins.HasCall(unwrapped)) context_.AddUnjoined({unwrapped, record.start, buffer_end_ns_, kind});
  ++context_.batches.events;
  return unwrapped;
}

uint32_t ActivityDecoder::NameIid(const char* name) {
  if (name == nullptr) return 0;
  const uint64_t hash = reinterpret_cast<uintptr_t>(name) * 0x9E3779B97F4A7C15ULL;
  CachedName& cached = names_[hash >> 56];
  if (cached.pointer != name || cached.generation != name_generation_) {
    cached = {name, name_generation_, context_.batches.dictionaries.strings.Intern(std::string_view(name))};
  }
  return cached.iid;
}

template <typename Batch>
Batch& ActivityDecoder::BatchOf(std::vector<Batch>& batches, std::vector<uint32_t>& index, const Stream& stream) {
  StreamTable& streams = context_.batches.dictionaries.streams;
  const uint32_t iid = streams.Intern(stream);
  const size_t at = streams.IndexOf(iid);
  if (at >= index.size()) index.resize(at + 1, 0);
  if (index[at] == 0) {
    batches.emplace_back();
    batches.back().device.stream_iid = iid;
    index[at] = static_cast<uint32_t>(batches.size());
  }
  return batches[index[at] - 1];
}

void ActivityDecoder::Forget() {
  ++name_generation_;
  for (auto* index : {&kernel_index_, &copy_index_, &peer_index_, &memset_index_}) index->clear();
}

void ActivityDecoder::DecodeKernel(const KernelRecord& record) {
  if (!Valid(record.start, record.end, EventKind::kKernel)) return;
  AddTo(context_.counts.kernels, 1);
  Kernel kernel{};
  kernel.name_iid = NameIid(record.name);
  kernel.grid_x = static_cast<uint32_t>(record.grid_x);
  kernel.grid_y = static_cast<uint32_t>(record.grid_y);
  kernel.grid_z = static_cast<uint32_t>(record.grid_z);
  kernel.block_x = static_cast<uint32_t>(record.block_x);
  kernel.block_y = static_cast<uint32_t>(record.block_y);
  kernel.block_z = static_cast<uint32_t>(record.block_z);
  kernel.cluster_x = record.cluster_x;
  kernel.cluster_y = record.cluster_y;
  kernel.cluster_z = record.cluster_z;
  kernel.registers_per_thread = record.registers_per_thread;
  kernel.static_shared_bytes = static_cast<uint32_t>(record.static_shared_bytes);
  kernel.dynamic_shared_bytes = static_cast<uint32_t>(record.dynamic_shared_bytes);
  kernel.executed_shared_bytes = record.executed_shared_bytes;
  kernel.local_bytes_per_thread = record.local_bytes_per_thread;
  kernel.local_bytes_total = record.local_bytes_total;
  kernel.launch_type = record.launch_type;
  kernel.cache_config = record.cache_config;
  kernel.cluster_scheduling_policy = record.cluster_scheduling_policy;
  kernel.max_potential_cluster_size = record.max_potential_cluster_size;
  kernel.max_active_clusters = record.max_active_clusters;
  if (GPUPERF_HAS(kernel_bytes_, KernelRecord, device_launched)) kernel.device_launched = record.device_launched;
  if (record.carveout_requested != 0) kernel.carveout = record.carveout_percent + 1U;
  if (last_kernel_generation_ != name_generation_ || std::memcmp(&kernel, &last_kernel_, sizeof kernel) != 0) {
    last_kernel_iid_ = context_.batches.dictionaries.kernels.Intern(kernel);
    last_kernel_ = kernel;
    last_kernel_generation_ = name_generation_;
  }

  Stream stream{record.device, record.context, record.stream, record.channel, record.channel_type, Stream::kNoPriority};
  if (GPUPERF_HAS(kernel_bytes_, KernelRecord, priority)) stream.priority = record.priority;
  KernelBatch& batch = BatchOf(context_.batches.kernels, kernel_index_, stream);
  const size_t row = batch.device.rows;
  batch.device.Append(record.start, record.end, Join(record, EventKind::kKernel), record.graph_id,
                      record.graph_node_id);
  batch.kernel_iid.Append(last_kernel_iid_);
  batch.queued_ns.Append(row, record.queued);
  batch.submitted_ns.Append(row, record.submitted);
}

template <typename Batch, typename Record>
Batch* ActivityDecoder::AppendRow(std::vector<Batch>& batches, std::vector<uint32_t>& index, const Record& record,
                                  EventKind kind, std::atomic<uint64_t>& count) {
  if (!Valid(record.start, record.end, kind)) return nullptr;
  AddTo(count, 1);
  const Stream stream{record.device,  record.context,      record.stream,
                      record.channel, record.channel_type, Stream::kNoPriority};
  Batch& batch = BatchOf(batches, index, stream);
  batch.device.Append(record.start, record.end, Join(record, kind), record.graph_id, record.graph_node_id);
  batch.bytes.Append(record.bytes);
  batch.flags.Append(record.flags);
  return &batch;
}

template <typename Record>
CopyBatch* ActivityDecoder::AppendCopy(std::vector<uint32_t>& index, const Record& record, uint64_t copy_count) {
  CopyBatch* batch = AppendRow(context_.batches.copies, index, record, EventKind::kCopy, context_.counts.copies);
  if (batch == nullptr) return nullptr;
  batch->copy_kind.Append(record.copy_kind);
  batch->source_kind.Append(record.source_kind);
  batch->destination_kind.Append(record.destination_kind);
  batch->copy_count.Append(copy_count);
  batch->batched = batch->batched || copy_count != 1;
  return batch;
}

void ActivityDecoder::DecodeCopy(const MemcpyRecord& record) {
  AppendCopy(copy_index_, record, GPUPERF_HAS(memcpy_bytes_, MemcpyRecord, copy_count) ? record.copy_count : 1);
}

void ActivityDecoder::DecodePeerCopy(const PeerMemcpyRecord& record) {
  CopyBatch* batch = AppendCopy(peer_index_, record, 1);
  if (batch == nullptr) return;
  batch->source_device.Append(record.source_device);
  batch->source_context.Append(record.source_context);
  batch->destination_device.Append(record.destination_device);
  batch->destination_context.Append(record.destination_context);
}

void ActivityDecoder::DecodeGraph(const cupti::GraphTraceRecord& record) {
  if (!Valid(record.start, record.end, EventKind::kDevice)) return;
  const Stream stream{record.device, record.context, record.stream, 0, 0, Stream::kNoPriority};
  const uint32_t stream_iid = context_.batches.dictionaries.streams.Intern(stream);
  context_.batches.opaque_intervals.push_back(
      {stream_iid, record.start, record.end, Join(record, EventKind::kDevice), record.graph_id});
}

void ActivityDecoder::DecodeMemset(const MemsetRecord& record) {
  MemsetBatch* batch =
      AppendRow(context_.batches.memsets, memset_index_, record, EventKind::kMemset, context_.counts.memsets);
  if (batch == nullptr) return;
  batch->value.Append(record.value);
  batch->memory_kind.Append(record.memory_kind);
}

}  // namespace gpuperf::collector
