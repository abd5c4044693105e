#include "record_walker.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "layout.h"

namespace gpuperf::fakes {
namespace {

constexpr int kSuccess = 0;
constexpr int kMaxLimitReached = 12;
constexpr int kInvalidKind = 21;

// Bytes of the records of 13.0 by kind (0: no such kind); 12.6 differs in the two that kCupti12Sizes names.
constexpr size_t kSizes[] = {0,  96, 88,  216, 40, 40, 0,   0,  184, 32, 216, 32,  56, 40, 0,   0,   0,   56, 144,
                             40, 40, 0,   96,  0,  0,  104, 32, 24,  24, 0,   0,   0,  0,  152, 152, 120, 56, 24,
                             56, 24, 136, 0,   0,  0,  0,   80, 168, 40, 40,  128, 80, 56, 72,  56,  64,  32};

}  // namespace

void RecordWalker::UseCupti12() {
  cupti_12_ = true;
  real_ = nullptr;
  name_ = "own";
}

size_t RecordWalker::RecordBytes(uint32_t kind) const {
  if (kind >= sizeof kSizes / sizeof kSizes[0]) return 0;
  if (cupti_12_ && kind == kKernelKind) return 208;
  if (cupti_12_ && kind == kMemcpyKind) return 88;
  return kSizes[kind];
}

bool RecordWalker::SameSizes(GetNextRecord next) const {
  alignas(8) uint8_t buffer[1024];
  for (const uint32_t kind : kDeviceKinds) {
    std::memset(buffer, 0, sizeof buffer);
    for (size_t at = 0; at < sizeof buffer; at += 8) std::memcpy(buffer + at, &kKernelKind, sizeof kKernelKind);
    std::memcpy(buffer, &kind, sizeof kind);
    void* record = nullptr;
    if (next(buffer, sizeof buffer, &record) != kSuccess) return false;
    if (next(buffer, sizeof buffer, &record) != kSuccess) return false;
    if (static_cast<size_t>(static_cast<uint8_t*>(record) - buffer) != RecordBytes(kind)) return false;
  }
  return true;
}

void RecordWalker::FindReal() {
  const char* named = std::getenv("GPUPERF_FAKE_REAL_CUPTI");
  const char* path = named != nullptr ? named : GPUPERF_REAL_CUPTI;
  if (*path == '\0') return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto next = reinterpret_cast<GetNextRecord>(dlsym(library, "cuptiActivityGetNextRecord"));
  if (next == nullptr || !SameSizes(next)) return;
  real_ = next;
  name_ = path;
}

int RecordWalker::Next(uint8_t* buffer, size_t valid_size, void** record) const {
  if (real_ != nullptr) return real_(buffer, valid_size, record);
  auto* at = static_cast<uint8_t*>(*record);
  if (at == nullptr) {
    at = buffer;
  } else {
    uint32_t previous;
    std::memcpy(&previous, at, sizeof previous);
    at += RecordBytes(previous);
  }
  if (at + sizeof(uint32_t) > buffer + valid_size) return kMaxLimitReached;
  uint32_t kind;
  std::memcpy(&kind, at, sizeof kind);
  const size_t size = RecordBytes(kind);
  if (size == 0) return kInvalidKind;
  if (at + size > buffer + valid_size) return kMaxLimitReached;
  *record = at;
  return kSuccess;
}

}  // namespace gpuperf::fakes
