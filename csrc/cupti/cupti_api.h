// The functions of libcupti that gpuperf calls, found at run time.
//
// A process may hold one libcupti only (two of them fight over the driver's tools interface), so Load() takes the copy
// that is already there; only if there is none it loads one, in the order documented at Load(). Nothing is ever
// unloaded. Load() may be called again (a later session); it is not for the hot path. The table is constant after it.
#ifndef GPUPERF_CUPTI_CUPTI_API_H_
#define GPUPERF_CUPTI_CUPTI_API_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cupti/records.h"

namespace gpuperf::cupti {

// CUptiResult values.
inline constexpr int kSuccess = 0;
inline constexpr int kInvalidKind = 21;
inline constexpr int kMultipleSubscribers = 39;
inline constexpr int kMaxLimitReached = 12;  // GetNextRecord: no further record

using Subscriber = void*;
using CallbackFunction = void (*)(void* user_data, uint32_t domain, uint32_t cbid, const CallbackData* data);
using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid_size);

struct Api {
  int (*GetVersion)(uint32_t*) = nullptr;
  int (*GetTimestamp)(uint64_t*) = nullptr;
  int (*GetResultString)(int, const char**) = nullptr;
  int (*Subscribe)(Subscriber*, CallbackFunction, void*) = nullptr;
  int (*Unsubscribe)(Subscriber) = nullptr;
  int (*EnableCallback)(uint32_t enable, Subscriber, uint32_t domain, uint32_t cbid) = nullptr;
  int (*ActivityRegisterCallbacks)(BufferRequested, BufferCompleted) = nullptr;
  int (*ActivityEnable)(uint32_t kind) = nullptr;
  int (*ActivityDisable)(uint32_t kind) = nullptr;
  int (*ActivityFlushAll)(uint32_t flag) = nullptr;
  int (*ActivityGetNextRecord)(uint8_t* buffer, size_t valid_size, void** record) = nullptr;
  int (*ActivityGetNumDroppedRecords)(void* context, uint32_t stream, size_t* dropped) = nullptr;
  int (*ActivitySetAttribute)(uint32_t attribute, size_t* size, void* value) = nullptr;
  int (*Finalize)() = nullptr;
  // Optional.
  int (*GetContextId)(void* context, uint32_t*) = nullptr;
  int (*GetDeviceId)(void* context, uint32_t*) = nullptr;
  int (*GetStreamId)(void* context, void* stream, uint8_t per_thread, uint32_t*) = nullptr;
  int (*SubscribeV2)(Subscriber*, CallbackFunction, void*, void* params) = nullptr;

  uint32_t version = 0;
  std::string path;
  std::string found_by;
  RecordSizes record_bytes{};

  std::string Describe(int result) const;  // "CUPTI_ERROR_… (39)"
};

struct Library {
  std::string path;
  std::string found_by;
};

// Where a libcupti may be, best first:
//   1. `preferred` (GPUPERF_CUPTI), and nothing else if it is set;
//   2. the copy that is already in the process;
//   3. the Python environment that this library lies in (…/nvidia/cu13/lib, …/nvidia/cuda_cupti/lib);
//   4. $CUDA_HOME, $CUDA_PATH, /usr/local/cuda (…/extras/CUPTI/lib64, …/lib64);
//   5. the loader's own search for libcupti.so.13 and .12.
std::vector<Library> FindLibraries(const std::string& preferred);

// Only where there is a usable driver: libcupti 13.2 crashes without one. Loads the first of FindLibraries() that can
// be loaded and has the functions; nullptr and one sentence in `error` otherwise. The table lives for ever.
const Api* Load(const std::string& preferred, std::string* error);

// Path of the shared object that holds this code, "" if not known.
std::string OwnPath();

// The library that the process has loaded under this name prefix ("libcupti.so."), "" if none.
std::string LoadedLibrary(const char* prefix);

}  // namespace gpuperf::cupti

#endif  // GPUPERF_CUPTI_CUPTI_API_H_
