// The thread that makes the CUPTI calls which may take long: it asks for finished records, for CUPTI's own count of
// dropped ones, and pairs CUPTI's clock with the host's, every `period_ms`. What it finds goes into its own ring, like
// every producer's. Never takes the GIL, blocks all signals. Owned by the session.
#ifndef GPUPERF_SESSION_FLUSH_THREAD_H_
#define GPUPERF_SESSION_FLUSH_THREAD_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "cupti/cupti_api.h"

namespace gpuperf::session {

// CUPTI's clock against the host's, the narrowest of a few tries; into the calling thread's ring.
void EmitClocks(const cupti::Api& api);

class FlushThread {
 public:
  // `each_round` runs on the thread after every flush, and once more when it ends.
  FlushThread(const cupti::Api& api, uint32_t period_ms, std::function<void()> each_round);

  void Start();
  void Stop();
  // Asks for one round now and waits for it, at most timeout_ms.
  void FlushNow(uint32_t timeout_ms);

  // CPU time so far; any thread.
  static uint64_t CpuNs();

 private:
  void Run();
  void EachRound();

  const cupti::Api& api_;
  const uint32_t period_ms_;
  const std::function<void()> each_round_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable flushed_;
  bool stopping_ = false;
  uint64_t wanted_ = 0;
  uint64_t done_ = 0;
  std::thread thread_;
};

}  // namespace gpuperf::session

#endif  // GPUPERF_SESSION_FLUSH_THREAD_H_
