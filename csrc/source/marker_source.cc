#include "source/marker_source.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/stamp_clock.h"
#include "ring/thread_state.h"
#include "source/active.h"

namespace gpuperf::source {
namespace {

using ring::RecordHeader;
using ring::RecordKind;

// header, then `words`, then what the label says. False: lost.
bool Emit(RecordKind kind, uint32_t correlation, const uint64_t* words, size_t word_count,
          const Label& label) noexcept {
  ring::ThreadState* thread = ring::Current();
  if (thread == nullptr) return false;
  const uint64_t now = base::Stamp();
  const size_t attributes = label.attributes == nullptr ? 0 : sizeof *label.attributes;
  const size_t bytes = sizeof(RecordHeader) + word_count * 8 + attributes + ring::WordsFor(label.name.size()) * 8;
  std::byte* record = thread->ring.Reserve(bytes);
  if (record == nullptr) {
    thread->lost_markers.Add(now);
    return false;
  }
  const auto aux = static_cast<uint16_t>(label.domain | (attributes == 0 ? 0 : ring::kHasAttributes));
  new (record) RecordHeader{static_cast<uint8_t>(bytes / 8), kind, aux, correlation, now};
  std::byte* at = record + sizeof(RecordHeader);
  if (word_count != 0) std::memcpy(at, words, word_count * 8);
  at += word_count * 8;
  if (attributes != 0) std::memcpy(at, label.attributes, attributes);
  at += attributes;
  if (!label.name.empty()) std::memcpy(at, label.name.data(), label.name.size());
  thread->ring.Commit();
  return true;
}

Label Shortened(Label label) noexcept {
  label.name = label.name.substr(0, ring::kMaxNameBytes);
  return label;
}

bool EmitNamed(RecordKind kind, const uint64_t* words, size_t word_count, const Label& whole) noexcept {
  const Label label = Shortened(whole);
  return Emit(kind, static_cast<uint32_t>(label.name.size()), words, word_count, label);
}

// The domain had no place in the tables.
void CountLost() noexcept {
  if (ring::ThreadState* thread = ring::Current()) thread->lost_markers.Add(base::Stamp());
}

int EmitAnnotation(RecordKind kind, const Label& label) noexcept {
  if (!Active()) return -1;
  if (label.domain >= ring::kMostDomains) {
    CountLost();
    return -1;
  }
  ring::ThreadState* thread = ring::Current();
  if (thread == nullptr) return -1;
  ring::AnnotationState& state = thread->annotations[label.domain];
  const uint32_t session = g_session.load(std::memory_order_relaxed);
  if (state.session != session) state = {session};
  if (kind == RecordKind::kAnnotationBegin) ++state.depth;
  const ring::AnnotationPlace place{state.depth, state.lost_depth};
  if (kind == RecordKind::kAnnotationEnd && state.depth != 0) --state.depth;
  uint64_t word = 0;
  static_assert(sizeof word == sizeof place);
  std::memcpy(&word, &place, sizeof word);
  const bool written = EmitNamed(kind, &word, 1, label);
  state.lost_depth = written ? ring::AnnotationPlace::kNone : std::min(state.lost_depth, place.depth);
  return static_cast<int>(place.depth) - 1;
}

}  // namespace

void EmitStep(int64_t samples, int64_t tokens) noexcept {
  if (!Active()) return;
  const uint64_t words[2] = {static_cast<uint64_t>(samples), static_cast<uint64_t>(tokens)};
  Emit(RecordKind::kStep, 0, words, 2, {});
}

int EmitAnnotationBegin(const Label& label) noexcept { return EmitAnnotation(RecordKind::kAnnotationBegin, label); }

int EmitAnnotationEnd(ring::DomainIndex domain) noexcept {
  return EmitAnnotation(RecordKind::kAnnotationEnd, Label({}, domain));
}

void EmitRangeStart(uint64_t id, const Label& label) noexcept {
  if (!Active()) return;
  if (label.domain >= ring::kMostDomains) {
    CountLost();
  } else {
    EmitNamed(RecordKind::kRangeStart, &id, 1, label);
  }
}

void EmitRangeEnd(uint64_t id) noexcept {
  if (Active()) Emit(RecordKind::kRangeEnd, 0, &id, 1, {});
}

void EmitMark(const Label& label) noexcept {
  if (!Active()) return;
  if (label.domain >= ring::kMostDomains) {
    CountLost();
  } else {
    EmitNamed(RecordKind::kMark, nullptr, 0, label);
  }
}

void EmitCounter(std::string_view name, double value) noexcept {
  if (!Active()) return;
  uint64_t word = 0;
  static_assert(sizeof word == sizeof value);
  std::memcpy(&word, &value, sizeof word);
  EmitNamed(RecordKind::kCounter, &word, 1, Label(name));
}

void CountLostName() noexcept {
  if (Active()) CountLost();
}

void EmitResource(const ring::ResourceEvent& event) noexcept {
  uint64_t words[sizeof event / 8];
  std::memcpy(words, &event, sizeof event);
  Emit(RecordKind::kResource, 0, words, sizeof event / 8, {});
}

void EmitClockPair(uint64_t host_ns, uint64_t device_ns, uint32_t width_ns) noexcept {
  const uint64_t words[2] = {device_ns, host_ns};
  Emit(RecordKind::kClockPair, width_ns, words, 2, {});
}

void EmitCuptiDropped(uint64_t records) noexcept { Emit(RecordKind::kCuptiDropped, 0, &records, 1, {}); }

}  // namespace gpuperf::source
