// The program's own account of its CUDA calls: what gpuperf's trace is held against.
//
// Each thread owns one Log and appends to it after every call, in program order; nothing is shared until Write(), which
// runs when all threads have ended. One JSON object a line: thread, API function, kernel symbol, stream handle, bytes,
// addresses, event, result code, grid. Plain C++, no CUPTI, nothing of gpuperf.
#ifndef GPUPERF_TESTS_GPU_CALL_LOG_H_
#define GPUPERF_TESTS_GPU_CALL_LOG_H_

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

struct Call {
  const char* api = "";
  std::string symbol;  // launches: mangled name
  const void* stream = nullptr;
  uint64_t bytes = 0;  // copies and memory sets: bytes that move
  const void* destination = nullptr;
  const void* source = nullptr;
  const void* event = nullptr;
  int result = 0;
  unsigned grid = 0;             // launches: blocks in x
  const char* device_work = "";  // "kernel", "copy", "memset": what must appear on the device side; "" = nothing
};

class Log {
 public:
  Log() : tid_(static_cast<int>(syscall(SYS_gettid))) { calls_.reserve(4096); }
  void Add(Call call) { calls_.push_back(std::move(call)); }

  void Write(FILE* file) const {
    for (const Call& c : calls_) {
      std::fprintf(file,
                   "{\"tid\": %d, \"api\": \"%s\", \"symbol\": \"%s\", \"stream\": %llu, \"bytes\": %llu, "
                   "\"destination\": %llu, \"source\": %llu, \"event\": %llu, \"result\": %d, \"grid\": %u, "
                   "\"device_work\": \"%s\"}\n",
                   tid_, c.api, c.symbol.c_str(), Number(c.stream), static_cast<unsigned long long>(c.bytes),
                   Number(c.destination), Number(c.source), Number(c.event), c.result, c.grid, c.device_work);
    }
  }

 private:
  static unsigned long long Number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

  int tid_;
  std::vector<Call> calls_;
};

inline FILE* OpenLog(const char* path) {
  FILE* file = std::fopen(path, "w");
  if (file == nullptr) {
    std::perror(path);
    std::exit(2);
  }
  return file;
}

// For calls that must succeed.
#define CHECK_CUDA(expression)                                                                                    \
  do {                                                                                                            \
    const auto check_result = (expression);                                                                       \
    if (static_cast<int>(check_result) != 0) {                                                                    \
      std::fprintf(stderr, "%s:%d: %s -> %d\n", __FILE__, __LINE__, #expression, static_cast<int>(check_result)); \
      std::exit(3);                                                                                               \
    }                                                                                                             \
  } while (false)

#endif  // GPUPERF_TESTS_GPU_CALL_LOG_H_
