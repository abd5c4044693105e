// The file that the recorder writes and the stand-in libcupti replays: what CUPTI delivered to a client, in the order
// in which it came. A tool's format: no compatibility promise beyond kMagic.
//
// A file is kMagic, then blocks; little-endian, each block padded to 8 bytes:
//
//   byte 0        4        8                        8+size      padded
//   | type u32    | size u32 | payload, size bytes … | zeros …   |
//
// Payloads (structs below, followed by variable bytes where noted):
//   kMetadata     JSON text. First block: before recording. Last block: totals. A file without the last was cut short.
//   kRecordSizes  pairs {u32 kind, u32 bytes}: what the recorded libcupti's records measure.
//   kThread       ThreadBlock: a host thread, before its first callback or buffer.
//   kString       StringBlock + text: what the address held, before the first block that names it, and again whenever
//                 it holds another text. Addresses in callbacks (function_name, symbol_name) and in kernel records
//                 (name, at kKernelNameOffset) are looked up in the latest kString of that address.
//   kCallback     CallbackBlock + parameter struct (at enter only: at exit CUPTI passes the same struct).
//   kBuffer       BufferBlock + raw activity records, exactly as CUPTI filled them.
//   kClockPair    ClockPairBlock: CUPTI's clock between two readings of CLOCK_MONOTONIC.
//   kDropped      DroppedBlock: records that CUPTI said it dropped since the last such block.
#ifndef GPUPERF_TOOLS_RECORDER_CAPTURE_FORMAT_H_
#define GPUPERF_TOOLS_RECORDER_CAPTURE_FORMAT_H_

#include <cstdint>

namespace gpuperf::capture {

inline constexpr char kMagic[8] = {'G', 'P', 'C', 'A', 'P', 'T', '0', '1'};
inline constexpr uint32_t kKernelNameOffset = 104;  // in every version of the kernel record from CUDA 10 on

enum BlockType : uint32_t {
  kMetadata = 1,
  kRecordSizes = 2,
  kThread = 3,
  kString = 4,
  kCallback = 5,
  kBuffer = 6,
  kClockPair = 7,
  kDropped = 8,
};

struct BlockHeader {
  uint32_t type;
  uint32_t size;  // payload bytes, without padding
};

struct ThreadBlock {
  uint32_t index;  // 0, 1, … in order of appearance
  uint32_t tid;
};

struct StringBlock {
  uint64_t address;
  uint32_t length;
  uint32_t reserved;
};

struct CallbackBlock {
  uint64_t time_ns;  // CLOCK_MONOTONIC
  uint32_t thread_index;
  uint16_t domain;
  uint16_t site;  // 0 enter, 1 exit
  uint32_t cbid;
  uint32_t correlation_id;
  uint32_t context_uid;
  int32_t return_value;     // at exit
  uint64_t context;         // CUcontext
  uint64_t function_name;   // address of a string
  uint64_t symbol_name;     // address of a string, 0 = none
  uint64_t pointed_value;   // launch configuration: its stream; allocation, at exit: the address given out
  uint64_t params_address;  // where CUPTI kept the parameter struct; 0 = it gave none
};

struct BufferBlock {
  uint64_t time_ns;
  uint32_t thread_index;  // of the thread that delivered it
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t buffer_bytes;  // how much the client had offered
};

struct ClockPairBlock {
  uint64_t before_ns;
  uint64_t cupti_ns;
  uint64_t after_ns;
};

struct DroppedBlock {
  uint64_t time_ns;
  uint64_t count;
};

static_assert(sizeof(CallbackBlock) == 72 && sizeof(BufferBlock) == 24 && sizeof(StringBlock) == 16);

}  // namespace gpuperf::capture

#endif  // GPUPERF_TOOLS_RECORDER_CAPTURE_FORMAT_H_
