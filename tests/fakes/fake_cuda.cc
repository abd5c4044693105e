// A stand-in for libcuda.so.1: enough of the driver API for a CUDA tool to start on a machine without a GPU. It answers
// like a machine with H200 cards (GPUPERF_FAKE_GPUS of them), loads what CUDA_INJECTION64_PATH names inside cuInit as
// the driver does, and passes its calls through the stand-in libcupti's callbacks when that is loaded.
//
// GPUPERF_FAKE_CUINIT=N makes cuInit fail with N (100: no device), as on a machine without a GPU;
// GPUPERF_FAKE_CUINIT_MS=N makes it take so long, GPUPERF_FAKE_GPU_BUSY_MS=N every wait for the GPU's work.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "fake_cupti.h"

#undef cuDeviceTotalMem
#undef cuDevicePrimaryCtxRelease
#undef cuGetProcAddress
#undef cuDeviceGetUuid

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kDriverVersion = 13000;
constexpr size_t kMemoryBytes = 150754820096;
std::atomic<bool> initialized{false};
char context_of_device[16];  // addresses serve as contexts
thread_local CUcontext current_context = nullptr;

int DeviceCount() {
  const char* text = std::getenv("GPUPERF_FAKE_GPUS");
  const auto count = text != nullptr ? std::strtoul(text, nullptr, 10) : 1;
  return static_cast<int>(std::min<unsigned long>(count, 16));
}

// Runs one driver call with its enter and exit callbacks around it.
template <typename Work>
CUresult Call(CUpti_driver_api_trace_cbid cbid, const char* name, const void* params, Work work) {
  static std::atomic<uint32_t> correlation{0x70000000};
  decltype(&fake_cupti_callback) callback = nullptr;
  if (void* cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD)) {
    callback = reinterpret_cast<decltype(callback)>(dlsym(cupti, "fake_cupti_callback"));
    dlclose(cupti);
  }
  CUpti_CallbackData data{};
  uint64_t correlation_data = 0;
  CUresult result = CUDA_SUCCESS;
  data.functionName = name;
  data.functionParams = params;
  data.context = current_context;
  data.contextUid = current_context != nullptr ? 1 : 0;
  data.correlationData = &correlation_data;
  data.correlationId = ++correlation;
  data.callbackSite = CUPTI_API_ENTER;
  if (callback != nullptr) callback(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &data);
  result = work();
  data.callbackSite = CUPTI_API_EXIT;
  data.functionReturnValue = &result;
  if (callback != nullptr) callback(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &data);
  return result;
}

void Inject() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "fake libcuda: %s\n", dlerror());
    return;
  }
  const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (initialize != nullptr) initialize();
}

void SleepFor(const char* variable) {
  if (const char* text = std::getenv(variable)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::strtoul(text, nullptr, 10)));
  }
}

bool Valid(CUdevice device) { return device >= 0 && device < DeviceCount(); }

}  // namespace

EXPORT CUresult cuInit(unsigned int) {
  if (const char* failure = std::getenv("GPUPERF_FAKE_CUINIT"))
    return static_cast<CUresult>(std::strtol(failure, nullptr, 10));
  if (DeviceCount() == 0) return CUDA_ERROR_NO_DEVICE;
  static std::once_flag once;
  initialized = true;
  std::call_once(once, [] {
    SleepFor("GPUPERF_FAKE_CUINIT_MS");
    Inject();
  });
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int* version) {
  const struct {
    int* version;
  } params{version};
  return Call(CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion, "cuDriverGetVersion", &params, [&] {
    *version = kDriverVersion;
    return CUDA_SUCCESS;
  });
}

EXPORT CUresult cuDeviceGetCount(int* count) {
  if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
  *count = DeviceCount();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Valid(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  if (!Valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(length), "NVIDIA H200");
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  if (!Valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = kMemoryBytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) { return cuDeviceTotalMem_v2(bytes, device); }

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  if (!Valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::memset(uuid->bytes, 0x11, sizeof uuid->bytes);
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

EXPORT CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  if (!Valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<size_t>(length), "0000:%02X:00.0", 0x19 + device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!Valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = 2048;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      *value = 65536;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = 233472;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 49152;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 232448;
      break;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 1980000;
      break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = 3201000;
      break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = 6144;
      break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = 62914560;
      break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      *value = 3;
      break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      *value = 0x19 + device;
      break;
    default:
      *value = 0;
      break;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const struct {
    CUcontext* context;
    CUdevice device;
  } params{context, device};
  return Call(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", &params, [&] {
    if (!Valid(device)) return CUDA_ERROR_INVALID_DEVICE;
    *context = reinterpret_cast<CUcontext>(&context_of_device[device]);
    return CUDA_SUCCESS;
  });
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  const struct {
    CUdevice device;
  } params{device};
  return Call(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease_v2", &params,
              [&] { return Valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; });
}
EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  if (!Valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
  *context = current_context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
  current_context = context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  if (current_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = static_cast<CUdevice>(reinterpret_cast<char*>(current_context) - context_of_device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void) {
  return Call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, "cuCtxSynchronize", nullptr, [] {
    SleepFor("GPUPERF_FAKE_GPU_BUSY_MS");
    return current_context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  });
}

EXPORT CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS           ? "no error"
          : error == CUDA_ERROR_NO_DEVICE ? "no CUDA-capable device is detected"
                                          : "error (stand-in)";
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS           ? "CUDA_SUCCESS"
          : error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
                                          : "CUDA_ERROR (stand-in)";
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult* status) {
  *function = dlsym(RTLD_DEFAULT, symbol);
  if (*function == nullptr) {
    if (void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) *function = dlsym(self, symbol);
  }
  if (status != nullptr)
    *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
