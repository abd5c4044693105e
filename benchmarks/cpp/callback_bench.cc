// Our code in one CUDA call: the enter and the exit callback together, for a kernel launch, timed pair by pair while
// the ring is drained every 5 ms on another core. CUPTI's own cost is not in it.
//
// `callback.cold`: the four callbacks of a runtime launch with the driver's launch inside, after as much other memory
// was read as fits into the core's second-level cache, as a framework does between two launches.
#include <atomic>
#include <chrono>
#include <thread>

#include "base/stamp_clock.h"
#include "cupti/call_table.h"
#include "report.h"
#include "ring/thread_state.h"
#include "source/active.h"
#include "source/call_source.h"

namespace {

constexpr size_t kCalls = 500'000;
constexpr uint32_t kLaunchKernel = 211;
constexpr uint64_t kPauseNs = 2000;  // a thread cannot launch faster
constexpr size_t kNames = 64;
constexpr uint32_t kCuLaunchKernel = 307;
constexpr size_t kColdCalls = 20'000;
constexpr size_t kOtherMemory = size_t{1} << 20;

}  // namespace

int main() {
  namespace cupti = gpuperf::cupti;
  const auto& call = cupti::kRuntimeCalls[kLaunchKernel];
  std::vector<uint64_t> params(call.params_size / 8 + 1);
  std::vector<std::string> names;
  for (size_t i = 0; i < kNames; ++i) names.push_back("_Z6kernelILi" + std::to_string(i) + "EEvPfS0_iii");
  uint32_t result = 0;
  cupti::CallbackData data{};
  data.params = params.data();
  data.context_id = 1;

  gpuperf::ring::SetRingBytes(size_t{4} << 20);  // a busy machine may take the consumer off its core for long
  gpuperf::base::ChooseStamps();
  gpuperf::source::SetActive(true);
  std::atomic<bool> done{false};
  uint64_t read = 0;
  std::thread consumer([&] {
    const auto drain = [&] {
      for (auto* state = gpuperf::ring::All(); state != nullptr; state = state->next) {
        state->ring.Drain([&](const gpuperf::ring::RecordHeader&, const std::byte*) { ++read; });
      }
    };
    while (!done.load(std::memory_order_acquire)) {
      drain();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    drain();
  });

  std::vector<uint64_t> ticks(kCalls);
  for (size_t i = 0; i < kCalls; ++i) {
    data.correlation = static_cast<uint32_t>(i) + 1;
    data.symbol_name = names[i % kNames].c_str();
    const uint64_t begin = gpuperf::base::Ticks();
    data.site = cupti::kSiteEnter;
    data.return_value = nullptr;
    gpuperf::source::OnCallback(nullptr, cupti::kRuntimeDomain, kLaunchKernel, &data);
    data.site = cupti::kSiteExit;
    data.return_value = &result;
    gpuperf::source::OnCallback(nullptr, cupti::kRuntimeDomain, kLaunchKernel, &data);
    ticks[i] = gpuperf::base::Ticks() - begin;
    gpuperf::benchmarks::Pause(kPauseNs);
  }
  std::vector<uint64_t> cold(kColdCalls);
  std::vector<uint64_t> other(kOtherMemory / 8, 1);
  uint64_t sum = 0;
  for (size_t i = 0; i < kColdCalls; ++i) {
    for (size_t at = 0; at < other.size(); at += 8) sum += other[at];
    data.correlation = static_cast<uint32_t>(kCalls + i) + 1;
    data.symbol_name = names[i % kNames].c_str();
    const uint64_t begin = gpuperf::base::Ticks();
    for (const uint32_t site : {cupti::kSiteEnter, cupti::kSiteExit}) {
      const bool enter = site == cupti::kSiteEnter;
      data.site = site;
      data.return_value = enter ? nullptr : &result;
      for (const bool runtime : {enter, !enter}) {
        gpuperf::source::OnCallback(nullptr, runtime ? cupti::kRuntimeDomain : cupti::kDriverDomain,
                                    runtime ? kLaunchKernel : kCuLaunchKernel, &data);
      }
    }
    cold[i] = gpuperf::base::Ticks() - begin;
  }
  if (sum == 0) return 1;
  done.store(true, std::memory_order_release);
  consumer.join();
  if (read < 2 * (kCalls + kColdCalls)) return 1;
  gpuperf::benchmarks::PrintLatencies("callback.p50", "callback.p999", "callback.timer", ticks);
  gpuperf::benchmarks::PrintLatencies("callback.cold.p50", "callback.cold.p999", "callback.cold.timer", cold);
  return 0;
}
