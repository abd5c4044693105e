#include "source/activity_source.h"

#include <atomic>

#include "base/clock.h"
#include "base/fork_guard.h"
#include "ring/buffer_pool.h"

namespace gpuperf::source {
namespace {

std::atomic<bool> g_may_refuse{true};
ring::LossCell g_refused;

}  // namespace

void OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records) noexcept {
  *max_records = 0;  // as many as fit
  *buffer = nullptr;
  *size = 0;
  if (base::InForkedChild()) return;
  // The thread's own state if it has one; CUPTI's threads need none.
  ring::ThreadState* owner = ring::t_state;
  if (owner == ring::Gone()) owner = nullptr;
  if (ring::Pool().Take(owner, buffer, size)) return;
  if (!g_may_refuse.load(std::memory_order_relaxed) && ring::Pool().TakeBeyondLimit(owner, buffer, size)) return;
  g_refused.Add(base::NowNs());
}

void OnBufferCompleted(void*, uint32_t, uint8_t* buffer, size_t size, size_t valid_size) noexcept {
  if (buffer == nullptr || base::InForkedChild()) return;
  ring::Pool().Complete(buffer, size, valid_size);  // counts what it cannot take
}

void SetMayRefuseBuffers(bool may_refuse) noexcept { g_may_refuse.store(may_refuse, std::memory_order_relaxed); }

ring::LossCell& RefusedBuffers() noexcept { return g_refused; }

}  // namespace gpuperf::source
