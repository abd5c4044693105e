// Where the fields lie in the raw activity records that the stand-in makes and changes (CUPTI 13.0; 12.x is a prefix).
#ifndef GPUPERF_TESTS_FAKES_LAYOUT_H_
#define GPUPERF_TESTS_FAKES_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gpuperf::fakes {

inline constexpr uint32_t kMemcpyKind = 1;
inline constexpr uint32_t kMemsetKind = 2;
inline constexpr uint32_t kKernelKind = 10;
inline constexpr uint32_t kPeerMemcpyKind = 22;
inline constexpr uint32_t kDeviceKinds[] = {kMemcpyKind, kMemsetKind, kKernelKind, kPeerMemcpyKind};

// Every device record.
inline constexpr size_t kStart = 16;
inline constexpr size_t kEnd = 24;

inline constexpr size_t kKernelName = 104;
inline constexpr size_t kKernelCorrelation = 92;
// Further device times of a kernel; 0 = not there.
inline constexpr size_t kKernelTimes[] = {32 /* completed */, 120 /* queued */, 128 /* submitted */};

inline constexpr size_t kLargestRecord = 256;

constexpr size_t CorrelationOffset(uint32_t kind) {
  return kind == kKernelKind ? kKernelCorrelation : kind == kPeerMemcpyKind ? 60 : 44;
}

constexpr bool IsDeviceKind(uint32_t kind) {
  return kind == kMemcpyKind || kind == kMemsetKind || kind == kKernelKind || kind == kPeerMemcpyKind;
}

template <typename T>
T Get(const void* base, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

template <typename T>
void Put(void* base, size_t offset, T value) {
  std::memcpy(static_cast<char*>(base) + offset, &value, sizeof value);
}

}  // namespace gpuperf::fakes

#endif  // GPUPERF_TESTS_FAKES_LAYOUT_H_
