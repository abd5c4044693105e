// Another tool that listens to NVTX: counts pushes and pops of the default domain. For tests of a chain of two.
#include <nvtx3/nvToolsExt.h>

#include <atomic>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::atomic<int> pushes{0};
std::atomic<int> pops{0};

int Push(const char*) { return pushes++; }
int Pop() {
  ++pops;
  return --pushes;
}

}  // namespace

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(Push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(Pop);
  return 1;
}

EXPORT int tool_pops() { return pops; }
