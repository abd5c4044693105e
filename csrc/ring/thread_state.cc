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

std::atomic<size_t> g_ring_bytes{512 * 1024};
std::atomic<size_t> g_total_bytes{0};
std::atomic<ThreadState*> g_all{nullptr};
LossCell g_unregistered;

void OnThreadExit(void* state) {
  t_state = Gone();
  if (base::InForkedChild()) return;  // the state stayed with the parent (MADV_DONTFORK)
  static_cast<ThreadState*>(state)->retired.store(true, std::memory_order_release);
}

pthread_key_t ThreadExitKey() {
  static pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, OnThreadExit);
    return made;
  }();
  return key;
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
  const size_t ring_bytes = g_ring_bytes.load(std::memory_order_relaxed);
  const size_t state_bytes = (sizeof(ThreadState) + kPage - 1) / kPage * kPage;
  void* pages = base::MapPages(state_bytes + ring_bytes, /*resident=*/true);
  if (pages == nullptr) return nullptr;
  auto* state = new (pages) ThreadState(static_cast<std::byte*>(pages) + state_bytes, ring_bytes);
  g_total_bytes.fetch_add(state_bytes + ring_bytes, std::memory_order_relaxed);
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
  if (state == nullptr) {
    g_unregistered.Add(base::NowNs());
    return nullptr;
  }
  state->open_call = OpenCall{};
  state->annotations = AnnotationState{};
  state->symbols.fill(nullptr);
  state->retired.store(false, std::memory_order_relaxed);
  state->activity_rate.store(0, std::memory_order_relaxed);
  state->tid.store(static_cast<uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
  state->generation.fetch_add(1, std::memory_order_release);
  pthread_setspecific(ThreadExitKey(), state);
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
