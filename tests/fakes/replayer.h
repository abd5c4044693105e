// Plays a capture through the stand-in libcupti: every callback on a thread of its own for each recorded thread, every
// activity record, in the recorded order, once or in a loop.
//
// Order: each thread's events come exactly in the recorded order. With `concurrent` false the threads take turns, so
// that the order across threads is the recorded one too; with it true they run freely, and a record waits only until
// everything that was recorded before it has been dispatched.
// Loop k shifts device times by k × period_ns and correlation ids by k × correlation_stride; ids are 32-bit and wrap.
#ifndef GPUPERF_TESTS_FAKES_REPLAYER_H_
#define GPUPERF_TESTS_FAKES_REPLAYER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "capture.h"
#include "fake_cupti.h"

namespace gpuperf::fakes {

// The stand-in's functions, found by name.
struct FakeCuptiApi {
  decltype(&fake_cupti_configure) configure = nullptr;
  decltype(&fake_cupti_reset) reset = nullptr;
  decltype(&fake_cupti_callback) callback = nullptr;
  decltype(&fake_cupti_push_record) push_record = nullptr;
  decltype(&fake_cupti_set_correlation_range) set_correlation_range = nullptr;
  decltype(&fake_cupti_get_stats) get_stats = nullptr;
  int (*GetTimestamp)(uint64_t*) = nullptr;

  // Loads libcupti.so.13 by the loader's search (or GPUPERF_CUPTI); false with a sentence in `error` if it is not ours.
  bool Load(std::string* error);
};

struct ReplayOptions {
  uint32_t loops = 1;
  double speed = 0;  // 1: recorded pace; 0: as fast as it goes
  bool concurrent = false;
  bool wrap_correlation = false;  // ids pass 2^32 in the middle of the replay
  // Called after every event of the replay with its number (from 0), on the thread that plays it.
  std::function<void(uint64_t)> after_event;
  // Called at the exit of every device synchronize, on its thread.
  std::function<void()> on_device_synchronize;
};

struct ThreadCounts {
  uint64_t enters = 0;  // callbacks dispatched to the client
  uint64_t exits = 0;
};

struct ReplayResult {
  std::vector<ThreadCounts> threads;
  std::vector<uint32_t> tids;
  std::map<std::string, uint64_t> dispatched;  // enters by function name, "runtime:cudaLaunchKernel"
  std::map<uint32_t, uint64_t> pushed;         // records by kind, whether or not the client took them
  uint64_t events = 0;
  uint32_t correlation_first = 0;  // recorded
  uint32_t correlation_base = 0;   // replayed in loop 0
  uint64_t correlation_stride = 0;
  uint64_t device_shift_ns = 0;  // added to device times in loop 0, modulo 2^64
  uint64_t period_ns = 0;
};

class Replayer {
 public:
  Replayer(const Capture& capture, const FakeCuptiApi& api, const ReplayOptions& options);
  uint64_t EventCount() const { return uint64_t{options_.loops} * capture_.events.size(); }
  // Blocks until everything is played.
  ReplayResult Run();

 private:
  struct Frame;
  struct Player;
  class Order;

  void PlayThread(uint32_t thread, Order* order, Player* player);
  void PlayCallback(const CapturedEvent& event, uint32_t loop, Player* player);
  void PlayBuffer(const CapturedEvent& event, uint32_t loop, Player* player);
  uint32_t Correlation(uint32_t recorded, uint32_t loop) const;
  void WaitForPace(const CapturedEvent& event, uint32_t loop) const;

  const Capture& capture_;
  const FakeCuptiApi& api_;
  const ReplayOptions options_;
  ReplayResult result_;
  uint64_t first_time_ = 0;
  uint64_t start_ns_ = 0;
};

}  // namespace gpuperf::fakes

#endif  // GPUPERF_TESTS_FAKES_REPLAYER_H_
