// A lock-free set of few 64-bit values, for CUPTI callbacks. Any thread; fixed memory. 0 marks a free slot and is never
// in it. A look costs one load for each slot that was ever in use.
#ifndef GPUPERF_SOURCE_SMALL_SET_H_
#define GPUPERF_SOURCE_SMALL_SET_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpuperf::source {

template <size_t kCapacity>
class SmallSet {
 public:
  // False: there is no room, or the value is 0.
  bool Insert(uint64_t value) noexcept {
    if (value == 0) return false;
    if (Contains(value)) return true;
    for (size_t i = 0; i < kCapacity; ++i) {
      uint64_t none = 0;
      // Before the value: who looks from now on looks here, too.
      size_t used = used_.load(std::memory_order_relaxed);
      while (used <= i && !used_.compare_exchange_weak(used, i + 1, std::memory_order_relaxed)) {
      }
      if (slots_[i].compare_exchange_strong(none, value, std::memory_order_release)) return true;
    }
    return false;
  }
  bool Contains(uint64_t value) const noexcept {
    if (value == 0) return false;
    const size_t used = used_.load(std::memory_order_relaxed);
    for (size_t i = 0; i < used; ++i) {
      if (slots_[i].load(std::memory_order_acquire) == value) return true;
    }
    return false;
  }
  void Erase(uint64_t value) noexcept {
    // All of them: two threads that insert at once may leave it twice.
    for (auto& slot : slots_) {
      uint64_t expected = value;
      if (slot.load(std::memory_order_relaxed) == value) {
        slot.compare_exchange_strong(expected, 0, std::memory_order_relaxed);
      }
    }
  }
  void Clear() noexcept {
    for (auto& slot : slots_) slot.store(0, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, kCapacity> slots_{};
  std::atomic<size_t> used_{0};
};

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_SMALL_SET_H_
