// One ThreadState per thread that writes events: its ring, its producer-side state and its counters; and the registry
// of them all.
//
// Current() and everything marked "producer" belong to the thread itself (hot path). The collector walks All(), drains
// rings, takes counters, and recycles the states of threads that ended. States are never freed: a callback that comes
// late must find memory. A thread whose thread-locals are gone, and every thread of a forked child, gets nullptr for
// good.
#ifndef GPUPERF_RING_THREAD_STATE_H_
#define GPUPERF_RING_THREAD_STATE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ring/app_names.h"
#include "ring/spsc_byte_ring.h"

namespace gpuperf::ring {

// Events that a producer had to drop, taken by the collector. Add is the producer's, Take the collector's.
class LossCell {
 public:
  // `now`: of whatever clock the cell's owner uses, 0 excluded.
  void Add(uint64_t now) noexcept {
    uint64_t none = 0;
    first_.compare_exchange_strong(none, now, std::memory_order_relaxed);
    last_.store(now, std::memory_order_relaxed);
    count_.fetch_add(1, std::memory_order_release);
  }

  // Count since the last Take, with the times of the first and the last of them.
  uint64_t Take(uint64_t* first, uint64_t* last) noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) return 0;  // asked often: the line stays the producer's
    const uint64_t count = count_.exchange(0, std::memory_order_acquire);
    *last = last_.load(std::memory_order_relaxed);
    *first = first_.exchange(0, std::memory_order_relaxed);
    if (*first == 0 || *first > *last) *first = *last;
    return count;
  }

 private:
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> first_{0};
  std::atomic<uint64_t> last_{0};
};

// The outermost CUDA call that the thread is in. Producer.
struct OpenCall {
  bool active = false;
  bool recorded = false;  // its enter went into the ring
  uint32_t domain = 0;
  uint32_t cbid = 0;
  uint32_t correlation = 0;
};

// Where in its annotations of one domain the thread is. Producer.
struct AnnotationState {
  uint32_t session = 0;
  uint32_t depth = 0;
  uint32_t lost_depth = AnnotationPlace::kNone;
};

struct ThreadState {
  ThreadState(std::byte* data, size_t capacity) noexcept : ring(data, capacity) {}

  SpscByteRing ring;

  // Producer.
  OpenCall open_call;
  uint64_t callback_count = 0;
  uint32_t symbol_epoch = 0;
  static constexpr size_t kSymbolSlots = 1024;
  static size_t SymbolSlot(uint64_t pointer) noexcept { return (pointer * 0x9E3779B97F4A7C15ULL) >> 54; }
  std::array<const char*, kSymbolSlots> symbols{};  // names that this ring has defined, by pointer
  std::array<AnnotationState, kMostDomains> annotations{};

  // Producer writes (no read-modify-write), collector reads.
  alignas(128) std::atomic<uint64_t> callbacks{0};
  std::atomic<uint64_t> sampled_callbacks{0};
  std::atomic<uint64_t> sampled_ticks{0};
  LossCell lost_calls;
  std::atomic<uint32_t> last_lost_call{0};  // correlation id; before the loss is added
  LossCell lost_markers;

  // Set before the thread's first event; a new value for each thread that gets this state.
  std::atomic<uint32_t> generation{0};
  std::atomic<uint32_t> tid{0};
  std::atomic<bool> retired{false};  // the thread is gone; drain and recycle
  std::atomic<bool> unused{false};   // drained; the next new thread may take it

  // Collector writes, producer reads: bytes of activity records a second, 0 = not known yet.
  std::atomic<uint64_t> activity_rate{0};

  ThreadState* next = nullptr;  // of All(); constant once published
};

// This thread's state; creates or recycles one at the thread's first event. nullptr: none to be had (no memory, thread
// ending, forked child).
ThreadState* Current() noexcept;

// Head of the list of all states ever made, newest first.
ThreadState* All() noexcept;

// Collector: hands a retired and drained state to the next new thread.
void Recycle(ThreadState* state) noexcept;

// Bytes of each ring made from now on; a power of two. A process with very many threads gets smaller ones.
void SetRingBytes(size_t bytes) noexcept;

// Memory in rings.
size_t TotalRingBytes() noexcept;

// Events of threads that got no state.
LossCell& UnregisteredLoss() noexcept;

// In a forked child: forget the state of the only thread that is left.
void ForgetInForkedChild() noexcept;

// ---- implementation of the fast path

extern __thread ThreadState* t_state __attribute__((tls_model("initial-exec")));
ThreadState* CurrentSlow() noexcept;
// Marks a thread that shall have no state any more.
inline ThreadState* Gone() noexcept { return reinterpret_cast<ThreadState*>(uintptr_t{1}); }

inline ThreadState* Current() noexcept {
  ThreadState* state = t_state;
  if (__builtin_expect(reinterpret_cast<uintptr_t>(state) > 1, 1)) return state;
  return CurrentSlow();
}

}  // namespace gpuperf::ring

#endif  // GPUPERF_RING_THREAD_STATE_H_
