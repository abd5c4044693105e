// Reads a trace: one file, or all its parts (run.gpuperf, run.gpuperf.0001, …), chunk by chunk.
//
//   absl::StatusOr<TraceReader> reader = TraceReader::Open("run.gpuperf");
//   if (!reader.ok()) …                 // no trace, cannot be read, made by a newer gpuperf: one line for people
//   reader->Read(&visitor);             // rows; what is damaged is stepped over and noted
//   reader->damages(); reader->cleanly_closed(); reader->run_info(); reader->clock_map();
//
// One thread at a time. Memory: one chunk, the dictionaries and the calls that are open; not the file. Never crashes on
// what a file holds, never throws (but std::bad_alloc). docs/trace_format.md is the normative text of the format.
#ifndef GPUPERF_READER_TRACE_READER_H_
#define GPUPERF_READER_TRACE_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reader/clock_map.h"
#include "reader/decoder.h"
#include "reader/frames.h"
#include "reader/visitor.h"

namespace gpuperf::reader {

class TraceReader {
 public:
  // `path` is the first part; later ones are found beside it. A later part can be opened by its own name too, and then
  // is all that is read. Errors: NotFound, PermissionDenied, Unavailable (cannot be read); InvalidArgument (not a
  // trace); Unimplemented (made by a newer gpuperf). The message is one line that begins with the path.
  static absl::StatusOr<TraceReader> Open(const std::string& path);

  // Of the first part.
  const std::string& path() const { return parts_.front().file().path(); }
  const v1::FileHeader& header() const { return parts_.front().header(); }
  size_t parts() const { return parts_.size(); }
  uint64_t bytes() const;  // of all parts
  // Every part has its index and its footer: the session ended in order. False: the process was killed, or still runs.
  bool cleanly_closed() const;
  // Chunks of all parts: from the indexes, and for a part without one by walking its chunks.
  // Notes no damage.
  std::vector<v1::IndexEntry> ListChunks() const;

  // What a reading hands out of one part.
  struct PartSelection {
    uint64_t begin = 0;  // where to begin: 0, or the offset of a checkpoint before the first chunk that is wanted
    std::vector<uint64_t> wanted;  // offsets of chunks, as OnChunk told them, rising
  };
  struct Selection {
    Fields fields = kAllFields;
    // A selection for each part; empty: all chunks of all of them. The chunks between those that are wanted define
    // their dictionary entries and nothing else; those behind the last one are not read, and calls that return there
    // count as unfinished.
    std::vector<PartSelection> parts = {};
  };
  // Told the bytes read so far, once a chunk; false stops the reading.
  using Progress = std::function<bool(uint64_t)>;
  // Reads from the beginning, as often as it is called; what an earlier call handed out is not valid any more. All
  // calls see the files as they were when they were opened. False: `progress` stopped it.
  bool Read(Visitor* visitor, const Progress& progress, const Selection& selection);
  bool Read(Visitor* visitor, const Progress& progress = nullptr) { return Read(visitor, progress, Selection()); }

  // Known after Read, and of that reading.
  uint64_t chunks() const { return chunks_; }
  uint64_t events() const { return events_; }             // as the chunk headers tell
  int64_t last_host_ns() const { return last_host_ns_; }  // of the last chunk: all that was seen up to then is here
  const std::optional<v1::RunInfo>& run_info() const { return decoder_->run_info(); }     // the last one
  const std::optional<v1::SelfCost>& self_cost() const { return decoder_->self_cost(); }  // the last one
  const ClockMap& clock_map() const { return clock_map_; }
  const Damages& damages() const { return *damages_; }

 private:
  TraceReader() = default;
  void OpenFurtherParts();
  void Begin();

  std::unique_ptr<Damages> damages_ = std::make_unique<Damages>();
  Damages damages_on_opening_;
  std::vector<FrameReader> parts_;
  std::unique_ptr<Decoder> decoder_ = std::make_unique<Decoder>(damages_.get());
  uint64_t chunks_ = 0;
  uint64_t events_ = 0;
  int64_t last_host_ns_ = 0;
  ClockMap clock_map_;
};

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_TRACE_READER_H_
