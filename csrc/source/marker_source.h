// Markers of the user's: steps, annotations, marks and counters, into the calling thread's ring.
// Any thread, never blocking. Names longer than ring::kMaxNameBytes are cut. While no session is active: nothing.
#ifndef GPUPERF_SOURCE_MARKER_SOURCE_H_
#define GPUPERF_SOURCE_MARKER_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuperf::source {

void EmitStep(int64_t samples, int64_t tokens) noexcept;
void EmitAnnotationBegin(std::string_view name) noexcept;
void EmitAnnotationEnd() noexcept;
void EmitMark(std::string_view name) noexcept;
void EmitCounter(std::string_view name, double value) noexcept;

// The flush thread's own findings.
void EmitClockPair(uint64_t host_ns, uint64_t device_ns, uint32_t width_ns) noexcept;
void EmitCuptiDropped(uint64_t records) noexcept;

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_MARKER_SOURCE_H_
