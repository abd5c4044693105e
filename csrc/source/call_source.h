// The launch side: CUPTI callbacks at enter and exit of the CUDA calls that the call table marks as traced.
//
// OnCallback runs inside the application's CUDA call, in its thread (hot path): it reads one clock, writes one record
// into the thread's ring and returns. A driver call under a runtime call has the same correlation id as the call around
// it; it is recognised by that and leaves before any clock or ring is touched, so each call counts once. The enter is
// published at enter: who reads live sees a thread inside a call.
#ifndef GPUPERF_SOURCE_CALL_SOURCE_H_
#define GPUPERF_SOURCE_CALL_SOURCE_H_

#include <cstdint>

#include "cupti/cupti_api.h"
#include "ring/thread_state.h"

namespace gpuperf::source {

// The subscriber function, for cuptiSubscribe.
void OnCallback(void* user_data, uint32_t domain, uint32_t cbid, const cupti::CallbackData* data) noexcept;

// Turns the callbacks of all traced ids on. Ids that the loaded library does not know are skipped. Returns how many
// are on.
uint32_t EnableTracedCalls(const cupti::Api& api, cupti::Subscriber subscriber) noexcept;

// Forgets what earlier sessions knew: captures, and which names the rings have defined. Before each session.
void ResetCallSource() noexcept;

// Runs `function` once, in this thread, at the exit of the next driver call that this thread makes and a callback sees;
// only while not Active(). The safe place for cuptiFinalize.
void RunAtNextExit(void (*function)()) noexcept;

// True while a stream of the process is known to capture a CUDA graph: nobody may synchronize the device then.
bool CapturingGraphs() noexcept;

// While it lives, this thread's CUDA calls and markers are not recorded.
class MuteThisThread {
 public:
  MuteThisThread() noexcept;
  ~MuteThisThread();
  MuteThisThread(const MuteThisThread&) = delete;
  MuteThisThread& operator=(const MuteThisThread&) = delete;

 private:
  ring::ThreadState* const state_;
};

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_CALL_SOURCE_H_
