#include "synthetic.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "cupti/call_table.h"
#include "layout.h"

namespace gpuperf::fakes {
namespace {

using cupti::CallDescriptor;

constexpr uint32_t kRuntime = cupti::kRuntimeDomain;
constexpr uint32_t kDriver = cupti::kDriverDomain;
constexpr uint64_t kHostEpoch = 1000000000000;         // host clock at the start
constexpr uint64_t kCuptiEpoch = 1700000000000000000;  // CUPTI's clock at the same time
constexpr uint32_t kKernelNames = 32;
constexpr uint64_t kDeviceAddress = 0x7f0000000000;
constexpr uint64_t kHostAddress = 0x55550000000;
constexpr uint32_t kCaptureBegin = 52;  // slots of 64 operations
constexpr uint32_t kCaptureEnd = 55;
constexpr uint64_t kStackAddress = 0x7ffd00000000;  // of configurations and results; replaced in the replay

// One call, with whatever of it the function's parameters hold.
struct CallSpec {
  uint32_t thread = 0;
  uint32_t domain = kRuntime;
  const char* name = nullptr;
  const char* inner = nullptr;   // the driver call inside a runtime call
  const char* symbol = nullptr;  // kernel
  uint64_t stream = 0;
  uint64_t handle = 0;
  uint64_t destination = 0;
  uint64_t source = 0;
  uint64_t bytes = 0;
  uint64_t bytes_factor = 0;
  uint64_t address = 0;  // freed, or given out by an allocation
  uint32_t copy_kind = 0;
  int32_t result = 0;
};

struct RecordSpec {
  uint32_t kind = kKernelKind;
  uint32_t thread = 0;
  uint32_t stream = 0;
  uint32_t correlation = 0;
  uint64_t bytes = 0;
  uint32_t detail = 0;
  const char* name = nullptr;  // kernel
  uint32_t graph = 0;
  uint64_t graph_node = 0;
};

uint32_t FindId(uint32_t domain, const char* name) {
  const size_t count = domain == kRuntime ? cupti::kRuntimeCallCount : cupti::kDriverCallCount;
  for (uint32_t cbid = 1; cbid < count; ++cbid) {
    const char* found = cupti::CallName(domain, cbid);
    if (found != nullptr && std::strcmp(found, name) == 0) return cbid;
  }
  return 0;
}

class Generator {
 public:
  explicit Generator(const SyntheticOptions& options) : options_(options) {
    capture_.thread_count = options.threads + 1;  // the last one delivers the buffers
    capture_.metadata = "{\"command\": \"synthetic\", \"given\": {\"card\": \"none (synthetic)\"}}";
    for (uint32_t i = 0; i < kKernelNames; ++i) {
      const std::string name = "synthetic_kernel_" + std::to_string(i);
      names_.push_back(Capture::Intern("_Z" + std::to_string(name.size()) + name + "Pf"));
    }
  }

  Capture Make() {
    AddClockPair();
    for (uint32_t i = 0; i < options_.operations; ++i) {
      now_ = std::max(now_, kHostEpoch + i * options_.interval_ns);
      for (uint32_t thread = 0; thread < options_.threads; ++thread) Operation(thread, i);
      if ((i + 1) % options_.operations_per_buffer == 0) AddBuffer();
    }
    SynchronizeAll();
    AddClockPair();
    return std::move(capture_);
  }

 private:
  uint64_t StreamHandle(uint32_t thread, uint32_t stream) const {
    return 0x1000u * (thread + 1) + 0x10u * (stream + 1);
  }
  uint32_t StreamId(uint32_t thread, uint32_t stream) const { return 7 + thread * options_.streams + stream; }
  uint32_t Device(uint32_t thread) const { return thread % options_.devices; }

  const CallDescriptor& Describe(uint32_t domain, const char* name, uint32_t* cbid) {
    auto [found, added] = ids_.try_emplace(name, 0);
    if (added) found->second = FindId(domain, name);
    *cbid = found->second;
    return domain == kRuntime ? cupti::kRuntimeCalls[*cbid] : cupti::kDriverCalls[*cbid];
  }

  // One end of a call.
  void Callback(const CallSpec& spec, uint32_t domain, const char* name, uint32_t site, uint32_t correlation) {
    uint32_t cbid = 0;
    const CallDescriptor& call = Describe(domain, name, &cbid);
    std::vector<uint8_t> parameters(call.params_size);
    const auto set = [&parameters](int16_t offset, auto value) {
      if (offset >= 0) Put(parameters.data(), static_cast<size_t>(offset), value);
    };
    set(call.stream, spec.stream);
    set(call.config, kStackAddress);
    set(call.handle, spec.handle);
    set(call.destination, spec.destination);
    set(call.source, spec.source);
    set(call.bytes, spec.bytes);
    set(call.bytes_factor, spec.bytes_factor);
    set(call.copy_kind, spec.copy_kind);
    set(call.address, spec.address);
    set(call.address_out, kStackAddress);

    CapturedEvent event{};
    event.type = CapturedEvent::kCallback;
    event.time_ns = now_;
    event.thread = spec.thread;
    event.callback.time_ns = now_;
    event.callback.thread_index = spec.thread;
    event.callback.domain = static_cast<uint16_t>(domain);
    event.callback.site = static_cast<uint16_t>(site);
    event.callback.cbid = cbid;
    event.callback.correlation_id = correlation;
    event.callback.context_uid = 1 + Device(spec.thread);
    event.callback.context = 0xc0de0000 + Device(spec.thread);
    if (site == 0 && call.config >= 0) event.callback.pointed_value = spec.stream;
    if (site == 1 && call.address_out >= 0 && spec.result == 0) event.callback.pointed_value = spec.address;
    if (site == 1) event.callback.return_value = spec.result;
    event.callback.params_address = parameters.empty() ? 0 : kStackAddress;
    event.function_name = Capture::Intern(name);
    event.symbol_name = spec.symbol;
    event.params_offset = capture_.bytes.size();
    if (site == 0) {
      event.params_size = static_cast<uint32_t>(parameters.size());
      capture_.bytes.insert(capture_.bytes.end(), parameters.begin(), parameters.end());
    }
    capture_.events.push_back(event);
    now_ += 200;
  }

  // A whole call; returns its correlation id.
  uint32_t Call(const CallSpec& spec) {
    const uint32_t correlation = ++correlation_;
    Callback(spec, spec.domain, spec.name, 0, correlation);
    if (spec.inner != nullptr) {
      Callback(spec, kDriver, spec.inner, 0, correlation);
      Callback(spec, kDriver, spec.inner, 1, correlation);
    }
    Callback(spec, spec.domain, spec.name, 1, correlation);
    return correlation;
  }

  // Every thread waits for the device; everything is done, and its records are there, before they go on.
  void SynchronizeAll() {
    const uint32_t first = correlation_ + 1;
    correlation_ += options_.threads;
    for (const uint32_t site : {0u, 1u}) {
      for (uint32_t thread = 0; thread < options_.threads; ++thread) {
        CallSpec spec;
        spec.thread = thread;
        Callback(spec, kRuntime, "cudaDeviceSynchronize", site, first + thread);
      }
      AddBuffer();
    }
  }

  void Operation(uint32_t thread, uint32_t i) {
    const uint32_t slot = i % 64;
    // The four operations of a graph capture are on one stream.
    const uint32_t stream = slot >= kCaptureBegin && slot <= kCaptureEnd ? 0 : i % options_.streams;
    CallSpec call;
    call.thread = thread;
    call.stream = StreamHandle(thread, stream);
    RecordSpec record;
    record.thread = thread;
    record.stream = stream;
    record.detail = i;
    const auto copy = [&](const char* name, const char* inner, uint32_t domain, uint32_t kind) {
      call.domain = domain;
      call.name = name;
      call.inner = inner;
      call.destination = kind == 2 ? kHostAddress : kDeviceAddress;
      call.source = kind == 1 ? kHostAddress : kDeviceAddress + 4096;
      call.copy_kind = kind;
      record.kind = kMemcpyKind;
      record.detail = kind;
    };
    const auto launch = [&](const char* name, const char* inner, uint32_t domain) {
      const uint32_t kernel = (thread * 7 + i) % kKernelNames;
      call.domain = domain;
      call.name = name;
      call.inner = inner;
      call.symbol = record.name = names_[kernel];
      call.handle = 0xf000 + kernel;
    };
    const auto event = [&](const char* name, const char* inner) {
      call.name = name;
      call.inner = inner;
      call.handle = 0xe000 + thread;
    };
    switch (slot) {
      case 5:
      case 21:  // as Triton launches
        launch("cuLaunchKernelEx", nullptr, kDriver);
        break;
      case 9:
        copy("cudaMemcpy2DAsync", "cuMemcpy2DAsync_v2", kRuntime, 3);
        call.bytes = 256;
        call.bytes_factor = 16;
        record.bytes = 4096;
        break;
      case 14:
      case 30:
      case 46:
        copy("cudaMemcpyAsync", "cuMemcpyAsync", kRuntime, 1 + i / 16 % 3);
        call.bytes = record.bytes = 4096 + i;
        break;
      case 25:
        copy("cudaMemcpyPeerAsync", "cuMemcpyPeerAsync", kRuntime, 3);
        call.bytes = record.bytes = 8192 + i;
        record.kind = kPeerMemcpyKind;
        break;
      case 33:
        event("cudaEventSynchronize", "cuEventSynchronize");
        Call(call);
        return;
      case 36:
        call.name = "cudaMalloc";
        call.inner = "cuMemAlloc_v2";
        call.bytes = 1 << 20;
        call.address = kDeviceAddress + (uint64_t{i} << 20);
        Call(call);
        return;
      case 37:
        call.name = "cudaFree";
        call.inner = "cuMemFree_v2";
        call.address = kDeviceAddress + (uint64_t{i - 1} << 20);
        Call(call);
        return;
      case 41:  // out of memory
        call.name = "cudaMalloc";
        call.bytes = uint64_t{1} << 50;
        call.result = 2;
        Call(call);
        return;
      case 49: {
        call.name = "cudaGraphLaunch";
        call.inner = "cuGraphLaunch";
        call.handle = 0x9000 + thread;
        record.correlation = Call(call);
        for (uint32_t node = 1; node <= 3; ++node) {
          record.name = names_[node];
          record.graph = 11 + thread;
          record.graph_node = (uint64_t{record.graph} << 32) + node;
          AddRecord(record);
        }
        return;
      }
      case kCaptureBegin:
        call.name = "cudaStreamBeginCapture";
        call.inner = "cuStreamBeginCapture_v2";
        Call(call);
        return;
      case kCaptureBegin + 1:
      case kCaptureBegin + 2:  // become nodes: no device record
        launch("cudaLaunchKernel", "cuLaunchKernel", kRuntime);
        Call(call);
        return;
      case kCaptureEnd:
        call.name = "cudaStreamEndCapture";
        call.inner = "cuStreamEndCapture";
        Call(call);
        return;
      case 57:
        copy("cuMemcpyHtoDAsync_v2", nullptr, kDriver, 1);
        call.bytes = record.bytes = 2048 + i;
        break;
      case 60:
        event("cudaEventRecord", "cuEventRecord");
        Call(call);
        return;
      case 61:
        event("cudaStreamWaitEvent", "cuStreamWaitEvent");
        Call(call);
        return;
      case 62:
        call.name = "cudaMemsetAsync";
        call.inner = "cuMemsetD8Async";
        call.destination = kDeviceAddress + i;
        call.bytes = record.bytes = 512 + i;
        record.kind = kMemsetKind;
        break;
      case 63:
        if (i % 512 == 511) {
          call.name = "cudaStreamSynchronize";
          call.inner = "cuStreamSynchronize";
          Call(call);
          return;
        }
        [[fallthrough]];
      default:
        if (slot % 8 == 3) {
          launch("cudaLaunchKernelExC", "cuLaunchKernelEx", kRuntime);
        } else {
          launch("cudaLaunchKernel", "cuLaunchKernel", kRuntime);
        }
        break;
    }
    record.correlation = Call(call);
    AddRecord(record);
  }

  void AddRecord(const RecordSpec& spec) {
    uint8_t raw[kLargestRecord] = {};
    uint64_t& free_at = stream_free_at_[StreamId(spec.thread, spec.stream)];
    const uint64_t launched = kCuptiEpoch + (now_ - kHostEpoch) + 4000;
    const uint64_t start = std::max(launched, free_at + 800);
    const uint64_t end = start + 2000 + spec.detail % 13 * 100;
    free_at = end;
    Put(raw, 0, spec.kind);
    Put(raw, kStart, start);
    Put(raw, kEnd, end);
    Put(raw, CorrelationOffset(spec.kind), spec.correlation);
    const size_t ids = spec.kind == kKernelKind ? 40 : 32;  // device, context, stream
    Put(raw, ids, Device(spec.thread));
    Put(raw, ids + 4, 1 + Device(spec.thread));
    Put(raw, ids + 8, StreamId(spec.thread, spec.stream));
    uint32_t size = 0;
    switch (spec.kind) {
      case kKernelKind: {
        size = 216;
        Put<uint16_t>(raw, 6, static_cast<uint16_t>(32 + spec.detail % 4));
        // grid, block, static and dynamic shared memory
        const uint32_t shape[] = {1 + spec.detail % 100, 1, 1, 256, 1, 1, 1024, 2048};
        std::memcpy(raw + 52, shape, sizeof shape);
        Put<uint64_t>(raw, 96, spec.correlation);  // grid id
        Put<uint32_t>(raw, 140, 4096);
        Put(raw, 144, spec.graph_node);
        Put(raw, 156, spec.graph);
        Put<uint32_t>(raw, 168, 8 + spec.stream);  // channel
        break;
      }
      case kMemsetKind:
        size = 88;
        Put(raw, 8, spec.bytes);
        Put<uint16_t>(raw, 48, 1);  // asynchronous
        Put<uint16_t>(raw, 50, 3);  // device memory
        break;
      default:
        size = 96;
        Put(raw, 8, spec.bytes);
        // Copy kinds: 1 HtoD, 2 DtoH, 8 DtoD, 10 peer; memory kinds: 2 pinned, 3 device.
        raw[4] = static_cast<uint8_t>(spec.kind == kPeerMemcpyKind ? 10 : spec.detail == 3 ? 8 : spec.detail);
        raw[5] = spec.detail == 1 ? 2 : 3;
        raw[6] = spec.detail == 2 ? 2 : 3;
        raw[7] = 1;  // asynchronous
        if (spec.kind == kMemcpyKind) {
          Put<uint64_t>(raw, 88, 1);  // copies
        } else {
          const uint32_t other = (Device(spec.thread) + 1) % options_.devices;
          const uint32_t ends[] = {Device(spec.thread), 1 + Device(spec.thread), other, 1 + other};
          std::memcpy(raw + 44, ends, sizeof ends);
        }
        break;
    }
    pending_.push_back({0, size, spec.kind, spec.name});
    pending_bytes_.insert(pending_bytes_.end(), raw, raw + size);
  }

  void AddBuffer() {
    if (pending_.empty()) return;
    CapturedEvent event{};
    event.type = CapturedEvent::kBuffer;
    event.time_ns = now_;
    event.thread = options_.threads;
    event.first_record = capture_.records.size();
    event.record_count = pending_.size();
    size_t offset = capture_.bytes.size();
    for (CapturedRecord record : pending_) {
      record.offset = offset;
      offset += record.size;
      capture_.records.push_back(record);
    }
    capture_.bytes.insert(capture_.bytes.end(), pending_bytes_.begin(), pending_bytes_.end());
    pending_.clear();
    pending_bytes_.clear();
    capture_.events.push_back(event);
  }

  void AddClockPair() { capture_.clock_pairs.push_back({now_ - 50, kCuptiEpoch + (now_ - kHostEpoch), now_ + 50}); }

  const SyntheticOptions options_;
  Capture capture_;
  std::vector<const char*> names_;
  std::map<std::string, uint32_t> ids_;
  std::map<uint32_t, uint64_t> stream_free_at_;
  std::vector<CapturedRecord> pending_;
  std::vector<uint8_t> pending_bytes_;
  uint64_t now_ = kHostEpoch;
  uint32_t correlation_ = 100;
};

}  // namespace

Capture MakeSynthetic(const SyntheticOptions& options) { return Generator(options).Make(); }

}  // namespace gpuperf::fakes
