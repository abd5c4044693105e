// CUDA graphs recorded as a whole (CUPTI's kind GRAPH_TRACE), made safe. Measured with libcupti 13.0 on an H200:
//   - while the kind is on, a launch of a graph that was instantiated without it is a segmentation fault inside
//     cuGraphLaunch; disabling the kind at the enter of that launch prevents it;
//   - a launch of a graph that was instantiated with that kind is an illegal address once CUPTI was finalized, and the
//     CUDA context is lost.
// So the graphs that were instantiated with the kind on are known here. The first launch of any other ends the level
// for the rest of the session (its graphs are recorded node by node then), and where one was instantiated CUPTI must
// stay attached for the rest of the process.
//
// Begin and End: session, one at a time. The rest: callbacks of any thread, lock-free but for the one fall-back.
#ifndef GPUPERF_SOURCE_GRAPH_LEVEL_H_
#define GPUPERF_SOURCE_GRAPH_LEVEL_H_

#include <atomic>
#include <cstdint>

#include "cupti/cupti_api.h"

namespace gpuperf::source {

// Turns the kind on, and the callbacks that it needs. Returns CUPTI's answer.
int BeginGraphLevel(const cupti::Api& api, cupti::Subscriber subscriber) noexcept;
// Turns it off if it is on; while callbacks still come.
void EndGraphLevel(const cupti::Api& api) noexcept;

// At the enter of a graph launch.
void BeforeGraphLaunch(uint64_t graph_exec) noexcept;
// CUPTI's resource callbacks.
void OnGraphResource(uint32_t cbid, const void* data) noexcept;

// base::Stamp() of the moment from which on this session's graphs are recorded node by node; 0: not so far.
const std::atomic<uint64_t>& GraphLevelFallback() noexcept;
// True once a graph was instantiated with the kind on: CUPTI must not be finalized.
bool GraphsNeedCupti() noexcept;

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_GRAPH_LEVEL_H_
