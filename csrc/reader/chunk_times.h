// Between which times the rows of a chunk lie, without decoding it: of each batch the base and the two columns of times
// are walked, and nothing else. For leaving out chunks that hold nothing of some stretch of time. Pure; any thread;
// never throws, whatever the bytes are.
#ifndef GPUPERF_READER_CHUNK_TIMES_H_
#define GPUPERF_READER_CHUNK_TIMES_H_

#include <cstdint>
#include <limits>

#include "absl/strings/string_view.h"

namespace gpuperf::reader {

// No row begins before `earliest` or ends after `latest`. Without rows nothing is between; what cannot be told may be
// anywhere.
struct TimeBounds {
  int64_t earliest = std::numeric_limits<int64_t>::max();
  int64_t latest = std::numeric_limits<int64_t>::min();

  // Whether a row may have some time in [begin, end), or be empty and lie there.
  bool MayTouch(int64_t begin, int64_t end) const { return earliest < end && latest >= begin; }
  void Add(int64_t begin, int64_t end) {
    if (begin < earliest) earliest = begin;
    if (end > latest) latest = end;
  }
  void AddUnknown() { Add(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()); }
};

struct ChunkTimes {
  TimeBounds device;  // kernels, copies, memory sets
  TimeBounds host;    // calls; an open one has no end
};

ChunkTimes TimesOfChunk(absl::string_view body);

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_CHUNK_TIMES_H_
