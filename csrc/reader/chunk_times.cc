#include "reader/chunk_times.h"

#include <algorithm>

#include "gpuperf/trace/v1/trace.pb.h"
#include "reader/rows.h"
#include "reader/wire.h"

namespace gpuperf::reader {
namespace {

using Body = v1::ChunkBody;

// The numbers are the same in all four kinds of batches.
constexpr int kBase = 2;
constexpr int kGaps = 4;
constexpr int kDurations = 5;
static_assert(v1::KernelBatch::kBaseDeviceNsFieldNumber == kBase && v1::CallBatch::kBaseHostNsFieldNumber == kBase);
static_assert(v1::CopyBatch::kGapNsFieldNumber == kGaps && v1::MemsetBatch::kGapNsFieldNumber == kGaps);
static_assert(v1::KernelBatch::kDurationNsFieldNumber == kDurations &&
              v1::CallBatch::kDurationNsFieldNumber == kDurations);

// Varints one after the other.
class Numbers {
 public:
  explicit Numbers(absl::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  bool done() const { return at_ == end_; }
  bool Next(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      *value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

 private:
  const char* at_;
  const char* end_;
};

int64_t UnZigZag(uint64_t value) { return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1); }

// As TimesAreSound has it: a batch that breaks the rules has no rows, so that unknown costs speed only.
int64_t EarliestOfBatch(absl::string_view batch) {
  uint64_t base = 0;
  absl::string_view gaps;
  absl::string_view durations;
  WireCursor cursor(batch);
  WireField field;
  while (!cursor.done()) {
    if (!cursor.ReadField(&field)) return ChunkTimes::kUnknown;
    const bool is_packed = field.type == WireType::kBytes;
    const auto number = static_cast<int>(field.number);
    if (number == kBase) {
      base = field.value;
    } else if (number == kGaps || number == kDurations) {
      absl::string_view& column = number == kGaps ? gaps : durations;
      if (!is_packed || !column.empty()) return ChunkTimes::kUnknown;  // legal, and made by no writer
      column = field.bytes;
    }
  }
  constexpr auto kMax = static_cast<uint64_t>(kMaxNs);
  if (base >= kMax) return ChunkTimes::kUnknown;
  auto time = static_cast<int64_t>(base);
  int64_t earliest = ChunkTimes::kNoRows;
  Numbers gap(gaps);
  Numbers duration(durations);
  while (!gap.done()) {
    uint64_t zigzag = 0;
    uint64_t ns = 0;
    if (!gap.Next(&zigzag) || !duration.Next(&ns) || ns >= kMax) return ChunkTimes::kUnknown;
    const int64_t step = UnZigZag(zigzag);
    if (step <= -kMaxNs || step >= kMaxNs) return ChunkTimes::kUnknown;
    time += step;
    if (time < 0 || time >= kMaxNs) return ChunkTimes::kUnknown;
    earliest = std::min(earliest, time);
    time += static_cast<int64_t>(ns);
    if (time >= kMaxNs) return ChunkTimes::kUnknown;
  }
  return earliest;
}

int64_t EnterOfOpenCall(absl::string_view call) {
  uint64_t enter = 0;
  WireCursor cursor(call);
  WireField field;
  while (!cursor.done()) {
    if (!cursor.ReadField(&field)) return ChunkTimes::kUnknown;
    if (field.number == v1::OpenCall::kEnterHostNsFieldNumber) enter = field.value;
  }
  return enter < static_cast<uint64_t>(kMaxNs) ? static_cast<int64_t>(enter) : ChunkTimes::kUnknown;
}

}  // namespace

ChunkTimes EarliestTimes(absl::string_view body) {
  ChunkTimes times;
  WireCursor cursor(body);
  WireField field;
  while (!cursor.done()) {
    if (!cursor.ReadField(&field)) return {ChunkTimes::kUnknown, ChunkTimes::kUnknown};
    switch (field.number) {
      case Body::kKernelBatchesFieldNumber:
      case Body::kCopyBatchesFieldNumber:
      case Body::kMemsetBatchesFieldNumber:
        times.device_ns = std::min(times.device_ns, EarliestOfBatch(field.bytes));
        break;
      case Body::kCallBatchesFieldNumber:
        times.host_ns = std::min(times.host_ns, EarliestOfBatch(field.bytes));
        break;
      case Body::kOpenCallsFieldNumber:
        times.host_ns = std::min(times.host_ns, EnterOfOpenCall(field.bytes));
        break;
      default:
        break;
    }
  }
  return times;
}

}  // namespace gpuperf::reader
