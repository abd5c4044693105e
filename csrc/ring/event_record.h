// What application threads write into their rings: 8-byte words, host byte order, never leaving the process.
//
//   byte 0        1      2 … 3     4 … 7           8 … 15
//   ┌───────────┬──────┬─────────┬───────────────┬──────────────────┐
//   │ words     │ kind │ aux     │ correlation   │ stamp            │   header, 16 bytes
//   └───────────┴──────┴─────────┴───────────────┴──────────────────┘
//   words: length of the record with its header, in 8-byte words (2 … 255); stamp: base::Stamp()
//
//   kind              aux                        correlation     after the header
//   kPadding          –                          –               (rest of the ring up to its end)
//   kCallEnter        cbid | kDriverBit          CUPTI's id      CallTarget, then operands by CallKind:
//                                                                  launch: symbol name pointer
//                                                                  graph launch, event: handle
//                                                                  copy, memset: destination, source, bytes
//                                                                  allocate, free, memory: address, bytes
//   kCallExit         return code                CUPTI's id      allocate: address (else nothing)
//   kSymbol           1: goes on in the next     length          pointer, then characters that it points to
//   kStep             –                          –               samples, tokens (int64, -1 = not given)
//   kAnnotationBegin  domain | kHasAttributes    length          AnnotationPlace, [MarkerAttributes], name
//   kAnnotationEnd    domain                     –               AnnotationPlace
//   kRangeStart       domain | kHasAttributes    length          range id, [MarkerAttributes], name
//   kRangeEnd         –                          –               range id
//   kMark             domain | kHasAttributes    length          [MarkerAttributes], name
//   kCounter          –                          length          value (double), name
//   kClockPair        –                          width in ns     CUPTI's time, host time in ns
//   kCuptiDropped     –                          –               records that CUPTI says it dropped
//   kResource         –                          –               ResourceEvent
#ifndef GPUPERF_RING_EVENT_RECORD_H_
#define GPUPERF_RING_EVENT_RECORD_H_

#include <cstddef>
#include <cstdint>

namespace gpuperf::ring {

enum class RecordKind : uint8_t {
  kPadding = 1,
  kCallEnter,
  kCallExit,
  kSymbol,
  kStep,
  kAnnotationBegin,
  kAnnotationEnd,
  kRangeStart,
  kRangeEnd,
  kMark,
  kCounter,
  kClockPair,
  kCuptiDropped,
  kResource,
};

inline constexpr uint16_t kDriverBit = 0x8000;
inline constexpr size_t kMaxRecordBytes = 255 * 8;
inline constexpr size_t kMaxNameBytes = 1024;  // longer names are cut, but symbols go into several records
inline constexpr uint16_t kSymbolGoesOn = 1;

struct RecordHeader {
  uint8_t words;
  RecordKind kind;
  uint16_t aux;
  uint32_t correlation;
  uint64_t stamp;
};
static_assert(sizeof(RecordHeader) == 16);

// Same values as the schema's CaptureState.
enum class CaptureState : uint8_t { kNone = 0, kCapturing = 1, kUnknown = 2 };

// The part of kCallEnter that every call has.
struct CallTarget {
  uint32_t context;  // CUPTI context id
  CaptureState capture;
  uint8_t copy_kind;  // cudaMemcpyKind
  uint16_t reserved;
  uint64_t stream;  // handle
};
static_assert(sizeof(CallTarget) == 16);

inline constexpr uint16_t kHasAttributes = 0x100;  // above the DomainIndex (app_names.h)

// What NVTX may say of a range or mark beside its name. Same values as the schema's PayloadKind.
enum class PayloadKind : uint8_t { kNone = 0, kUnsigned = 1, kSigned = 2, kDouble = 3, kExtended = 4 };
struct MarkerAttributes {
  uint32_t category;
  uint32_t color;  // ARGB
  bool has_color;
  PayloadKind payload_kind;
  uint16_t reserved;
  uint32_t payload_bytes;  // extended: of the blob, UINT32_MAX = not known or more
  uint64_t payload;        // bits of the value; extended: schema id
};
static_assert(sizeof(MarkerAttributes) == 24);

// By which an end finds its begin, whatever was lost between them. Annotations nest by thread and domain.
struct AnnotationPlace {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t depth;       // 1: the outermost; 0: an end that has no begin in this session
  uint32_t lost_depth;  // least depth of those annotation records of the thread that were lost just before this one
};
static_assert(sizeof(AnnotationPlace) == 8);

// Same values as the schema's ResourceChange.
enum class ResourceChange : uint32_t {
  kUnspecified = 0,
  kContextCreated = 1,
  kContextDestroyed = 2,
  kStreamCreated = 3,
  kStreamDestroyed = 4,
};
struct ResourceEvent {
  ResourceChange change;
  uint32_t device;   // CUDA ordinal
  uint32_t context;  // CUPTI's ids
  uint32_t stream;   // of a stream
  uint64_t handle;   // CUDA's, of the stream or context
};
static_assert(sizeof(ResourceEvent) == 24);

inline constexpr size_t WordsFor(size_t bytes) { return (bytes + 7) / 8; }

}  // namespace gpuperf::ring

#endif  // GPUPERF_RING_EVENT_RECORD_H_
