// One trace as tables.
//
//   absl::StatusOr<std::unique_ptr<Trace>> trace = Trace::Open("run.gpuperf");   // headers, footers and indexes only
//   (*trace)->Load("kernels", filter, progress);
//
// A table is read when it is asked for and not kept here. The first one costs a light reading of all chunks (Scan),
// which is kept; a region costs, beside that, the chunks that may have something of it. Any thread, one at a time: a
// mutex holds the others. All tables are of the files as they were when they were opened.
#ifndef GPUPERF_TABLES_TRACE_H_
#define GPUPERF_TABLES_TRACE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reader/trace_reader.h"
#include "tables/filter.h"
#include "tables/scan.h"
#include "tables/table.h"

namespace gpuperf::tables {

// What can be told without reading a chunk.
struct TraceFacts {
  uint64_t parts = 0;
  uint64_t bytes = 0;
  bool cleanly_closed = false;
  std::optional<uint64_t> chunks;  // absent: no index tells
  std::optional<uint64_t> events;
  v1::FileHeader header;
};

// What takes a reading.
struct TraceCompleteness {
  bool cleanly_closed = false;
  uint64_t lost = 0;
  reader::Damages damages;
  std::optional<v1::RunInfo> run_info;
  analysis::Interval span;

  bool is_complete() const { return cleanly_closed && lost == 0 && damages.count() == 0; }
};

class Trace {
 public:
  // Errors: TraceReader::Open's.
  static absl::StatusOr<std::unique_ptr<Trace>> Open(const std::string& path);

  const TraceFacts& facts() const { return facts_; }

  // Errors: Cancelled when `progress` stops it.
  using Progress = reader::TraceReader::Progress;
  absl::StatusOr<TraceCompleteness> Completeness(const Progress& progress);

  // Errors: NotFound (no such table), OutOfRange (no such region), Cancelled.
  absl::StatusOr<std::shared_ptr<const Table>> Load(const std::string& table, const Filter& filter,
                                                    const Progress& progress);

 private:
  using Selection = std::vector<reader::TraceReader::PartSelection>;  // empty: all chunks

  explicit Trace(reader::TraceReader reader);

  absl::Status ScanOnce(const Progress& progress);
  template <class Row, class Build>
  absl::StatusOr<std::shared_ptr<const Table>> LoadDeviceRows(reader::Fields fields, const Selection& chunks,
                                                              const RowFilter& filter, const Progress& progress,
                                                              const Build& build);
  // `safe_from`: the work of calls that were entered before this host time may lie outside of `chunks`.
  absl::StatusOr<std::shared_ptr<const Table>> LoadCalls(const std::string& table, const Selection& chunks,
                                                         int64_t safe_from, const RowFilter& filter,
                                                         const Progress& progress);
  absl::Status Read(reader::Visitor* visitor, reader::Fields fields, const Selection& chunks, const Progress& progress);

  std::mutex mutex_;
  TraceFacts facts_;
  reader::TraceReader reader_;
  std::unique_ptr<Scan> scan_;  // nullptr: not read yet
  std::optional<v1::RunInfo> run_info_;
  reader::Damages damages_;  // the most that a reading has met
};

}  // namespace gpuperf::tables

#endif  // GPUPERF_TABLES_TRACE_H_
