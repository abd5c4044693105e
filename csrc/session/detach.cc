#include "session/detach.h"

#include <memory>

#include "base/bounded.h"
#include "base/clock.h"
#include "cupti/call_table.h"
#include "source/call_source.h"

namespace gpuperf::session {
namespace {

// CUpti_ActivityAttribute and CUpti_ActivityFlag values.
constexpr uint32_t kZeroedOutActivityBuffer = 5;
constexpr uint32_t kFlushFinished = 0;
constexpr uint32_t kFlushForced = 1;
constexpr uint32_t kDriverGetVersionCall = 2;  // callback id of cuDriverGetVersion

const cupti::Api* g_api = nullptr;  // for FinalizeInCallback
uint64_t g_finalize_ns = 0;
bool g_finalized = false;

// Runs inside the exit callback of our own driver call: the one place where CUPTI can be detached safely while the
// process has CUDA graphs and other threads launch.
void FinalizeInCallback() {
  const uint64_t begin = base::NowNs();
  g_finalized = g_api->Finalize() == cupti::kSuccess;
  g_finalize_ns = base::NowNs() - begin;
}

bool Finalize(const Driver& driver, const cupti::Api& api, cupti::Subscriber subscriber) {
  g_api = &api;
  g_finalized = false;
  g_finalize_ns = 0;
  source::RunAtNextExit(FinalizeInCallback);
  void* context = nullptr;
  if (driver.CtxGetCurrent(&context) == kCudaSuccess && context != nullptr) driver.CtxSynchronize();
  if (!g_finalized) {  // no context here: a call that needs none
    api.EnableCallback(1, subscriber, cupti::kDriverDomain, kDriverGetVersionCall);
    int version = 0;
    driver.DriverGetVersion(&version);
  }
  source::RunAtNextExit(nullptr);
  return g_finalized;
}

// Makes the caller's context this thread's, if it has one.
void Adopt(const Driver& driver, void* context) {
  if (context != nullptr && driver.CtxSetCurrent != nullptr) driver.CtxSetCurrent(context);
}

}  // namespace

GpuState WaitForGpu(const Driver& driver, const cupti::Api& api, uint64_t limit_ms) {
  void* context = nullptr;
  if (driver.CtxGetCurrent(&context) == kCudaDeinitialized) return GpuState::kEnding;
  const auto usable = std::make_shared<bool>(true);
  const bool done = base::RunBounded("gpuperf-wait", limit_ms, [&driver, &api, context, usable] {
    const source::MuteThisThread mute;  // our own waiting is not the job's
    Adopt(driver, context);
    *usable = SynchronizeAllDevices(driver);
    if (*usable) api.ActivityFlushAll(kFlushFinished);
  });
  if (!done) return GpuState::kBusy;
  return *usable ? GpuState::kIdle : GpuState::kEnding;
}

Detachment DetachCupti(const Driver& driver, const cupti::Api& api, cupti::Subscriber subscriber, bool idle,
                       bool finalize, uint64_t limit_ms) {
  void* context = nullptr;
  driver.CtxGetCurrent(&context);
  const auto result = std::make_shared<Detachment>();
  const bool done = base::RunBounded("gpuperf-detach", limit_ms, [=, &driver, &api] {
    const source::MuteThisThread mute;
    DisableActivity(api);
    api.ActivityFlushAll(idle ? kFlushForced : kFlushFinished);
    api.ActivityGetNumDroppedRecords(nullptr, 0, &result->dropped);
    PromiseZeroedBuffers(api, false);
    if (idle && finalize) {
      Adopt(driver, context);
      result->finalized = Finalize(driver, api, subscriber);
      result->finalize_ns = g_finalize_ns;
    }
    if (!result->finalized) api.Unsubscribe(subscriber);
  });
  if (!done) return {};
  result->done = true;
  return *result;
}

void PromiseZeroedBuffers(const cupti::Api& api, bool promise) {
  uint8_t zeroed = promise ? 1 : 0;
  size_t size = sizeof zeroed;
  api.ActivitySetAttribute(kZeroedOutActivityBuffer, &size, &zeroed);
}

void DisableActivity(const cupti::Api& api) {
  for (const uint32_t kind : cupti::kTracedKinds) api.ActivityDisable(kind);
  api.ActivityDisable(cupti::kGraphTraceKind);
}

}  // namespace gpuperf::session
