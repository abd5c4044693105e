// Writes one activity record of each kind that gpuperf reads, as the CUPTI headers of this compilation lay it out,
// every field different, to stdout. KERNEL, MEMCPY, PEER_MEMCPY, MEMSET and GRAPH name the newest struct of each kind;
// the test (tests/python/test_every_cupti.py) finds them in the headers, and knows the values.
#include <cupti_activity.h>

#include <cstdio>
#include <cstring>

namespace {

// Sets a field that not every version has.
#define SET_IF_THERE(record, field, value)                  \
  [&](auto& r) {                                            \
    if constexpr (requires { r.field; }) r.field = (value); \
  }(record)

template <typename Record>
void Write(const Record& record) {
  std::fwrite(&record, sizeof record, 1, stdout);
}

// A record with everything set that the kinds have in common.
template <typename Record>
Record Common(CUpti_ActivityKind kind, unsigned base) {
  Record record;
  std::memset(static_cast<void*>(&record), 0, sizeof record);
  record.kind = kind;
  record.start = 1'000'000 + base;
  record.end = 2'000'000 + 2 * base;
  record.deviceId = 1;
  record.contextId = 2;
  record.streamId = 3;
  record.correlationId = base + 4;
  record.graphId = base + 5;
  SET_IF_THERE(record, graphNodeId, (uint64_t{base} << 32) + 6);
  SET_IF_THERE(record, channelID, 7);
  SET_IF_THERE(record, channelType, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
  return record;
}

}  // namespace

int main() {
  auto kernel = Common<KERNEL>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 100);
  kernel.gridX = 11, kernel.gridY = 12, kernel.gridZ = 13;
  kernel.blockX = 14, kernel.blockY = 15, kernel.blockZ = 16;
  kernel.registersPerThread = 17;
  kernel.staticSharedMemory = 18;
  kernel.dynamicSharedMemory = 19;
  kernel.sharedMemoryExecuted = 20;
  kernel.localMemoryPerThread = 21;
  kernel.localMemoryTotal_v2 = uint64_t{22} << 32;
  kernel.queued = 23;
  kernel.submitted = 24;
  kernel.clusterX = 25, kernel.clusterY = 26, kernel.clusterZ = 27;
  kernel.clusterSchedulingPolicy = 1;
  kernel.maxPotentialClusterSize = 28;
  kernel.maxActiveClusters = 29;
  kernel.isSharedMemoryCarveoutRequested = 1;
  kernel.sharedMemoryCarveoutRequested = 30;
  kernel.launchType = CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE;
  SET_IF_THERE(kernel, isDeviceLaunched, 1);
  SET_IF_THERE(kernel, priority, -5);
  Write(kernel);

  auto copy = Common<MEMCPY>(CUPTI_ACTIVITY_KIND_MEMCPY, 200);
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  copy.bytes = uint64_t{31} << 32;
  SET_IF_THERE(copy, copyCount, 32);
  Write(copy);

  auto peer = Common<PEER_MEMCPY>(CUPTI_ACTIVITY_KIND_MEMCPY2, 300);
  peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  peer.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  peer.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  peer.bytes = 33;
  peer.srcDeviceId = 34;
  peer.srcContextId = 35;
  peer.dstDeviceId = 36;
  peer.dstContextId = 37;
  Write(peer);

  auto set = Common<MEMSET>(CUPTI_ACTIVITY_KIND_MEMSET, 400);
  set.value = 38;
  set.bytes = 39;
  set.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
  set.flags = CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC;
  Write(set);

  Write(Common<GRAPH>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 500));
  std::fprintf(stderr, "%zu %zu %zu %zu %zu\n", sizeof(KERNEL), sizeof(MEMCPY), sizeof(PEER_MEMCPY), sizeof(MEMSET),
               sizeof(GRAPH));
  return 0;
}
