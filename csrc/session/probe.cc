#include "session/probe.h"

#include <cstdlib>

#include "cupti/cupti_api.h"
#include "session/driver.h"
#include "session/json.h"
#include "session/run_info.h"
#include "session/slot.h"

namespace gpuperf::session {
namespace {

// nvmlGpmSupport_t
struct GpmSupport {
  unsigned version = 1;
  unsigned supported = 0;
};

std::string ProbeGpus(const Driver& driver, const Nvml* nvml, bool* gpm) {
  JsonArray gpus;
  int count = 0;
  if (driver.DeviceGetCount == nullptr || driver.DeviceGetCount(&count) != kCudaSuccess) count = 0;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    char name[256] = {};
    char bus[64] = {};
    size_t memory = 0;
    if (driver.DeviceGet(&device, ordinal) != kCudaSuccess) continue;
    if (driver.DeviceGetName != nullptr) driver.DeviceGetName(name, sizeof name, device);
    if (driver.DeviceTotalMem != nullptr) driver.DeviceTotalMem(&memory, device);
    if (driver.DeviceGetPCIBusId != nullptr) driver.DeviceGetPCIBusId(bus, sizeof bus, device);
    gpus.Add(JsonObject()
                 .AddNumber("device", static_cast<unsigned>(ordinal))
                 .AddString("name", name)
                 .AddString("pci_bus_id", bus)
                 .AddNumber("memory_bytes", memory)
                 .Text());
    void* handle = nullptr;
    GpmSupport support;
    if (nvml != nullptr && nvml->GpmQueryDeviceSupport != nullptr && nvml->DeviceGetHandleByPciBusId != nullptr &&
        nvml->DeviceGetHandleByPciBusId(bus, &handle) == 0 && nvml->GpmQueryDeviceSupport(handle, &support) == 0) {
      *gpm = *gpm || support.supported != 0;
    }
  }
  return gpus.Text();
}

}  // namespace

std::string ProbeJson() {
  JsonObject probe;
  JsonObject driver_json;
  JsonArray warnings;
  const Driver* driver = LoadDriver();
  const Nvml* nvml = LoadNvml();
  bool gpm = false;
  std::string gpus = "[]";
  bool usable = false;
  if (driver == nullptr) {
    driver_json.AddString("error", "libcuda.so.1 cannot be loaded");
  } else {
    int version = 0;
    driver->DriverGetVersion(&version);
    driver_json.AddString("version", DriverVersion()).AddNumber("cuda", static_cast<unsigned>(version));
    const int result = driver->Init(0);
    usable = result == kCudaSuccess;
    if (usable) {
      gpus = ProbeGpus(*driver, nvml, &gpm);
    } else {
      driver_json.AddString("error", "cuInit says " + driver->Describe(result));
    }
  }

  JsonObject cupti_json;
  JsonArray candidates;
  const char* preferred = std::getenv("GPUPERF_CUPTI");
  const std::string wanted = preferred == nullptr ? "" : preferred;
  for (const cupti::Library& library : cupti::FindLibraries(wanted)) candidates.Add(JsonString(library.path));
  std::string error = "not looked into: there is no usable driver";
  const cupti::Api* api = usable ? cupti::Load(wanted, &error) : nullptr;  // see Load()
  if (api == nullptr) {
    cupti_json.AddString("error", error);
  } else {
    cupti_json.AddString("path", api->path).AddNumber("version", api->version).AddString("found_by", api->found_by);
    for (const std::string& problem : KnownProblems(api->version)) warnings.Add(JsonString(problem));
  }
  cupti_json.Add("candidates", candidates.Text());

  JsonObject slot_json;
  if (api != nullptr && usable) {
    const Slot slot = ProbeSlot(*api);
    slot_json.AddBool("free", slot.free).AddString("holder", slot.holder).AddString("error", slot.error);
  }
  JsonObject nvml_json;
  nvml_json.AddBool("gpm", gpm);
  if (nvml == nullptr) nvml_json.AddString("error", "libnvidia-ml.so.1 cannot be used");
  return probe.Add("driver", driver_json.Text())
      .Add("cupti", cupti_json.Text())
      .Add("slot", slot_json.Text())
      .Add("nvml", nvml_json.Text())
      .Add("gpus", gpus)
      .Add("warnings", warnings.Text())
      .Text();
}

}  // namespace gpuperf::session
