// Whether a session captures now: the first thing that every producer asks. Written by the session, read everywhere.
#ifndef GPUPERF_SOURCE_ACTIVE_H_
#define GPUPERF_SOURCE_ACTIVE_H_

#include <atomic>

namespace gpuperf::source {

extern std::atomic<bool> g_active;

inline bool Active() noexcept { return g_active.load(std::memory_order_relaxed); }
void SetActive(bool active) noexcept;

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_ACTIVE_H_
