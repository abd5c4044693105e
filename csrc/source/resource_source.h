// Contexts, streams and executable graphs as CUDA makes and destroys them: CUPTI's resource callbacks. Few in a run.
// Called from application threads, in their CUDA calls; one record into the thread's ring.
#ifndef GPUPERF_SOURCE_RESOURCE_SOURCE_H_
#define GPUPERF_SOURCE_RESOURCE_SOURCE_H_

#include <cstdint>

#include "cupti/cupti_api.h"

namespace gpuperf::source {

// Turns the callbacks for contexts and streams on. Session; a library that refuses them goes without.
void EnableResources(const cupti::Api& api, cupti::Subscriber subscriber) noexcept;

// The callback's part in this domain; `data` is CUPTI's ResourceData.
void OnResource(uint32_t cbid, const void* data) noexcept;

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_RESOURCE_SOURCE_H_
