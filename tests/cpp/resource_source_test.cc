#include "source/resource_source.h"

#include <cstring>
#include <vector>

#include "catch.h"
#include "cupti/call_table.h"
#include "ring/thread_state.h"
#include "source/active.h"
#include "source/call_source.h"

namespace cupti = gpuperf::cupti;
namespace ring = gpuperf::ring;
namespace source = gpuperf::source;

namespace {

cupti::Api FakeApi() {
  cupti::Api api;
  api.EnableCallback = [](uint32_t, cupti::Subscriber, uint32_t domain, uint32_t) {
    CHECK(domain == cupti::kResourceDomain);
    return cupti::kSuccess;
  };
  api.GetContextId = [](void*, uint32_t* id) {
    *id = 3;
    return cupti::kSuccess;
  };
  api.GetDeviceId = [](void*, uint32_t* id) {
    *id = 1;
    return cupti::kSuccess;
  };
  api.GetStreamId = [](void*, void* stream, uint8_t, uint32_t* id) {
    *id = stream == nullptr ? 0 : 14;
    return cupti::kSuccess;
  };
  return api;
}

std::vector<ring::ResourceEvent> Drain() {
  std::vector<ring::ResourceEvent> events;
  ring::Current()->ring.Drain([&](const ring::RecordHeader& header, const std::byte* payload) {
    if (header.kind != ring::RecordKind::kResource) return;
    std::memcpy(&events.emplace_back(), payload, sizeof(ring::ResourceEvent));
  });
  return events;
}

void Callback(uint32_t cbid, void* context, uint64_t stream) {
  const cupti::ResourceData data{context, stream, nullptr};
  source::OnCallback(nullptr, cupti::kResourceDomain, cbid, reinterpret_cast<const cupti::CallbackData*>(&data));
}

}  // namespace

TEST_CASE("contexts and streams are told with CUDA's handles and CUPTI's ids") {
  Drain();
  int context = 0;
  cupti::Api api = FakeApi();
  SECTION("as a rule") {}
  SECTION("of a library without the functions, as far as it goes") {
    api.GetContextId = nullptr;
    api.GetDeviceId = nullptr;
    api.GetStreamId = nullptr;
  }
  source::EnableResources(api, nullptr);
  source::SetActive(true);
  Callback(cupti::kContextCreated, &context, 0);
  Callback(cupti::kStreamCreated, &context, 0x77);
  Callback(cupti::kStreamDestroying, &context, 0x77);
  Callback(cupti::kContextDestroying, &context, 0);
  Callback(99, &context, 0);
  source::SetActive(false);
  const auto events = Drain();
  REQUIRE(events.size() == 4);
  CHECK(events[0].change == ring::ResourceChange::kContextCreated);
  CHECK(events[0].handle == reinterpret_cast<uintptr_t>(&context));
  CHECK(events[1].change == ring::ResourceChange::kStreamCreated);
  CHECK(events[1].handle == 0x77);
  CHECK(events[1].stream == (api.GetStreamId == nullptr ? 0 : 14));
  CHECK(events[1].context == (api.GetContextId == nullptr ? 0 : 3));
  CHECK(events[1].device == (api.GetDeviceId == nullptr ? 0 : 1));
  CHECK(events[2].change == ring::ResourceChange::kStreamDestroyed);
  CHECK(events[3].change == ring::ResourceChange::kContextDestroyed);
}
