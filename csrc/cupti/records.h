// Our own views of the CUPTI structs that gpuperf reads, so that one binary, built without CUDA headers, serves
// libcupti 12.x and 13.x. From CUDA 12.0 on every activity record of these kinds only grew at its end; the views name
// the fields that we use, at their offsets, of the longest form. Whether a field is really there is told by the record
// size that the loaded library was probed for (RecordSizes): read one only behind GPUPERF_HAS.
//
// tests/cpp/cupti_layout_test.cc holds the offsets against the CUPTI headers where they are installed.
// Constant layouts; any thread. Never copy a whole view out of a buffer: its tail may not be there.
#ifndef GPUPERF_CUPTI_RECORDS_H_
#define GPUPERF_CUPTI_RECORDS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpuperf::cupti {

// CUpti_ActivityKind values.
inline constexpr uint32_t kMemcpyKind = 1;
inline constexpr uint32_t kMemsetKind = 2;
inline constexpr uint32_t kConcurrentKernelKind = 10;
inline constexpr uint32_t kPeerMemcpyKind = 22;
inline constexpr uint32_t kGraphTraceKind = 51;  // instead of the kernels, copies and memory sets inside graphs
inline constexpr std::array<uint32_t, 4> kTracedKinds = {kConcurrentKernelKind, kMemcpyKind, kPeerMemcpyKind,
                                                         kMemsetKind};

struct KernelRecord {
  uint32_t kind;
  uint8_t cache_config;  // requested: low nibble, executed: high nibble
  uint8_t shared_memory_config;
  uint16_t registers_per_thread;
  uint32_t partitioned_global_cache_requested;
  uint32_t partitioned_global_cache_executed;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  int32_t grid_x, grid_y, grid_z;
  int32_t block_x, block_y, block_z;
  int32_t static_shared_bytes;
  int32_t dynamic_shared_bytes;
  uint32_t local_bytes_per_thread;
  uint32_t local_bytes_total_32;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
  void* reserved;
  uint64_t queued;
  uint64_t submitted;
  uint8_t launch_type;
  uint8_t carveout_requested;
  uint8_t carveout_percent;
  uint8_t padding;
  uint32_t executed_shared_bytes;
  uint64_t graph_node_id;
  uint32_t shmem_limit_config;
  uint32_t graph_id;
  void* access_policy_window;
  uint32_t channel;
  uint32_t channel_type;
  uint32_t cluster_x, cluster_y, cluster_z;
  uint32_t cluster_scheduling_policy;
  uint64_t local_bytes_total;
  uint32_t max_potential_cluster_size;
  uint32_t max_active_clusters;
  uint8_t device_launched;
  uint8_t padding_2[7];
  int32_t priority;
};
static_assert(offsetof(KernelRecord, start) == 16 && offsetof(KernelRecord, correlation) == 92);
static_assert(offsetof(KernelRecord, name) == 104 && offsetof(KernelRecord, queued) == 120);
static_assert(offsetof(KernelRecord, launch_type) == 136 && offsetof(KernelRecord, executed_shared_bytes) == 140);
static_assert(offsetof(KernelRecord, graph_node_id) == 144 && offsetof(KernelRecord, graph_id) == 156);
static_assert(offsetof(KernelRecord, channel) == 168 && offsetof(KernelRecord, cluster_x) == 176);
static_assert(offsetof(KernelRecord, local_bytes_total) == 192 && offsetof(KernelRecord, max_active_clusters) == 204);
static_assert(offsetof(KernelRecord, device_launched) == 208 && offsetof(KernelRecord, priority) == 216);

struct MemcpyRecord {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint32_t runtime_correlation;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node_id;
  uint32_t graph_id;
  uint32_t channel;
  uint32_t channel_type;
  uint8_t device_launched;
  uint8_t padding_2[3];
  uint64_t copy_count;
};
static_assert(offsetof(MemcpyRecord, correlation) == 44 && offsetof(MemcpyRecord, graph_node_id) == 64);
static_assert(offsetof(MemcpyRecord, channel) == 76 && offsetof(MemcpyRecord, copy_count) == 88);

struct PeerMemcpyRecord {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t source_device;
  uint32_t source_context;
  uint32_t destination_device;
  uint32_t destination_context;
  uint32_t correlation;
  void* reserved;
  uint64_t graph_node_id;
  uint32_t graph_id;
  uint32_t channel;
  uint32_t channel_type;
};
static_assert(offsetof(PeerMemcpyRecord, correlation) == 60 && offsetof(PeerMemcpyRecord, graph_node_id) == 72);
static_assert(offsetof(PeerMemcpyRecord, channel) == 84);

struct MemsetRecord {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint16_t flags;
  uint16_t memory_kind;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node_id;
  uint32_t graph_id;
  uint32_t channel;
  uint32_t channel_type;
  uint8_t device_launched;
};
static_assert(offsetof(MemsetRecord, correlation) == 44 && offsetof(MemsetRecord, memory_kind) == 50);
static_assert(offsetof(MemsetRecord, graph_node_id) == 64 && offsetof(MemsetRecord, channel) == 76);

// One launch of a graph. CUPTI of CUDA 12.3 adds where it ended, which we do not need.
struct GraphTraceRecord {
  uint32_t kind;
  uint32_t correlation;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t graph_id;
  uint32_t context;
  uint32_t stream;
};
static_assert(sizeof(GraphTraceRecord) == 40);

// CUpti_CallbackData.
struct CallbackData {
  uint32_t site;  // kSiteEnter or kSiteExit
  uint32_t padding;
  const char* function_name;
  const void* params;
  void* return_value;       // of an exit: points to cudaError_t or CUresult
  const char* symbol_name;  // launches: the kernel's mangled name
  void* context;
  uint32_t context_id;
  uint32_t padding_2;
  uint64_t* correlation_data;
  uint32_t correlation;
};
inline constexpr uint32_t kSiteEnter = 0;
inline constexpr uint32_t kSiteExit = 1;
static_assert(offsetof(CallbackData, params) == 16 && offsetof(CallbackData, symbol_name) == 32);
static_assert(offsetof(CallbackData, context_id) == 48 && offsetof(CallbackData, correlation) == 64);

// Bytes of one record of each kind in the loaded library; 0 = kind unknown to it.
using RecordSizes = std::array<uint32_t, 64>;

// True if a record of `size` bytes holds the field.
#define GPUPERF_HAS(size, view, field) \
  ((size) >= offsetof(::gpuperf::cupti::view, field) + sizeof(::gpuperf::cupti::view::field))

}  // namespace gpuperf::cupti

#endif  // GPUPERF_CUPTI_RECORDS_H_
