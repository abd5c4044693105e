// When every traced CUDA call was seen: from `begin`, when the last callback had been turned on, to `end`, when the
// session stopped listening (base::Stamp(), 0: not yet). Callbacks go on and off one by one, and CUPTI's activity
// records at other moments again, so at both ends of a session kernels are recorded whose calls nobody could see.
//
// Written by the session's thread through source, read by the collector. Never touched by a callback.
#ifndef GPUPERF_RING_CALL_SPAN_H_
#define GPUPERF_RING_CALL_SPAN_H_

#include <atomic>
#include <cstdint>

namespace gpuperf::ring {

struct CallSpan {
  std::atomic<uint64_t> begin{0};
  std::atomic<uint64_t> end{0};
};

// The one span of the process: of the session that runs, or ran last.
inline CallSpan& TracedCalls() noexcept {
  static CallSpan span;
  return span;
}

}  // namespace gpuperf::ring

#endif  // GPUPERF_RING_CALL_SPAN_H_
