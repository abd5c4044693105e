// Zeroed buffers for CUPTI's activity records, and the queue of the filled ones.
//
//   CUPTI, in an application thread:  Take()      → a buffer, never blocking
//   CUPTI, in a thread of its own:    Complete()  → into the queue
//   collector:                        Next()      → a filled buffer;  Return() → zeroed again and free
//
// A slot is 1 MiB of address space of which CUPTI is told to use as much as holds about 0.3 s of that thread's records
// (16 KiB … 1 MiB): under steady load CUPTI gives a buffer back only when it is full, so its size bounds how old data
// can get. Only touched pages cost memory; the pool bounds them all together.
//
// All lock-free. Buffers of an earlier session may come back at any time: memory is never unmapped.
#ifndef GPUPERF_RING_BUFFER_POOL_H_
#define GPUPERF_RING_BUFFER_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ring/thread_state.h"

namespace gpuperf::ring {

struct ActivityBuffer {
  uint8_t* data = nullptr;
  size_t size = 0;               // what CUPTI was told
  size_t valid = 0;              // bytes with records
  uint64_t taken_ns = 0;         // host time of Take and …
  uint64_t filled_ns = 0;        // … of Complete
  ThreadState* owner = nullptr;  // thread that asked for it, may be nullptr
};

class BufferPool {
 public:
  static constexpr size_t kSlotBytes = size_t{1} << 20;
  static constexpr size_t kMinBytes = size_t{16} << 10;
  static constexpr size_t kFirstBytes = size_t{64} << 10;  // while the rate is not known
  static constexpr size_t kSlots = 256;
  static constexpr uint64_t kHoldNs = 300'000'000;  // a buffer shall hold at most this much time

  // `limit_bytes`: of buffers that are out, all together. False: no address space.
  bool Open(size_t limit_bytes) noexcept;

  // Hot path of CUPTI. False: the pool is empty (and the loss is the caller's to count).
  bool Take(ThreadState* owner, uint8_t** data, size_t* size) noexcept;

  // Outside the limits: for a CUPTI that would crash on a refusal. False only if the kernel has no memory.
  bool TakeBeyondLimit(ThreadState* owner, uint8_t** data, size_t* size) noexcept;

  // False: nobody drains the queue and it is full; the records are lost (and counted, if there are any).
  bool Complete(uint8_t* data, size_t size, size_t valid) noexcept;

  // Collector.
  bool Next(ActivityBuffer* buffer) noexcept;
  void Return(const ActivityBuffer& buffer) noexcept;

  // Buffers with records that Complete had no room for. How many records they held nobody has looked at.
  LossCell& lost_buffers() noexcept { return lost_buffers_; }

  uint64_t peak_bytes() const noexcept { return peak_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    std::atomic<bool> taken{false};
    std::atomic<ThreadState*> owner{nullptr};
    std::atomic<uint64_t> taken_ns{0};
    size_t touched = 0;  // bytes that may be resident; collector's
  };
  struct Entry {
    std::atomic<uint64_t> turn{0};
    ActivityBuffer buffer;
  };
  static constexpr size_t kQueue = 1024;

  static size_t SizeFor(const ThreadState* owner) noexcept;
  Slot* SlotOf(const uint8_t* data) noexcept;

  std::atomic<uint8_t*> memory_{nullptr};
  std::array<Slot, kSlots> slots_{};
  std::atomic<size_t> limit_bytes_{0};
  std::atomic<size_t> out_bytes_{0};
  std::atomic<uint64_t> peak_bytes_{0};
  LossCell lost_buffers_;
  size_t resident_bytes_ = 0;  // collector's
  // Bounded queue of many producers and one consumer: an entry is free for position p when turn == p, filled when
  // turn == p + 1.
  std::array<Entry, kQueue> queue_{};
  alignas(128) std::atomic<uint64_t> tail_{0};
  alignas(128) uint64_t head_ = 0;
};

// The one pool of the process, immortal.
BufferPool& Pool() noexcept;

}  // namespace gpuperf::ring

#endif  // GPUPERF_RING_BUFFER_POOL_H_
