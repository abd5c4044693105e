#include "replayer.h"

#include <cupti.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "cupti/call_table.h"
#include "layout.h"

namespace gpuperf::fakes {
namespace {

constexpr size_t kParamsBytes = 512;
constexpr size_t kConfigBytes = 256;
constexpr uint64_t kLoopPause = 1000000;

uint64_t Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

const cupti::CallDescriptor* Describe(uint32_t domain, uint32_t cbid) {
  if (domain == cupti::kRuntimeDomain) return cbid < cupti::kRuntimeCallCount ? &cupti::kRuntimeCalls[cbid] : nullptr;
  if (domain == cupti::kDriverDomain) return cbid < cupti::kDriverCallCount ? &cupti::kDriverCalls[cbid] : nullptr;
  return nullptr;
}

template <typename T>
bool Resolve(void* library, const char* name, T* function) {
  *function = reinterpret_cast<T>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

bool FakeCuptiApi::Load(std::string* error) {
  const char* named = std::getenv("GPUPERF_CUPTI");
  void* library = dlopen(named != nullptr && *named != '\0' ? named : "libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *error = dlerror();
    return false;
  }
  if (Resolve(library, "fake_cupti_configure", &configure) && Resolve(library, "fake_cupti_callback", &callback) &&
      Resolve(library, "fake_cupti_reset", &reset) && Resolve(library, "fake_cupti_push_record", &push_record) &&
      Resolve(library, "fake_cupti_set_correlation_range", &set_correlation_range) &&
      Resolve(library, "fake_cupti_get_stats", &get_stats) && Resolve(library, "cuptiGetTimestamp", &GetTimestamp)) {
    return true;
  }
  *error = "the libcupti that was found is not the stand-in; set LD_LIBRARY_PATH to its folder";
  return false;
}

// A call under way: what CUPTI keeps for the client from enter to exit.
struct Replayer::Frame {
  uint32_t domain = 0;
  uint32_t cbid = 0;
  alignas(8) uint8_t params[kParamsBytes] = {};
  alignas(8) uint8_t config[kConfigBytes] = {};
  uint64_t out = 0;
  uint64_t correlation_data = 0;
  int result = 0;
};

// One replaying thread's own state; merged at the end.
struct Replayer::Player {
  std::vector<Frame*> open;
  std::vector<Frame*> free;
  ThreadCounts counts;
  uint32_t tid = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> dispatched;
  std::map<uint32_t, uint64_t> pushed;
};

// Whose turn it is. A position counts events over all loops.
class Replayer::Order {
 public:
  Order(const Capture& capture, bool concurrent) : concurrent_(concurrent), done_(capture.thread_count, 0) {}

  // Blocks until `thread` may play the event at `position`.
  void Await(uint32_t thread, uint64_t position, bool buffer) {
    if (concurrent_ && !buffer) return;
    std::unique_lock<std::mutex> lock(mutex_);
    if (!concurrent_) {
      changed_.wait(lock, [&] { return turn_ == position; });
      return;
    }
    changed_.wait(lock, [&] {
      for (uint32_t other = 0; other < done_.size(); ++other) {
        if (other != thread && done_[other] < position) return false;
      }
      return true;
    });
  }

  // `thread` has played everything of its own before `next`, and its next event is at `own_next`.
  void Done(uint32_t thread, uint64_t next, uint64_t own_next) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      turn_ = next;
      done_[thread] = own_next;
    }
    changed_.notify_all();
  }

  bool Concurrent() const { return concurrent_; }

 private:
  const bool concurrent_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t turn_ = 0;
  std::vector<uint64_t> done_;  // position of each thread's next event
};

Replayer::Replayer(const Capture& capture, const FakeCuptiApi& api, const ReplayOptions& options)
    : capture_(capture), api_(api), options_(options) {
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
  uint64_t last_time = 0;
  first_time_ = UINT64_MAX;
  const auto see = [&](uint32_t correlation) {
    if (correlation == 0) return;
    first = std::min(first, correlation);
    last = std::max(last, correlation);
  };
  for (const CapturedEvent& event : capture_.events) {
    first_time_ = std::min(first_time_, event.time_ns);
    last_time = std::max(last_time, event.time_ns);
    if (event.type == CapturedEvent::kCallback) see(event.callback.correlation_id);
  }
  uint64_t first_start = UINT64_MAX;
  for (const CapturedRecord& record : capture_.records) {
    if (!IsDeviceKind(record.kind)) continue;
    const uint8_t* raw = capture_.bytes.data() + record.offset;
    see(Get<uint32_t>(raw, CorrelationOffset(record.kind)));
    first_start = std::min(first_start, Get<uint64_t>(raw, kStart));
  }
  if (first > last) first = last = 1;
  result_.correlation_first = first;
  result_.correlation_stride = uint64_t{last} - first + 1;
  const uint64_t all = result_.correlation_stride * options_.loops;
  result_.correlation_base = options_.wrap_correlation ? static_cast<uint32_t>(0 - all / 2) : first;
  result_.period_ns = last_time - first_time_ + kLoopPause;
  // Where CUPTI's clock stood at the first event; filled to a shift in Run().
  if (!capture_.clock_pairs.empty()) {
    const capture::ClockPairBlock& pair = capture_.clock_pairs.front();
    result_.device_shift_ns = pair.cupti_ns + first_time_ - (pair.before_ns + pair.after_ns) / 2;
  } else {
    result_.device_shift_ns = first_start;
  }
}

uint32_t Replayer::Correlation(uint32_t recorded, uint32_t loop) const {
  if (recorded == 0) return 0;
  return static_cast<uint32_t>(result_.correlation_base + (recorded - result_.correlation_first) +
                               loop * result_.correlation_stride);
}

void Replayer::WaitForPace(const CapturedEvent& event, uint32_t loop) const {
  if (options_.speed <= 0) return;
  const uint64_t offset = event.time_ns - first_time_ + loop * result_.period_ns;
  const uint64_t due = start_ns_ + static_cast<uint64_t>(static_cast<double>(offset) / options_.speed);
  if (const uint64_t now = Now(); due > now) {
    const uint64_t wait = due - now;
    timespec time{static_cast<time_t>(wait / 1000000000u), static_cast<long>(wait % 1000000000u)};
    nanosleep(&time, nullptr);
  }
}

void Replayer::PlayCallback(const CapturedEvent& event, uint32_t loop, Player* player) {
  const capture::CallbackBlock& block = event.callback;
  const cupti::CallDescriptor* call = Describe(block.domain, block.cbid);
  const bool enter = block.site == 0;
  Frame* frame = nullptr;
  const bool opened =
      !player->open.empty() && player->open.back()->domain == block.domain && player->open.back()->cbid == block.cbid;
  if (enter || !opened) {  // an exit whose enter was not recorded gets an empty frame
    if (player->free.empty()) player->free.push_back(new Frame);
    frame = player->free.back();
    player->free.pop_back();
    *frame = Frame();
    frame->domain = block.domain;
    frame->cbid = block.cbid;
    std::memcpy(frame->params, capture_.bytes.data() + event.params_offset,
                std::min<size_t>(event.params_size, kParamsBytes));
    if (call != nullptr && event.params_size != 0) {
      if (call->config >= 0 && Get<uint64_t>(frame->params, static_cast<size_t>(call->config)) != 0) {
        Put(frame->config, static_cast<size_t>(call->config_stream), block.pointed_value);
        Put<void*>(frame->params, static_cast<size_t>(call->config), frame->config);
      }
      if (call->address_out >= 0 && Get<uint64_t>(frame->params, static_cast<size_t>(call->address_out)) != 0) {
        Put<void*>(frame->params, static_cast<size_t>(call->address_out), &frame->out);
      }
    }
    player->open.push_back(frame);
  } else {
    frame = player->open.back();
  }
  if (!enter) {
    frame->result = block.return_value;
    frame->out = block.pointed_value;
  }

  CUpti_CallbackData data{};
  data.callbackSite = enter ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  data.functionName = event.function_name;
  data.functionParams = block.params_address != 0 ? frame->params : nullptr;
  data.functionReturnValue = enter ? nullptr : &frame->result;
  data.symbolName = event.symbol_name;
  std::memcpy(&data.context, &block.context, sizeof block.context);
  data.contextUid = block.context_uid;
  data.correlationData = &frame->correlation_data;
  data.correlationId = Correlation(block.correlation_id, loop);
  if (api_.callback(block.domain, block.cbid, &data) != 0) {
    if (enter) {
      ++player->counts.enters;
      ++player->dispatched[{block.domain, block.cbid}];
    } else {
      ++player->counts.exits;
    }
  }
  if (!enter) {
    player->open.pop_back();
    player->free.push_back(frame);
    if (options_.on_device_synchronize && event.function_name != nullptr &&
        std::strncmp(event.function_name, "cudaDeviceSynchronize", 21) == 0) {
      options_.on_device_synchronize();
    }
  }
}

void Replayer::PlayBuffer(const CapturedEvent& event, uint32_t loop, Player* player) {
  const uint64_t shift = result_.device_shift_ns + loop * result_.period_ns;
  for (size_t i = 0; i < event.record_count; ++i) {
    const CapturedRecord& record = capture_.records[event.first_record + i];
    alignas(8) uint8_t raw[kLargestRecord];
    if (record.size > sizeof raw) continue;
    std::memcpy(raw, capture_.bytes.data() + record.offset, record.size);
    if (IsDeviceKind(record.kind)) {
      const auto add = [&raw, shift](size_t offset) {
        const auto time = Get<uint64_t>(raw, offset);
        if (time != 0) Put(raw, offset, time + shift);
      };
      add(kStart);
      add(kEnd);
      if (record.kind == kKernelKind) {
        for (const size_t offset : kKernelTimes) add(offset);
        Put(raw, kKernelName, record.name);
      }
      const size_t correlation = CorrelationOffset(record.kind);
      Put(raw, correlation, Correlation(Get<uint32_t>(raw, correlation), loop));
    }
    api_.push_record(raw, record.size);
    ++player->pushed[record.kind];
  }
}

void Replayer::PlayThread(uint32_t thread, Order* order, Player* player) {
  player->tid = static_cast<uint32_t>(syscall(SYS_gettid));
  const size_t count = capture_.events.size();
  std::vector<size_t> own;
  for (size_t i = 0; i < count; ++i) {
    if (capture_.events[i].thread == thread) own.push_back(i);
  }
  const uint64_t end = uint64_t{options_.loops} * count;
  for (uint32_t loop = 0; loop < options_.loops; ++loop) {
    for (size_t at = 0; at < own.size(); ++at) {
      const CapturedEvent& event = capture_.events[own[at]];
      const uint64_t position = loop * uint64_t{count} + own[at];
      const bool run_goes_on = at > 0 && own[at - 1] + 1 == own[at];
      if (order->Concurrent() || !run_goes_on) order->Await(thread, position, event.type == CapturedEvent::kBuffer);
      WaitForPace(event, loop);
      if (event.type == CapturedEvent::kCallback) {
        PlayCallback(event, loop, player);
      } else {
        PlayBuffer(event, loop, player);
      }
      if (options_.after_event) options_.after_event(position);
      const bool last_of_run = at + 1 == own.size() || own[at + 1] != own[at] + 1;
      if (last_of_run) {
        const uint64_t own_next = at + 1 < own.size()         ? loop * uint64_t{count} + own[at + 1]
                                  : loop + 1 < options_.loops ? (loop + 1) * uint64_t{count} + own[0]
                                                              : end;
        order->Done(thread, position + 1, own_next);
      }
    }
  }
}

ReplayResult Replayer::Run() {
  uint64_t cupti_now = 0;
  api_.GetTimestamp(&cupti_now);
  result_.device_shift_ns = cupti_now - result_.device_shift_ns;
  start_ns_ = Now();
  const uint64_t ids = result_.correlation_stride * options_.loops;
  api_.set_correlation_range(result_.correlation_base, ids);

  std::vector<uint32_t> threads;
  for (const CapturedEvent& event : capture_.events) {
    if (event.thread >= threads.size()) threads.resize(event.thread + 1, 0);
    threads[event.thread] = 1;
  }
  Order order(capture_, options_.concurrent);
  std::vector<Player> players(threads.size());
  // Threads without events never hold anyone up.
  for (uint32_t thread = 0; thread < threads.size(); ++thread) {
    uint64_t first = EventCount();
    for (size_t i = 0; i < capture_.events.size(); ++i) {
      if (capture_.events[i].thread != thread) continue;
      first = i;
      break;
    }
    order.Done(thread, 0, first);
  }
  std::vector<std::thread> running;
  for (uint32_t thread = 0; thread < threads.size(); ++thread) {
    if (threads[thread] != 0) {
      running.emplace_back([this, thread, &order, &players] { PlayThread(thread, &order, &players[thread]); });
    }
  }
  for (std::thread& thread : running) thread.join();

  result_.events = EventCount();
  for (Player& player : players) {
    result_.threads.push_back(player.counts);
    result_.tids.push_back(player.tid);
    for (const auto& [id, count] : player.dispatched) {
      const char* name = cupti::CallName(id.first, id.second);
      result_.dispatched[(id.first == cupti::kRuntimeDomain ? "runtime:" : "driver:") +
                         std::string(name != nullptr ? name : std::to_string(id.second))] += count;
    }
    for (const auto& [kind, count] : player.pushed) result_.pushed[kind] += count;
    for (Frame* frame : player.open) delete frame;
    for (Frame* frame : player.free) delete frame;
  }
  return result_;
}

}  // namespace gpuperf::fakes
