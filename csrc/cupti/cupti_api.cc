#include "cupti/cupti_api.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "base/log.h"

namespace gpuperf::cupti {
namespace {

constexpr size_t kProbeBytes = 4096;

// Asks the library itself: in a zeroed buffer that starts with `kind` and holds a small valid record at every further
// word, the distance from the first to the second record is the size of the first. Needs no driver.
RecordSizes ProbeRecordSizes(const Api& api) {
  RecordSizes sizes{};
  alignas(8) static uint8_t buffer[kProbeBytes];
  for (uint32_t kind = 1; kind < sizes.size(); ++kind) {
    std::memset(buffer, 0, sizeof buffer);
    for (size_t offset = 0; offset < sizeof buffer; offset += 8) {
      const uint32_t filler = kConcurrentKernelKind;
      std::memcpy(buffer + offset, &filler, sizeof filler);
    }
    std::memcpy(buffer, &kind, sizeof kind);
    void* first = nullptr;
    if (api.ActivityGetNextRecord(buffer, sizeof buffer, &first) != kSuccess) continue;
    void* second = first;
    if (api.ActivityGetNextRecord(buffer, sizeof buffer, &second) != kSuccess) continue;
    sizes[kind] = static_cast<uint32_t>(static_cast<uint8_t*>(second) - static_cast<uint8_t*>(first));
  }
  return sizes;
}

template <typename Function>
bool Resolve(void* library, const char* name, Function* function) {
  // POSIX guarantees that dlsym's pointer converts to a function pointer.
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// The first name that is missing, nullptr if all are there.
const char* ResolveAll(void* library, Api* api) {
#define GPUPERF_RESOLVE(member, name) \
  if (!Resolve(library, name, &api->member)) return name
  GPUPERF_RESOLVE(GetVersion, "cuptiGetVersion");
  GPUPERF_RESOLVE(GetTimestamp, "cuptiGetTimestamp");
  GPUPERF_RESOLVE(GetResultString, "cuptiGetResultString");
  GPUPERF_RESOLVE(Subscribe, "cuptiSubscribe");
  GPUPERF_RESOLVE(Unsubscribe, "cuptiUnsubscribe");
  GPUPERF_RESOLVE(EnableCallback, "cuptiEnableCallback");
  GPUPERF_RESOLVE(ActivityRegisterCallbacks, "cuptiActivityRegisterCallbacks");
  GPUPERF_RESOLVE(ActivityEnable, "cuptiActivityEnable");
  GPUPERF_RESOLVE(ActivityDisable, "cuptiActivityDisable");
  GPUPERF_RESOLVE(ActivityFlushAll, "cuptiActivityFlushAll");
  GPUPERF_RESOLVE(ActivityGetNextRecord, "cuptiActivityGetNextRecord");
  GPUPERF_RESOLVE(ActivityGetNumDroppedRecords, "cuptiActivityGetNumDroppedRecords");
  GPUPERF_RESOLVE(ActivitySetAttribute, "cuptiActivitySetAttribute");
  GPUPERF_RESOLVE(Finalize, "cuptiFinalize");
#undef GPUPERF_RESOLVE
  Resolve(library, "cuptiSubscribe_v2", &api->SubscribeV2);
  Resolve(library, "cuptiGetContextId", &api->GetContextId);
  Resolve(library, "cuptiGetDeviceId", &api->GetDeviceId);
  Resolve(library, "cuptiGetStreamIdEx", &api->GetStreamId);
  return nullptr;
}

struct LoadedSearch {
  const char* prefix;
  std::string path;
};

int VisitLoaded(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<LoadedSearch*>(data);
  const char* slash = info->dlpi_name == nullptr ? nullptr : std::strrchr(info->dlpi_name, '/');
  const char* name = slash == nullptr ? info->dlpi_name : slash + 1;
  if (name == nullptr || std::strncmp(name, search->prefix, std::strlen(search->prefix)) != 0) return 0;
  search->path = info->dlpi_name;
  return 1;
}

void AddIfReadable(std::vector<Library>* libraries, const std::string& path, const char* found_by) {
  if (access(path.c_str(), R_OK) == 0) libraries->push_back({path, found_by});
}

}  // namespace

std::string Api::Describe(int result) const {
  const char* text = nullptr;
  if (GetResultString == nullptr || GetResultString(result, &text) != kSuccess || text == nullptr) text = "CUPTI error";
  return base::Format("%s (%d)", text, result);
}

std::string OwnPath() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&OwnPath), &info) == 0 || info.dli_fname == nullptr) return "";
  const std::unique_ptr<char, void (*)(void*)> real(realpath(info.dli_fname, nullptr), std::free);
  return real != nullptr ? real.get() : info.dli_fname;
}

std::string LoadedLibrary(const char* prefix) {
  LoadedSearch search{prefix, ""};
  dl_iterate_phdr(VisitLoaded, &search);
  return search.path;
}

std::vector<Library> FindLibraries(const std::string& preferred) {
  if (!preferred.empty()) return {{preferred, "GPUPERF_CUPTI"}};
  const std::string loaded = LoadedLibrary("libcupti.so.");
  if (!loaded.empty()) return {{loaded, "already loaded"}};

  std::vector<Library> libraries;
  const std::string own = OwnPath();
  const size_t package = own.rfind('/');
  const size_t site = package == std::string::npos || package == 0 ? package : own.rfind('/', package - 1);
  // A CUDA 12 runtime in the process wants CUPTI 12.
  const bool cuda12 = !LoadedLibrary("libcudart.so.12").empty();
  if (site != std::string::npos) {
    const std::string base = own.substr(0, site) + "/nvidia/";
    const std::string cu13 = base + "cu13/lib/libcupti.so.13";
    if (!cuda12) AddIfReadable(&libraries, cu13, "python environment");
    AddIfReadable(&libraries, base + "cuda_cupti/lib/libcupti.so.12", "python environment");
    if (cuda12) AddIfReadable(&libraries, cu13, "python environment");
  }
  const char* const roots[] = {std::getenv("CUDA_HOME"), std::getenv("CUDA_PATH"), "/usr/local/cuda"};
  for (const char* root : roots) {
    if (root == nullptr || *root == '\0') continue;
    for (const char* folder : {"/extras/CUPTI/lib64", "/lib64"}) {
      for (const char* name : {"/libcupti.so.13", "/libcupti.so.12"}) {
        AddIfReadable(&libraries, std::string(root) + folder + name, "toolkit");
      }
    }
  }
  libraries.push_back({"libcupti.so.13", "loader"});
  libraries.push_back({"libcupti.so.12", "loader"});
  return libraries;
}

const Api* Load(const std::string& preferred, std::string* error) {
  // One table a library, for ever: callbacks of a late CUPTI thread may still need it.
  static std::mutex mutex;
  static auto* known_tables = new std::map<void*, const Api*>();
  const std::lock_guard<std::mutex> lock(mutex);
  const std::vector<Library> libraries = FindLibraries(preferred);
  std::string reason;
  for (const Library& candidate : libraries) {
    void* library = dlopen(candidate.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* message = dlerror();
      reason = message != nullptr ? message : "cannot be loaded";
      continue;
    }
    if (const Api* known = (*known_tables)[library]) return known;
    auto api = std::make_unique<Api>();
    if (const char* missing = ResolveAll(library, api.get())) {
      reason = base::Format("%s has no %s", candidate.path.c_str(), missing);
      continue;
    }
    api->path = candidate.path;
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(api->GetVersion), &info) != 0 && info.dli_fname != nullptr) {
      api->path = info.dli_fname;
    }
    api->found_by = candidate.found_by;
    const int answer = api->GetVersion(&api->version);
    if (answer != kSuccess) {  // from CUDA 13.3 on: without a driver
      reason = base::Format("%s does not tell its version: %s", api->path.c_str(), api->Describe(answer).c_str());
      continue;
    }
    api->record_bytes = ProbeRecordSizes(*api);
    if (!GPUPERF_HAS(api->record_bytes[kConcurrentKernelKind], KernelRecord, max_active_clusters)) {
      reason = base::Format("%s (version %u) is older than CUDA 12", api->path.c_str(), api->version);
      continue;
    }
    return (*known_tables)[library] = api.release();
  }
  *error = base::Format("no usable libcupti (%s); install the wheel nvidia-cuda-cupti or name one with GPUPERF_CUPTI",
                        reason.c_str());
  return nullptr;
}

}  // namespace gpuperf::cupti
