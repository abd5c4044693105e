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

// header, then `words`, then `name`. False: lost.
bool Emit(RecordKind kind, uint32_t correlation, const uint64_t* words, size_t word_count,
          std::string_view name) noexcept {
  ring::ThreadState* thread = ring::Current();
  if (thread == nullptr) return false;
  const uint64_t now = base::Stamp();
  const size_t bytes = sizeof(RecordHeader) + word_count * 8 + ring::WordsFor(name.size()) * 8;
  std::byte* record = thread->ring.Reserve(bytes);
  if (record == nullptr) {
    thread->lost_markers.Add(now);
    return false;
  }
  new (record) RecordHeader{static_cast<uint8_t>(bytes / 8), kind, 0, correlation, now};
  if (word_count != 0) std::memcpy(record + sizeof(RecordHeader), words, word_count * 8);
  if (!name.empty()) std::memcpy(record + sizeof(RecordHeader) + word_count * 8, name.data(), name.size());
  thread->ring.Commit();
  return true;
}

void EmitNamed(RecordKind kind, const uint64_t* words, size_t word_count, std::string_view name) noexcept {
  if (!Active()) return;
  name = name.substr(0, ring::kMaxNameBytes);
  Emit(kind, static_cast<uint32_t>(name.size()), words, word_count, name);
}

void EmitAnnotation(RecordKind kind, std::string_view name) noexcept {
  if (!Active()) return;
  ring::ThreadState* thread = ring::Current();
  if (thread == nullptr) return;
  ring::AnnotationState& state = thread->annotations;
  const uint32_t session = g_session.load(std::memory_order_relaxed);
  if (state.session != session) state = {session};
  if (kind == RecordKind::kAnnotationBegin) ++state.depth;
  const ring::AnnotationPlace place{state.depth, state.lost_depth};
  if (kind == RecordKind::kAnnotationEnd && state.depth != 0) --state.depth;
  uint64_t word = 0;
  static_assert(sizeof word == sizeof place);
  std::memcpy(&word, &place, sizeof word);
  name = name.substr(0, ring::kMaxNameBytes);
  const bool written = Emit(kind, static_cast<uint32_t>(name.size()), &word, 1, name);
  state.lost_depth = written ? ring::AnnotationPlace::kNone : std::min(state.lost_depth, place.depth);
}

}  // namespace

void EmitStep(int64_t samples, int64_t tokens) noexcept {
  const uint64_t words[2] = {static_cast<uint64_t>(samples), static_cast<uint64_t>(tokens)};
  EmitNamed(RecordKind::kStep, words, 2, {});
}

void EmitAnnotationBegin(std::string_view name) noexcept { EmitAnnotation(RecordKind::kAnnotationBegin, name); }

void EmitAnnotationEnd() noexcept { EmitAnnotation(RecordKind::kAnnotationEnd, {}); }

void EmitMark(std::string_view name) noexcept { EmitNamed(RecordKind::kMark, nullptr, 0, name); }

void EmitCounter(std::string_view name, double value) noexcept {
  uint64_t word = 0;
  static_assert(sizeof word == sizeof value);
  std::memcpy(&word, &value, sizeof word);
  EmitNamed(RecordKind::kCounter, &word, 1, name);
}

void EmitClockPair(uint64_t host_ns, uint64_t device_ns, uint32_t width_ns) noexcept {
  const uint64_t words[2] = {device_ns, host_ns};
  Emit(RecordKind::kClockPair, width_ns, words, 2, {});
}

void EmitCuptiDropped(uint64_t records) noexcept { Emit(RecordKind::kCuptiDropped, 0, &records, 1, {}); }

}  // namespace gpuperf::source
