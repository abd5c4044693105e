// A lock for a few instructions of rare events inside CUPTI callbacks: no system call but the yield, no allocation.
#ifndef GPUPERF_SOURCE_TURN_H_
#define GPUPERF_SOURCE_TURN_H_

#include <atomic>
#include <thread>

namespace gpuperf::source {

class Turn {
 public:
  explicit Turn(std::atomic_flag& taken) noexcept : taken_(taken) {
    while (taken_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~Turn() { taken_.clear(std::memory_order_release); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic_flag& taken_;
};

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_TURN_H_
