// How a capture lets go of the GPU and of CUPTI. Both may wait for the GPU, which may never answer (a kernel that
// hangs, a collective whose partner died), so both run on a thread of their own and are waited for only so long: no job
// may hang at its end because of us. Called by the session, once per capture.
#ifndef GPUPERF_SESSION_DETACH_H_
#define GPUPERF_SESSION_DETACH_H_

#include <cstddef>
#include <cstdint>

#include "cupti/cupti_api.h"
#include "session/driver.h"

namespace gpuperf::session {

enum class GpuState {
  kIdle,    // all work is done
  kBusy,    // not within the limit
  kEnding,  // CUDA is not usable any more (the process is ending): nothing of CUPTI may be called
};

// Waits for all work of the caller's current context and of every device whose primary context is active, at most
// limit_ms, then takes the finished records from CUPTI.
GpuState WaitForGpu(const Driver& driver, const cupti::Api& api, uint64_t limit_ms);

struct Detachment {
  bool done = false;       // false: CUPTI did not come back in time, and is still ours, for ever
  bool finalized = false;  // the speed is back
  size_t dropped = 0;      // records that CUPTI dropped since it was asked last
  uint64_t finalize_ns = 0;
};

// Disables what the session enabled, takes the last records, gives the subscriber back and, with `finalize`, detaches
// CUPTI. `idle`: the GPU is; otherwise nothing is called that waits for it, and CUPTI stays attached.
Detachment DetachCupti(const Driver& driver, const cupti::Api& api, cupti::Subscriber subscriber, bool idle,
                       bool finalize, uint64_t limit_ms);

// Ours are zeroed, and CUPTI need not do it again in an application thread. The promise outlives us, even a finalize,
// so it must be taken back: the next client's buffers may not be.
void PromiseZeroedBuffers(const cupti::Api& api, bool promise);

// Every kind of single operations.
void DisableActivity(const cupti::Api& api);

}  // namespace gpuperf::session

#endif  // GPUPERF_SESSION_DETACH_H_
