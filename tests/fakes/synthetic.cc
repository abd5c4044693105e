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
constexpr uint64_t kStackAddress = 0x7ffd00000000;  // of configurations and results; replaced in the replay

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
  using Params = std::vector<uint8_t>;

  uint64_t StreamHandle(uint32_t thread, uint32_t stream) const {
    return 0x1000u * (thread + 1) + 0x10u * (stream + 1);
  }
  uint32_t StreamId(uint32_t thread, uint32_t stream) const { return 7 + thread * options_.streams + stream; }
  uint32_t Device(uint32_t thread) const { return thread % options_.devices; }

  template <typename T>
  static void Set(Params* params, int16_t offset, T value) {
    if (offset >= 0) Put<T>(params->data(), static_cast<size_t>(offset), value);
  }

  const CallDescriptor& Describe(uint32_t domain, const char* name, uint32_t* cbid) {
    auto [found, added] = ids_.try_emplace(name, 0);
    if (added) found->second = FindId(domain, name);
    *cbid = found->second;
    return domain == kRuntime ? cupti::kRuntimeCalls[*cbid] : cupti::kDriverCalls[*cbid];
  }

  void Callback(uint32_t thread, uint32_t domain, uint32_t cbid, uint32_t site, uint32_t correlation,
                const Params& params, uint64_t pointed, const char* symbol, const char* function) {
    CapturedEvent event{};
    event.type = CapturedEvent::kCallback;
    event.time_ns = now_;
    event.thread = thread;
    event.callback.time_ns = now_;
    event.callback.thread_index = thread;
    event.callback.domain = static_cast<uint16_t>(domain);
    event.callback.site = static_cast<uint16_t>(site);
    event.callback.cbid = cbid;
    event.callback.correlation_id = correlation;
    event.callback.context_uid = 1 + Device(thread);
    event.callback.context = 0xc0de0000 + Device(thread);
    event.callback.pointed_value = pointed;
    event.callback.params_address = params.empty() ? 0 : kStackAddress;
    event.function_name = Capture::Intern(function);
    event.symbol_name = symbol;
    event.params_offset = capture_.bytes.size();
    if (site == 0) {
      event.params_size = static_cast<uint32_t>(params.size());
      capture_.bytes.insert(capture_.bytes.end(), params.begin(), params.end());
    }
    capture_.events.push_back(event);
    now_ += 200;
  }

  // Enter and exit of a runtime call, with its driver call inside if `inner` names one.
  void Call(uint32_t thread, uint32_t domain, const char* name, uint32_t correlation, Params params, uint64_t pointed,
            const char* symbol, const std::string& inner) {
    uint32_t cbid = 0;
    const CallDescriptor& call = Describe(domain, name, &cbid);
    params.resize(call.params_size);
    Callback(thread, domain, cbid, 0, correlation, params, call.config >= 0 ? pointed : 0, symbol, name);
    if (!inner.empty()) {
      uint32_t inner_id = 0;
      const CallDescriptor& inner_call = Describe(kDriver, inner.c_str(), &inner_id);
      Params inner_params(inner_call.params_size);
      Set(&inner_params, inner_call.config, kStackAddress);
      Set(&inner_params, inner_call.address_out, kStackAddress);
      Callback(thread, kDriver, inner_id, 0, correlation, inner_params, inner_call.config >= 0 ? pointed : 0, symbol,
               inner.c_str());
      Callback(thread, kDriver, inner_id, 1, correlation, inner_params, inner_call.address_out >= 0 ? pointed : 0,
               symbol, inner.c_str());
    }
    Callback(thread, domain, cbid, 1, correlation, params, call.address_out >= 0 ? pointed : 0, symbol, name);
  }

  // Every thread waits for the device; everything is done, and its records are there, before they go on.
  void SynchronizeAll() {
    const char* name = "cudaDeviceSynchronize";
    uint32_t cbid = 0;
    Describe(kRuntime, name, &cbid);
    const uint32_t first = correlation_ + 1;
    correlation_ += options_.threads;
    for (const uint32_t site : {0u, 1u}) {
      for (uint32_t thread = 0; thread < options_.threads; ++thread) {
        Callback(thread, kRuntime, cbid, site, first + thread, {}, 0, nullptr, name);
      }
      AddBuffer();
    }
  }

  Params ParamsOf(uint32_t domain, const char* name, const CallDescriptor** call) {
    uint32_t cbid = 0;
    *call = &Describe(domain, name, &cbid);
    return Params((*call)->params_size);
  }

  void Operation(uint32_t thread, uint32_t i) {
    const uint32_t stream = i % options_.streams;
    const uint32_t correlation = ++correlation_;
    const CallDescriptor* call = nullptr;
    if (i % 512 == 511) {
      Params params = ParamsOf(kRuntime, "cudaStreamSynchronize", &call);
      Set(&params, call->stream, StreamHandle(thread, stream));
      Call(thread, kRuntime, "cudaStreamSynchronize", correlation, params, 0, nullptr, "cuStreamSynchronize");
    } else if (i % 128 == 126 || i % 128 == 127) {
      const char* name = i % 128 == 126 ? "cudaEventRecord" : "cudaStreamWaitEvent";
      Params params = ParamsOf(kRuntime, name, &call);
      Set(&params, call->stream, StreamHandle(thread, stream));
      Set<uint64_t>(&params, call->handle, 0xe000 + thread);
      Call(thread, kRuntime, name, correlation, params, 0, nullptr,
           i % 128 == 126 ? "cuEventRecord" : "cuStreamWaitEvent");
    } else if (i % 64 == 62) {
      Params params = ParamsOf(kRuntime, "cudaMemsetAsync", &call);
      Set(&params, call->stream, StreamHandle(thread, stream));
      Set(&params, call->destination, kDeviceAddress + i);
      Set<uint64_t>(&params, call->bytes, 512 + i);
      Call(thread, kRuntime, "cudaMemsetAsync", correlation, params, 0, nullptr, "cuMemsetD8Async");
      AddRecord(kMemsetKind, 88, thread, stream, correlation, 512 + i, nullptr, 0);
    } else if (i % 16 == 14) {
      const uint32_t kind = 1 + i / 16 % 3;  // cudaMemcpyKind, and the same as CUPTI's copy kinds 1, 2; 3 is its 8
      Params params = ParamsOf(kRuntime, "cudaMemcpyAsync", &call);
      Set(&params, call->stream, StreamHandle(thread, stream));
      Set(&params, call->destination, kind == 2 ? kHostAddress : kDeviceAddress);
      Set(&params, call->source, kind == 1 ? kHostAddress : kDeviceAddress + 4096);
      Set<uint64_t>(&params, call->bytes, 4096 + i);
      Set(&params, call->copy_kind, kind);
      Call(thread, kRuntime, "cudaMemcpyAsync", correlation, params, 0, nullptr, "cuMemcpyAsync");
      AddRecord(kMemcpyKind, 96, thread, stream, correlation, 4096 + i, nullptr, kind);
    } else if (i % 128 == 100) {
      Params params = ParamsOf(kRuntime, "cudaMalloc", &call);
      Set<uint64_t>(&params, call->bytes, 1 << 20);
      Set(&params, call->address_out, kStackAddress);
      Call(thread, kRuntime, "cudaMalloc", correlation, params, kDeviceAddress + (uint64_t{i} << 20), nullptr,
           "cuMemAlloc_v2");
    } else {
      const char* kernel = names_[(thread * 7 + i) % kKernelNames];
      const bool extended = i % 8 == 3;
      const char* name = extended ? "cudaLaunchKernelExC" : "cudaLaunchKernel";
      Params params = ParamsOf(kRuntime, name, &call);
      Set(&params, call->stream, StreamHandle(thread, stream));
      Set(&params, call->config, kStackAddress);
      Set<uint64_t>(&params, call->handle, 0xf000 + (thread * 7 + i) % kKernelNames);
      Call(thread, kRuntime, name, correlation, params, StreamHandle(thread, stream), kernel,
           extended ? "cuLaunchKernelEx" : "cuLaunchKernel");
      AddRecord(kKernelKind, 216, thread, stream, correlation, 0, kernel, i);
    }
  }

  void AddRecord(uint32_t kind, uint32_t size, uint32_t thread, uint32_t stream, uint32_t correlation, uint64_t bytes,
                 const char* name, uint32_t detail) {
    uint8_t raw[kLargestRecord] = {};
    uint64_t& free_at = stream_free_at_[StreamId(thread, stream)];
    const uint64_t launched = kCuptiEpoch + (now_ - kHostEpoch) + 4000;
    const uint64_t start = std::max(launched, free_at + 800);
    const uint64_t end = start + 2000 + detail % 13 * 100;
    free_at = end;
    Put(raw, 0, kind);
    Put(raw, kStart, start);
    Put(raw, kEnd, end);
    Put(raw, CorrelationOffset(kind), correlation);
    const size_t ids = kind == kKernelKind ? 40 : 32;  // device, context, stream
    Put(raw, ids, Device(thread));
    Put(raw, ids + 4, 1 + Device(thread));
    Put(raw, ids + 8, StreamId(thread, stream));
    if (kind == kKernelKind) {
      Put<uint16_t>(raw, 6, static_cast<uint16_t>(32 + detail % 4));
      const uint32_t shape[] = {1 + detail % 100, 1, 1, 256, 1, 1, 1024, 2048};
      std::memcpy(raw + 52, shape, sizeof shape);
      Put<uint64_t>(raw, 96, correlation);
      Put<uint32_t>(raw, 140, 4096);
      Put<uint32_t>(raw, 168, 8 + stream);
    } else {
      Put(raw, 8, bytes);
      if (kind == kMemcpyKind) {
        raw[4] = static_cast<uint8_t>(detail == 3 ? 8 : detail);
        raw[5] = detail == 1 ? 2 : 3;  // pinned or device
        raw[6] = detail == 2 ? 2 : 3;
        raw[7] = 1;  // asynchronous
        Put<uint64_t>(raw, 88, 1);
      } else {
        Put<uint16_t>(raw, 48, 1);
        Put<uint16_t>(raw, 50, 3);
      }
    }
    pending_.push_back({0, size, kind, name});
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
