// Proves the stand-in: what a test builds on it is worth only as much as this. A small CUPTI client of its own stands
// in for the tool.
#include <cupti.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "capture.h"
#include "catch.h"
#include "cupti/call_table.h"
#include "layout.h"
#include "replayer.h"
#include "synthetic.h"

namespace gpuperf::fakes {
namespace {

constexpr size_t kBufferBytes = 16 * 1024;

struct Cupti {
  FakeCuptiApi fake;
  decltype(&cuptiGetVersion) GetVersion = nullptr;
  decltype(&cuptiSubscribe) Subscribe = nullptr;
  decltype(&cuptiUnsubscribe) Unsubscribe = nullptr;
  decltype(&cuptiEnableCallback) EnableCallback = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) ActivityRegisterCallbacks = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) ActivityRegisterTimestampCallback = nullptr;
  decltype(&cuptiActivityEnable) ActivityEnable = nullptr;
  decltype(&cuptiActivityFlushAll) ActivityFlushAll = nullptr;
  decltype(&cuptiActivityGetNextRecord) ActivityGetNextRecord = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) ActivityGetNumDroppedRecords = nullptr;
  decltype(&cuptiActivitySetAttribute) ActivitySetAttribute = nullptr;
  decltype(&cuptiFinalize) Finalize = nullptr;

  Cupti() {
    std::string error;
    if (!fake.Load(&error)) {
      std::fprintf(stderr, "fakes_test: %s\n", error.c_str());
      std::abort();
    }
    void* library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    const auto find = [library](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(dlsym(library, name));
      if (*function == nullptr) std::abort();
    };
    find("cuptiGetVersion", &GetVersion);
    find("cuptiSubscribe", &Subscribe);
    find("cuptiUnsubscribe", &Unsubscribe);
    find("cuptiEnableCallback", &EnableCallback);
    find("cuptiActivityRegisterCallbacks", &ActivityRegisterCallbacks);
    find("cuptiActivityRegisterTimestampCallback", &ActivityRegisterTimestampCallback);
    find("cuptiActivityEnable", &ActivityEnable);
    find("cuptiActivityFlushAll", &ActivityFlushAll);
    find("cuptiActivityGetNextRecord", &ActivityGetNextRecord);
    find("cuptiActivityGetNumDroppedRecords", &ActivityGetNumDroppedRecords);
    find("cuptiActivitySetAttribute", &ActivitySetAttribute);
    find("cuptiFinalize", &Finalize);
  }
};

Cupti& Api() {
  static auto* cupti = new Cupti;
  return *cupti;
}

struct SeenCall {
  uint32_t domain, cbid, site, correlation;
  uint64_t stream, out;
  std::string function, symbol;
  int result = 0;
};

struct SeenRecord {
  std::vector<uint8_t> raw;
  std::string name;
  uint32_t Kind() const { return Get<uint32_t>(raw.data(), 0); }
  uint32_t Correlation() const { return Get<uint32_t>(raw.data(), CorrelationOffset(Kind())); }
  uint64_t Start() const { return Get<uint64_t>(raw.data(), kStart); }
  uint64_t End() const { return Get<uint64_t>(raw.data(), kEnd); }
};

// What the client saw.
struct Client {
  std::mutex mutex;
  std::map<uint32_t, std::vector<SeenCall>> calls;  // by thread id
  std::vector<SeenRecord> records;
  size_t unreadable_buffers = 0;
  bool decline_buffers = false;
  bool flush_in_buffer_callback = false;
  bool finalize_in_exit = false;
  CUpti_SubscriberHandle handle = nullptr;

  std::vector<SeenCall> AllCalls() {
    std::vector<SeenCall> all;
    for (const auto& [tid, own] : calls) all.insert(all.end(), own.begin(), own.end());
    return all;
  }
};

Client* client = nullptr;

const cupti::CallDescriptor& Row(uint32_t domain, uint32_t cbid) {
  return domain == cupti::kRuntimeDomain ? cupti::kRuntimeCalls[cbid] : cupti::kDriverCalls[cbid];
}

void CUPTIAPI OnCall(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* raw) {
  const auto& data = *static_cast<const CUpti_CallbackData*>(raw);
  const cupti::CallDescriptor& row = Row(domain, cbid);
  SeenCall seen{domain,
                cbid,
                static_cast<uint32_t>(data.callbackSite),
                data.correlationId,
                0,
                0,
                data.functionName,
                data.symbolName != nullptr ? data.symbolName : ""};
  if (data.functionParams != nullptr) {
    if (row.stream >= 0) seen.stream = Get<uint64_t>(data.functionParams, static_cast<size_t>(row.stream));
    if (row.config >= 0) {
      const auto* config = Get<const void*>(data.functionParams, static_cast<size_t>(row.config));
      if (config != nullptr) seen.stream = Get<uint64_t>(config, static_cast<size_t>(row.config_stream));
    }
    if (row.address_out >= 0 && seen.site == CUPTI_API_EXIT) {
      seen.out = Get<uint64_t>(Get<const void*>(data.functionParams, static_cast<size_t>(row.address_out)), 0);
    }
  }
  if (seen.site == CUPTI_API_EXIT) seen.result = *static_cast<const int*>(data.functionReturnValue);
  if (seen.site == CUPTI_API_ENTER) {
    *data.correlationData = data.correlationId;
  } else if (*data.correlationData != data.correlationId) {
    std::abort();
  }
  if (client->finalize_in_exit && seen.site == CUPTI_API_EXIT) {
    client->finalize_in_exit = false;
    Api().Finalize();
  }
  std::lock_guard<std::mutex> lock(client->mutex);
  client->calls[static_cast<uint32_t>(gettid())].push_back(seen);
}

void CUPTIAPI OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *max_records = 0;
  *size = kBufferBytes;
  *buffer = client->decline_buffers ? nullptr : static_cast<uint8_t*>(std::calloc(1, kBufferBytes));
}

void CUPTIAPI OnBufferCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  CUptiResult result;
  while ((result = Api().ActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS) {
    const auto* begin = reinterpret_cast<const uint8_t*>(record);
    const uint32_t kind = Get<uint32_t>(begin, 0);
    const size_t size = kind == kKernelKind ? 208 : 88;
    SeenRecord seen{std::vector<uint8_t>(begin, begin + size), ""};
    if (kind == kKernelKind) seen.name = Get<const char*>(begin, kKernelName);
    std::lock_guard<std::mutex> lock(client->mutex);
    client->records.push_back(std::move(seen));
  }
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) {
    std::lock_guard<std::mutex> lock(client->mutex);
    ++client->unreadable_buffers;
  }
  if (client->flush_in_buffer_callback) Api().ActivityFlushAll(0);
  std::free(buffer);
}

// A fresh stand-in with a fresh client that subscribes to everything traced, or to one id.
Client& Attach(uint32_t only_domain = 0, uint32_t only_cbid = 0) {
  Api().fake.reset();
  delete client;
  client = new Client;
  REQUIRE(Api().Subscribe(&client->handle, OnCall, nullptr) == CUPTI_SUCCESS);
  for (const uint32_t domain : {cupti::kRuntimeDomain, cupti::kDriverDomain}) {
    const size_t count = domain == cupti::kRuntimeDomain ? cupti::kRuntimeCallCount : cupti::kDriverCallCount;
    for (uint32_t cbid = 1; cbid < count; ++cbid) {
      const bool wanted = only_domain == 0 ? Row(domain, cbid).kind != cupti::CallKind::kNotTraced
                                           : domain == only_domain && cbid == only_cbid;
      if (wanted) {
        REQUIRE(Api().EnableCallback(1, client->handle, static_cast<CUpti_CallbackDomain>(domain), cbid) ==
                CUPTI_SUCCESS);
      }
    }
  }
  REQUIRE(Api().ActivityRegisterCallbacks(OnBufferRequested, OnBufferCompleted) == CUPTI_SUCCESS);
  for (const uint32_t kind : kDeviceKinds) {
    REQUIRE(Api().ActivityEnable(static_cast<CUpti_ActivityKind>(kind)) == CUPTI_SUCCESS);
  }
  return *client;
}

ReplayResult Play(const Capture& capture, const ReplayOptions& options = {}) {
  Replayer replayer(capture, Api().fake, options);
  ReplayResult result = replayer.Run();
  REQUIRE(Api().ActivityFlushAll(0) == CUPTI_SUCCESS);
  return result;
}

fake_cupti_stats Stats() {
  fake_cupti_stats stats;
  Api().fake.get_stats(&stats);
  return stats;
}

Capture Small(uint32_t threads = 3, uint32_t operations = 600) {
  SyntheticOptions options;
  options.threads = threads;
  options.operations = operations;
  return MakeSynthetic(options);
}

std::map<uint32_t, size_t> CountKinds(const Capture& capture) {
  std::map<uint32_t, size_t> counts;
  for (const CapturedRecord& record : capture.records) ++counts[record.kind];
  return counts;
}

// What one recorded thread must have seen, as (domain, cbid, site, correlation id).
std::vector<SeenCall> Expected(const Capture& capture, uint32_t thread, const ReplayResult& result, uint32_t loops) {
  std::vector<SeenCall> calls;
  for (uint32_t loop = 0; loop < loops; ++loop) {
    for (const CapturedEvent& event : capture.events) {
      if (event.type != CapturedEvent::kCallback || event.thread != thread) continue;
      const auto correlation = static_cast<uint32_t>(result.correlation_base + event.callback.correlation_id -
                                                     result.correlation_first + loop * result.correlation_stride);
      calls.push_back({event.callback.domain, event.callback.cbid, event.callback.site, correlation, 0, 0,
                       event.function_name, ""});
    }
  }
  return calls;
}

void CheckOrder(const Capture& capture, const ReplayResult& result, uint32_t loops) {
  for (uint32_t thread = 0; thread < result.threads.size(); ++thread) {
    const std::vector<SeenCall> expected = Expected(capture, thread, result, loops);
    const std::vector<SeenCall>& seen = client->calls[result.tids[thread]];
    INFO("thread " << thread);
    REQUIRE(seen.size() == expected.size());
    bool same = true;
    for (size_t i = 0; i < seen.size(); ++i) {
      same = same && seen[i].domain == expected[i].domain && seen[i].cbid == expected[i].cbid &&
             seen[i].site == expected[i].site && seen[i].correlation == expected[i].correlation &&
             seen[i].function == expected[i].function;
    }
    CHECK(same);
  }
}

void CheckRecords(const Capture& capture, const ReplayResult& result, uint32_t loops) {
  REQUIRE(client->records.size() == capture.records.size() * loops);
  bool same = true;
  size_t at = 0;
  for (uint32_t loop = 0; loop < loops; ++loop) {
    const uint64_t shift = result.device_shift_ns + loop * result.period_ns;
    for (const CapturedRecord& record : capture.records) {
      std::vector<uint8_t> raw(capture.bytes.begin() + static_cast<ptrdiff_t>(record.offset),
                               capture.bytes.begin() + static_cast<ptrdiff_t>(record.offset + record.size));
      const SeenRecord& seen = client->records[at++];
      raw.resize(seen.raw.size());
      std::vector<size_t> times = {kStart, kEnd};
      if (record.kind == kKernelKind) times.insert(times.end(), std::begin(kKernelTimes), std::end(kKernelTimes));
      for (const size_t offset : times) {
        const auto time = Get<uint64_t>(raw.data(), offset);
        if (time != 0) Put(raw.data(), offset, time + shift);
      }
      const size_t id = CorrelationOffset(record.kind);
      const auto recorded = Get<uint32_t>(raw.data(), id);
      Put(raw.data(), id,
          static_cast<uint32_t>(result.correlation_base + recorded - result.correlation_first +
                                loop * result.correlation_stride));
      if (record.kind == kKernelKind) {
        Put(raw.data(), kKernelName, Get<uint64_t>(seen.raw.data(), kKernelName));
        same = same && seen.name == record.name;
      }
      same = same && raw == seen.raw;
    }
  }
  CHECK(same);
}

TEST_CASE("only subscribed ids are dispatched") {
  const Capture capture = Small();
  size_t launches = 0;
  uint32_t cbid = 0;
  for (const CapturedEvent& event : capture.events) {
    if (event.type != CapturedEvent::kCallback || std::strcmp(event.function_name, "cudaLaunchKernel") != 0) continue;
    cbid = event.callback.cbid;
    ++launches;
  }
  Attach(cupti::kRuntimeDomain, cbid);
  const ReplayResult result = Play(capture);
  const std::vector<SeenCall> calls = client->AllCalls();
  CHECK(calls.size() == launches);
  CHECK(std::all_of(calls.begin(), calls.end(), [&](const SeenCall& call) { return call.cbid == cbid; }));
  CHECK(Stats().callbacks == launches);
  CHECK(result.dispatched.size() == 1);
  CHECK(result.dispatched.at("runtime:cudaLaunchKernel") == launches / 2);
}

TEST_CASE("each thread's calls come in the recorded order, with what they point to") {
  const Capture capture = Small();
  for (const bool concurrent : {false, true}) {
    INFO("concurrent " << concurrent);
    Attach();
    ReplayOptions options;
    options.concurrent = concurrent;
    options.loops = 3;
    const ReplayResult result = Play(capture, options);
    CheckOrder(capture, result, 3);
    CheckRecords(capture, result, 3);
    for (const SeenCall& call : client->AllCalls()) {
      const cupti::CallKind kind = Row(call.domain, call.cbid).kind;
      if (call.domain == cupti::kRuntimeDomain && kind == cupti::CallKind::kLaunch) {
        REQUIRE(call.stream >= 0x1000);
        REQUIRE(call.symbol.find("synthetic_kernel") != std::string::npos);
      }
      if (call.domain == cupti::kRuntimeDomain && kind == cupti::CallKind::kAllocate && call.site == CUPTI_API_EXIT) {
        REQUIRE((call.result == 0) == (call.out >= 0x7f0000000000));
      }
    }
    CHECK(Stats().violations == 0);
  }
}

TEST_CASE("records are delivered as recorded, those of kinds that are not enabled are not") {
  const Capture capture = Small();
  Attach();
  CheckRecords(capture, Play(capture), 1);
  const fake_cupti_stats stats = Stats();
  for (const auto& [kind, count] : CountKinds(capture)) {
    CHECK(stats.stored[kind] == count);
    CHECK(stats.delivered[kind] == count);
  }
  CHECK(stats.pending == 0);
  INFO("records were walked by " << stats.walker);

  Api().fake.reset();
  delete client;
  client = new Client;
  REQUIRE(Api().ActivityRegisterCallbacks(OnBufferRequested, OnBufferCompleted) == CUPTI_SUCCESS);
  REQUIRE(Api().ActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS);
  Play(capture);
  CHECK(client->records.size() == CountKinds(capture)[kMemsetKind]);
  CHECK(Stats().not_enabled[kKernelKind] == CountKinds(capture)[kKernelKind]);
}

TEST_CASE("correlation ids wrap in the middle and still join") {
  const Capture capture = Small();
  Attach();
  ReplayOptions options;
  options.wrap_correlation = true;
  options.loops = 2;
  const ReplayResult result = Play(capture, options);
  CheckOrder(capture, result, 2);
  std::set<uint32_t> launched;
  for (const SeenCall& call : client->AllCalls()) launched.insert(call.correlation);
  CHECK(*launched.begin() < 10000);
  CHECK(*launched.rbegin() > UINT32_MAX - 10000);
  CHECK(std::all_of(client->records.begin(), client->records.end(),
                    [&](const SeenRecord& record) { return launched.count(record.Correlation()) != 0; }));
}

TEST_CASE("each fault comes exactly as often as it says") {
  const Capture capture = Small();
  const size_t kernels = CountKinds(capture)[kKernelKind];
  const auto run = [&](const char* faults) {
    Attach();
    REQUIRE(Api().fake.configure(faults) == 0);
    Play(capture);
    return Stats();
  };
  const auto seen = [&](auto matches) {
    return static_cast<size_t>(std::count_if(client->records.begin(), client->records.end(), matches));
  };

  SECTION("zero timestamps") {
    CHECK(run("zero-timestamps:7").zero_timestamps == kernels / 7);
    CHECK(seen([](const SeenRecord& r) { return r.Start() == 0 && r.End() == 0; }) == kernels / 7);
  }
  SECTION("reversed timestamps") {
    CHECK(run("reversed-timestamps:7").reversed_timestamps == kernels / 7);
    CHECK(seen([](const SeenRecord& r) { return r.End() < r.Start(); }) == kernels / 7);
  }
  SECTION("dropped records") {
    CHECK(run("dropped:9").dropped == kernels / 9);
    CHECK(client->records.size() == capture.records.size() - kernels / 9);
    size_t dropped = 0;
    REQUIRE(Api().ActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS);
    CHECK(dropped == kernels / 9);
    REQUIRE(Api().ActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS);
    CHECK(dropped == 0);
  }
  SECTION("kernels without a launch") {
    CHECK(run("no-launch:11").no_launch == kernels / 11);
    std::set<uint32_t> launched;
    for (const SeenCall& call : client->AllCalls()) launched.insert(call.correlation);
    CHECK(seen([&](const SeenRecord& r) { return launched.count(r.Correlation()) == 0; }) == kernels / 11);
  }
  SECTION("records of unknown kind") {
    CHECK(run("unknown-kind:50").unknown_records == kernels / 50);
    CHECK(client->unreadable_buffers == kernels / 50);
    CHECK(client->records.size() == capture.records.size());
  }
  SECTION("several at once") {
    const fake_cupti_stats stats = run("dropped:5,zero-timestamps:3");
    CHECK(stats.dropped == kernels / 5);
    CHECK(stats.zero_timestamps == (kernels - kernels / 5) / 3);
  }
  SECTION("unknown names are refused") { CHECK(Api().fake.configure("dropped:5,flood:3") == -1); }
}

TEST_CASE("a declined buffer drops records, and crashes CUPTI 12.6") {
  const Capture capture = Small();
  Attach();
  client->decline_buffers = true;
  Play(capture);
  CHECK(client->records.empty());
  CHECK(Stats().null_buffers == capture.records.size());
  CHECK(Stats().dropped == capture.records.size());

  Attach();
  REQUIRE(Api().fake.configure("cupti-12") == 0);
  client->decline_buffers = true;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    const CapturedRecord& record = capture.records.front();
    Api().fake.push_record(capture.bytes.data() + record.offset, record.size);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("CUPTI 12.6 has its own version and record sizes") {
  const Capture capture = Small();
  Attach();
  REQUIRE(Api().fake.configure("cupti-12") == 0);
  uint32_t version = 0;
  REQUIRE(Api().GetVersion(&version) == CUPTI_SUCCESS);
  CHECK(version == 24);
  const ReplayResult result = Play(capture);
  CheckRecords(capture, result, 1);
  alignas(8) uint8_t buffer[512] = {};
  Put(buffer, 0, kKernelKind);
  Put(buffer, 208, kKernelKind);
  CUpti_Activity* record = nullptr;
  REQUIRE(Api().ActivityGetNextRecord(buffer, sizeof buffer, &record) == CUPTI_SUCCESS);
  REQUIRE(Api().ActivityGetNextRecord(buffer, sizeof buffer, &record) == CUPTI_SUCCESS);
  CHECK(reinterpret_cast<uint8_t*>(record) - buffer == 208);
}

TEST_CASE("the slot is one, and without a driver nothing works") {
  Attach();
  CUpti_SubscriberHandle second = nullptr;
  CHECK(Api().Subscribe(&second, OnCall, nullptr) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  REQUIRE(Api().Unsubscribe(client->handle) == CUPTI_SUCCESS);
  CHECK(Api().Subscribe(&second, OnCall, nullptr) == CUPTI_SUCCESS);
  CHECK(Stats().violations == 0);
  CHECK(Api().Unsubscribe(client->handle) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(Stats().violations == 1);

  Api().fake.reset();
  REQUIRE(Api().fake.configure("busy") == 0);
  CHECK(Api().Subscribe(&second, OnCall, nullptr) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);

  Api().fake.reset();
  REQUIRE(Api().fake.configure("no-driver") == 0);
  CHECK(Api().Subscribe(&second, OnCall, nullptr) == CUPTI_ERROR_UNKNOWN);
  CHECK(Api().ActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_ERROR_UNKNOWN);
  uint32_t version = 0;
  CHECK(Api().GetVersion(&version) == CUPTI_SUCCESS);
}

uint64_t CUPTIAPI SomeClock() { return 1; }

TEST_CASE("broken rules are noted") {
  const Capture capture = Small(1, 200);
  Attach();
  SECTION("none") {
    Play(capture);
    CHECK(Stats().violations == 0);
  }
  SECTION("finalize outside an exit callback") {
    Api().Finalize();
    CHECK(Stats().violations == 1);
    CHECK(Stats().finalizes == 1);
  }
  SECTION("finalize in an exit callback is right, and ends everything") {
    client->finalize_in_exit = true;
    Play(capture);
    CHECK(Stats().violations == 0);
    CHECK(Stats().finalizes == 1);
    CHECK(client->AllCalls().size() < 8);
    CHECK(client->records.empty());
    REQUIRE(Api().Subscribe(&client->handle, OnCall, nullptr) == CUPTI_SUCCESS);
  }
  SECTION("flush in a buffer callback") {
    client->flush_in_buffer_callback = true;
    Play(capture);
    CHECK(Stats().violations == Stats().buffers_completed);
  }
  SECTION("timestamp callback") {
    Api().ActivityRegisterTimestampCallback(SomeClock);
    CHECK(Stats().violations == 1);
  }
  SECTION("API activity kinds") {
    Api().ActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
    CHECK(Stats().violations == 1);
  }
  SECTION("a buffer promised to be zeroed that is not") {
    uint8_t yes = 1;
    size_t size = sizeof yes;
    REQUIRE(Api().ActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &yes) == CUPTI_SUCCESS);
    Play(capture);
    CHECK(Stats().violations == 0);
    REQUIRE(Api().ActivityRegisterCallbacks(
                [](uint8_t** buffer, size_t* bytes, size_t* records) {
                  OnBufferRequested(buffer, bytes, records);
                  (*buffer)[100] = 1;
                },
                OnBufferCompleted) == CUPTI_SUCCESS);
    Play(capture);
    CHECK(Stats().violations > 0);
  }
  SECTION("calls in a forked child") {
    const std::string log =
        (std::filesystem::temp_directory_path() / ("fakes_test." + std::to_string(getpid()))).string();
    setenv("GPUPERF_FAKE_VIOLATIONS", log.c_str(), 1);
    const pid_t child = fork();
    if (child == 0) {
      Api().ActivityFlushAll(0);
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    unsetenv("GPUPERF_FAKE_VIOLATIONS");
    CHECK(std::filesystem::file_size(log) > 0);
    std::filesystem::remove(log);
  }
}

TEST_CASE("a capture written to a file reads back the same") {
  const Capture capture = Small();
  const std::string path = (std::filesystem::temp_directory_path() / ("capture." + std::to_string(getpid()))).string();
  std::string error;
  REQUIRE(capture.Save(path, &error));
  Capture back;
  REQUIRE(back.Load(path, &error));
  CHECK(back.events.size() == capture.events.size());
  CHECK(back.records.size() == capture.records.size());
  Attach();
  CheckRecords(capture, Play(back), 1);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
  Capture torn;
  CHECK_FALSE(torn.Load(path, &error));
  CHECK(error.find("ends in the middle") != std::string::npos);
  std::filesystem::remove(path);
  Capture none;
  CHECK_FALSE(none.Load(path, &error));
}

TEST_CASE("captures of real GPUs play, every record joined to its call") {
  size_t played = 0;
  const std::string folder = std::string(GPUPERF_TEST_DATA_DIR) + "/captures";
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string path = entry.path().string();
      if (path.find(".gpcap") == std::string::npos) continue;
      INFO(path);
      Capture capture;
      std::string error;
      REQUIRE(capture.Load(path, &error));
      Attach();
      const ReplayResult result = Play(capture);
      CheckOrder(capture, result, 1);
      CheckRecords(capture, result, 1);
      std::set<uint32_t> called;
      for (const SeenCall& call : client->AllCalls()) called.insert(call.correlation);
      CHECK(std::all_of(client->records.begin(), client->records.end(),
                        [&](const SeenRecord& record) { return called.count(record.Correlation()) != 0; }));
      ++played;
    }
  }
  if (played == 0) std::puts("no captures of a real GPU in tests/data/captures");
}

}  // namespace
}  // namespace gpuperf::fakes
