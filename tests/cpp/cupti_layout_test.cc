// Holds our views of CUPTI's structs (cupti/records.h) against the installed CUPTI headers, at compile time. The same
// file compiles with the headers of CUDA 12 and 13: each has the structs of its own version and, deprecated, the older
// ones.
#include <cuda.h>
#include <cupti.h>

#include <cstddef>

#include "catch.h"
#include "cupti/call_table.h"
#include "cupti/records.h"

namespace {

namespace cupti = gpuperf::cupti;

// One field of a view and of the header's struct: same place, same width.
#define SAME(view, field, theirs, member)                                                     \
  static_assert(offsetof(cupti::view, field) == offsetof(theirs, member), #view "::" #field); \
  static_assert(sizeof(cupti::view::field) == sizeof(theirs::member), #view "::" #field)

// Kernel9 is the record of CUDA 12, Kernel10 that of 13.0, Kernel11 that of 13.1.
#define SAME_KERNEL(theirs)                                                        \
  SAME(KernelRecord, kind, theirs, kind);                                          \
  SAME(KernelRecord, cache_config, theirs, cacheConfig);                           \
  SAME(KernelRecord, shared_memory_config, theirs, sharedMemoryConfig);            \
  SAME(KernelRecord, registers_per_thread, theirs, registersPerThread);            \
  SAME(KernelRecord, start, theirs, start);                                        \
  SAME(KernelRecord, end, theirs, end);                                            \
  SAME(KernelRecord, completed, theirs, completed);                                \
  SAME(KernelRecord, device, theirs, deviceId);                                    \
  SAME(KernelRecord, context, theirs, contextId);                                  \
  SAME(KernelRecord, stream, theirs, streamId);                                    \
  SAME(KernelRecord, grid_x, theirs, gridX);                                       \
  SAME(KernelRecord, grid_z, theirs, gridZ);                                       \
  SAME(KernelRecord, block_x, theirs, blockX);                                     \
  SAME(KernelRecord, block_z, theirs, blockZ);                                     \
  SAME(KernelRecord, static_shared_bytes, theirs, staticSharedMemory);             \
  SAME(KernelRecord, dynamic_shared_bytes, theirs, dynamicSharedMemory);           \
  SAME(KernelRecord, local_bytes_per_thread, theirs, localMemoryPerThread);        \
  SAME(KernelRecord, local_bytes_total_32, theirs, localMemoryTotal);              \
  SAME(KernelRecord, correlation, theirs, correlationId);                          \
  SAME(KernelRecord, grid_id, theirs, gridId);                                     \
  SAME(KernelRecord, name, theirs, name);                                          \
  SAME(KernelRecord, queued, theirs, queued);                                      \
  SAME(KernelRecord, submitted, theirs, submitted);                                \
  SAME(KernelRecord, launch_type, theirs, launchType);                             \
  SAME(KernelRecord, carveout_requested, theirs, isSharedMemoryCarveoutRequested); \
  SAME(KernelRecord, carveout_percent, theirs, sharedMemoryCarveoutRequested);     \
  SAME(KernelRecord, executed_shared_bytes, theirs, sharedMemoryExecuted);         \
  SAME(KernelRecord, graph_node_id, theirs, graphNodeId);                          \
  SAME(KernelRecord, shmem_limit_config, theirs, shmemLimitConfig);                \
  SAME(KernelRecord, graph_id, theirs, graphId);                                   \
  SAME(KernelRecord, channel, theirs, channelID);                                  \
  SAME(KernelRecord, channel_type, theirs, channelType);                           \
  SAME(KernelRecord, cluster_x, theirs, clusterX);                                 \
  SAME(KernelRecord, cluster_z, theirs, clusterZ);                                 \
  SAME(KernelRecord, cluster_scheduling_policy, theirs, clusterSchedulingPolicy);  \
  SAME(KernelRecord, local_bytes_total, theirs, localMemoryTotal_v2);              \
  SAME(KernelRecord, max_potential_cluster_size, theirs, maxPotentialClusterSize); \
  SAME(KernelRecord, max_active_clusters, theirs, maxActiveClusters)

SAME_KERNEL(CUpti_ActivityKernel9);
static_assert(sizeof(CUpti_ActivityKernel9) == offsetof(cupti::KernelRecord, device_launched));
#if CUPTI_API_VERSION >= 130000
SAME_KERNEL(CUpti_ActivityKernel10);
SAME(KernelRecord, device_launched, CUpti_ActivityKernel10, isDeviceLaunched);
static_assert(sizeof(CUpti_ActivityKernel10) == offsetof(cupti::KernelRecord, priority));
#endif
#if CUPTI_API_VERSION >= 130100
SAME_KERNEL(CUpti_ActivityKernel11);
SAME(KernelRecord, device_launched, CUpti_ActivityKernel11, isDeviceLaunched);
SAME(KernelRecord, priority, CUpti_ActivityKernel11, priority);
#endif

// Memcpy5 is the record of CUDA 12.0, Memcpy6 that of 12.8.
#define SAME_MEMCPY(theirs)                                              \
  SAME(MemcpyRecord, kind, theirs, kind);                                \
  SAME(MemcpyRecord, copy_kind, theirs, copyKind);                       \
  SAME(MemcpyRecord, source_kind, theirs, srcKind);                      \
  SAME(MemcpyRecord, destination_kind, theirs, dstKind);                 \
  SAME(MemcpyRecord, flags, theirs, flags);                              \
  SAME(MemcpyRecord, bytes, theirs, bytes);                              \
  SAME(MemcpyRecord, start, theirs, start);                              \
  SAME(MemcpyRecord, end, theirs, end);                                  \
  SAME(MemcpyRecord, device, theirs, deviceId);                          \
  SAME(MemcpyRecord, context, theirs, contextId);                        \
  SAME(MemcpyRecord, stream, theirs, streamId);                          \
  SAME(MemcpyRecord, correlation, theirs, correlationId);                \
  SAME(MemcpyRecord, runtime_correlation, theirs, runtimeCorrelationId); \
  SAME(MemcpyRecord, graph_node_id, theirs, graphNodeId);                \
  SAME(MemcpyRecord, graph_id, theirs, graphId);                         \
  SAME(MemcpyRecord, channel, theirs, channelID);                        \
  SAME(MemcpyRecord, channel_type, theirs, channelType)

SAME_MEMCPY(CUpti_ActivityMemcpy5);
#if CUPTI_API_VERSION >= 26
SAME_MEMCPY(CUpti_ActivityMemcpy6);
#if CUPTI_API_VERSION >= 130000  // a byte of padding before
SAME(MemcpyRecord, device_launched, CUpti_ActivityMemcpy6, isDeviceLaunched);
#endif
SAME(MemcpyRecord, copy_count, CUpti_ActivityMemcpy6, copyCount);
static_assert(sizeof(CUpti_ActivityMemcpy6) == sizeof(cupti::MemcpyRecord));
#endif

SAME(GraphTraceRecord, kind, CUpti_ActivityGraphTrace2, kind);
SAME(GraphTraceRecord, correlation, CUpti_ActivityGraphTrace2, correlationId);
SAME(GraphTraceRecord, start, CUpti_ActivityGraphTrace2, start);
SAME(GraphTraceRecord, end, CUpti_ActivityGraphTrace2, end);
SAME(GraphTraceRecord, device, CUpti_ActivityGraphTrace2, deviceId);
SAME(GraphTraceRecord, graph_id, CUpti_ActivityGraphTrace2, graphId);
SAME(GraphTraceRecord, context, CUpti_ActivityGraphTrace2, contextId);
SAME(GraphTraceRecord, stream, CUpti_ActivityGraphTrace2, streamId);

SAME(GraphData, graph, CUpti_GraphData, graph);
SAME(GraphData, exec, CUpti_GraphData, graphExec);
SAME(ResourceData, context, CUpti_ResourceData, context);
SAME(ResourceData, handle, CUpti_ResourceData, resourceHandle);
SAME(ResourceData, graph, CUpti_ResourceData, resourceDescriptor);
static_assert(cupti::kResourceDomain == CUPTI_CB_DOMAIN_RESOURCE);
static_assert(cupti::kContextCreated == CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
static_assert(cupti::kContextDestroying == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
static_assert(cupti::kStreamCreated == CUPTI_CBID_RESOURCE_STREAM_CREATED);
static_assert(cupti::kStreamDestroying == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING);
static_assert(cupti::kGraphExecCreateStarting == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING);
static_assert(cupti::kGraphExecCreated == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
static_assert(cupti::kGraphExecDestroying == CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING);

SAME(PeerMemcpyRecord, kind, CUpti_ActivityMemcpyPtoP4, kind);
SAME(PeerMemcpyRecord, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);
SAME(PeerMemcpyRecord, source_kind, CUpti_ActivityMemcpyPtoP4, srcKind);
SAME(PeerMemcpyRecord, destination_kind, CUpti_ActivityMemcpyPtoP4, dstKind);
SAME(PeerMemcpyRecord, flags, CUpti_ActivityMemcpyPtoP4, flags);
SAME(PeerMemcpyRecord, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME(PeerMemcpyRecord, start, CUpti_ActivityMemcpyPtoP4, start);
SAME(PeerMemcpyRecord, end, CUpti_ActivityMemcpyPtoP4, end);
SAME(PeerMemcpyRecord, device, CUpti_ActivityMemcpyPtoP4, deviceId);
SAME(PeerMemcpyRecord, context, CUpti_ActivityMemcpyPtoP4, contextId);
SAME(PeerMemcpyRecord, stream, CUpti_ActivityMemcpyPtoP4, streamId);
SAME(PeerMemcpyRecord, source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
SAME(PeerMemcpyRecord, source_context, CUpti_ActivityMemcpyPtoP4, srcContextId);
SAME(PeerMemcpyRecord, destination_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
SAME(PeerMemcpyRecord, destination_context, CUpti_ActivityMemcpyPtoP4, dstContextId);
SAME(PeerMemcpyRecord, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME(PeerMemcpyRecord, graph_node_id, CUpti_ActivityMemcpyPtoP4, graphNodeId);
SAME(PeerMemcpyRecord, graph_id, CUpti_ActivityMemcpyPtoP4, graphId);
SAME(PeerMemcpyRecord, channel, CUpti_ActivityMemcpyPtoP4, channelID);
SAME(PeerMemcpyRecord, channel_type, CUpti_ActivityMemcpyPtoP4, channelType);

SAME(MemsetRecord, kind, CUpti_ActivityMemset4, kind);
SAME(MemsetRecord, value, CUpti_ActivityMemset4, value);
SAME(MemsetRecord, bytes, CUpti_ActivityMemset4, bytes);
SAME(MemsetRecord, start, CUpti_ActivityMemset4, start);
SAME(MemsetRecord, end, CUpti_ActivityMemset4, end);
SAME(MemsetRecord, device, CUpti_ActivityMemset4, deviceId);
SAME(MemsetRecord, context, CUpti_ActivityMemset4, contextId);
SAME(MemsetRecord, stream, CUpti_ActivityMemset4, streamId);
SAME(MemsetRecord, correlation, CUpti_ActivityMemset4, correlationId);
SAME(MemsetRecord, flags, CUpti_ActivityMemset4, flags);
SAME(MemsetRecord, memory_kind, CUpti_ActivityMemset4, memoryKind);
SAME(MemsetRecord, graph_node_id, CUpti_ActivityMemset4, graphNodeId);
SAME(MemsetRecord, graph_id, CUpti_ActivityMemset4, graphId);
SAME(MemsetRecord, channel, CUpti_ActivityMemset4, channelID);
SAME(MemsetRecord, channel_type, CUpti_ActivityMemset4, channelType);

SAME(CallbackData, site, CUpti_CallbackData, callbackSite);
SAME(CallbackData, function_name, CUpti_CallbackData, functionName);
SAME(CallbackData, params, CUpti_CallbackData, functionParams);
SAME(CallbackData, return_value, CUpti_CallbackData, functionReturnValue);
SAME(CallbackData, symbol_name, CUpti_CallbackData, symbolName);
SAME(CallbackData, context, CUpti_CallbackData, context);
SAME(CallbackData, context_id, CUpti_CallbackData, contextUid);
SAME(CallbackData, correlation_data, CUpti_CallbackData, correlationData);
SAME(CallbackData, correlation, CUpti_CallbackData, correlationId);

}  // namespace

TEST_CASE("numbers of kinds and callback sites are CUPTI's") {
  CHECK(cupti::kMemcpyKind == CUPTI_ACTIVITY_KIND_MEMCPY);
  CHECK(cupti::kMemsetKind == CUPTI_ACTIVITY_KIND_MEMSET);
  CHECK(cupti::kConcurrentKernelKind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  CHECK(cupti::kPeerMemcpyKind == CUPTI_ACTIVITY_KIND_MEMCPY2);
  CHECK(cupti::kSiteEnter == CUPTI_API_ENTER);
  CHECK(cupti::kSiteExit == CUPTI_API_EXIT);
}

TEST_CASE("a field is read only from a record that holds it") {
  constexpr auto kCuda12Kernel = sizeof(CUpti_ActivityKernel9);
  CHECK(GPUPERF_HAS(kCuda12Kernel, KernelRecord, max_active_clusters));
  CHECK_FALSE(GPUPERF_HAS(kCuda12Kernel, KernelRecord, device_launched));
  CHECK_FALSE(GPUPERF_HAS(sizeof(CUpti_ActivityMemcpy5), MemcpyRecord, copy_count));
}
