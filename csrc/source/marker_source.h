// Markers of the user's: steps, annotations, ranges, marks and counters, into the calling thread's ring.
// Any thread, never blocking. Names longer than ring::kMaxNameBytes are cut. While no session is active: nothing.
#ifndef GPUPERF_SOURCE_MARKER_SOURCE_H_
#define GPUPERF_SOURCE_MARKER_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ring/app_names.h"
#include "ring/event_record.h"

namespace gpuperf::source {

void EmitStep(int64_t samples, int64_t tokens) noexcept;
// What an annotation, range or mark is called, and by whom. Lives as long as what it points to.
struct Label {
  Label() noexcept = default;
  Label(const char* text) noexcept : name(text) {}         // NOLINT(google-explicit-constructor): a name is a label
  Label(const std::string& text) noexcept : name(text) {}  // NOLINT(google-explicit-constructor)
  explicit Label(std::string_view text, ring::DomainIndex of = ring::kOwnDomain,
                 const ring::MarkerAttributes* with = nullptr) noexcept
      : name(text), domain(of), attributes(with) {}

  std::string_view name;
  ring::DomainIndex domain = ring::kOwnDomain;
  const ring::MarkerAttributes* attributes = nullptr;  // nullptr: nothing beside the name
};

// Of the calling thread; nest by domain. Both return the level, 0 the outermost, -1: no session, or nothing is open.
int EmitAnnotationBegin(const Label& label) noexcept;
int EmitAnnotationEnd(ring::DomainIndex domain = ring::kOwnDomain) noexcept;
// Of the process: `id` is the application's alone among those open; the end may come from any thread.
void EmitRangeStart(uint64_t id, const Label& label) noexcept;
void EmitRangeEnd(uint64_t id) noexcept;
void EmitMark(const Label& label) noexcept;
// A name that could not be kept.
void CountLostName() noexcept;

void EmitCounter(std::string_view name, double value) noexcept;

// The flush thread's own findings.
void EmitResource(const ring::ResourceEvent& event) noexcept;
void EmitClockPair(uint64_t host_ns, uint64_t device_ns, uint32_t width_ns) noexcept;
void EmitCuptiDropped(uint64_t records) noexcept;

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_MARKER_SOURCE_H_
