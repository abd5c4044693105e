// What gpuperf needs to know of each CUDA API function (CUPTI callback id, "cbid"): whether it is traced, what kind of
// call it is, and where in CUPTI's parameter struct its stream, handles, addresses and sizes lie.
//
// The tables are generated from the CUPTI headers by tools/gen_call_tables.py and committed (call_table.cc), so that
// the build needs no CUDA headers. Callback ids and parameter structs are append-only across CUDA 12 and 13; a test
// holds the tables against the headers of both. Read from any thread; constant data.
#ifndef GPUPERF_CUPTI_CALL_TABLE_H_
#define GPUPERF_CUPTI_CALL_TABLE_H_

#include <cstddef>
#include <cstdint>

namespace gpuperf::cupti {

// CUpti_CallbackDomain values. (The schema's CallDomain numbers them the other way round.)
inline constexpr uint32_t kDriverDomain = 1;
inline constexpr uint32_t kRuntimeDomain = 2;
inline constexpr uint32_t kResourceDomain = 3;
// Callback ids of that domain.
inline constexpr uint32_t kContextCreated = 1;
inline constexpr uint32_t kContextDestroying = 2;
inline constexpr uint32_t kStreamCreated = 3;
inline constexpr uint32_t kStreamDestroying = 4;
inline constexpr uint32_t kGraphExecCreateStarting = 17;
inline constexpr uint32_t kGraphExecCreated = 18;
inline constexpr uint32_t kGraphExecDestroying = 19;

// Same values as the schema's CallKind.
enum class CallKind : uint8_t {
  kNotTraced = 0,
  kLaunch = 1,
  kGraphLaunch = 2,
  kHostFunction = 3,
  kCopy = 4,
  kMemset = 5,
  kSynchronize = 6,
  kEventRecord = 7,
  kEventWait = 8,
  kAllocate = 9,
  kFree = 10,
  kGraph = 11,
  kModule = 12,
  kBeginCapture = 13,
  kEndCapture = 14,
  kMemory = 15,
  kControl = 16,
};

inline constexpr int16_t kNone = -1;

struct CallDescriptor {
  CallKind kind = CallKind::kNotTraced;
  bool per_thread_stream = false;  // _ptsz/_ptds form
  int8_t fixed_copy_kind = -1;     // cudaMemcpyKind that the name implies (cuMemcpyHtoD… = 1), -1 = see copy_kind
  bool unloads_module = false;     // names of kernels may change their address after it
  uint16_t params_size = 0;        // bytes of CUPTI's parameter struct
  // Byte offsets into the parameter struct; kNone = the function has no such parameter.
  int16_t stream = kNone;         // stream handle by value
  int16_t config = kNone;         // pointer to a launch configuration struct that holds the stream …
  int16_t config_stream = kNone;  // … at this offset (cudaLaunchKernelExC, cuLaunchKernelEx)
  int16_t handle = kNone;         // launch: function; graph launch: graphExec; event record/wait/sync: event
  int16_t destination = kNone;    // copies, memsets
  int16_t source = kNone;
  int16_t bytes = kNone;         // copies, memsets, allocations (size_t)
  int16_t bytes_factor = kNone;  // 2-D forms: bytes = *bytes × *bytes_factor
  int16_t copy_kind = kNone;     // enum cudaMemcpyKind by value
  uint8_t element_bytes = 1;     // cuMemsetD16/D32: bytes = count × element_bytes
  int16_t address = kNone;       // free, unmap, register: address by value
  int16_t address_out = kNone;   // allocations: pointer to where the address is stored at exit
};

// Index = cbid. Beyond the size: unknown to these tables, not traced.
extern const CallDescriptor kRuntimeCalls[];
extern const size_t kRuntimeCallCount;
extern const CallDescriptor kDriverCalls[];
extern const size_t kDriverCallCount;

// API function name without version suffix ("cudaLaunchKernel", "cuLaunchKernel_ptsz"); nullptr if unknown.
const char* CallName(uint32_t domain, uint32_t cbid);

}  // namespace gpuperf::cupti

#endif  // GPUPERF_CUPTI_CALL_TABLE_H_
