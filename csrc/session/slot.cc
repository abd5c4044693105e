#include "session/slot.h"

namespace gpuperf::session {
namespace {

void Ignore(void*, uint32_t, uint32_t, const cupti::CallbackData*) {}

}  // namespace

std::string SlotHolder(const cupti::Api& api) {
  if (api.SubscribeV2 == nullptr) return "";
  char holder[128] = {};
  struct {  // CUpti_SubscriberParams as CUDA 13.0 has it
    size_t struct_size;
    const char* name;
    char* old_name;
    size_t old_name_size;
  } params = {sizeof params, "gpuperf", holder, sizeof holder};
  cupti::Subscriber subscriber = nullptr;
  if (api.SubscribeV2(&subscriber, Ignore, nullptr, &params) == cupti::kSuccess) {
    api.Unsubscribe(subscriber);  // it went away just now
    return "";
  }
  return holder;
}

Slot ProbeSlot(const cupti::Api& api) {
  Slot slot;
  cupti::Subscriber subscriber = nullptr;
  const int result = api.Subscribe(&subscriber, Ignore, nullptr);
  if (result == cupti::kSuccess) {
    slot.free = true;
    api.Unsubscribe(subscriber);
  } else if (result == cupti::kMultipleSubscribers) {
    slot.holder = SlotHolder(api);
  } else {
    slot.error = api.Describe(result);
  }
  return slot;
}

}  // namespace gpuperf::session
