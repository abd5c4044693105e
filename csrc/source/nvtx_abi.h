// NVTX version 3 as a tool sees it: what an injection library is given, which functions it may put into a client's
// tables, and the structs that come with a call. Declared here so that the build needs no NVTX headers; a test holds
// all of it against them. The ABI is frozen: versions add, they do not change.
#ifndef GPUPERF_SOURCE_NVTX_ABI_H_
#define GPUPERF_SOURCE_NVTX_ABI_H_

#include <cstddef>
#include <cstdint>

namespace gpuperf::nvtx {

inline constexpr uint32_t kCallbacksTable = 1;  // NVTX_ETID_CALLBACKS

enum Module : int32_t { kCore = 1, kCuda = 2, kCudaRuntime = 4, kCore2 = 5 };

// Indexes into the modules' tables.
enum Core : uint32_t {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameCategoryA,
  kNameCategoryW,
  kNameOsThreadA,
  kNameOsThreadW,
};
enum Core2 : uint32_t {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kDomainResourceCreate,
  kDomainResourceDestroy,
  kDomainNameCategoryA,
  kDomainNameCategoryW,
  kDomainRegisterStringA,
  kDomainRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
  kDomainDestroy,
  kInitialize,
};
enum Cuda : uint32_t {
  kNameCuDeviceA = 1,
  kNameCuDeviceW,
  kNameCuContextA,
  kNameCuContextW,
  kNameCuStreamA,
  kNameCuStreamW,
  kNameCuEventA,
  kNameCuEventW,
};
enum CudaRuntime : uint32_t {
  kNameCudaDeviceA = 1,
  kNameCudaDeviceW,
  kNameCudaStreamA,
  kNameCudaStreamW,
  kNameCudaEventA,
  kNameCudaEventW,
};

using Function = void (*)();
using FunctionTable = Function**;  // entry i points to where the client keeps its function i

struct CallbacksTable {
  size_t struct_size;
  int (*GetModuleFunctionTable)(int32_t module, FunctionTable* table, unsigned* size);
};
using GetExportTable = const void* (*)(uint32_t id);

enum MessageType : int32_t { kNoMessage = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };
enum PayloadType : uint32_t {
  kNoPayload = 0,
  kUnsigned64 = 1,
  kSigned64 = 2,
  kDouble = 3,
  kUnsigned32 = 4,
  kSigned32 = 5,
  kFloat = 6,
  kExtended = 0xDFBD0009,
};

union Message {
  const char* ascii;
  const wchar_t* unicode;
  const void* registered;
};

// nvtxEventAttributes_v2. `size` says how much of it the caller has.
struct EventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;  // 1: ARGB
  uint32_t color;
  uint32_t payload_type;
  int32_t payload_count;  // extended: entries of the array
  uint64_t payload;
  int32_t message_type;
  Message message;
};
static_assert(sizeof(EventAttributes) == 48);

// nvtxPayloadData_v1, one entry of an extended payload.
struct PayloadData {
  uint64_t schema;
  size_t size;
  const void* data;
};

// nvtxResourceAttributes_v0.
struct ResourceAttributes {
  uint16_t version;
  uint16_t size;
  int32_t identifier_type;
  uint64_t identifier;
  int32_t message_type;
  Message message;
};
static_assert(sizeof(ResourceAttributes) == 32);

inline constexpr int32_t kNativeThread = (1 << 16) | 3;  // identifier types: a tid …
inline constexpr int32_t kPosixThread = (1 << 16) | 4;   // … and a pthread_t

}  // namespace gpuperf::nvtx

#endif  // GPUPERF_SOURCE_NVTX_ABI_H_
