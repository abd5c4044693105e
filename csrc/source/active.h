// Whether a session captures now: the first thing that every producer asks. Written by the session, read everywhere.
#ifndef GPUPERF_SOURCE_ACTIVE_H_
#define GPUPERF_SOURCE_ACTIVE_H_

#include <atomic>
#include <cstdint>

namespace gpuperf::source {

extern std::atomic<bool> g_active;
extern std::atomic<uint32_t> g_session;  // number of the session that runs, or ran last

inline bool Active() noexcept { return g_active.load(std::memory_order_relaxed); }
void SetActive(bool active) noexcept;

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_ACTIVE_H_
