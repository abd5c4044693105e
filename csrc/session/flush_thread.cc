#include "session/flush_thread.h"

#include <chrono>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "source/marker_source.h"

namespace gpuperf::session {
namespace {

constexpr int kClockTries = 3;
constexpr uint32_t kFinishedRecordsOnly = 0;

std::atomic<uint64_t> g_cpu_ns{0};

}  // namespace

void EmitClocks(const cupti::Api& api) {
  uint64_t best_host = 0;
  uint64_t best_device = 0;
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < kClockTries; ++i) {
    const uint64_t before = base::NowNs();
    uint64_t device = 0;
    if (api.GetTimestamp(&device) != cupti::kSuccess) return;
    const uint64_t width = base::NowNs() - before;
    if (width >= best_width) continue;
    best_width = width;
    best_host = before + width / 2;
    best_device = device;
  }
  source::EmitClockPair(best_host, best_device, static_cast<uint32_t>(best_width));
}

FlushThread::FlushThread(const cupti::Api& api, uint32_t period_ms, std::function<void()> each_round)
    : api_(api), period_ms_(period_ms), each_round_(std::move(each_round)) {}

void FlushThread::Start() {
  g_cpu_ns.store(0, std::memory_order_relaxed);
  thread_ = base::StartThread("gpuperf-flush", [this] { Run(); });
}

void FlushThread::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void FlushThread::FlushNow(uint32_t timeout_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t wanted = ++wanted_;
  wake_.notify_all();
  flushed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return done_ >= wanted || stopping_; });
}

uint64_t FlushThread::CpuNs() { return g_cpu_ns.load(std::memory_order_relaxed); }

void FlushThread::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, std::chrono::milliseconds(period_ms_), [&] { return stopping_ || wanted_ != done_; });
    if (stopping_) break;
    const uint64_t wanted = wanted_;
    lock.unlock();
    api_.ActivityFlushAll(kFinishedRecordsOnly);
    size_t dropped = 0;
    if (api_.ActivityGetNumDroppedRecords(nullptr, 0, &dropped) == cupti::kSuccess && dropped != 0) {
      source::EmitCuptiDropped(dropped);
    }
    EmitClocks(api_);
    EachRound();
    g_cpu_ns.store(base::ThreadCpuNs(), std::memory_order_relaxed);
    lock.lock();
    done_ = wanted;
    flushed_.notify_all();
  }
  lock.unlock();
  EachRound();  // a session may be over before its first round
  g_cpu_ns.store(base::ThreadCpuNs(), std::memory_order_relaxed);
}

void FlushThread::EachRound() {
  try {
    each_round_();
  } catch (const std::exception& failure) {  // want of memory must not end the job; the next round tries again
    base::Log(base::LogLevel::kInfo, "flush thread: %s", failure.what());
  }
}

}  // namespace gpuperf::session
