#include "ring/thread_state.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "base/clock.h"
#include "base/fork_guard.h"
#include "base/pages.h"

namespace gpuperf::ring {

__thread ThreadState* t_state __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr size_t kPage = 4096;
// All rings together stay near this however many threads call CUDA: what is left of it is shared out in ever smaller
// rings. At the smallest a thread may still make some 100,000 calls a second.
constexpr size_t kRingBudget = size_t{32} << 20;
constexpr size_t kRingShare = 8;  // of what is left, a ring gets 1/8 at most
constexpr size_t kSmallestRing = size_t{64} << 10;

std::atomic<size_t> g_ring_bytes{512 * 1024};
std::atomic<size_t> g_total_bytes{0};
std::atomic<ThreadState*> g_all{nullptr};
LossCell g_unregistered;

void OnThreadExit(void* state) {
  t_state = Gone();
  if (base::InForkedChild()) return;  // the state stayed with the parent (MADV_DONTFORK)
  static_cast<ThreadState*>(state)->retired.store(true, std::memory_order_release);
}

// Calls OnThreadExit when the calling thread ends. False: the process has no thread-specific key left.
bool WatchThreadExit(ThreadState* state) noexcept {
  struct Key {
    pthread_key_t key{};
    bool made = pthread_key_create(&key, OnThreadExit) == 0;
  };
  static const Key kKey;
  return kKey.made && pthread_setspecific(kKey.key, state) == 0;
}

// Claims the memory of a next ring with `state_bytes` beside it, and says how large the ring may be.
size_t ClaimRing(size_t state_bytes) noexcept {
  const size_t wanted = g_ring_bytes.load(std::memory_order_relaxed);
  size_t total = g_total_bytes.load(std::memory_order_relaxed);
  size_t bytes = 0;
  do {
    const size_t share = total < kRingBudget ? (kRingBudget - total) / kRingShare : 0;
    bytes = wanted;
    while (bytes > share && bytes > kSmallestRing) bytes /= 2;
  } while (!g_total_bytes.compare_exchange_weak(total, total + bytes + state_bytes, std::memory_order_relaxed));
  return bytes;
}

// A walk of all states, once in a thread's life: no second list to keep, no bound on how many wait, and one exchange
// decides who gets a state, so no thread ever waits for another.
ThreadState* TakeRecycled() noexcept {
  for (ThreadState* state = All(); state != nullptr; state = state->next) {
    if (!state->unused.load(std::memory_order_relaxed)) continue;
    if (state->unused.exchange(false, std::memory_order_acquire)) return state;
  }
  return nullptr;
}

ThreadState* Make() noexcept {
  const size_t state_bytes = (sizeof(ThreadState) + kPage - 1) / kPage * kPage;
  const size_t ring_bytes = ClaimRing(state_bytes);
  void* pages = base::MapPages(state_bytes + ring_bytes, /*resident=*/true);
  if (pages == nullptr) {
    g_total_bytes.fetch_sub(state_bytes + ring_bytes, std::memory_order_relaxed);
    return nullptr;
  }
  auto* state = new (pages) ThreadState(static_cast<std::byte*>(pages) + state_bytes, ring_bytes);
  state->next = g_all.load(std::memory_order_relaxed);
  while (!g_all.compare_exchange_weak(state->next, state, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return state;
}

}  // namespace

ThreadState* CurrentSlow() noexcept {
  if (t_state == Gone() || base::InForkedChild()) return nullptr;
  ThreadState* state = TakeRecycled();
  if (state == nullptr) state = Make();
  if (state != nullptr && !WatchThreadExit(state)) {  // it would never be drained to its end
    state->unused.store(true, std::memory_order_release);
    state = nullptr;
  }
  if (state == nullptr) {
    g_unregistered.Add(base::NowNs());
    return nullptr;
  }
  state->open_call = OpenCall{};
  state->annotations.fill(AnnotationState{});
  state->symbols.fill(nullptr);
  state->retired.store(false, std::memory_order_relaxed);
  state->activity_rate.store(0, std::memory_order_relaxed);
  state->tid.store(static_cast<uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
  state->generation.fetch_add(1, std::memory_order_release);
  t_state = state;
  return state;
}

ThreadState* All() noexcept { return g_all.load(std::memory_order_acquire); }

void Recycle(ThreadState* state) noexcept {
  state->retired.store(false, std::memory_order_relaxed);
  state->unused.store(true, std::memory_order_release);
}

void SetRingBytes(size_t bytes) noexcept { g_ring_bytes.store(bytes, std::memory_order_relaxed); }

size_t TotalRingBytes() noexcept { return g_total_bytes.load(std::memory_order_relaxed); }

LossCell& UnregisteredLoss() noexcept { return g_unregistered; }

void ForgetInForkedChild() noexcept { t_state = Gone(); }

}  // namespace gpuperf::ring
