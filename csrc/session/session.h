// The session: the one thing in a process that captures.
//
//        Start            Stop                       Start
//   kIdle ────→ kRunning ────→ kStopped ───────────────→ kRunning …
//                  │  Yield                  any state, in a forked child
//                  └──────→ kYielded         ────────────────────────→ kForked (for ever)
//
// Process-wide and immortal: CUPTI and CUDA threads may call into the library until the process is gone. All functions
// may be called from any thread and are serialised; none may be called from a CUPTI callback. No function throws.
#ifndef GPUPERF_SESSION_SESSION_H_
#define GPUPERF_SESSION_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpuperf/gpuperf.h"

namespace gpuperf::session {

// How the library came into the process.
enum class EntryWay { kApi, kInjection };

gpuperf_status Start(const gpuperf_option* options, size_t count, EntryWay way) noexcept;
// `yield_to`: nullptr for a plain stop, else for whom capture steps aside.
gpuperf_status Stop(const char* yield_to) noexcept;
// See gpuperf_at_exit.
void AtExit() noexcept;
gpuperf_status Flush(uint32_t timeout_ms) noexcept;
gpuperf_state State() noexcept;
gpuperf_status Stats(gpuperf_stats* stats) noexcept;
std::string OutputPath() noexcept;
std::string LastError() noexcept;
void SetVersion(const char* key, const char* value) noexcept;

}  // namespace gpuperf::session

#endif  // GPUPERF_SESSION_SESSION_H_
