// A stand-in for libnvidia-ml.so.1: a machine with H200 cards (GPUPERF_FAKE_GPUS of them), PCIe 5.0 x16, 18 NVLink 4
// links each. Prototypes follow nvml.h, which CUDA toolkits do not always bring. Constant answers, any thread.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Device = const char*;  // nvmlDevice_t is an opaque pointer
constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr unsigned kNvLinks = 18;
const char devices[16] = {};

unsigned DeviceCount() {
  const char* text = std::getenv("GPUPERF_FAKE_GPUS");
  const auto count = text != nullptr ? std::strtoul(text, nullptr, 10) : 1;
  return static_cast<unsigned>(std::min<unsigned long>(count, 16));
}

unsigned Index(Device device) { return static_cast<unsigned>(device - devices); }

int Text(const char* text, char* out, unsigned length) {
  if (std::strlen(text) >= length) return kInsufficientSize;
  std::strcpy(out, text);
  return kSuccess;
}

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

struct Memory {
  unsigned long long total, free, used;
};

struct GpmSupport {
  unsigned version, is_supported;
};

}  // namespace

EXPORT int nvmlInit_v2() { return kSuccess; }
EXPORT int nvmlInit() { return kSuccess; }
EXPORT int nvmlShutdown() { return kSuccess; }
EXPORT const char* nvmlErrorString(int result) { return result == kSuccess ? "Success" : "Error (stand-in)"; }

EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned length) { return Text("580.159.04", text, length); }
EXPORT int nvmlSystemGetNVMLVersion(char* text, unsigned length) { return Text("13.580.159.04", text, length); }
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) { return *version = 13000, kSuccess; }
EXPORT int nvmlSystemGetCudaDriverVersion(int* version) { return *version = 13000, kSuccess; }

EXPORT int nvmlDeviceGetCount_v2(unsigned* count) { return *count = DeviceCount(), kSuccess; }

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (index >= DeviceCount()) return kInvalidArgument;
  *device = devices + index;
  return kSuccess;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  // "0000:19:00.0" or "00000000:19:00.0"
  const char* colon = std::strchr(bus_id, ':');
  const auto bus = colon != nullptr ? std::strtoul(colon + 1, nullptr, 16) : 0;
  if (bus < 0x19 || bus - 0x19 >= DeviceCount()) return kNotFound;
  *device = devices + (bus - 0x19);
  return kSuccess;
}

EXPORT int nvmlDeviceGetIndex(Device device, unsigned* index) { return *index = Index(device), kSuccess; }
EXPORT int nvmlDeviceGetName(Device, char* text, unsigned length) { return Text("NVIDIA H200", text, length); }

EXPORT int nvmlDeviceGetUUID(Device device, char* text, unsigned length) {
  char uuid[64];
  std::snprintf(uuid, sizeof uuid, "GPU-11111111-1111-1111-1111-1111111111%02x", Index(device));
  return Text(uuid, text, length);
}

EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  for (unsigned index = 0; index < DeviceCount(); ++index) {
    char own[64];
    nvmlDeviceGetUUID(devices + index, own, sizeof own);
    if (std::strcmp(own, uuid) != 0) continue;
    *device = devices + index;
    return kSuccess;
  }
  return kNotFound;
}

EXPORT int nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  std::memset(info, 0, sizeof *info);
  info->bus = 0x19 + Index(device);
  info->pci_device_id = 0x233510de;
  std::snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "0000:%02X:00.0", info->bus & 0xff);
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus & 0xff);
  return kSuccess;
}

EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(Device, unsigned* value) { return *value = 5, kSuccess; }
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(Device, unsigned* value) { return *value = 5, kSuccess; }
EXPORT int nvmlDeviceGetCurrPcieLinkWidth(Device, unsigned* value) { return *value = 16, kSuccess; }
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(Device, unsigned* value) { return *value = 16, kSuccess; }

EXPORT int nvmlDeviceGetNvLinkState(Device, unsigned link, unsigned* active) {
  if (link >= kNvLinks) return kInvalidArgument;
  return *active = 1, kSuccess;
}

EXPORT int nvmlDeviceGetNvLinkVersion(Device, unsigned link, unsigned* version) {
  if (link >= kNvLinks) return kInvalidArgument;
  return *version = 4, kSuccess;
}

EXPORT int nvmlDeviceGetMemoryInfo(Device, Memory* memory) {
  *memory = {150754820096, 150000000000, 754820096};
  return kSuccess;
}

EXPORT int nvmlGpmQueryDeviceSupport(Device, GpmSupport* support) { return support->is_supported = 1, kSuccess; }
EXPORT int nvmlDeviceGetEccMode(Device, unsigned* current, unsigned* pending) {
  return *current = *pending = 1, kSuccess;
}
EXPORT int nvmlDeviceGetMigMode(Device, unsigned* current, unsigned* pending) {
  return *current = *pending = 0, kSuccess;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(Device, unsigned* count, void*) { return *count = 0, kSuccess; }
EXPORT int nvmlDeviceGetPersistenceMode(Device, unsigned* mode) { return *mode = 1, kSuccess; }
EXPORT int nvmlDeviceGetComputeMode(Device, unsigned* mode) { return *mode = 0, kSuccess; }
EXPORT int nvmlDeviceGetFanSpeed(Device, unsigned*) { return kNotSupported; }
