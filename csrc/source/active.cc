#include "source/active.h"

#include "base/stamp_clock.h"
#include "ring/call_span.h"

namespace gpuperf::source {

std::atomic<bool> g_active{false};
std::atomic<uint32_t> g_session{0};

void SetActive(bool active) noexcept {
  ring::CallSpan& span = ring::TracedCalls();
  if (active) {
    g_session.fetch_add(1, std::memory_order_relaxed);
    span.begin.store(0, std::memory_order_relaxed);
    span.end.store(0, std::memory_order_relaxed);
  } else if (Active()) {
    // Before the switch: what is entered earlier is seen.
    span.end.store(base::Stamp(), std::memory_order_relaxed);
  }
  g_active.store(active, std::memory_order_release);
}

}  // namespace gpuperf::source
