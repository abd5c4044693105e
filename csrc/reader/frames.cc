#include "reader/frames.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "reader/wire.h"

namespace gpuperf::reader {
namespace {

constexpr absl::string_view kMagic("\x7A\x08GPUPERF1", 10);
constexpr uint64_t kMaxHeaderBytes = 16 << 20;
constexpr size_t kHeadBytes = 16;   // tag and length of any field of TraceFile
constexpr size_t kFooterBytes = 9;  // 71 <8 bytes>
constexpr uint64_t kLeastSearchBytes = 1 << 12;
constexpr uint64_t kMostSearchBytes = 1 << 20;

enum TraceFileField : uint32_t {
  kHeader = 1,
  kChunks = 2,
  kIndex = 3,
  kHeaderCrc32c = 4,
  kIndexOffset = 14,
  kMagicField = 15
};

bool IsBytes(const WireField& field, uint32_t number) {
  return field.number == number && field.type == WireType::kBytes;
}

// Where the chunk begins whose sync marker is at `marker` of `data`; npos if no chunk can begin there.
size_t ChunkStart(absl::string_view data, size_t marker) {
  const auto byte = [&](size_t back) { return static_cast<unsigned char>(data[marker - back]); };
  if (marker < 6 || byte(1) != 0x10 || byte(2) != 0x0A || byte(3) >= 0x80 || byte(4) != 0x0A) return data.npos;
  if (byte(5) >= 0x80) return data.npos;  // the last byte of the chunk's length
  for (size_t length = 1; length <= 5 && marker >= length + 5; ++length) {
    if (byte(length + 5) == 0x12) return marker - length - 5;
    if (byte(length + 5) < 0x80) return data.npos;
  }
  return data.npos;
}

}  // namespace

absl::string_view SyncMarker() { return absl::string_view("\xF7GPCHUNK\x9E\x37\x79\xB9\x7F\x4A\x7C\x15", 16); }

void Damages::Add(Damage damage) {
  if (count_++ < kKept) kept_.push_back(std::move(damage));
}

absl::StatusOr<FrameReader> FrameReader::Open(const std::string& path, Damages* damages) {
  absl::StatusOr<File> file = File::Open(path);
  if (!file.ok()) return file.status();
  FrameReader reader(*std::move(file), damages);
  const absl::Status status = reader.ReadHeader();
  if (!status.ok()) return status;
  reader.first_chunk_ = reader.position_;
  if (reader.stepped_over_) reader.header_damage_ = reader.pending_;
  reader.ReadIndex();
  return reader;
}

absl::Status FrameReader::ReadHeader() {
  const std::string& path = file_.path();
  file_.Read(0, kMagic.size() + kHeadBytes, &buffer_);
  if (buffer_.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": not a gpuperf trace: it is empty"));
  if (absl::string_view(buffer_).substr(0, kMagic.size()) != kMagic.substr(0, buffer_.size())) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a gpuperf trace"));
  }
  const absl::Status cut =
      absl::InvalidArgumentError(absl::StrCat(path, ": cut off inside its header: nothing can be read of it"));
  if (buffer_.size() <= kMagic.size()) return cut;

  position_ = kMagic.size();
  WireCursor cursor(absl::string_view(buffer_).substr(position_));
  WireField field;
  const bool head = cursor.ReadHead(&field) && IsBytes(field, kHeader) && field.value <= kMaxHeaderBytes;
  const uint64_t content = position_ + field.content;
  if (head && content + field.value <= file_.size()) {
    file_.Read(content, field.value, &buffer_);
    if (HeaderIsSound(content + field.value) && header_.ParseFromString(buffer_)) {
      position_ = content + field.value;
      if (header_.format_version() == 0) {
        return absl::InvalidArgumentError(absl::StrCat(path, ": not a gpuperf trace: format version 0 is none"));
      }
      if (header_.format_version() > kFormatVersion) {
        return absl::UnimplementedError(absl::StrCat(path, ": made by a newer gpuperf (", header_.producer(),
                                                     ", format ", header_.format_version(), "; this one reads up to ",
                                                     kFormatVersion, "): upgrade gpuperf to read it"));
      }
      return absl::OkStatus();
    }
    header_.Clear();
  }
  // What no header can be read of may still be followed by chunks.
  if (FindChunk(position_) == file_.size()) return cut;
  StepOver("the file header is damaged");
  return absl::OkStatus();
}

// Holds the header's bytes, in buffer_, against the check sum that follows them. Traces of old have none.
bool FrameReader::HeaderIsSound(uint64_t behind) {
  std::string follows;
  file_.Read(behind, kHeadBytes, &follows);
  WireField field;
  if (!WireCursor(follows).ReadHead(&field) || field.number != kHeaderCrc32c) return true;
  return field.type == WireType::kFixed32 && field.value == base::Crc32c(buffer_.data(), buffer_.size());
}

void FrameReader::ReadIndex() {
  const uint64_t size = file_.size();
  if (size < position_ + kFooterBytes) return;
  const uint64_t footer = size - kFooterBytes;
  file_.Read(footer, kFooterBytes, &buffer_);
  WireField field;
  if (!WireCursor(buffer_).ReadField(&field) || field.number != kIndexOffset || field.type != WireType::kFixed64)
    return;
  const uint64_t at = field.value;
  if (at < position_ || at >= footer) return;
  file_.Read(at, footer - at, &buffer_);
  WireCursor cursor(buffer_);
  if (!cursor.ReadField(&field) || !IsBytes(field, kIndex) || !cursor.done()) return;
  cleanly_closed_ = index_.ParseFromArray(field.bytes.data(), static_cast<int>(field.bytes.size()));
  if (!cleanly_closed_) index_.Clear();
}

void FrameReader::Rewind() {
  position_ = first_chunk_;
  next_sequence_ = 0;
  sequence_known_ = true;
  last_host_ns_ = 0;
  stepped_over_ = !header_damage_.what.empty();
  pending_ = header_damage_;
}

void FrameReader::Seek(uint64_t offset) {
  Rewind();
  position_ = std::max(offset, first_chunk_);
  sequence_known_ = false;
  stepped_over_ = false;
}

bool FrameReader::Next(Frame* frame) {
  while (position_ < file_.size()) {
    file_.Read(position_, kHeadBytes, &buffer_);
    WireCursor cursor(buffer_);
    WireField field;
    if (!cursor.ReadHead(&field)) {
      StepOver("no field begins here");
      continue;
    }
    if (field.type != WireType::kBytes) {
      position_ += cursor.position();  // the footer, or a field of a later format
      continue;
    }
    const uint64_t content = position_ + field.content;
    if (field.value > file_.size() - std::min(content, file_.size())) {
      StepOver(field.number == kChunks ? "a chunk is cut off" : "a field is cut off");
      continue;
    }
    if (field.number == kMagicField || field.number == kHeader) {
      Report(position_, file_.size() - position_,
             "a second trace begins here (files joined end to end); it is not read");
      position_ = file_.size();
      break;
    }
    if (field.number != kChunks) {
      position_ = content + field.value;
      continue;
    }
    if (const char* fault = ReadChunk(content, field.value, frame)) {
      StepOver(fault);
      continue;
    }
    frame->offset = position_;
    frame->bytes = content + field.value - position_;
    position_ += frame->bytes;
    Sequence(*frame);
    return true;
  }
  if (stepped_over_) {
    stepped_over_ = false;
    damages_->Add(std::move(pending_));
  }
  return false;
}

// Reads and checks the `size` bytes of a Chunk; what is wrong with it, or nullptr.
const char* FrameReader::ReadChunk(uint64_t content, uint64_t size, Frame* frame) {
  if (size > kMaxChunkBytes) return "a chunk tells an impossible length";
  file_.Read(content, size, &buffer_);
  if (buffer_.size() != size) return "a chunk cannot be read";
  WireCursor cursor(buffer_);
  WireField field;
  bool has_header = false;
  bool has_body = false;
  while (!cursor.done()) {
    if (!cursor.ReadField(&field)) return "a chunk is malformed";
    if (IsBytes(field, 1)) {
      if (has_header || !frame->header.ParseFromArray(field.bytes.data(), static_cast<int>(field.bytes.size()))) {
        return "a chunk header is malformed";
      }
      has_header = true;
    } else if (IsBytes(field, 2)) {
      if (has_body) return "a chunk has two bodies";
      frame->body = field.bytes;
      has_body = true;
    }
  }
  if (!has_header || frame->header.sync_marker() != SyncMarker()) return "a chunk has no sync marker";
  if (!has_body) frame->body = {};
  if (frame->header.body_size() != frame->body.size()) return "a chunk body has another size than its header tells";
  if (frame->header.body_crc32c() != base::Crc32c(frame->body.data(), frame->body.size())) {
    return "a chunk has a wrong check sum";
  }
  return nullptr;
}

// Steps from the bad frame at position_ to the next chunk, or to the end of the file.
void FrameReader::StepOver(const std::string& what) {
  const uint64_t next = FindChunk(position_);
  if (!stepped_over_) pending_ = Damage{file_.path(), position_, 0, what, last_host_ns_, 0};
  stepped_over_ = true;
  pending_.bytes = next - pending_.offset;
  position_ = next;
}

// Offset of the first chunk behind `from`, by its sync marker; the file's size if there is none.
uint64_t FrameReader::FindChunk(uint64_t from) {
  // The longest way from a chunk's first byte to the end of its sync marker: tag, length, 0A <len> 0A 10, marker.
  constexpr uint64_t kOverlap = 6 + 4 + 16;
  // Mostly the next chunk is near.
  uint64_t step = kLeastSearchBytes;
  for (uint64_t at = from; at < file_.size(); at += step - kOverlap, step = std::min(2 * step, kMostSearchBytes)) {
    file_.Read(at, step, &buffer_);
    const absl::string_view data = buffer_;
    for (size_t marker = data.find(SyncMarker()); marker != data.npos; marker = data.find(SyncMarker(), marker + 1)) {
      const size_t start = ChunkStart(data, marker);
      if (start != data.npos && at + start > from) return at + start;
    }
  }
  return file_.size();
}

void FrameReader::Report(uint64_t offset, uint64_t bytes, std::string what) {
  damages_->Add({file_.path(), offset, bytes, std::move(what), 0, 0});
}

// Holds the chunk against the ones before it.
void FrameReader::Sequence(const Frame& frame) {
  const v1::ChunkHeader& header = frame.header;
  if (stepped_over_) {
    pending_.before_host_ns = header.first_host_ns();
    damages_->Add(std::move(pending_));
    stepped_over_ = false;
  } else if (sequence_known_ && header.sequence() != next_sequence_) {
    damages_->Add({file_.path(), frame.offset, 0,
                   absl::StrCat("chunk ", next_sequence_, " was expected and chunk ", header.sequence(), " is here"),
                   last_host_ns_, header.first_host_ns()});
  }
  sequence_known_ = true;
  next_sequence_ = header.sequence() + 1;
  last_host_ns_ = header.last_host_ns();
}

}  // namespace gpuperf::reader
