// Holds the generated call table against the parameter structs of the CUPTI headers of this build, and against itself.
#include "cupti/call_table.h"

// The old (32-bit address) types, which the generated headers name.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <generated_cuda_meta.h>
#include <generated_cuda_runtime_api_meta.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch.h"

namespace gpuperf::cupti {
namespace {

struct Row {
  uint32_t domain;
  uint32_t cbid;
  std::string name;
  const CallDescriptor* call;
};

std::vector<Row> AllRows() {
  std::vector<Row> rows;
  for (const uint32_t domain : {kRuntimeDomain, kDriverDomain}) {
    const size_t count = domain == kRuntimeDomain ? kRuntimeCallCount : kDriverCallCount;
    const CallDescriptor* calls = domain == kRuntimeDomain ? kRuntimeCalls : kDriverCalls;
    for (uint32_t cbid = 0; cbid < count; ++cbid) {
      const char* name = CallName(domain, cbid);
      rows.push_back({domain, cbid, name == nullptr ? "" : name, &calls[cbid]});
    }
  }
  return rows;
}

std::string WithoutSuffix(const std::string& name) {
  const size_t at = name.rfind("_pt");
  return at == std::string::npos || name.size() - at != 5 ? name : name.substr(0, at);
}

#define CHECK_OFFSET(row, member, params, field) CHECK((row).member == static_cast<int16_t>(offsetof(params, field)))

TEST_CASE("offsets are those of the parameter structs in the headers") {
  const CallDescriptor& launch = kRuntimeCalls[CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000];
  CHECK(launch.kind == CallKind::kLaunch);
  CHECK(launch.params_size == sizeof(cudaLaunchKernel_v7000_params));
  CHECK_OFFSET(launch, stream, cudaLaunchKernel_v7000_params, stream);
  CHECK_OFFSET(launch, handle, cudaLaunchKernel_v7000_params, func);

  const CallDescriptor& launch_ex = kRuntimeCalls[CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060];
  CHECK(launch_ex.kind == CallKind::kLaunch);
  CHECK(launch_ex.stream == kNone);
  CHECK_OFFSET(launch_ex, config, cudaLaunchKernelExC_v11060_params, config);
  CHECK_OFFSET(launch_ex, config_stream, cudaLaunchConfig_t, stream);

  const CallDescriptor& copy = kRuntimeCalls[CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020];
  CHECK(copy.kind == CallKind::kCopy);
  CHECK(copy.fixed_copy_kind == -1);
  CHECK_OFFSET(copy, destination, cudaMemcpyAsync_v3020_params, dst);
  CHECK_OFFSET(copy, source, cudaMemcpyAsync_v3020_params, src);
  CHECK_OFFSET(copy, bytes, cudaMemcpyAsync_v3020_params, count);
  CHECK_OFFSET(copy, copy_kind, cudaMemcpyAsync_v3020_params, kind);
  CHECK_OFFSET(copy, stream, cudaMemcpyAsync_v3020_params, stream);

  const CallDescriptor& copy_2d = kRuntimeCalls[CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020];
  CHECK_OFFSET(copy_2d, bytes, cudaMemcpy2DAsync_v3020_params, width);
  CHECK_OFFSET(copy_2d, bytes_factor, cudaMemcpy2DAsync_v3020_params, height);
  CHECK(kRuntimeCalls[CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DAsync_v3020].bytes == kNone);

  const CallDescriptor& record = kRuntimeCalls[CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020];
  CHECK(record.kind == CallKind::kEventRecord);
  CHECK_OFFSET(record, handle, cudaEventRecord_v3020_params, event);
  CHECK_OFFSET(record, stream, cudaEventRecord_v3020_params, stream);

  const CallDescriptor& allocation = kRuntimeCalls[CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020];
  CHECK_OFFSET(allocation, bytes, cudaMalloc_v3020_params, size);
  CHECK_OFFSET(allocation, address_out, cudaMalloc_v3020_params, devPtr);

  const CallDescriptor& driver_launch = kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel];
  CHECK(driver_launch.kind == CallKind::kLaunch);
  CHECK_OFFSET(driver_launch, handle, cuLaunchKernel_params, f);
  CHECK_OFFSET(driver_launch, stream, cuLaunchKernel_params, hStream);

  const CallDescriptor& driver_ex = kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx];
  CHECK_OFFSET(driver_ex, config, cuLaunchKernelEx_params, config);
  CHECK_OFFSET(driver_ex, config_stream, CUlaunchConfig, hStream);
  CHECK_OFFSET(driver_ex, handle, cuLaunchKernelEx_params, f);

  const CallDescriptor& to_device = kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2];
  CHECK(to_device.fixed_copy_kind == 1);
  CHECK_OFFSET(to_device, destination, cuMemcpyHtoDAsync_v2_params, dstDevice);
  CHECK_OFFSET(to_device, source, cuMemcpyHtoDAsync_v2_params, srcHost);
  CHECK_OFFSET(to_device, bytes, cuMemcpyHtoDAsync_v2_params, ByteCount);

  const CallDescriptor& set = kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async];
  CHECK(set.element_bytes == 4);
  CHECK_OFFSET(set, bytes, cuMemsetD32Async_params, N);
}

TEST_CASE("the table covers every id of the headers") {
  CHECK(kRuntimeCallCount >= CUPTI_RUNTIME_TRACE_CBID_SIZE);
  CHECK(kDriverCallCount >= CUPTI_DRIVER_TRACE_CBID_SIZE);
  CHECK(std::string(CallName(kRuntimeDomain, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000)) == "cudaLaunchKernel");
  CHECK(std::string(CallName(kDriverDomain, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz)) == "cuLaunchKernel_ptsz");
  CHECK(CallName(kRuntimeDomain, 0) == nullptr);
  CHECK(CallName(kRuntimeDomain, static_cast<uint32_t>(kRuntimeCallCount)) == nullptr);
  CHECK(CallName(kDriverDomain, UINT32_MAX) == nullptr);
  CHECK(CallName(3, 1) == nullptr);
}

TEST_CASE("rows are consistent") {
  std::map<std::string, CallKind> kinds;
  for (const Row& row : AllRows()) {
    INFO(row.name << " " << row.cbid);
    const CallDescriptor& call = *row.call;
    if (call.kind == CallKind::kNotTraced) continue;
    CHECK_FALSE(row.name.empty());
    for (const int16_t offset : {call.stream, call.config, call.handle, call.destination, call.source, call.bytes,
                                 call.bytes_factor, call.address, call.address_out}) {
      if (offset == kNone) continue;
      CHECK(offset >= 0);
      CHECK(offset + 8 <= call.params_size);
    }
    if (call.copy_kind != kNone) CHECK(call.copy_kind + 4 <= call.params_size);
    CHECK((call.config == kNone) == (call.config_stream == kNone));
    CHECK(call.per_thread_stream == (WithoutSuffix(row.name) != row.name));
    // Forms of one function are of one kind.
    const auto [known, added] = kinds.try_emplace(WithoutSuffix(row.name), call.kind);
    if (!added) CHECK(known->second == call.kind);
  }
}

TEST_CASE("every launch says its stream and function where its parameters hold them") {
  // Lists of launches for several devices, and functions older than streams.
  const std::set<std::string> without = {"cudaLaunch", "cuLaunch", "cuLaunchGrid",
                                         "cudaLaunchCooperativeKernelMultiDevice",
                                         "cuLaunchCooperativeKernelMultiDevice"};
  size_t launches = 0;
  for (const Row& row : AllRows()) {
    if (row.call->kind != CallKind::kLaunch && row.call->kind != CallKind::kGraphLaunch) continue;
    if (without.count(WithoutSuffix(row.name)) != 0) continue;
    INFO(row.name);
    CHECK((row.call->stream != kNone) != (row.call->config != kNone));
    CHECK(row.call->handle != kNone);
    ++launches;
  }
  CHECK(launches >= 16);
}

}  // namespace
}  // namespace gpuperf::cupti
