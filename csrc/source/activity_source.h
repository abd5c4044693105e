// The device side: CUPTI's two buffer callbacks. Both only move a buffer between the pool and CUPTI; records are read
// by the collector. Called by CUPTI from application threads (request) and from its own (completion). Lock-free.
#ifndef GPUPERF_SOURCE_ACTIVITY_SOURCE_H_
#define GPUPERF_SOURCE_ACTIVITY_SOURCE_H_

#include <cstddef>
#include <cstdint>

#include "ring/thread_state.h"

namespace gpuperf::source {

void OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records) noexcept;
void OnBufferCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid_size) noexcept;

// Whether this CUPTI takes "no" for an answer (12.9 and later); earlier ones crash on it and get memory beyond the
// pool.
void SetMayRefuseBuffers(bool may_refuse) noexcept;

// Requests that were refused because the pool was empty.
ring::LossCell& RefusedBuffers() noexcept;

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_ACTIVITY_SOURCE_H_
