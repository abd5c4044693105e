// A capture in memory: what CUPTI delivered, in order. Read from a recorder's file (tools/recorder/capture_format.h) or
// made by the synthetic generator (synthetic.h). Built on one thread, then constant.
#ifndef GPUPERF_TESTS_FAKES_CAPTURE_H_
#define GPUPERF_TESTS_FAKES_CAPTURE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "recorder/capture_format.h"

namespace gpuperf::fakes {

// An activity record of a buffer, in Capture::bytes.
struct CapturedRecord {
  size_t offset;
  uint32_t size;
  uint32_t kind;
  const char* name;  // kernels; nullptr otherwise
};

struct CapturedEvent {
  enum Type { kCallback, kBuffer };
  Type type;
  uint64_t time_ns;
  uint32_t thread;
  // kCallback
  capture::CallbackBlock callback;
  const char* function_name;
  const char* symbol_name;
  size_t params_offset;  // in Capture::bytes
  uint32_t params_size;  // 0 at exit
  // kBuffer
  size_t first_record;  // in Capture::records
  size_t record_count;
};

class Capture {
 public:
  std::vector<CapturedEvent> events;
  std::vector<CapturedRecord> records;
  std::vector<uint8_t> bytes;
  std::vector<capture::ClockPairBlock> clock_pairs;
  uint32_t thread_count = 0;
  std::string metadata = "{}";  // JSON

  // A string that lives as long as the process: CUPTI's names do.
  static const char* Intern(const std::string& text);

  // False with one sentence in `error` if the file cannot be read. A name that ends in .gz goes through gzip.
  bool Load(const std::string& path, std::string* error);
  bool Save(const std::string& path, std::string* error) const;
};

}  // namespace gpuperf::fakes

#endif  // GPUPERF_TESTS_FAKES_CAPTURE_H_
