// libgpuperf_recorder.so: writes to a file everything that CUPTI delivers to a client in a CUDA process (callbacks of
// all traced functions, raw activity buffers), for the stand-in libcupti of the tests to replay. See capture_format.h.
//
// Loaded by CUDA_INJECTION64_PATH. A tool for the machine that makes captures, not part of the product: it takes one
// lock for each event. Callbacks come on application threads, buffers on CUPTI's; `g` lives until the process ends.
//
// Environment: GPUPERF_RECORD (output file, required) · GPUPERF_RECORD_META (JSON object put into the first block) ·
// GPUPERF_RECORD_SKIP_LAUNCHES=N (begin at the first device synchronize after N launches) ·
// GPUPERF_RECORD_LAUNCHES=M (end at the first device synchronize M launches later; 0: at exit) ·
// GPUPERF_RECORD_MAX (callbacks and buffers at most) · GPUPERF_RECORD_BUFFER (bytes of an activity buffer) ·
// GPUPERF_CUPTI (path of libcupti, if the process has none loaded yet).
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "capture_format.h"
#include "cupti/call_table.h"

namespace {

using namespace gpuperf::capture;
using gpuperf::cupti::CallDescriptor;
using gpuperf::cupti::CallKind;

struct Api {
  decltype(&cuptiGetVersion) GetVersion;
  decltype(&cuptiGetTimestamp) GetTimestamp;
  decltype(&cuptiSubscribe) Subscribe;
  decltype(&cuptiEnableCallback) EnableCallback;
  decltype(&cuptiActivityRegisterCallbacks) RegisterCallbacks;
  decltype(&cuptiActivityEnable) Enable;
  decltype(&cuptiActivityFlushAll) FlushAll;
  decltype(&cuptiActivityGetNextRecord) GetNextRecord;
  decltype(&cuptiActivityGetNumDroppedRecords) GetNumDroppedRecords;
};

enum State { kSkipping, kRecording, kDone };

struct Recorder {
  std::mutex mutex;
  FILE* file = nullptr;
  Api api{};
  std::atomic<int> state{kSkipping};
  std::atomic<bool> stop_flushing{false};
  std::atomic<uint64_t> launches{0};
  uint64_t skip_launches = 0;
  uint64_t record_launches = 0;
  uint64_t max_events = 0;
  size_t buffer_bytes = 64 * 1024;
  std::thread flusher;
  pid_t pid = 0;
  // Guarded by mutex:
  uint32_t threads = 0;
  std::unordered_map<uint64_t, std::string> strings;
  uint64_t callbacks = 0, buffers = 0, dropped = 0, first_launch = 0;
  std::map<uint32_t, uint64_t> records;
  bool truncated = false;
};

Recorder* g = nullptr;

uint64_t Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t EnvNumber(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text && *text ? strtoull(text, nullptr, 10) : otherwise;
}

// The functions below that write want the mutex held.
void WriteBlock(uint32_t type, const void* head, size_t head_size, const void* tail = nullptr, size_t tail_size = 0) {
  static const char zeros[8] = {};
  const BlockHeader header{type, static_cast<uint32_t>(head_size + tail_size)};
  fwrite(&header, sizeof header, 1, g->file);
  fwrite(head, 1, head_size, g->file);
  if (tail_size) fwrite(tail, 1, tail_size, g->file);
  fwrite(zeros, 1, (8 - header.size % 8) % 8, g->file);
}

void WriteText(uint32_t type, const std::string& text) { WriteBlock(type, text.data(), text.size()); }

uint32_t ThreadIndex() {
  static thread_local uint32_t index = UINT32_MAX;
  if (index == UINT32_MAX) {
    index = g->threads++;
    const ThreadBlock block{index, static_cast<uint32_t>(syscall(SYS_gettid))};
    WriteBlock(kThread, &block, sizeof block);
  }
  return index;
}

uint64_t WriteString(const char* text) {
  if (!text) return 0;
  const uint64_t address = reinterpret_cast<uint64_t>(text);
  auto [known, added] = g->strings.try_emplace(address, text);
  if (!added && known->second == text) return address;
  known->second = text;
  const StringBlock block{address, static_cast<uint32_t>(known->second.size()), 0};
  WriteBlock(kString, &block, sizeof block, known->second.data(), known->second.size());
  return address;
}

void WriteClockPair() {
  ClockPairBlock block{};
  block.before_ns = Now();
  g->api.GetTimestamp(&block.cupti_ns);
  block.after_ns = Now();
  WriteBlock(kClockPair, &block, sizeof block);
}

bool RoomForEvent() {
  if (g->callbacks + g->buffers < g->max_events) return true;
  g->truncated = true;
  return false;
}

template <typename T>
T Load(const void* base, int16_t offset) {
  T value;
  memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

const CallDescriptor* Describe(uint32_t domain, uint32_t cbid) {
  using namespace gpuperf::cupti;
  if (domain == kRuntimeDomain) return cbid < kRuntimeCallCount ? &kRuntimeCalls[cbid] : nullptr;
  if (domain == kDriverDomain) return cbid < kDriverCallCount ? &kDriverCalls[cbid] : nullptr;
  return nullptr;
}

bool IsLaunch(CallKind kind) { return kind == CallKind::kLaunch || kind == CallKind::kGraphLaunch; }

bool IsDeviceSynchronize(uint32_t domain, uint32_t cbid) {
  const char* name = gpuperf::cupti::CallName(domain, cbid);
  return name && (strcmp(name, "cudaDeviceSynchronize") == 0 || strcmp(name, "cuCtxSynchronize") == 0);
}

void RecordCallback(uint64_t now, uint32_t domain, uint32_t cbid, const CallDescriptor& call,
                    const CUpti_CallbackData& data) {
  std::lock_guard<std::mutex> lock(g->mutex);
  if (g->state != kRecording || !RoomForEvent()) return;
  const bool enter = data.callbackSite == CUPTI_API_ENTER;
  CallbackBlock block{};
  block.time_ns = now;
  block.thread_index = ThreadIndex();
  block.domain = static_cast<uint16_t>(domain);
  block.site = enter ? 0 : 1;
  block.cbid = cbid;
  block.correlation_id = data.correlationId;
  block.context_uid = data.contextUid;
  block.return_value = !enter && data.functionReturnValue ? *static_cast<const int*>(data.functionReturnValue) : 0;
  block.context = reinterpret_cast<uint64_t>(data.context);
  block.function_name = WriteString(data.functionName);
  block.symbol_name = IsLaunch(call.kind) ? WriteString(data.symbolName) : 0;
  block.params_address = reinterpret_cast<uint64_t>(data.functionParams);
  const size_t params_size = data.functionParams ? call.params_size : 0;
  if (params_size && enter && call.config >= 0) {
    const void* config = Load<const void*>(data.functionParams, call.config);
    if (config) block.pointed_value = Load<uint64_t>(config, call.config_stream);
  }
  if (params_size && !enter && call.address_out >= 0 && block.return_value == 0) {
    const void* out = Load<const void*>(data.functionParams, call.address_out);
    if (out) block.pointed_value = Load<uint64_t>(out, 0);
  }
  WriteBlock(kCallback, &block, sizeof block, data.functionParams, enter ? params_size : 0);
  ++g->callbacks;
}

void BeginRecording() {
  g->api.FlushAll(0);  // what came before is not recorded
  std::lock_guard<std::mutex> lock(g->mutex);
  if (g->state != kSkipping) return;
  g->first_launch = g->launches;
  WriteClockPair();
  g->state = kRecording;
}

void EndRecording() {
  g->api.FlushAll(0);  // and what came until now is
  std::lock_guard<std::mutex> lock(g->mutex);
  if (g->state != kRecording) return;
  WriteClockPair();
  g->state = kDone;
  fflush(g->file);
}

void CUPTIAPI OnCallback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* cbdata) {
  const uint64_t now = Now();
  const auto& data = *static_cast<const CUpti_CallbackData*>(cbdata);
  const CallDescriptor* call = Describe(domain, cbid);
  if (!call || g->state == kDone || getpid() != g->pid) return;
  const bool enter = data.callbackSite == CUPTI_API_ENTER;
  static thread_local int depth = 0;  // a runtime call has its driver call inside: that is one launch
  if (enter && depth == 0 && IsLaunch(call->kind)) ++g->launches;
  depth += enter ? 1 : -1;
  if (g->state == kRecording) RecordCallback(now, domain, cbid, *call, data);
  if (enter || domain != CUPTI_CB_DOMAIN_RUNTIME_API || !IsDeviceSynchronize(domain, cbid)) return;
  // Everything launched so far has ended: a clean cut.
  if (g->state == kSkipping && g->launches >= g->skip_launches) {
    BeginRecording();
  } else if (g->state == kRecording && g->record_launches && g->launches - g->first_launch >= g->record_launches) {
    EndRecording();
  }
}

void CUPTIAPI OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *size = g->buffer_bytes;
  *max_records = 0;
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, g->buffer_bytes));
  if (*buffer) memset(*buffer, 0, g->buffer_bytes);
}

void CUPTIAPI OnBufferCompleted(CUcontext, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
  const uint64_t now = Now();
  if (getpid() != g->pid) return;
  {
    std::lock_guard<std::mutex> lock(g->mutex);
    if (g->state == kRecording && valid && RoomForEvent()) {
      CUpti_Activity* record = nullptr;
      while (g->api.GetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        ++g->records[record->kind];
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
          WriteString(Load<const char*>(record, kKernelNameOffset));
        }
      }
      const BufferBlock block{now, ThreadIndex(), 0, stream, static_cast<uint32_t>(size)};
      WriteBlock(kBuffer, &block, sizeof block, buffer, valid);
      ++g->buffers;
    }
  }
  free(buffer);
}

// Bytes of a record, asked of the library itself: the distance of two records of a buffer that holds only the kind.
uint32_t RecordSize(uint32_t kind) {
  alignas(8) static uint8_t buffer[4096];
  memset(buffer, 0, sizeof buffer);
  memcpy(buffer, &kind, sizeof kind);
  const uint64_t next_kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  for (size_t at = 8; at < sizeof buffer; at += 8) memcpy(buffer + at, &next_kind, sizeof next_kind);
  CUpti_Activity* record = nullptr;
  if (g->api.GetNextRecord(buffer, sizeof buffer, &record) != CUPTI_SUCCESS) return 0;
  if (g->api.GetNextRecord(buffer, sizeof buffer, &record) != CUPTI_SUCCESS) return 0;
  return static_cast<uint32_t>(reinterpret_cast<uint8_t*>(record) - buffer);
}

std::string JsonString(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string CommandLine() {
  std::string text;
  if (FILE* file = fopen("/proc/self/cmdline", "r")) {
    for (int c; (c = fgetc(file)) != EOF;) text += c ? static_cast<char>(c) : ' ';
    fclose(file);
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

void FlushLoop() {
  while (!g->stop_flushing) {
    usleep(100000);
    if (g->stop_flushing) return;
    g->api.FlushAll(0);
    size_t dropped = 0;
    g->api.GetNumDroppedRecords(nullptr, 0, &dropped);
    std::lock_guard<std::mutex> lock(g->mutex);
    if (g->state != kRecording) continue;
    WriteClockPair();
    if (dropped) {
      const DroppedBlock block{Now(), dropped};
      WriteBlock(kDropped, &block, sizeof block);
      g->dropped += dropped;
    }
  }
}

void Finish() {
  if (getpid() != g->pid) return;
  g->stop_flushing = true;
  g->flusher.join();
  if (g->state == kRecording) EndRecording();
  g->state = kDone;
  std::lock_guard<std::mutex> lock(g->mutex);
  std::string kinds;
  for (const auto& [kind, count] : g->records) {
    kinds += (kinds.empty() ? "" : ", ") + ("\"" + std::to_string(kind) + "\": ") + std::to_string(count);
  }
  WriteText(kMetadata, "{\"callbacks\": " + std::to_string(g->callbacks) +
                           ", \"buffers\": " + std::to_string(g->buffers) + ", \"records_by_kind\": {" + kinds +
                           "}, \"dropped\": " + std::to_string(g->dropped) +
                           ", \"truncated\": " + (g->truncated ? "true" : "false") + "}");
  fclose(g->file);
}

void* OpenCupti() {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  const char* named = getenv("GPUPERF_CUPTI");
  if (named && *named) {
    if (void* library = dlopen(named, RTLD_NOW)) return library;
  }
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  }
  return nullptr;
}

template <typename Function>
bool Resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) fprintf(stderr, "recorder: libcupti has no %s\n", name);
  return function != nullptr;
}

bool Start() {
  const char* path = getenv("GPUPERF_RECORD");
  if (!path || !*path) {
    fprintf(stderr, "recorder: GPUPERF_RECORD names no output file; nothing is recorded\n");
    return false;
  }
  void* library = OpenCupti();
  if (!library) {
    fprintf(stderr, "recorder: no libcupti found; name it in GPUPERF_CUPTI\n");
    return false;
  }
  g = new Recorder;
  Api& api = g->api;
  if (!(Resolve(library, "cuptiGetVersion", api.GetVersion) &&
        Resolve(library, "cuptiGetTimestamp", api.GetTimestamp) && Resolve(library, "cuptiSubscribe", api.Subscribe) &&
        Resolve(library, "cuptiEnableCallback", api.EnableCallback) &&
        Resolve(library, "cuptiActivityRegisterCallbacks", api.RegisterCallbacks) &&
        Resolve(library, "cuptiActivityEnable", api.Enable) &&
        Resolve(library, "cuptiActivityFlushAll", api.FlushAll) &&
        Resolve(library, "cuptiActivityGetNextRecord", api.GetNextRecord) &&
        Resolve(library, "cuptiActivityGetNumDroppedRecords", api.GetNumDroppedRecords))) {
    return false;
  }
  g->pid = getpid();
  g->skip_launches = EnvNumber("GPUPERF_RECORD_SKIP_LAUNCHES", 0);
  g->record_launches = EnvNumber("GPUPERF_RECORD_LAUNCHES", 0);
  g->max_events = EnvNumber("GPUPERF_RECORD_MAX", 1000000);
  g->buffer_bytes = EnvNumber("GPUPERF_RECORD_BUFFER", 64 * 1024);
  g->file = fopen(path, "wbx");
  if (!g->file) {
    fprintf(stderr, "recorder: cannot create %s (%s)\n", path, strerror(errno));
    return false;
  }
  setvbuf(g->file, nullptr, _IOFBF, 1 << 20);
  fwrite(kMagic, 1, sizeof kMagic, g->file);

  uint32_t version = 0;
  api.GetVersion(&version);
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(api.GetVersion), &info);
  const char* meta = getenv("GPUPERF_RECORD_META");
  const char* base = info.dli_fname ? strrchr(info.dli_fname, '/') : nullptr;
  WriteText(kMetadata, "{\"cupti_version\": " + std::to_string(version) +
                           ", \"libcupti\": " + JsonString(base ? base + 1 : "") +
                           ", \"command\": " + JsonString(CommandLine()) + ", \"pid\": " + std::to_string(g->pid) +
                           ", \"buffer_bytes\": " + std::to_string(g->buffer_bytes) +
                           ", \"given\": " + (meta && *meta ? meta : "{}") + "}");
  std::vector<uint32_t> sizes;
  for (uint32_t kind = 1; kind < 64; ++kind) {
    if (const uint32_t bytes = RecordSize(kind)) {
      sizes.push_back(kind);
      sizes.push_back(bytes);
    }
  }
  WriteBlock(kRecordSizes, sizes.data(), sizes.size() * sizeof(uint32_t));
  WriteClockPair();
  if (g->skip_launches == 0) g->state = kRecording;

  CUpti_SubscriberHandle subscriber = nullptr;
  if (const CUptiResult result = api.Subscribe(&subscriber, OnCallback, nullptr)) {
    fprintf(stderr, "recorder: cuptiSubscribe failed with %d; nothing is recorded\n", result);
    return false;
  }
  size_t enabled = 0;
  using namespace gpuperf::cupti;
  for (uint32_t cbid = 1; cbid < kRuntimeCallCount; ++cbid) {
    if (kRuntimeCalls[cbid].kind == CallKind::kNotTraced) continue;
    enabled += api.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, cbid) == CUPTI_SUCCESS;
  }
  for (uint32_t cbid = 1; cbid < kDriverCallCount; ++cbid) {
    if (kDriverCalls[cbid].kind == CallKind::kNotTraced) continue;
    enabled += api.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, cbid) == CUPTI_SUCCESS;
  }
  CUptiResult result = api.RegisterCallbacks(OnBufferRequested, OnBufferCompleted);
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET}) {
    if (result == CUPTI_SUCCESS) result = api.Enable(kind);
  }
  if (result != CUPTI_SUCCESS) {
    fprintf(stderr, "recorder: enabling activity failed with %d\n", result);
    return false;
  }
  g->flusher = std::thread(FlushLoop);
  atexit(Finish);
  fprintf(stderr, "recorder: CUPTI %u, %zu callback ids, writing %s\n", version, enabled, path);
  return true;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  static const bool started = Start();
  return started ? 1 : 0;
}
