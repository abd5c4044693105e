// The frames of one trace file: its header, its chunks one after the other, and how it ends.
//
//   7A 08 "GPUPERF1"      0A <len> FileHeader      12 <len> Chunk …      1A <len> TraceIndex   71 <offset of 1A>
//
//   Chunk:  0A <len> 0A 10 <16 bytes of sync marker> <rest of ChunkHeader>   12 <len> <ChunkBody>
//
// One thread. Reads one chunk at a time into a buffer of its own. What is damaged becomes a Damage and is stepped over:
// a frame that is cut, that no field can be read of, whose check sum is wrong, is followed by a search for the next
// sync marker. Never fails once it is open, never looks inside a body, never reads more than kMaxChunkBytes at once.
#ifndef GPUPERF_READER_FRAMES_H_
#define GPUPERF_READER_FRAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpuperf/trace/v1/trace.pb.h"
#include "reader/file.h"

namespace gpuperf::reader {

namespace v1 = ::gpuperf::trace::v1;

// The newest FileHeader.format_version that this reader understands.
inline constexpr uint32_t kFormatVersion = 1;

// A greater length in a file is taken for damage. Writers cut chunks far below; a checkpoint holds a whole dictionary.
inline constexpr uint64_t kMaxChunkBytes = 64 << 20;

// The sync marker of every chunk header.
absl::string_view SyncMarker();

// A stretch of a file that could not be read, or could be read and breaks a rule of the format (`bytes` is 0 then).
struct Damage {
  std::string file;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string what;
  // The host times between which events are missing, where chunks on both sides tell; else 0.
  uint64_t after_host_ns = 0;
  uint64_t before_host_ns = 0;
};

// The damages of a trace: the first kKept of them, and the number of all.
class Damages {
 public:
  static constexpr size_t kKept = 1000;

  void Add(Damage damage);
  const std::vector<Damage>& kept() const { return kept_; }
  uint64_t count() const { return count_; }

 private:
  std::vector<Damage> kept_;
  uint64_t count_ = 0;
};

// One chunk whose body has the length and the check sum that its header tells. `body` is valid until the next call.
struct Frame {
  uint64_t offset = 0;  // of the chunk's tag byte
  uint64_t bytes = 0;   // of the whole frame
  v1::ChunkHeader header;
  absl::string_view body;
};

class FrameReader {
 public:
  // Errors: those of File::Open; InvalidArgument: not a trace, or nothing of it is left; Unimplemented: made by a newer
  // gpuperf. `damages` must outlive the reader.
  static absl::StatusOr<FrameReader> Open(const std::string& path, Damages* damages);

  // Empty where the header is damaged.
  const v1::FileHeader& header() const { return header_; }
  bool header_damaged() const { return !header_damage_.what.empty(); }
  const File& file() const { return file_; }
  uint64_t position() const { return position_; }  // everything before it has been read

  // Reads the next sound chunk; false at the end of the file.
  bool Next(Frame* frame);
  // Next() begins again at the first chunk …
  void Rewind();
  // … or at the chunk whose tag byte is at `offset`, as an index tells it. What lies before is not called missing.
  void Seek(uint64_t offset);

  // The index is there and the footer points at it. Known from the start.
  bool cleanly_closed() const { return cleanly_closed_; }
  // Of a cleanly closed file, from the start; else empty.
  const v1::TraceIndex& index() const { return index_; }

 private:
  FrameReader(File file, Damages* damages) : file_(std::move(file)), damages_(damages) {}

  absl::Status ReadHeader();
  bool HeaderIsSound(uint64_t behind);
  void ReadIndex();
  const char* ReadChunk(uint64_t content, uint64_t size, Frame* frame);
  void StepOver(const std::string& what);
  uint64_t FindChunk(uint64_t from);
  void Report(uint64_t offset, uint64_t bytes, std::string what);
  void Sequence(const Frame& frame);

  File file_;
  Damages* damages_;
  v1::FileHeader header_;
  v1::TraceIndex index_;
  bool cleanly_closed_ = false;
  uint64_t position_ = 0;
  uint64_t next_sequence_ = 0;
  uint64_t last_host_ns_ = 0;
  bool sequence_known_ = true;
  bool stepped_over_ = false;  // since the last sound chunk
  Damage pending_;             // the stretch stepped over, reported when the next chunk tells the time
  uint64_t first_chunk_ = 0;   // where Rewind() goes …
  Damage header_damage_;       // … and what it has stepped over by then, if `what` is set
  std::string buffer_;
};

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_FRAMES_H_
