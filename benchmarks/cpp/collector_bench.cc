// Collector and writer on one core: kernels (with their launches) a second, CUPTI's walk of the records included. The
// records and calls are those of a run recorded on an H200; they are put into pool and rings outside the timed part.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/log.h"
#include "capture.h"
#include "collector/collector.h"
#include "cupti/call_table.h"
#include "cupti/cupti_api.h"
#include "report.h"
#include "ring/buffer_pool.h"
#include "trace/trace_writer.h"

namespace {

namespace cupti = gpuperf::cupti;
namespace ring = gpuperf::ring;
using gpuperf::fakes::Capture;
using gpuperf::fakes::CapturedEvent;
using gpuperf::fakes::CapturedRecord;

constexpr int kLoops = 40;

// Writes what the callback would have written. Inner driver calls are those with the id of the call around them.
void PushCall(const CapturedEvent& event, uint32_t shift, uint32_t* open, char* open_is_runtime) {
  const auto& callback = event.callback;
  ring::ThreadState* thread = ring::Current();
  const uint32_t correlation = callback.correlation_id + shift;
  const bool driver = callback.domain == cupti::kDriverDomain;
  const auto aux = static_cast<uint16_t>(callback.cbid | (driver ? ring::kDriverBit : 0));
  // Launches of the runtime end with the runtime's exit; their driver call's exit has the same id and comes first.
  const bool inner_exit = driver && *open_is_runtime;
  if (callback.site == cupti::kSiteEnter) {
    if (*open == correlation) return;
    *open = correlation;
    *open_is_runtime = !driver;
    const char* symbol = event.symbol_name;
    const char*& slot = thread->symbols[ring::ThreadState::SymbolSlot(reinterpret_cast<uintptr_t>(symbol))];
    if (symbol != nullptr && slot != symbol) {
      const size_t length = std::min(std::strlen(symbol), ring::kMaxNameBytes);
      const size_t bytes = 24 + ring::WordsFor(length) * 8;
      std::byte* record = thread->ring.Reserve(bytes);
      new (record) ring::RecordHeader{static_cast<uint8_t>(bytes / 8), ring::RecordKind::kSymbol, 0,
                                      static_cast<uint32_t>(length), event.time_ns};
      std::memcpy(record + 16, &symbol, 8);
      std::memcpy(record + 24, symbol, length);
      thread->ring.Commit();
      slot = symbol;
    }
    std::byte* record = thread->ring.Reserve(40, 24);
    if (record == nullptr) std::abort();
    new (record) ring::RecordHeader{5, ring::RecordKind::kCallEnter, aux, correlation, event.time_ns};
    new (record + 16) ring::CallTarget{callback.context_uid, ring::CaptureState::kNone, 0, 0, 0};
    std::memcpy(record + 32, &symbol, 8);
    thread->ring.Commit();
  } else if (*open == correlation && !inner_exit) {
    std::byte* record = thread->ring.Reserve(16);
    if (record == nullptr) std::abort();
    new (record) ring::RecordHeader{2, ring::RecordKind::kCallExit, 0, correlation, event.time_ns};
    thread->ring.Commit();
    *open = 0;
  }
}

// Delivers one captured buffer; returns the kernels in it.
uint64_t PushBuffer(const Capture& capture, const CapturedEvent& event, uint32_t shift) {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t used = 0;
  uint64_t kernels = 0;
  for (size_t i = 0; i < event.record_count; ++i) {
    const CapturedRecord& record = capture.records[event.first_record + i];
    if (data == nullptr || used + record.size > size) {
      if (data != nullptr) ring::Pool().Complete(data, size, used);
      if (!ring::Pool().Take(ring::Current(), &data, &size)) std::abort();
      used = 0;
    }
    std::memcpy(data + used, capture.bytes.data() + record.offset, record.size);
    const bool kernel = record.kind == cupti::kConcurrentKernelKind;
    const size_t at = kernel ? offsetof(cupti::KernelRecord, correlation) : offsetof(cupti::MemcpyRecord, correlation);
    uint32_t correlation = 0;
    std::memcpy(&correlation, data + used + at, sizeof correlation);
    correlation += shift;
    std::memcpy(data + used + at, &correlation, sizeof correlation);
    if (kernel) std::memcpy(data + used + offsetof(cupti::KernelRecord, name), &record.name, sizeof record.name);
    kernels += kernel ? 1 : 0;
    used += record.size;
  }
  if (data != nullptr) ring::Pool().Complete(data, size, used);
  return kernels;
}

}  // namespace

int main() {
  std::string error;
  const cupti::Api* api = cupti::Load("", &error);
  if (api == nullptr) {
    gpuperf::base::Print(error);
    return 1;
  }
  Capture capture;
  if (!capture.Load(GPUPERF_CAPTURE, &error)) {
    gpuperf::base::Print(error);
    return 1;
  }
  ring::SetRingBytes(size_t{8} << 20);
  if (!ring::Pool().Open(size_t{64} << 20)) return 1;
  gpuperf::trace::WriterOptions options;
  options.output.path = "/tmp/gpuperf-collector-bench-" + std::to_string(getpid()) + ".gpuperf";
  gpuperf::trace::TraceWriter writer(options);
  gpuperf::collector::Collector collector(*api, writer, {});

  uint32_t stride = 0;
  for (const CapturedEvent& event : capture.events) {
    if (event.type == CapturedEvent::kCallback) stride = std::max(stride, event.callback.correlation_id);
  }
  uint64_t kernels = 0;
  uint64_t busy_ns = 0;
  std::vector<uint32_t> open(capture.thread_count + 1);
  std::vector<char> open_is_runtime(capture.thread_count + 1);
  for (int loop = 0; loop < kLoops; ++loop) {
    const uint32_t shift = stride * static_cast<uint32_t>(loop);
    for (const CapturedEvent& event : capture.events) {
      if (event.type == CapturedEvent::kCallback) {
        PushCall(event, shift, &open[event.thread], &open_is_runtime[event.thread]);
        continue;
      }
      kernels += PushBuffer(capture, event, shift);
      const uint64_t begin = gpuperf::base::ThreadCpuNs();
      collector.Poll();
      busy_ns += gpuperf::base::ThreadCpuNs() - begin;
    }
  }
  const uint64_t begin = gpuperf::base::ThreadCpuNs();
  collector.Poll();
  writer.Close({});
  busy_ns += gpuperf::base::ThreadCpuNs() - begin;
  unlink(writer.path().c_str());
  if (collector.counts().kernels.load() != kernels || collector.counts().lost.load() != 0) return 1;
  gpuperf::benchmarks::Print("collector.kernels_per_second",
                             static_cast<double>(kernels) * 1e9 / static_cast<double>(busy_ns), "1/s", "higher");
  gpuperf::benchmarks::Print("collector.kernels", static_cast<double>(kernels), "kernels", "higher");
  return 0;
}
