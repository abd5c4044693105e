// LD_PRELOAD=$(gpuperf lib): this library is in every process of the job from its start, Python or not, and tells the
// CUDA driver and NVTX's clients where to find it. Nothing else happens before CUDA is initialised: in a process that
// never touches CUDA the constructor below is all that runs.
#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gpuperf/gpuperf.h"
#include "session/options.h"

namespace {

constexpr std::string_view kLibraryName = "libgpuperf.so";

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view Value(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? std::string_view() : text;
}

// LD_PRELOAD is a list with colons or spaces between.
bool IsPreloaded() {
  for (std::string_view rest = Value("LD_PRELOAD"); !rest.empty();) {
    const size_t end = rest.find_first_of(": ");
    if (BaseName(rest.substr(0, end)) == kLibraryName) return true;
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return false;
}

// Runs before main(), while the process has one thread, so it may change the environment.
__attribute__((constructor)) void TellOfOurselves() {
  if (!IsPreloaded() || gpuperf::session::DisabledByEnvironment()) return;
  Dl_info self{};
  char path[PATH_MAX];
  if (dladdr(reinterpret_cast<const void*>(&InitializeInjection), &self) == 0) return;
  if (realpath(self.dli_fname, path) == nullptr) return;
  const std::string_view injected = Value("CUDA_INJECTION64_PATH");
  if (injected.empty() || injected == "none") setenv("CUDA_INJECTION64_PATH", path, /*overwrite=*/1);
  if (!gpuperf::session::NvtxWanted()) return;
  const std::string holder(Value("NVTX_INJECTION64_PATH"));
  if (BaseName(holder) == kLibraryName) return;
  if (!holder.empty()) setenv("GPUPERF_NVTX_CHAIN", holder.c_str(), /*overwrite=*/1);
  setenv("NVTX_INJECTION64_PATH", path, /*overwrite=*/1);
}

}  // namespace
