#include "source/resource_source.h"

#include "cupti/call_table.h"
#include "source/graph_level.h"
#include "source/marker_source.h"

namespace gpuperf::source {
namespace {

const cupti::Api* g_api = nullptr;

void Tell(ring::ResourceChange change, const cupti::ResourceData& data) noexcept {
  const cupti::Api& api = *g_api;
  const bool is_stream =
      change == ring::ResourceChange::kStreamCreated || change == ring::ResourceChange::kStreamDestroyed;
  ring::ResourceEvent event{change, 0, 0, 0, is_stream ? data.handle : reinterpret_cast<uintptr_t>(data.context)};
  if (api.GetContextId != nullptr) api.GetContextId(data.context, &event.context);
  if (api.GetDeviceId != nullptr) api.GetDeviceId(data.context, &event.device);
  if (is_stream && api.GetStreamId != nullptr) {
    api.GetStreamId(data.context, reinterpret_cast<void*>(data.handle), /*per_thread=*/0, &event.stream);
  }
  EmitResource(event);
}

}  // namespace

void EnableResources(const cupti::Api& api, cupti::Subscriber subscriber) noexcept {
  g_api = &api;
  for (const uint32_t cbid :
       {cupti::kContextCreated, cupti::kContextDestroying, cupti::kStreamCreated, cupti::kStreamDestroying}) {
    api.EnableCallback(1, subscriber, cupti::kResourceDomain, cbid);
  }
}

void OnResource(uint32_t cbid, const void* data) noexcept {
  const auto* resource = static_cast<const cupti::ResourceData*>(data);
  switch (cbid) {
    case cupti::kContextCreated:
      return Tell(ring::ResourceChange::kContextCreated, *resource);
    case cupti::kContextDestroying:
      return Tell(ring::ResourceChange::kContextDestroyed, *resource);
    case cupti::kStreamCreated:
      return Tell(ring::ResourceChange::kStreamCreated, *resource);
    case cupti::kStreamDestroying:
      return Tell(ring::ResourceChange::kStreamDestroyed, *resource);
    default:
      OnGraphResource(cbid, data);
  }
}

}  // namespace gpuperf::source
