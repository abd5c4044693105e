// The baseline: a bare CUPTI client that does the same subscriptions as gpuperf and nothing else.
// libgpuperf_baseline.so is loaded with ctypes into the process that is measured; benchmarks/README.md tells the
// method.
//
// Same activity kinds, same callback ids (the very table that gpuperf subscribes from), same period of flushing, same
// promise of zeroed buffers; callbacks that return at once; buffers that go back unread. No record is ever walked,
// nothing is written. bare_stop() detaches CUPTI as gpuperf's stop does, so that modes can alternate in one process.
//
// start and stop: one thread, which has a current CUDA context. The buffer callbacks come on any thread, also CUPTI's.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cupti/call_table.h"
#include "cupti/cupti_api.h"
#include "cupti/records.h"

namespace {

using gpuperf::cupti::CallbackData;
using gpuperf::cupti::CallDescriptor;

constexpr size_t kBufferBytes = 256 << 10;
constexpr size_t kBuffers = 96;
constexpr uint32_t kZeroedAttribute = 5;  // CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER
constexpr uint32_t kForced = 1;           // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

// Memory of all sessions: prefaulted, zero. A full buffer is zeroed again by whoever completes it, which is never the
// application's thread in CUPTI 13.
class Pool {
 public:
  void Prepare() {
    if (!free_.empty() || memory_ != nullptr) return;
    memory_ = static_cast<uint8_t*>(std::aligned_alloc(4096, kBuffers * kBufferBytes));
    if (memory_ == nullptr) return;
    std::memset(memory_, 0, kBuffers * kBufferBytes);
    for (size_t i = 0; i < kBuffers; ++i) free_.push_back(memory_ + i * kBufferBytes);
  }
  uint8_t* Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return nullptr;
    uint8_t* buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  void Give(uint8_t* buffer, size_t used) {
    std::memset(buffer, 0, used);
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(buffer);
  }

 private:
  std::mutex mutex_;
  uint8_t* memory_ = nullptr;
  std::vector<uint8_t*> free_;
};

struct Client {
  const gpuperf::cupti::Api* api = nullptr;
  gpuperf::cupti::Subscriber subscriber = nullptr;
  Pool pool;
  std::thread flusher;
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  bool running = false;
  std::string error;
};

Client& TheClient() {
  static auto* client = new Client;  // lives for ever, as CUPTI's threads do
  return *client;
}

std::atomic<bool> g_detach{false};
std::atomic<bool> g_detached{false};
std::atomic<uint64_t> g_completed_bytes{0};
std::atomic<uint64_t> g_refused{0};

void OnCallback(void*, uint32_t domain, uint32_t, const CallbackData* data) noexcept {
  if (__builtin_expect(!g_detach.load(std::memory_order_relaxed), 1)) return;
  // bare_stop() called cuCtxSynchronize: the only safe place to finalize is the exit of an API call.
  if (domain != gpuperf::cupti::kDriverDomain || data->site != gpuperf::cupti::kSiteExit) return;
  if (!g_detach.exchange(false)) return;
  g_detached.store(TheClient().api->Finalize() == gpuperf::cupti::kSuccess);
}

void OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records) noexcept {
  *max_records = 0;
  *buffer = TheClient().pool.Take();
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  if (*buffer == nullptr) g_refused.fetch_add(1, std::memory_order_relaxed);
}

void OnBufferCompleted(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_size) noexcept {
  if (buffer == nullptr) return;
  g_completed_bytes.fetch_add(valid_size, std::memory_order_relaxed);
  TheClient().pool.Give(buffer, valid_size);
}

void Flush(uint32_t period_ms) {
  Client& client = TheClient();
  std::unique_lock<std::mutex> lock(client.mutex);
  while (!client.wake.wait_for(lock, std::chrono::milliseconds(period_ms), [&] { return client.stopping; })) {
    lock.unlock();
    client.api->ActivityFlushAll(0);
    lock.lock();
  }
}

bool Check(int result, const char* what) {
  if (result == gpuperf::cupti::kSuccess) return true;
  TheClient().error = std::string(what) + ": " + TheClient().api->Describe(result);
  return false;
}

void EnableCalls(const Client& client, uint32_t domain, const CallDescriptor* calls, size_t count) {
  for (uint32_t cbid = 0; cbid < count; ++cbid) {
    // Ids that this CUPTI does not know are refused; gpuperf gets the same answer.
    if (calls[cbid].kind != gpuperf::cupti::CallKind::kNotTraced) {
      client.api->EnableCallback(1, client.subscriber, domain, cbid);
    }
  }
}

}  // namespace

#define BARE_API extern "C" __attribute__((visibility("default")))

// 0 on success; else bare_error() says why.
BARE_API int bare_start(uint32_t flush_period_ms) {
  Client& client = TheClient();
  if (client.running) return 0;
  if (client.api == nullptr) client.api = gpuperf::cupti::Load("", &client.error);
  if (client.api == nullptr) return 1;
  client.pool.Prepare();
  const auto& api = *client.api;
  if (!Check(api.Subscribe(&client.subscriber, OnCallback, nullptr), "cuptiSubscribe")) return 1;
  uint8_t zeroed = 1;
  size_t size = sizeof zeroed;
  api.ActivitySetAttribute(kZeroedAttribute, &size, &zeroed);
  if (!Check(api.ActivityRegisterCallbacks(OnBufferRequested, OnBufferCompleted), "cuptiActivityRegisterCallbacks")) {
    return 1;
  }
  EnableCalls(client, gpuperf::cupti::kRuntimeDomain, gpuperf::cupti::kRuntimeCalls, gpuperf::cupti::kRuntimeCallCount);
  EnableCalls(client, gpuperf::cupti::kDriverDomain, gpuperf::cupti::kDriverCalls, gpuperf::cupti::kDriverCallCount);
  for (uint32_t kind : gpuperf::cupti::kTracedKinds) {
    if (!Check(api.ActivityEnable(kind), "cuptiActivityEnable")) return 1;
  }
  client.stopping = false;
  client.flusher = std::thread(Flush, flush_period_ms);
  client.running = true;
  return 0;
}

// Flushes, detaches CUPTI from the process; 0 on success.
BARE_API int bare_stop() {
  Client& client = TheClient();
  if (!client.running) return 0;
  client.running = false;
  {
    const std::lock_guard<std::mutex> lock(client.mutex);
    client.stopping = true;
  }
  client.wake.notify_all();
  client.flusher.join();

  using Synchronize = int (*)();
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto synchronize =
      driver == nullptr ? nullptr : reinterpret_cast<Synchronize>(dlsym(driver, "cuCtxSynchronize"));
  if (synchronize == nullptr || synchronize() != 0) {
    client.error = "no CUDA context is current in the thread that stops";
    return 1;
  }
  client.api->ActivityFlushAll(0);
  for (uint32_t kind : gpuperf::cupti::kTracedKinds) client.api->ActivityDisable(kind);
  client.api->ActivityFlushAll(kForced);
  g_detached.store(false);
  g_detach.store(true);
  synchronize();
  g_detach.store(false);
  if (!g_detached.load()) {
    client.error = "CUPTI could not be detached";
    return 1;
  }
  return 0;
}

// Bytes of records that CUPTI delivered since the process started: shows that the client really was subscribed.
BARE_API uint64_t bare_completed_bytes() { return g_completed_bytes.load(); }

// Requests for a buffer that found the pool empty.
BARE_API uint64_t bare_refused() { return g_refused.load(); }

// Host memory of the pool.
BARE_API uint64_t bare_pool_bytes() { return kBuffers * kBufferBytes; }

BARE_API const char* bare_error() { return TheClient().error.c_str(); }

// The client in a program without Python: called by the driver inside cuInit when CUDA_INJECTION64_PATH names this
// library. It stays attached to the end of the process.
BARE_API int InitializeInjection() {
  if (bare_start(200) != 0) std::fprintf(stderr, "baseline: %s\n", bare_error());
  return 1;
}
