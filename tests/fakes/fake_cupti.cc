// A stand-in for libcupti.so.13: dispatches the callbacks and delivers the activity records that a test puts in (see
// fake_cupti.h) to whatever client has subscribed and enabled them, by CUPTI's rules, and notes every rule that the
// client breaks. It has no GPU and knows no CUDA: tests/fakes/replayer.h drives it.
//
// Buffers are requested on the thread that pushes a record. Full ones are handed back by a worker thread, the rest by
// cuptiActivityFlushAll on its caller's thread; hand-backs never overlap and keep their order. All state is immortal.
#include "fake_cupti.h"

#include <cupti.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "cupti/call_table.h"
#include "layout.h"
#include "record_walker.h"

#define EXPORT __attribute__((visibility("default")))

struct CUpti_Subscriber_st {
  CUpti_CallbackFunc callback;
  void* user_data;
};

namespace gpuperf::fakes {
namespace {

constexpr size_t kDomains = 8;
constexpr size_t kCallbackIds = 1024;
constexpr uint32_t kVersion13 = 130001;
constexpr uint32_t kVersion12 = 24;      // 12.6
constexpr uint32_t kSafeToDecline = 27;  // before it, a NULL buffer crashes CUPTI
constexpr uint32_t kUnknownKind = 0x7ffffff0;
constexpr size_t kUnknownRecordBytes = 16;
constexpr size_t kAttributes = 11;

enum class Place { kNone, kApiEnter, kApiExit, kResource, kBufferCallback };
thread_local Place place = Place::kNone;

uint64_t Clock(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

struct ClientBuffer {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t used = 0;
  uint64_t records[FAKE_CUPTI_KINDS] = {};
};

// One fault: every nth kernel record, 0 = off.
struct Fault {
  uint64_t every = 0;
  uint64_t seen = 0;
  bool Due() { return every != 0 && ++seen % every == 0; }
};

class FakeCupti {
 public:
  FakeCupti();

  // Controls.
  int Configure(const char* faults);
  int Callback(uint32_t domain, uint32_t cbid, const CUpti_CallbackData& data);
  int PushRecord(const void* record, size_t size);
  void SetCorrelationRange(uint32_t first, uint64_t count);
  void Reset();
  void GetStats(fake_cupti_stats* stats);

  // What the CUPTI functions below do.
  bool Enter(const char* function, bool needs_driver);
  void Violation(const std::string& text);
  CUptiResult Subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* user_data);
  CUptiResult Unsubscribe(CUpti_SubscriberHandle subscriber);
  CUptiResult Enable(uint32_t enable, CUpti_SubscriberHandle subscriber, uint32_t domain, uint32_t cbid);
  CUptiResult EnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, uint32_t domain);
  CUptiResult RegisterBuffers(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete);
  CUptiResult EnableKind(uint32_t kind, bool enable);
  CUptiResult Flush();
  CUptiResult SetAttribute(uint32_t attribute, size_t* size, void* value);
  CUptiResult Finalize();
  uint64_t Now() const { return Clock(CLOCK_MONOTONIC) + clock_offset_; }
  uint32_t Version() const { return version_; }
  uint64_t TakeDropped() { return dropped_unread_.exchange(0); }
  const RecordWalker& Walker() const { return walker_; }

 private:
  void Detach();
  bool RequestBuffer();
  void HandBackFull(std::unique_lock<std::mutex>& lock);
  void HandBack(const ClientBuffer& buffer);
  void WorkerLoop();

  const pid_t pid_ = getpid();
  const uint64_t clock_offset_ = Clock(CLOCK_REALTIME) - Clock(CLOCK_MONOTONIC);
  RecordWalker walker_;
  uint32_t version_ = kVersion13;
  bool busy_ = false;
  bool no_driver_ = false;
  bool no_parameters_ = false;

  std::atomic<CUpti_SubscriberHandle> subscriber_{nullptr};
  std::atomic<uint8_t> callback_enabled_[kDomains][kCallbackIds] = {};
  std::atomic<uint8_t> kind_enabled_[FAKE_CUPTI_KINDS] = {};
  std::atomic<CUpti_BuffersCallbackRequestFunc> request_{nullptr};
  std::atomic<CUpti_BuffersCallbackCompleteFunc> complete_{nullptr};
  std::atomic<bool> zeroed_promised_{false};
  std::atomic<uint64_t> callbacks_{0};
  std::atomic<uint64_t> dropped_unread_{0};

  std::mutex push_mutex_;      // one record at a time; taken before mutex_
  std::mutex delivery_mutex_;  // one hand-back at a time, in order; taken before mutex_
  std::mutex mutex_;           // everything below
  std::condition_variable work_;
  ClientBuffer current_;
  std::deque<ClientBuffer> full_;
  bool worker_started_ = false;
  fake_cupti_stats stats_ = {};
  std::map<std::string, Fault> faults_;
  uint32_t first_correlation_ = 0;
  uint64_t correlation_count_ = 0;
};

FakeCupti& Fake() {
  static auto* fake = new FakeCupti;
  return *fake;
}

// Made when the library is loaded, before any thread of the client.
[[maybe_unused]] FakeCupti& at_load = Fake();

FakeCupti::FakeCupti() {
  walker_.FindReal();
  const char* faults = std::getenv("GPUPERF_FAKE_SCENARIO");
  if (faults != nullptr && Configure(faults) != 0) {
    std::fprintf(stderr, "fake libcupti: unknown fault in \"%s\"\n", faults);
  }
}

int FakeCupti::Configure(const char* faults) {
  std::lock_guard<std::mutex> lock(mutex_);
  int result = 0;
  const std::string list = faults;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string item = list.substr(begin, end - begin);
    begin = end + 1;
    const size_t colon = item.find(':');
    const std::string name = item.substr(0, colon);
    if (name == "busy") {
      busy_ = true;
    } else if (name == "no-driver") {
      no_driver_ = true;
    } else if (name == "no-parameters") {
      no_parameters_ = true;
    } else if (name == "cupti-12") {
      version_ = kVersion12;
      walker_.UseCupti12();
    } else if (colon != std::string::npos && (name == "zero-timestamps" || name == "reversed-timestamps" ||
                                              name == "dropped" || name == "no-launch" || name == "unknown-kind")) {
      faults_[name].every = std::strtoull(item.c_str() + colon + 1, nullptr, 10);
    } else if (!name.empty()) {
      result = -1;
    }
  }
  return result;
}

void FakeCupti::Violation(const std::string& text) {
  if (const char* path = std::getenv("GPUPERF_FAKE_VIOLATIONS")) {
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) {
      const std::string line = text + "\n";
      if (write(file, line.data(), line.size()) < 0) std::fprintf(stderr, "fake libcupti: %s", line.c_str());
      close(file);
    }
  }
  if (getpid() != pid_) return;  // the parent's locks may be held for ever
  std::lock_guard<std::mutex> lock(mutex_);
  if (stats_.violations < FAKE_CUPTI_VIOLATIONS) {
    std::snprintf(stats_.violation[stats_.violations], sizeof stats_.violation[0], "%s", text.c_str());
  }
  ++stats_.violations;
}

bool FakeCupti::Enter(const char* function, bool needs_driver) {
  if (getpid() != pid_) {
    Violation(std::string(function) + " called in a forked child");
    return false;
  }
  return !(needs_driver && no_driver_);
}

CUptiResult FakeCupti::Subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* user_data) {
  if (subscriber == nullptr || callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (busy_) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  auto* handle = new CUpti_Subscriber_st{callback, user_data};  // never freed: a callback may be under way
  CUpti_SubscriberHandle none = nullptr;
  if (!subscriber_.compare_exchange_strong(none, handle)) {
    delete handle;
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  *subscriber = handle;
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.subscribes;
  return CUPTI_SUCCESS;
}

CUptiResult FakeCupti::Unsubscribe(CUpti_SubscriberHandle subscriber) {
  CUpti_SubscriberHandle expected = subscriber;
  if (subscriber == nullptr || !subscriber_.compare_exchange_strong(expected, nullptr)) {
    Violation("cuptiUnsubscribe with a handle that does not hold the slot");
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  for (auto& domain : callback_enabled_) {
    for (auto& id : domain) id = 0;
  }
  return CUPTI_SUCCESS;
}

CUptiResult FakeCupti::Enable(uint32_t enable, CUpti_SubscriberHandle subscriber, uint32_t domain, uint32_t cbid) {
  if (subscriber == nullptr || subscriber != subscriber_) {
    Violation("cuptiEnableCallback with a handle that does not hold the slot");
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  const char* name = cupti::CallName(domain, cbid);
  const bool api = domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  if (domain == 0 || domain >= kDomains || cbid >= kCallbackIds || (api && name == nullptr)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  callback_enabled_[domain][cbid] = enable != 0;
  return CUPTI_SUCCESS;
}

CUptiResult FakeCupti::EnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, uint32_t domain) {
  if (subscriber == nullptr || subscriber != subscriber_ || domain == 0 || domain >= kDomains) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  for (auto& id : callback_enabled_[domain]) id = enable != 0;
  return CUPTI_SUCCESS;
}

CUptiResult FakeCupti::RegisterBuffers(CUpti_BuffersCallbackRequestFunc request,
                                       CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  request_ = request;
  complete_ = complete;
  return CUPTI_SUCCESS;
}

CUptiResult FakeCupti::EnableKind(uint32_t kind, bool enable) {
  if (kind == 0 || kind >= FAKE_CUPTI_KINDS || walker_.RecordBytes(kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  if (enable && (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER)) {
    Violation("an API activity kind was enabled");
  }
  kind_enabled_[kind] = enable;
  return CUPTI_SUCCESS;
}

CUptiResult FakeCupti::SetAttribute(uint32_t attribute, size_t* size, void* value) {
  if (size == nullptr || value == nullptr || attribute >= kAttributes) return CUPTI_ERROR_INVALID_PARAMETER;
  const bool byte = attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER ||
                    attribute == CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED ||
                    attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER;
  if (*size < (byte ? sizeof(uint8_t) : sizeof(size_t))) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER) {
    zeroed_promised_ = *static_cast<uint8_t*>(value) != 0;
  }
  if (attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER) {
    for (const auto& enabled : kind_enabled_) {
      if (!enabled) continue;
      Violation("PER_THREAD_ACTIVITY_BUFFER set while a kind is enabled");
      break;
    }
  }
  return CUPTI_SUCCESS;
}

// Forgets the client and its buffers; wants mutex_ held.
void FakeCupti::Detach() {
  subscriber_ = nullptr;
  for (auto& domain : callback_enabled_) {
    for (auto& id : domain) id = 0;
  }
  for (auto& kind : kind_enabled_) kind = 0;
  request_ = nullptr;
  complete_ = nullptr;
  zeroed_promised_ = false;
  current_ = {};
  full_.clear();
}

CUptiResult FakeCupti::Finalize() {
  if (place != Place::kApiExit) Violation("cuptiFinalize outside an API exit callback");
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.finalizes;
  for (const uint64_t count : current_.records) stats_.lost_at_finalize += count;
  for (const ClientBuffer& buffer : full_) {
    for (const uint64_t count : buffer.records) stats_.lost_at_finalize += count;
  }
  Detach();
  return CUPTI_SUCCESS;
}

int FakeCupti::Callback(uint32_t domain, uint32_t cbid, const CUpti_CallbackData& data) {
  if (domain >= kDomains || cbid >= kCallbackIds || !callback_enabled_[domain][cbid]) return 0;
  const CUpti_SubscriberHandle subscriber = subscriber_;
  if (subscriber == nullptr) return 0;
  const Place outer = place;
  const bool api = domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  place = !api ? Place::kResource : data.callbackSite == CUPTI_API_EXIT ? Place::kApiExit : Place::kApiEnter;
  CUpti_CallbackData copy = data;
  if (no_parameters_) copy.functionParams = nullptr;
  subscriber->callback(subscriber->user_data, static_cast<CUpti_CallbackDomain>(domain), cbid, &copy);
  place = outer;
  ++callbacks_;
  // No graph of a replay was instantiated before our eyes.
  const char* name = api && data.callbackSite == CUPTI_API_ENTER ? cupti::CallName(domain, cbid) : nullptr;
  if (name != nullptr && std::strstr(name, "GraphLaunch") != nullptr &&
      kind_enabled_[CUPTI_ACTIVITY_KIND_GRAPH_TRACE]) {
    Violation("a graph that was instantiated without GRAPH_TRACE is launched while the kind is on: CUDA would crash");
  }
  return 1;
}

void FakeCupti::SetCorrelationRange(uint32_t first, uint64_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  first_correlation_ = first;
  correlation_count_ = count;
}

void FakeCupti::Reset() {
  std::lock_guard<std::mutex> delivery(delivery_mutex_);
  std::lock_guard<std::mutex> lock(mutex_);
  Detach();
  faults_.clear();
  busy_ = no_driver_ = no_parameters_ = false;
  version_ = kVersion13;
  walker_ = RecordWalker();
  walker_.FindReal();
  stats_ = {};
  callbacks_ = 0;
  dropped_unread_ = 0;
}

bool FakeCupti::RequestBuffer() {
  const CUpti_BuffersCallbackRequestFunc request = request_;
  ClientBuffer buffer;
  size_t max_records = 0;
  if (request != nullptr) {
    const Place outer = place;
    place = Place::kBufferCallback;
    request(&buffer.data, &buffer.size, &max_records);
    place = outer;
  }
  if (buffer.data != nullptr && reinterpret_cast<uintptr_t>(buffer.data) % 8 != 0) {
    Violation("activity buffer not aligned to 8 bytes");
  }
  if (buffer.data != nullptr && zeroed_promised_) {
    for (size_t i = 0; i < buffer.size; ++i) {
      if (buffer.data[i] == 0) continue;
      Violation("activity buffer promised to be zeroed is not");
      break;
    }
  }
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.buffers_requested;
  if (buffer.data == nullptr || buffer.size < kLargestRecord) {
    ++stats_.null_buffers;
    if (version_ < kSafeToDecline) {
      std::fprintf(stderr, "fake libcupti %u: the client declined a buffer, which crashes this version\n", version_);
      std::abort();
    }
    return false;
  }
  current_ = buffer;
  return true;
}

int FakeCupti::PushRecord(const void* record, size_t size) {
  const auto kind = Get<uint32_t>(record, 0);
  if (kind >= FAKE_CUPTI_KINDS || size > kLargestRecord) return 0;
  std::lock_guard<std::mutex> push_lock(push_mutex_);
  if (!kind_enabled_[kind]) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++stats_.not_enabled[kind];
    return 0;
  }
  alignas(8) uint8_t copy[kLargestRecord];
  std::memcpy(copy, record, size);
  size = std::min(size, walker_.RecordBytes(kind));
  bool unknown_follows = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (kind == kKernelKind) {
      if (faults_["dropped"].Due()) {
        ++stats_.dropped;
        ++dropped_unread_;
        return 0;
      }
      if (faults_["zero-timestamps"].Due()) {
        Put<uint64_t>(copy, kStart, 0);
        Put<uint64_t>(copy, kEnd, 0);
        ++stats_.zero_timestamps;
      } else if (faults_["reversed-timestamps"].Due()) {
        Put<uint64_t>(copy, kEnd, Get<uint64_t>(copy, kStart) - 1000);
        ++stats_.reversed_timestamps;
      }
      if (faults_["no-launch"].Due()) {
        const uint64_t beyond = correlation_count_ + 1000 + stats_.no_launch;
        Put<uint32_t>(copy, kKernelCorrelation, static_cast<uint32_t>(first_correlation_ + beyond));
        ++stats_.no_launch;
      }
      unknown_follows = faults_["unknown-kind"].Due();
    }
  }
  const size_t needed = size + (unknown_follows ? kUnknownRecordBytes : 0);
  for (;;) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (current_.data != nullptr && current_.used + needed <= current_.size) {
      std::memcpy(current_.data + current_.used, copy, size);
      current_.used += size;
      ++current_.records[kind];
      ++stats_.stored[kind];
      if (unknown_follows) {
        std::memset(current_.data + current_.used, 0, kUnknownRecordBytes);
        Put<uint32_t>(current_.data, current_.used, kUnknownKind);
        current_.used += kUnknownRecordBytes;
        ++stats_.unknown_records;
        HandBackFull(lock);
      }
      return 1;
    }
    if (current_.data != nullptr) HandBackFull(lock);
    lock.unlock();
    if (!RequestBuffer()) {
      lock.lock();
      ++stats_.dropped;
      ++dropped_unread_;
      return 0;
    }
  }
}

void FakeCupti::HandBackFull(std::unique_lock<std::mutex>&) {
  full_.push_back(current_);
  current_ = {};
  if (!worker_started_) {
    worker_started_ = true;
    std::thread(&FakeCupti::WorkerLoop, this).detach();
  }
  work_.notify_one();
}

void FakeCupti::WorkerLoop() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      work_.wait(lock, [this] { return !full_.empty(); });
    }
    std::lock_guard<std::mutex> delivery(delivery_mutex_);
    ClientBuffer buffer;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (full_.empty()) continue;
      buffer = full_.front();
      full_.pop_front();
    }
    HandBack(buffer);
  }
}

void FakeCupti::HandBack(const ClientBuffer& buffer) {
  const CUpti_BuffersCallbackCompleteFunc complete = complete_;
  if (complete == nullptr) return;
  const Place outer = place;
  place = Place::kBufferCallback;
  complete(nullptr, 0, buffer.data, buffer.size, buffer.used);
  place = outer;
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.buffers_completed;
  for (size_t kind = 0; kind < FAKE_CUPTI_KINDS; ++kind) stats_.delivered[kind] += buffer.records[kind];
}

CUptiResult FakeCupti::Flush() {
  if (place == Place::kBufferCallback) Violation("cuptiActivityFlushAll in an activity buffer callback");
  if (place == Place::kResource) Violation("cuptiActivityFlushAll in a resource or synchronize callback");
  if (place == Place::kBufferCallback || place == Place::kResource) return CUPTI_ERROR_INVALID_OPERATION;
  std::lock_guard<std::mutex> delivery(delivery_mutex_);
  for (;;) {
    ClientBuffer buffer;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!full_.empty()) {
        buffer = full_.front();
        full_.pop_front();
      } else if (current_.used != 0) {
        buffer = current_;
        current_ = {};
      } else {
        ++stats_.flushes;
        return CUPTI_SUCCESS;
      }
    }
    HandBack(buffer);
  }
}

void FakeCupti::GetStats(fake_cupti_stats* stats) {
  std::lock_guard<std::mutex> lock(mutex_);
  *stats = stats_;
  stats->callbacks = callbacks_;
  stats->pending = 0;
  for (size_t kind = 0; kind < FAKE_CUPTI_KINDS; ++kind) stats->pending += stats_.stored[kind] - stats_.delivered[kind];
  stats->pending -= stats_.lost_at_finalize;
  std::snprintf(stats->walker, sizeof stats->walker, "%s", walker_.Name().c_str());
}

}  // namespace
}  // namespace gpuperf::fakes

using gpuperf::fakes::Fake;

// Opens every function: the rules that hold for all of them.
#define ENTER_OFFLINE() \
  if (!Fake().Enter(__func__, false)) return CUPTI_ERROR_UNKNOWN
#define ENTER() \
  if (!Fake().Enter(__func__, true)) return CUPTI_ERROR_UNKNOWN

extern "C" {

EXPORT int fake_cupti_configure(const char* faults) { return Fake().Configure(faults); }
EXPORT int fake_cupti_callback(uint32_t domain, uint32_t cbid, const void* data) {
  return Fake().Callback(domain, cbid, *static_cast<const CUpti_CallbackData*>(data));
}
EXPORT int fake_cupti_push_record(const void* record, size_t size) { return Fake().PushRecord(record, size); }
EXPORT void fake_cupti_set_correlation_range(uint32_t first, uint64_t count) {
  Fake().SetCorrelationRange(first, count);
}
EXPORT void fake_cupti_reset() { Fake().Reset(); }
EXPORT void fake_cupti_get_stats(fake_cupti_stats* stats) { Fake().GetStats(stats); }

EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  ENTER_OFFLINE();
  *version = Fake().Version();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
  ENTER_OFFLINE();
  *timestamp = Fake().Now();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
  switch (static_cast<int>(result)) {
    case 0:
      *text = "CUPTI_SUCCESS";
      break;
    case 1:
      *text = "CUPTI_ERROR_INVALID_PARAMETER";
      break;
    case 12:
      *text = "CUPTI_ERROR_MAX_LIMIT_REACHED";
      break;
    case 15:
      *text = "CUPTI_ERROR_NOT_INITIALIZED";
      break;
    case 21:
      *text = "CUPTI_ERROR_INVALID_KIND";
      break;
    case 39:
      *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
      break;
    case 999:
      *text = "CUPTI_ERROR_UNKNOWN";
      break;
    default:
      *text = "CUPTI_ERROR (stand-in)";
      break;
  }
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                                           void* user_data) {
  ENTER();
  return Fake().Subscribe(subscriber, callback, user_data);
}

#if CUPTI_API_VERSION >= 130000
EXPORT CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                                              void* user_data, CUpti_SubscriberParams* params) {
  ENTER();
  const CUptiResult result = Fake().Subscribe(subscriber, callback, user_data);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && params != nullptr &&
      params->oldSubscriberName != nullptr) {
    std::snprintf(params->oldSubscriberName, params->oldSubscriberSize, "stand-in owner");
  }
  return result;
}
#endif

EXPORT CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  ENTER();
  return Fake().Unsubscribe(subscriber);
}

EXPORT CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  ENTER();
  return Fake().Enable(enable, subscriber, domain, cbid);
}

EXPORT CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                              CUpti_CallbackDomain domain) {
  ENTER();
  return Fake().EnableDomain(enable, subscriber, domain);
}

EXPORT CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  ENTER_OFFLINE();
  *name = gpuperf::cupti::CallName(domain, cbid);
  return *name != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                           CUpti_BuffersCallbackCompleteFunc complete) {
  ENTER_OFFLINE();
  return Fake().RegisterBuffers(request, complete);
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  ENTER();
  return Fake().EnableKind(kind, true);
}

EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  ENTER();
  return Fake().EnableKind(kind, false);
}

// Measured on 13.0.85: without the kind enabled these deliver nothing, and with it they only take ids away. The
// stand-in makes no API records, so there is nothing to filter.
EXPORT CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId, uint8_t) {
  ENTER();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId, uint8_t) {
  ENTER();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t) {
  ENTER();
  return Fake().Flush();
}

EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_size, CUpti_Activity** record) {
  return static_cast<CUptiResult>(Fake().Walker().Next(buffer, valid_size, reinterpret_cast<void**>(record)));
}

EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  ENTER();
  *dropped = Fake().TakeDropped();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t* size, void* value) {
  ENTER_OFFLINE();
  return Fake().SetAttribute(attribute, size, value);
}

EXPORT CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType) {
  ENTER_OFFLINE();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc) {
  ENTER();
  Fake().Violation("a timestamp callback was registered");
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiFinalize(void) {
  ENTER();
  return Fake().Finalize();
}

// The stand-in has one context of one device.
EXPORT CUptiResult CUPTIAPI cuptiGetContextId(CUcontext, uint32_t* context) {
  ENTER();
  *context = 1;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext, uint32_t* device) {
  ENTER();
  *device = 0;
  return CUPTI_SUCCESS;
}

}  // extern "C"
