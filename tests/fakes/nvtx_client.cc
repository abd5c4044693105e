// A library that uses NVTX, as training jobs load many: header-only, with an NVTX of its own. Built twice, so that a
// process can have two.
#include <nvtx3/nvToolsExt.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int client_push(const char* domain, const char* name) {
  if (domain == nullptr) return nvtxRangePushA(name);
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name;
  return nvtxDomainRangePushEx(nvtxDomainCreateA(domain), &event);
}

EXPORT int client_pop(const char* domain) {
  return domain == nullptr ? nvtxRangePop() : nvtxDomainRangePop(nvtxDomainCreateA(domain));
}

EXPORT void client_mark(const char* name) { nvtxMarkA(name); }
EXPORT uint64_t client_start(const char* name) { return nvtxRangeStartA(name); }
EXPORT void client_end(uint64_t range) { nvtxRangeEnd(range); }
