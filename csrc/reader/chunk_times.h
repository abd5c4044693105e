// When the earliest rows of a chunk began, without decoding it: of each batch the base and the two columns of times are
// walked, and nothing else. For leaving out chunks that hold nothing from before some time. Pure; any thread; never
// throws, whatever the bytes are.
#ifndef GPUPERF_READER_CHUNK_TIMES_H_
#define GPUPERF_READER_CHUNK_TIMES_H_

#include <cstdint>
#include <limits>

#include "absl/strings/string_view.h"

namespace gpuperf::reader {

// Bounds: no row of the chunk began earlier. The greatest time: it has no such rows; the least: cannot be told.
struct ChunkTimes {
  static constexpr int64_t kNoRows = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();

  int64_t device_ns = kNoRows;  // kernels, copies, memory sets
  int64_t host_ns = kNoRows;    // calls, finished or open
};

ChunkTimes EarliestTimes(absl::string_view body);

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_CHUNK_TIMES_H_
