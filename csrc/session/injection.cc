// How an unmodified program gets a session: the CUDA driver loads the library that CUDA_INJECTION64_PATH names inside
// cuInit and calls InitializeInjection. libtorch is loaded by then and no context exists yet, which is the best moment
// to begin. And how NVTX comes to us: each library that uses it loads what NVTX_INJECTION64_PATH names at its first
// NVTX call and calls InitializeInjectionNvtx2.
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "base/log.h"
#include "gpuperf/gpuperf.h"
#include "session/options.h"
#include "session/session.h"
#include "source/nvtx_source.h"

namespace {

namespace nvtx = gpuperf::nvtx;

// The injection of the tool that had NVTX_INJECTION64_PATH before us.
bool AttachChained(nvtx::GetExportTable get_export_table) {
  const char* path = std::getenv("GPUPERF_NVTX_CHAIN");
  void* library = path == nullptr || *path == '\0' ? nullptr : dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return false;
  auto* initialize = reinterpret_cast<int (*)(nvtx::GetExportTable)>(dlsym(library, "InitializeInjectionNvtx2"));
  return initialize != nullptr && initialize(get_export_table) != 0;
}

}  // namespace

extern "C" int InitializeInjection(void) {
  using gpuperf::base::Log;
  using gpuperf::base::LogLevel;
  const gpuperf_status status = gpuperf::session::Start(nullptr, 0, gpuperf::session::EntryWay::kInjection);
  if (status == GPUPERF_OK) {
    // Runs before the driver's own exit functions, which were registered before us. Python's atexit comes earlier
    // still.
    std::atexit(gpuperf_at_exit);
  } else if (status != GPUPERF_DISABLED && status != GPUPERF_ALREADY_RUNNING) {
    Log(LogLevel::kError, "not recording: %s", gpuperf::session::LastError().c_str());
  }
  return 1;
}

extern "C" int InitializeInjectionNvtx2(nvtx::GetExportTable get_export_table) {
  if (gpuperf::session::NvtxWanted()) return gpuperf::source::AttachNvtx(get_export_table, AttachChained) ? 1 : 0;
  return AttachChained(get_export_table) ? 1 : 0;
}
