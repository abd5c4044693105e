// A call that may never return, waited for only so long.
#ifndef GPUPERF_BASE_BOUNDED_H_
#define GPUPERF_BASE_BOUNDED_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>

#include "base/threads.h"

namespace gpuperf::base {

// Runs `work` on a thread of its own (`name`: at most 15 characters) and waits for its end, at most limit_ms. False: it
// has not ended; it goes on alone and must own, or never outlive, what it touches. Where the kernel has no thread for
// us it runs in the caller, unbounded.
template <typename Work>
bool RunBounded(const char* name, uint64_t limit_ms, const Work& work) {
  struct End {
    std::mutex mutex;
    std::condition_variable came;
    bool done = false;
  };
  const auto end = std::make_shared<End>();
  std::thread thread;
  try {
    thread = StartThread(name, [end, work] {
      work();
      const std::lock_guard<std::mutex> lock(end->mutex);
      end->done = true;
      end->came.notify_all();
    });
  } catch (const std::system_error&) {
    work();
    return true;
  }
  std::unique_lock<std::mutex> lock(end->mutex);
  const bool done = end->came.wait_for(lock, std::chrono::milliseconds(limit_ms), [&] { return end->done; });
  lock.unlock();
  if (done) {
    thread.join();
  } else {
    thread.detach();
  }
  return done;
}

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_BOUNDED_H_
