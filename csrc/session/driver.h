// The few functions of libcuda and libnvidia-ml that gpuperf calls, found at run time; nothing links CUDA.
// Loaded once, never unloaded; a missing library or function is a null pointer. Any thread, not the hot path.
#ifndef GPUPERF_SESSION_DRIVER_H_
#define GPUPERF_SESSION_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpuperf::session {

inline constexpr int kCudaSuccess = 0;
inline constexpr int kCudaDeinitialized = 4;  // CUDA_ERROR_DEINITIALIZED: the process is ending

struct Driver {
  int (*Init)(unsigned flags);
  int (*DriverGetVersion)(int*);
  int (*GetErrorName)(int, const char**);
  int (*DeviceGetCount)(int*);
  int (*DeviceGet)(int*, int ordinal);
  int (*DeviceGetName)(char*, int, int device);
  int (*DeviceGetUuid)(void* uuid, int device);
  int (*DeviceGetAttribute)(int*, int attribute, int device);
  int (*DeviceTotalMem)(size_t*, int device);
  int (*DeviceGetPCIBusId)(char*, int, int device);
  int (*CtxGetCurrent)(void**);
  int (*CtxSetCurrent)(void*);
  int (*CtxSynchronize)();
  int (*PrimaryCtxGetState)(int device, unsigned* flags, int* active);
  int (*PrimaryCtxRetain)(void**, int device);
  int (*PrimaryCtxRelease)(int device);

  std::string Describe(int result) const;  // "CUDA_ERROR_NO_DEVICE (100)"
};

// nullptr: no NVIDIA driver in this machine.
const Driver* LoadDriver();

struct Nvml {
  int (*SystemGetDriverVersion)(char*, unsigned);
  int (*DeviceGetHandleByPciBusId)(const char*, void** device);
  int (*DeviceGetCurrPcieLinkGeneration)(void*, unsigned*);
  int (*DeviceGetMaxPcieLinkGeneration)(void*, unsigned*);
  int (*DeviceGetCurrPcieLinkWidth)(void*, unsigned*);
  int (*DeviceGetMaxPcieLinkWidth)(void*, unsigned*);
  int (*DeviceGetNvLinkState)(void*, unsigned link, unsigned* active);
  int (*DeviceGetNvLinkVersion)(void*, unsigned link, unsigned* version);
  int (*DeviceGetEccMode)(void*, unsigned* current, unsigned* pending);
  int (*DeviceGetMigMode)(void*, unsigned* current, unsigned* pending);
  int (*GpmQueryDeviceSupport)(void*, void* support);
};

// Initialised; nullptr: no NVML.
const Nvml* LoadNvml();

// Waits for all work of the current context and of every device whose primary context is active. False: CUDA is not
// usable any more (the process is ending) and nothing of CUPTI may be called.
bool SynchronizeAllDevices(const Driver& driver);

}  // namespace gpuperf::session

#endif  // GPUPERF_SESSION_DRIVER_H_
