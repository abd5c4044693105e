#include "reader/trace_reader.h"

#include <google/protobuf/stubs/common.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gpuperf::reader {
namespace {

constexpr unsigned kMaxParts = 10'000;
// So many missing ones are searched behind.
constexpr unsigned kMostMissingParts = 32;

std::string PartName(const std::string& first, unsigned part) { return absl::StrFormat("%s.%04u", first, part); }

// What cannot be parsed becomes a Damage; Protobuf need not write to stderr about it, too.
#if GOOGLE_PROTOBUF_VERSION < 4022000
using Silencer = ::google::protobuf::LogSilencer;
#else
struct Silencer {
  Silencer() {}
};
#endif

}  // namespace

absl::StatusOr<TraceReader> TraceReader::Open(const std::string& path) {
  const Silencer silencer;
  TraceReader trace;
  absl::StatusOr<FrameReader> first = FrameReader::Open(path, trace.damages_.get());
  if (!first.ok()) return first.status();
  trace.parts_.push_back(*std::move(first));
  trace.OpenFurtherParts();
  trace.damages_on_opening_ = *trace.damages_;
  return trace;
}

void TraceReader::OpenFurtherParts() {
  if (header().part() != 0) {
    damages_->Add(
        {path(), 0, 0, absl::StrCat("this is part ", header().part(), "; the parts before it are not read"), 0, 0});
    return;
  }
  // Copies: parts_ grows, and with it the first part moves.
  const std::string base = path();
  const std::string uuid = header().trace_uuid();
  const auto add = [&](unsigned part, std::string what, uint64_t after_host_ns = 0, uint64_t before_host_ns = 0) {
    damages_->Add({PartName(base, part), 0, 0, std::move(what), after_host_ns, before_host_ns});
  };
  const auto end_of = [](const FrameReader& reader) {
    const auto& entries = reader.index().entries();
    return entries.empty() ? 0 : entries.rbegin()->last_host_ns();
  };
  unsigned missing = 0;  // the first of some that are
  for (unsigned part = 1; part < kMaxParts; ++part) {
    const std::string name = PartName(base, part);
    absl::StatusOr<FrameReader> next = FrameReader::Open(name, damages_.get());
    if (absl::IsNotFound(next.status())) {
      if (missing == 0) missing = part;
      if (part - missing < kMostMissingParts) continue;
      break;
    }
    if (!next.ok()) {
      const absl::string_view message = next.status().message();
      add(part, absl::StrCat("not read:", message.substr(std::min(name.size() + 1, message.size()))));
      return;
    }
    if (next->header_damaged()) {
      add(part, "not read: its header is damaged, so it is not known to be of this trace");
      return;
    }
    if (next->header().trace_uuid() != uuid || next->header().part() != part) break;  // of another trace
    if (missing != 0) {
      const auto& entries = next->index().entries();
      add(missing, part - missing == 1 ? "missing" : absl::StrCat("missing, up to part ", part - 1),
          end_of(parts_.back()), entries.empty() ? 0 : entries.begin()->first_host_ns());
      missing = 0;
    }
    parts_.push_back(*std::move(next));
  }
  if (parts_.back().index().continues()) {
    add(parts_.back().header().part() + 1, "missing: the trace goes on there, and its end is not known",
        end_of(parts_.back()));
  }
}

uint64_t TraceReader::bytes() const {
  uint64_t sum = 0;
  for (const FrameReader& part : parts_) sum += part.file().size();
  return sum;
}

bool TraceReader::cleanly_closed() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const FrameReader& part) { return part.cleanly_closed(); });
}

std::vector<v1::IndexEntry> TraceReader::ListChunks() const {
  const Silencer silencer;
  std::vector<v1::IndexEntry> list;
  for (const FrameReader& part : parts_) {
    if (part.cleanly_closed()) {
      list.insert(list.end(), part.index().entries().begin(), part.index().entries().end());
      continue;
    }
    Damages ignored;
    absl::StatusOr<FrameReader> frames = FrameReader::Open(part.file().path(), &ignored);
    Frame frame;
    while (frames.ok() && frames->Next(&frame)) {
      v1::IndexEntry& entry = list.emplace_back();
      entry.set_offset(frame.offset);
      entry.set_first_host_ns(frame.header.first_host_ns());
      entry.set_last_host_ns(frame.header.last_host_ns());
      entry.set_event_count(frame.header.event_count());
      entry.set_dictionary_checkpoint(frame.header.dictionary_checkpoint());
    }
  }
  return list;
}

void TraceReader::Begin() {
  *damages_ = damages_on_opening_;
  decoder_ = std::make_unique<Decoder>(damages_.get());
  chunks_ = 0;
  events_ = 0;
  last_host_ns_ = 0;
  clock_map_ = ClockMap();
}

bool TraceReader::Read(Visitor* visitor, const Progress& progress, const Selection& selection) {
  const Silencer silencer;
  Begin();
  uint64_t bytes_before = 0;
  for (size_t number = 0; number < parts_.size(); ++number) {
    FrameReader& part = parts_[number];
    const PartSelection* chosen = selection.parts.empty() ? nullptr : &selection.parts[number];
    const uint64_t last = chosen == nullptr ? UINT64_MAX : chosen->wanted.empty() ? 0 : chosen->wanted.back();
    if (chosen != nullptr && chosen->begin != 0) {
      part.Seek(chosen->begin);
    } else {
      part.Rewind();
    }
    decoder_->BeginFile(part.file().path());
    visitor->OnFile(part.file().path(), part.header());
    uint64_t chunks_in_part = 0;
    Frame frame;
    while (part.position() <= last && part.Next(&frame)) {
      const bool is_wanted =
          chosen == nullptr || std::binary_search(chosen->wanted.begin(), chosen->wanted.end(), frame.offset);
      decoder_->Decode(frame, is_wanted ? selection.fields : selection.fields & kDictionaries, visitor);
      ++chunks_in_part;
      events_ += frame.header.event_count();
      const uint64_t cut = std::min(frame.header.last_host_ns(), static_cast<uint64_t>(kMaxNs));
      last_host_ns_ = std::max(last_host_ns_, static_cast<int64_t>(cut));
      if (progress != nullptr && !progress(bytes_before + part.position())) return false;
    }
    chunks_ += chunks_in_part;
    const auto indexed = static_cast<uint64_t>(part.index().entries_size());
    if (chosen == nullptr && part.cleanly_closed() && indexed != chunks_in_part) {
      damages_->Add({part.file().path(), 0, 0,
                     absl::StrCat("the index tells ", indexed, " chunks; ", chunks_in_part, " can be read"), 0, 0});
    }
    bytes_before += part.file().size();
  }
  decoder_->Finish(visitor);
  clock_map_ = ClockMap(decoder_->clock_points());
  return true;
}

}  // namespace gpuperf::reader
