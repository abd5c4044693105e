// Writes a session's chunks into a trace: header first, checkpoints, parts, index footer. See docs/trace_format.md.
//
// The file is made at the first chunk of a process that has used CUDA, so processes that never do leave none. When the
// disk refuses, one line says so and nothing more is written but the losses and the footer, for which room is kept; the
// job and the live counts go on. All calls but the
// getters on the collector thread.
#ifndef GPUPERF_TRACE_TRACE_WRITER_H_
#define GPUPERF_TRACE_TRACE_WRITER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "collector/collector.h"
#include "trace/file_sink.h"

namespace gpuperf::trace {

struct WriterOptions {
  OutputPlan output;
  uint64_t max_part_bytes = uint64_t{1} << 30;
  std::string process_info;    // serialised ProcessInfo
  std::string clock_snapshot;  // serialised ClockSnapshot
  std::array<uint8_t, 16> uuid{};
};

class TraceWriter final : public collector::ChunkSink {
 public:
  explicit TraceWriter(WriterOptions options);

  bool Write(collector::Batches& batches) override;
  void Close(const collector::Batches& rest) override;

  // Any thread.
  std::string path() const;  // "" until the file exists
  uint64_t written_bytes() const { return written_bytes_.load(std::memory_order_relaxed); }
  bool failed() const override { return failed_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    uint64_t offset;
    uint64_t first_ns;
    uint64_t last_ns;
    size_t events;
    bool checkpoint;
  };

  bool Begin();        // claims the file
  bool WriteHeader();  // of the current part
  bool WriteFooter(bool continues);
  bool GoOnInNextPart();
  void WriteLosses(const collector::Batches& rest);
  uint64_t RoomForEnd() const;
  bool Append(std::string_view bytes);
  bool Fail();

  const WriterOptions options_;
  FileSink file_;
  uint64_t sequence_ = 0;
  uint64_t bytes_since_checkpoint_ = 0;
  std::vector<Entry> entries_;  // of the current part
  std::string run_info_;        // the latest, again at the start of each part
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> written_bytes_{0};
  mutable std::mutex mutex_;
  std::string path_;
};

// Takes everything and writes nothing: a session that keeps live state only.
class NullSink final : public collector::ChunkSink {
 public:
  bool Write(collector::Batches& batches) override;
  bool failed() const override { return false; }
  void Close(const collector::Batches& /*rest*/) override {}
};

}  // namespace gpuperf::trace

#endif  // GPUPERF_TRACE_TRACE_WRITER_H_
