#include "ring/buffer_pool.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "base/pages.h"

namespace gpuperf::ring {

BufferPool& Pool() noexcept {
  // Never destroyed: CUPTI's threads may deliver while the process exits.
  alignas(BufferPool) static std::byte storage[sizeof(BufferPool)];
  static auto* pool = new (storage) BufferPool();
  return *pool;
}

bool BufferPool::Open(size_t limit_bytes) noexcept {
  limit_bytes_.store(limit_bytes, std::memory_order_relaxed);
  if (memory_.load(std::memory_order_relaxed) != nullptr) return true;
  auto* memory = static_cast<uint8_t*>(base::MapPages(kSlots * kSlotBytes, /*resident=*/false));
  if (memory == nullptr) return false;
  for (size_t i = 0; i < kQueue; ++i) queue_[i].turn.store(i, std::memory_order_relaxed);
  memory_.store(memory, std::memory_order_release);
  return true;
}

size_t BufferPool::SizeFor(const ThreadState* owner) noexcept {
  const uint64_t rate = owner == nullptr ? 0 : owner->activity_rate.load(std::memory_order_relaxed);
  if (rate == 0) return kFirstBytes;
  const uint64_t bytes = rate * (kHoldNs / 1000) / 1'000'000;
  return std::clamp<size_t>(bytes / kMinBytes * kMinBytes, kMinBytes, kSlotBytes);
}

BufferPool::Slot* BufferPool::SlotOf(const uint8_t* data) noexcept {
  const uint8_t* memory = memory_.load(std::memory_order_relaxed);
  if (data < memory || data >= memory + kSlots * kSlotBytes) return nullptr;
  return &slots_[static_cast<size_t>(data - memory) / kSlotBytes];
}

bool BufferPool::Take(ThreadState* owner, uint8_t** data, size_t* size) noexcept {
  uint8_t* memory = memory_.load(std::memory_order_acquire);
  if (memory == nullptr) return false;
  const size_t wanted = SizeFor(owner);
  const size_t out = out_bytes_.fetch_add(wanted, std::memory_order_relaxed) + wanted;
  if (out <= limit_bytes_.load(std::memory_order_relaxed)) {
    // From the bottom, so that the same few slots stay in use and in memory.
    for (size_t i = 0; i < kSlots; ++i) {
      Slot& slot = slots_[i];
      if (slot.taken.load(std::memory_order_relaxed) || slot.taken.exchange(true, std::memory_order_acquire)) continue;
      slot.owner.store(owner, std::memory_order_relaxed);
      slot.taken_ns.store(base::NowNs(), std::memory_order_relaxed);
      *data = memory + i * kSlotBytes;
      *size = wanted;
      uint64_t peak = peak_bytes_.load(std::memory_order_relaxed);
      while (out > peak && !peak_bytes_.compare_exchange_weak(peak, out, std::memory_order_relaxed)) {
      }
      return true;
    }
  }
  out_bytes_.fetch_sub(wanted, std::memory_order_relaxed);
  return false;
}

bool BufferPool::TakeBeyondLimit(ThreadState*, uint8_t** data, size_t* size) noexcept {
  *data = static_cast<uint8_t*>(base::MapPages(kMinBytes, /*resident=*/false));
  *size = kMinBytes;
  return *data != nullptr;
}

bool BufferPool::Complete(uint8_t* data, size_t size, size_t valid) noexcept {
  ActivityBuffer buffer{data, size, valid, 0, base::NowNs(), nullptr};
  if (const Slot* slot = SlotOf(data)) {
    buffer.owner = slot->owner.load(std::memory_order_relaxed);
    buffer.taken_ns = slot->taken_ns.load(std::memory_order_relaxed);
  }
  uint64_t position = tail_.load(std::memory_order_relaxed);
  for (;;) {
    Entry& entry = queue_[position % kQueue];
    const uint64_t turn = entry.turn.load(std::memory_order_acquire);
    if (turn == position) {
      if (!tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) continue;
      entry.buffer = buffer;
      entry.turn.store(position + 1, std::memory_order_release);
      return true;
    }
    // Full: there are fewer slots than entries, so buffers beyond the limit fill it and nobody drains it.
    if (turn < position) {
      if (valid != 0) lost_buffers_.Add(buffer.filled_ns);
      if (Slot* slot = SlotOf(data)) {
        std::memset(data, 0, valid);
        out_bytes_.fetch_sub(size, std::memory_order_relaxed);
        slot->taken.store(false, std::memory_order_release);
      } else {
        base::UnmapPages(data, size);
      }
      return false;
    }
    position = tail_.load(std::memory_order_relaxed);
  }
}

bool BufferPool::Next(ActivityBuffer* buffer) noexcept {
  if (memory_.load(std::memory_order_acquire) == nullptr) return false;
  Entry& entry = queue_[head_ % kQueue];
  if (entry.turn.load(std::memory_order_acquire) != head_ + 1) return false;
  *buffer = entry.buffer;
  entry.turn.store(head_ + kQueue, std::memory_order_release);
  ++head_;
  return true;
}

void BufferPool::Return(const ActivityBuffer& buffer) noexcept {
  Slot* slot = SlotOf(buffer.data);
  if (slot == nullptr) {
    base::UnmapPages(buffer.data, buffer.size);
    return;
  }
  if (buffer.valid > slot->touched) {
    resident_bytes_ += buffer.valid - slot->touched;
    slot->touched = buffer.valid;
  }
  if (resident_bytes_ > limit_bytes_.load(std::memory_order_relaxed) / 2) {
    base::DropPages(buffer.data, kSlotBytes);
    resident_bytes_ -= slot->touched;
    slot->touched = 0;
  } else {
    std::memset(buffer.data, 0, buffer.valid);
  }
  out_bytes_.fetch_sub(buffer.size, std::memory_order_relaxed);
  slot->taken.store(false, std::memory_order_release);
}

}  // namespace gpuperf::ring
