// The driver API alone, without a runtime call around it: launches, copies and memory sets of every form.
// `driver_calls LOG`. The kernels are PTX text, and the driver is found at run time, so that no toolkit library and no
// stub is needed to link.
#include <cuda.h>
#include <dlfcn.h>

#include "call_log.h"

// The driver's function as cuda.h names it: cuMemAlloc is a macro for cuMemAlloc_v2, which is the symbol's name.
#define SYMBOL_TEXT(name) #name
#define SYMBOL(name) SYMBOL_TEXT(name)
#define CU(name) (Find<decltype(name)>(SYMBOL(name)))

namespace {

const char kPtx[] = R"(
.version 7.8
.target sm_75
.address_size 64
.visible .entry first_kernel() { ret; }
.visible .entry second_kernel(.param .u64 unused) { ret; }
)";

constexpr size_t kBytes = 1 << 20;

template <typename Function>
Function* Find(const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* function = driver == nullptr ? nullptr : dlsym(driver, name);
  if (function == nullptr) {
    std::fprintf(stderr, "%s: %s\n", name, dlerror());
    std::exit(3);
  }
  return reinterpret_cast<Function*>(function);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  FILE* file = OpenLog(argv[1]);
  Log log;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction first, second;
  CUstream stream;
  CUdeviceptr a, b;
  CUevent event;
  void* pinned;
  CHECK_CUDA(CU(cuInit)(0));
  CHECK_CUDA(CU(cuDeviceGet)(&device, 0));
  CHECK_CUDA(CU(cuDevicePrimaryCtxRetain)(&context, device));
  CHECK_CUDA(CU(cuCtxSetCurrent)(context));
  CHECK_CUDA(CU(cuModuleLoadData)(&module, kPtx));
  CHECK_CUDA(CU(cuModuleGetFunction)(&first, module, "first_kernel"));
  CHECK_CUDA(CU(cuModuleGetFunction)(&second, module, "second_kernel"));
  CHECK_CUDA(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  CHECK_CUDA(CU(cuMemAlloc)(&a, kBytes));
  CHECK_CUDA(CU(cuMemAlloc)(&b, kBytes));
  CHECK_CUDA(CU(cuMemHostAlloc)(&pinned, kBytes, 0));
  CHECK_CUDA(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));

  const auto pointer = [](CUdeviceptr address) { return reinterpret_cast<const void*>(address); };
  const auto add = [&](const char* api, const char* work, size_t bytes, CUstream on, CUresult result,
                       const void* destination = nullptr, const void* source = nullptr) {
    CHECK_CUDA(result);
    Call call;
    call.api = api, call.device_work = work, call.bytes = bytes, call.stream = on;
    call.destination = destination, call.source = source;
    log.Add(call);
  };
  const auto launch = [&](const char* api, const char* symbol, unsigned grid, CUstream on, CUresult result) {
    CHECK_CUDA(result);
    Call call;
    call.api = api, call.symbol = symbol, call.grid = grid, call.stream = on, call.device_work = "kernel";
    log.Add(call);
  };

  void* arguments[] = {&a};
  for (unsigned i = 1; i <= 50; ++i) {
    launch("cuLaunchKernel", "first_kernel", i, stream,
           CU(cuLaunchKernel)(first, i, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
    CUlaunchConfig config{};
    config.gridDimX = 2 * i, config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 64, config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    launch("cuLaunchKernelEx", "second_kernel", 2 * i, stream,
           CU(cuLaunchKernelEx)(&config, second, arguments, nullptr));
    launch("cuLaunchCooperativeKernel", "first_kernel", 3, stream,
           CU(cuLaunchCooperativeKernel)(first, 3, 1, 1, 32, 1, 1, 0, stream, nullptr));
    launch("cuLaunchKernel", "second_kernel", i, nullptr,
           CU(cuLaunchKernel)(second, i, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  }

  add("cuMemcpyHtoD", "copy", 1001, nullptr, CU(cuMemcpyHtoD)(a, pinned, 1001), pointer(a), pinned);
  add("cuMemcpyDtoH", "copy", 1002, nullptr, CU(cuMemcpyDtoH)(pinned, a, 1002), pinned, pointer(a));
  add("cuMemcpyDtoD", "copy", 1003, nullptr, CU(cuMemcpyDtoD)(b, a, 1003), pointer(b), pointer(a));
  add("cuMemcpyHtoDAsync", "copy", 2001, stream, CU(cuMemcpyHtoDAsync)(a, pinned, 2001, stream), pointer(a), pinned);
  add("cuMemcpyDtoHAsync", "copy", 2002, stream, CU(cuMemcpyDtoHAsync)(pinned, a, 2002, stream), pinned, pointer(a));
  add("cuMemcpyDtoDAsync", "copy", 2003, stream, CU(cuMemcpyDtoDAsync)(b, a, 2003, stream), pointer(b), pointer(a));
  add("cuMemcpy", "copy", 3001, nullptr, CU(cuMemcpy)(b, a, 3001), pointer(b), pointer(a));
  add("cuMemcpyAsync", "copy", 3002, stream, CU(cuMemcpyAsync)(b, a, 3002, stream), pointer(b), pointer(a));
  CUDA_MEMCPY2D plane{};
  plane.srcMemoryType = CU_MEMORYTYPE_HOST, plane.srcHost = pinned, plane.srcPitch = 1024;
  plane.dstMemoryType = CU_MEMORYTYPE_DEVICE, plane.dstDevice = a, plane.dstPitch = 1024;
  plane.WidthInBytes = 500, plane.Height = 20;
  add("cuMemcpy2D", "copy", 10000, nullptr, CU(cuMemcpy2D)(&plane));
  add("cuMemcpy2DUnaligned", "copy", 10000, nullptr, CU(cuMemcpy2DUnaligned)(&plane));
  add("cuMemcpy2DAsync", "copy", 10000, stream, CU(cuMemcpy2DAsync)(&plane, stream));
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = CU_MEMORYTYPE_DEVICE, box.srcDevice = a, box.srcPitch = 1024, box.srcHeight = 20;
  box.dstMemoryType = CU_MEMORYTYPE_HOST, box.dstHost = pinned, box.dstPitch = 1024, box.dstHeight = 20;
  box.WidthInBytes = 500, box.Height = 20, box.Depth = 3;
  add("cuMemcpy3D", "copy", 30000, nullptr, CU(cuMemcpy3D)(&box));
  add("cuMemcpy3DAsync", "copy", 30000, stream, CU(cuMemcpy3DAsync)(&box, stream));

  add("cuMemsetD8", "memset", 4001, nullptr, CU(cuMemsetD8)(a, 1, 4001), pointer(a));
  add("cuMemsetD16", "memset", 2 * 4001, nullptr, CU(cuMemsetD16)(a, 1, 4001), pointer(a));
  add("cuMemsetD32", "memset", 4 * 4001, nullptr, CU(cuMemsetD32)(a, 1, 4001), pointer(a));
  add("cuMemsetD8Async", "memset", 5001, stream, CU(cuMemsetD8Async)(a, 1, 5001, stream), pointer(a));
  add("cuMemsetD16Async", "memset", 2 * 5001, stream, CU(cuMemsetD16Async)(a, 1, 5001, stream), pointer(a));
  add("cuMemsetD32Async", "memset", 4 * 5001, stream, CU(cuMemsetD32Async)(a, 1, 5001, stream), pointer(a));
  add("cuMemsetD2D8", "memset", 600, nullptr, CU(cuMemsetD2D8)(a, 512, 1, 30, 20), pointer(a));
  add("cuMemsetD2D32Async", "memset", 4 * 600, stream, CU(cuMemsetD2D32Async)(a, 512, 1, 30, 20, stream), pointer(a));

  for (int i = 0; i < 10; ++i) {
    Call call;
    call.event = event, call.stream = stream;
    call.api = "cuEventRecord", call.result = CU(cuEventRecord)(event, stream);
    log.Add(call);
    call.api = "cuStreamWaitEvent", call.stream = nullptr, call.result = CU(cuStreamWaitEvent)(nullptr, event, 0);
    log.Add(call);
    call.api = "cuEventSynchronize", call.result = CU(cuEventSynchronize)(event);
    log.Add(call);
    call.event = nullptr, call.stream = stream;
    call.api = "cuStreamSynchronize", call.result = CU(cuStreamSynchronize)(stream);
    log.Add(call);
  }
  CHECK_CUDA(CU(cuCtxSynchronize)());
  log.Write(file);
  return std::fclose(file);
}
