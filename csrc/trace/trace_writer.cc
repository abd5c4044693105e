#include "trace/trace_writer.h"

#include <protozero/pbf_builder.hpp>
#include <utility>

#include "base/crc32c.h"
#include "base/log.h"
#include "trace/chunk_builder.h"
#include "trace/trace_fields.h"

namespace gpuperf::trace {
namespace {

constexpr uint32_t kFormatVersion = 1;
constexpr std::string_view kMagic = "GPUPERF1";
constexpr uint64_t kCheckpointBytes = uint64_t{64} << 20;
// Five fields of at most 10 bytes with a tag each, and tag and length of the whole; around the index the same.
constexpr uint64_t kMostIndexEntryBytes = 57;
constexpr uint64_t kMostFooterFrameBytes = 22;
// A chunk of losses and nothing else: some 60 bytes for each reason.
constexpr uint64_t kLossChunkBytes = 2048;

void MarkWritten(collector::Dictionaries& dictionaries) {
  dictionaries.strings.MarkWritten();
  dictionaries.kernels.MarkWritten();
  dictionaries.streams.MarkWritten();
  dictionaries.call_sites.MarkWritten();
  dictionaries.threads_written = dictionaries.threads.size();
  dictionaries.restarted = false;
}

}  // namespace

TraceWriter::TraceWriter(WriterOptions options) : options_(std::move(options)) {}

std::string TraceWriter::path() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return path_;
}

bool TraceWriter::Fail() {
  if (!failed_.exchange(true)) {
    base::Log(base::LogLevel::kError, "%s; tracing stops here, the job goes on", file_.error().c_str());
  }
  return false;
}

bool TraceWriter::Append(std::string_view bytes) {
  if (!file_.Append(bytes)) return Fail();
  written_bytes_.fetch_add(bytes.size(), std::memory_order_relaxed);
  return true;
}

bool TraceWriter::Begin() {
  if (!file_.Open(options_.output)) return Fail();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    path_ = file_.path();
  }
  return WriteHeader();
}

bool TraceWriter::WriteHeader() {
  using H = fields::FileHeader;
  std::string header;
  protozero::pbf_builder<H> head(header);
  head.add_uint32(H::kFormatVersion, kFormatVersion);
  head.add_bytes(H::kTraceUuid, reinterpret_cast<const char*>(options_.uuid.data()), options_.uuid.size());
  if (file_.part() != 0) head.add_uint32(H::kPart, file_.part());
  head.add_string(H::kProducer, "gpuperf " GPUPERF_VERSION);
  head.add_message(H::kStart, options_.clock_snapshot);
  head.add_message(H::kProcess, options_.process_info);

  std::string bytes;
  protozero::pbf_builder<fields::TraceFile> file(bytes);
  file.add_bytes(fields::TraceFile::kMagic, kMagic.data(), kMagic.size());
  file.add_message(fields::TraceFile::kHeader, header);
  file.add_fixed32(fields::TraceFile::kHeaderCrc32C, base::Crc32c(header.data(), header.size()));
  entries_.clear();
  sequence_ = 0;
  return Append(bytes);
}

bool TraceWriter::Write(collector::Batches& batches) {
  if (failed() || !batches.cuda_seen) return false;
  if (!file_.is_open() && !Begin()) return false;
  if (!batches.run_info.empty()) run_info_ = batches.run_info;

  bool checkpoint = sequence_ == 0 || batches.dictionaries.restarted || bytes_since_checkpoint_ >= kCheckpointBytes;
  if (sequence_ == 0) batches.run_info = run_info_;
  std::string chunk = FrameChunk(BuildBody(batches, checkpoint, written_bytes()), batches, sequence_, checkpoint);
  if (sequence_ != 0 && file_.size() + chunk.size() + RoomForEnd() > options_.max_part_bytes) {
    if (!GoOnInNextPart()) return false;
    checkpoint = true;
    batches.run_info = run_info_;
    chunk = FrameChunk(BuildBody(batches, checkpoint, written_bytes()), batches, sequence_, checkpoint);
  }
  if (!file_.Keep(chunk.size() + RoomForEnd())) return Fail();
  const Entry entry{file_.size(), batches.begin_ns, batches.end_ns, batches.EventCount(), checkpoint};
  if (!Append(chunk)) return false;
  entries_.push_back(entry);
  ++sequence_;
  bytes_since_checkpoint_ = checkpoint ? 0 : bytes_since_checkpoint_ + chunk.size();
  MarkWritten(batches.dictionaries);
  return true;
}

// Of the footer, and of the losses before it.
uint64_t TraceWriter::RoomForEnd() const {
  return (entries_.size() + 2) * kMostIndexEntryBytes + kMostFooterFrameBytes + kLossChunkBytes;
}

// A part that says that another follows is followed by it: the other one is made first.
bool TraceWriter::GoOnInNextPart() {
  if (!file_.MakeNextPart()) return Fail();
  if (!WriteFooter(/*continues=*/true)) return false;
  file_.GoOnInNextPart();
  return WriteHeader();
}

bool TraceWriter::WriteFooter(bool continues) {
  using I = fields::TraceIndex;
  std::string index;
  protozero::pbf_builder<I> list(index);
  for (const Entry& entry : entries_) {
    using E = fields::IndexEntry;
    protozero::pbf_builder<E> row(list, I::kEntries);
    row.add_uint64(E::kOffset, entry.offset);
    row.add_uint64(E::kFirstHostNs, entry.first_ns);
    row.add_uint64(E::kLastHostNs, entry.last_ns);
    row.add_uint32(E::kEventCount, static_cast<uint32_t>(entry.events));
    if (entry.checkpoint) row.add_bool(E::kDictionaryCheckpoint, true);
  }
  if (continues) list.add_bool(I::kContinues, true);
  const uint64_t offset = file_.size();
  std::string bytes;
  protozero::pbf_builder<fields::TraceFile> file(bytes);
  file.add_message(fields::TraceFile::kIndex, index);
  file.add_fixed64(fields::TraceFile::kIndexOffset, offset);
  return Append(bytes);
}

// The last that the disk takes, if it does.
void TraceWriter::WriteLosses(const collector::Batches& rest) {
  collector::Batches last;
  last.losses = rest.losses;
  for (collector::Loss& loss : last.losses) loss.thread_iid = 0;  // its definition may not be in the file
  last.self_cost = rest.self_cost;
  last.begin_ns = last.end_ns = rest.end_ns;
  const bool checkpoint = sequence_ == 0;
  const std::string chunk = FrameChunk(BuildBody(last, checkpoint, written_bytes()), last, sequence_, checkpoint);
  const Entry entry{file_.size(), last.begin_ns, last.end_ns, 0, checkpoint};
  if (Append(chunk)) entries_.push_back(entry);
}

void TraceWriter::Close(const collector::Batches& rest) {
  if (file_.is_open()) {
    if (failed()) WriteLosses(rest);
    WriteFooter(/*continues=*/false);
  }
  file_.Close();
}

bool NullSink::Write(collector::Batches& batches) {
  MarkWritten(batches.dictionaries);
  return true;
}

}  // namespace gpuperf::trace
