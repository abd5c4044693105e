// A ring of records (event_record.h) between the one thread that writes and the collector that reads.
//
// The producer (an application thread, hot path) calls Reserve and Commit: no lock, no allocation, no system call; when
// the ring is full Reserve says so and the event is lost (drop newest), never waited for. The consumer calls Drain.
// Memory is the owner's: a power of two of zeroed bytes that outlives the ring.
//
// Positions only grow; position & mask is the offset. A record never wraps: where it would, a padding header fills the
// rest of the ring and the record starts at offset 0. Producer and consumer fields lie on cache-line pairs of their own
// (128 bytes: the adjacent-line prefetcher pulls two), and the producer looks at the consumer's position only when its
// cached copy says "full".
#ifndef GPUPERF_RING_SPSC_BYTE_RING_H_
#define GPUPERF_RING_SPSC_BYTE_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ring/event_record.h"

namespace gpuperf::ring {

class SpscByteRing {
 public:
  // `data` is 8-byte aligned and `capacity` a power of two ≥ 4096.
  SpscByteRing(std::byte* data, size_t capacity) noexcept : data_(data), capacity_(capacity) {}
  SpscByteRing(const SpscByteRing&) = delete;
  SpscByteRing& operator=(const SpscByteRing&) = delete;

  // Producer. Room for a record of `bytes` (a multiple of 8, ≤ kMaxRecordBytes) with `headroom` bytes free behind it,
  // so that a record of up to `headroom` bytes that follows cannot fail (the exit of a call whose enter went in).
  // nullptr: full.
  std::byte* Reserve(size_t bytes, size_t headroom = 0) noexcept {
    const size_t offset = write_ & (capacity_ - 1);
    const size_t to_end = capacity_ - offset;
    const size_t padding = to_end < bytes ? to_end : 0;
    // The record that follows may need padding of its own: at most its size.
    const size_t needed = padding + bytes + 2 * headroom;
    if (write_ + needed - cached_read_ > capacity_) {
      cached_read_ = read_.load(std::memory_order_acquire);
      if (write_ + needed - cached_read_ > capacity_) return nullptr;
    }
    if (padding != 0) {
      // Its first word only: there may be no room for more.
      const RecordHeader header{0, RecordKind::kPadding, 0, 0, 0};
      std::memcpy(data_ + offset, &header, 8);
      write_ += padding;
    }
    pending_ = bytes;
    return data_ + (write_ & (capacity_ - 1));
  }

  // Producer. Publishes the record reserved last.
  void Commit() noexcept {
    write_ += pending_;
    published_.store(write_, std::memory_order_release);
  }

  // Consumer. Calls visit(const RecordHeader&, const std::byte* payload) for each published record; returns bytes read.
  template <typename Visitor>
  size_t Drain(Visitor&& visit) {
    const uint64_t end = published_.load(std::memory_order_acquire);
    const uint64_t begin = read_.load(std::memory_order_relaxed);
    uint64_t position = begin;
    while (position != end) {
      const size_t offset = position & (capacity_ - 1);
      const auto* header = reinterpret_cast<const RecordHeader*>(data_ + offset);
      if (header->kind == RecordKind::kPadding) {
        position += capacity_ - offset;
        continue;
      }
      position += size_t{header->words} * 8;
      visit(*header, data_ + offset + sizeof(RecordHeader));
    }
    if (position != begin) read_.store(position, std::memory_order_release);
    return position - begin;
  }

  size_t capacity() const noexcept { return capacity_; }
  // Consumer: bytes published and not yet read.
  size_t Pending() const noexcept {
    return published_.load(std::memory_order_acquire) - read_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kLine = 128;

  // Read by both, written by nobody.
  alignas(kLine) std::byte* const data_;
  const size_t capacity_;
  // Producer's.
  alignas(kLine) uint64_t write_ = 0;
  uint64_t cached_read_ = 0;
  size_t pending_ = 0;
  // Written by the producer, read by the consumer.
  alignas(kLine) std::atomic<uint64_t> published_{0};
  // Written by the consumer, read by the producer.
  alignas(kLine) std::atomic<uint64_t> read_{0};
};

}  // namespace gpuperf::ring

#endif  // GPUPERF_RING_SPSC_BYTE_RING_H_
