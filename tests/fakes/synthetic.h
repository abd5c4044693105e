// Makes a deterministic capture without a GPU: threads that launch kernels, copy, set, record and wait for events and
// synchronize, each CUDA runtime call with its driver call inside, and the device records of all that.
#ifndef GPUPERF_TESTS_FAKES_SYNTHETIC_H_
#define GPUPERF_TESTS_FAKES_SYNTHETIC_H_

#include <cstdint>

#include "capture.h"

namespace gpuperf::fakes {

struct SyntheticOptions {
  uint32_t threads = 2;
  uint32_t operations = 1000;  // of each thread
  uint32_t streams = 2;        // of each thread
  uint32_t devices = 1;
  uint64_t interval_ns = 10000;  // between two operations of a thread
  uint32_t operations_per_buffer = 64;
};

Capture MakeSynthetic(const SyntheticOptions& options);

}  // namespace gpuperf::fakes

#endif  // GPUPERF_TESTS_FAKES_SYNTHETIC_H_
