// A trace as text, one record a line, in the order of the file: for people who look closely, and for golden tests.
// docs/dump.md is the normative text of the lines.
//
// One thread. Holds one chunk's lines at most, then hands them on. Never fails: what is damaged gets a line, too.
#ifndef GPUPERF_ANALYSIS_DUMP_H_
#define GPUPERF_ANALYSIS_DUMP_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gpuperf::analysis {

// Takes whole lines; false stops the dump.
using DumpSink = std::function<bool(absl::string_view)>;

struct DumpResult {
  bool damaged = false;  // or not cleanly closed
};

// `chunks_only`: a line for each file, chunk, damage and end, and none for records. Errors are TraceReader::Open's.
absl::Status Dump(const std::string& path, bool chunks_only, const DumpSink& sink, DumpResult* result);

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_DUMP_H_
