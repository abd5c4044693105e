#include "session/driver.h"

#include <dlfcn.h>

#include "base/log.h"

namespace gpuperf::session {
namespace {

template <typename Function>
void Resolve(void* library, Function* function, const char* name) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

std::string Driver::Describe(int result) const {
  const char* name = nullptr;
  if (GetErrorName == nullptr || GetErrorName(result, &name) != kCudaSuccess || name == nullptr) name = "CUDA error";
  return base::Format("%s (%d)", name, result);
}

const Driver* LoadDriver() {
  static const Driver* const kDriver = []() -> const Driver* {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto* driver = new Driver{};
    Resolve(library, &driver->Init, "cuInit");
    Resolve(library, &driver->DriverGetVersion, "cuDriverGetVersion");
    Resolve(library, &driver->GetErrorName, "cuGetErrorName");
    Resolve(library, &driver->DeviceGetCount, "cuDeviceGetCount");
    Resolve(library, &driver->DeviceGet, "cuDeviceGet");
    Resolve(library, &driver->DeviceGetName, "cuDeviceGetName");
    Resolve(library, &driver->DeviceGetUuid, "cuDeviceGetUuid");
    Resolve(library, &driver->DeviceGetAttribute, "cuDeviceGetAttribute");
    Resolve(library, &driver->DeviceTotalMem, "cuDeviceTotalMem_v2");
    Resolve(library, &driver->DeviceGetPCIBusId, "cuDeviceGetPCIBusId");
    Resolve(library, &driver->CtxGetCurrent, "cuCtxGetCurrent");
    Resolve(library, &driver->CtxSetCurrent, "cuCtxSetCurrent");
    Resolve(library, &driver->CtxSynchronize, "cuCtxSynchronize");
    Resolve(library, &driver->PrimaryCtxGetState, "cuDevicePrimaryCtxGetState");
    Resolve(library, &driver->PrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    Resolve(library, &driver->PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
    const bool usable = driver->Init != nullptr && driver->DriverGetVersion != nullptr &&
                        driver->CtxGetCurrent != nullptr && driver->CtxSynchronize != nullptr;
    return usable ? driver : nullptr;
  }();
  return kDriver;
}

const Nvml* LoadNvml() {
  static const Nvml* const kNvml = []() -> const Nvml* {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    int (*init)() = nullptr;
    Resolve(library, &init, "nvmlInit_v2");
    if (init == nullptr || init() != 0) return nullptr;
    auto* nvml = new Nvml{};
    Resolve(library, &nvml->SystemGetDriverVersion, "nvmlSystemGetDriverVersion");
    Resolve(library, &nvml->DeviceGetHandleByPciBusId, "nvmlDeviceGetHandleByPciBusId_v2");
    Resolve(library, &nvml->DeviceGetCurrPcieLinkGeneration, "nvmlDeviceGetCurrPcieLinkGeneration");
    Resolve(library, &nvml->DeviceGetMaxPcieLinkGeneration, "nvmlDeviceGetMaxPcieLinkGeneration");
    Resolve(library, &nvml->DeviceGetCurrPcieLinkWidth, "nvmlDeviceGetCurrPcieLinkWidth");
    Resolve(library, &nvml->DeviceGetMaxPcieLinkWidth, "nvmlDeviceGetMaxPcieLinkWidth");
    Resolve(library, &nvml->DeviceGetNvLinkState, "nvmlDeviceGetNvLinkState");
    Resolve(library, &nvml->DeviceGetNvLinkVersion, "nvmlDeviceGetNvLinkVersion");
    Resolve(library, &nvml->DeviceGetEccMode, "nvmlDeviceGetEccMode");
    Resolve(library, &nvml->DeviceGetMigMode, "nvmlDeviceGetMigMode");
    Resolve(library, &nvml->GpmQueryDeviceSupport, "nvmlGpmQueryDeviceSupport");
    return nvml;
  }();
  return kNvml;
}

bool SynchronizeAllDevices(const Driver& driver) {
  void* current = nullptr;
  if (driver.CtxGetCurrent(&current) == kCudaDeinitialized) return false;
  if (current != nullptr && driver.CtxSynchronize() == kCudaDeinitialized) return false;
  int devices = 0;
  if (driver.DeviceGetCount == nullptr || driver.DeviceGet == nullptr || driver.PrimaryCtxGetState == nullptr ||
      driver.PrimaryCtxRetain == nullptr || driver.PrimaryCtxRelease == nullptr || driver.CtxSetCurrent == nullptr ||
      driver.DeviceGetCount(&devices) != kCudaSuccess) {
    return true;
  }
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    int device = 0;
    unsigned flags = 0;
    int active = 0;
    void* context = nullptr;
    if (driver.DeviceGet(&device, ordinal) != kCudaSuccess ||
        driver.PrimaryCtxGetState(device, &flags, &active) != kCudaSuccess || active == 0 ||
        driver.PrimaryCtxRetain(&context, device) != kCudaSuccess) {
      continue;
    }
    if (context != current && driver.CtxSetCurrent(context) == kCudaSuccess) {
      driver.CtxSynchronize();
      driver.CtxSetCurrent(current);
    }
    driver.PrimaryCtxRelease(device);
  }
  return true;
}

}  // namespace gpuperf::session
