#include "reader/chunk_times.h"

#include <limits>

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

// Adds the rows of a batch. A batch that breaks the rules has no rows, so that unknown costs speed only.
void AddBatch(absl::string_view batch, TimeBounds* bounds) {
  uint64_t base = 0;
  absl::string_view gaps;
  absl::string_view durations;
  WireCursor cursor(batch);
  WireField field;
  while (!cursor.done()) {
    if (!cursor.ReadField(&field)) return bounds->AddUnknown();
    const auto number = static_cast<int>(field.number);
    if (number == kBase) {
      base = field.value;
    } else if (number == kGaps || number == kDurations) {
      absl::string_view& column = number == kGaps ? gaps : durations;
      // Legal, and made by no writer.
      if (field.type != WireType::kBytes || !column.empty()) return bounds->AddUnknown();
      column = field.bytes;
    }
  }
  constexpr auto kMax = static_cast<uint64_t>(kMaxNs);
  if (base >= kMax) return bounds->AddUnknown();
  auto time = static_cast<int64_t>(base);
  Numbers gap(gaps);
  Numbers duration(durations);
  while (!gap.done()) {
    uint64_t zigzag = 0;
    uint64_t ns = 0;
    if (!gap.Next(&zigzag) || !duration.Next(&ns) || ns >= kMax) return bounds->AddUnknown();
    const int64_t step = UnZigZag(zigzag);
    if (step <= -kMaxNs || step >= kMaxNs) return bounds->AddUnknown();
    const int64_t begin = time + step;
    if (begin < 0 || begin >= kMaxNs) return bounds->AddUnknown();
    time = begin + static_cast<int64_t>(ns);
    if (time >= kMaxNs) return bounds->AddUnknown();
    bounds->Add(begin, time);
  }
}

void AddOpenCall(absl::string_view call, TimeBounds* bounds) {
  uint64_t enter = 0;
  WireCursor cursor(call);
  WireField field;
  while (!cursor.done()) {
    if (!cursor.ReadField(&field)) return bounds->AddUnknown();
    if (field.number == v1::OpenCall::kEnterHostNsFieldNumber) enter = field.value;
  }
  if (enter >= static_cast<uint64_t>(kMaxNs)) return bounds->AddUnknown();
  bounds->Add(static_cast<int64_t>(enter), std::numeric_limits<int64_t>::max());
}

}  // namespace

ChunkTimes TimesOfChunk(absl::string_view body) {
  ChunkTimes times;
  WireCursor cursor(body);
  WireField field;
  while (!cursor.done()) {
    if (!cursor.ReadField(&field)) {
      times.device.AddUnknown();
      times.host.AddUnknown();
      return times;
    }
    switch (field.number) {
      case Body::kKernelBatchesFieldNumber:
      case Body::kCopyBatchesFieldNumber:
      case Body::kMemsetBatchesFieldNumber:
        AddBatch(field.bytes, &times.device);
        break;
      case Body::kCallBatchesFieldNumber:
        AddBatch(field.bytes, &times.host);
        break;
      case Body::kOpenCallsFieldNumber:
        AddOpenCall(field.bytes, &times.host);
        break;
      default:
        break;
    }
  }
  return times;
}

}  // namespace gpuperf::reader
