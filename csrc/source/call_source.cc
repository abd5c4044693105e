#include "source/call_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>

#include "base/clock.h"
#include "base/fork_guard.h"
#include "base/stamp_clock.h"
#include "cupti/call_table.h"
#include "ring/call_span.h"
#include "ring/thread_state.h"
#include "source/active.h"
#include "source/capture_tracker.h"
#include "source/graph_level.h"
#include "source/resource_source.h"

namespace gpuperf::source {

namespace {

using cupti::CallbackData;
using cupti::CallDescriptor;
using cupti::CallKind;
using ring::RecordHeader;
using ring::RecordKind;
using ring::ThreadState;

// Every 64th callback of a thread is timed, which is what the overhead figure of a run is estimated from.
constexpr uint64_t kSampleMask = 63;
constexpr size_t kEnterBytes = sizeof(RecordHeader) + sizeof(ring::CallTarget);
constexpr size_t kLongestExitBytes = sizeof(RecordHeader) + 8;

CaptureTracker g_captures;
// Grows when rings must define kernel names again: when modules are unloaded, as names may then stand at other
// addresses, and when a session begins, as its decoders know none.
std::atomic<uint32_t> g_symbol_epoch{0};

std::atomic<bool> g_exit_function_set{false};
__thread void (*t_exit_function)() __attribute__((tls_model("initial-exec"))) = nullptr;

template <typename Value>
Value ReadAt(const void* params, int16_t offset) noexcept {
  Value value{};
  std::memcpy(&value, static_cast<const std::byte*>(params) + offset, sizeof value);
  return value;
}

uint64_t ReadOr0(const void* params, int16_t offset) noexcept {
  return offset == cupti::kNone ? 0 : ReadAt<uint64_t>(params, offset);
}

uint64_t StreamOf(const CallDescriptor& call, const void* params) noexcept {
  if (call.stream != cupti::kNone) return ReadAt<uint64_t>(params, call.stream);
  if (call.config == cupti::kNone) return 0;
  const auto* config = ReadAt<const void*>(params, call.config);
  return config == nullptr ? 0 : ReadAt<uint64_t>(config, call.config_stream);
}

uint64_t BytesOf(const CallDescriptor& call, const void* params) noexcept {
  uint64_t bytes = ReadOr0(params, call.bytes);
  if (call.bytes_factor != cupti::kNone) bytes *= ReadAt<uint64_t>(params, call.bytes_factor);
  return bytes * call.element_bytes;
}

const CallDescriptor* Find(uint32_t domain, uint32_t cbid) noexcept {
  if (domain == cupti::kRuntimeDomain) return cbid < cupti::kRuntimeCallCount ? &cupti::kRuntimeCalls[cbid] : nullptr;
  if (domain == cupti::kDriverDomain) return cbid < cupti::kDriverCallCount ? &cupti::kDriverCalls[cbid] : nullptr;
  return nullptr;
}

// Writes a kSymbol record the first time this thread's ring sees the name; later launches carry the pointer only.
void DefineSymbol(ThreadState* thread, const char* symbol, uint64_t now) noexcept {
  const uint32_t epoch = g_symbol_epoch.load(std::memory_order_relaxed);
  if (thread->symbol_epoch != epoch) {
    thread->symbols.fill(nullptr);
    thread->symbol_epoch = epoch;
  }
  const char*& slot = thread->symbols[ThreadState::SymbolSlot(reinterpret_cast<uintptr_t>(symbol))];
  if (slot == symbol) return;
  // Whole, in as many records as that takes: the device's record has the whole name, too, and one kernel must not go by
  // two. The first piece sees to it that all find room.
  constexpr size_t kPieceHead = sizeof(RecordHeader) + 8;
  std::string_view rest(symbol);
  do {
    const std::string_view piece = rest.substr(0, ring::kMaxNameBytes);
    rest.remove_prefix(piece.size());
    const size_t bytes = kPieceHead + ring::WordsFor(piece.size()) * 8;
    const size_t pieces_after = (rest.size() + ring::kMaxNameBytes - 1) / ring::kMaxNameBytes;
    std::byte* record = thread->ring.Reserve(bytes, pieces_after * (kPieceHead + ring::kMaxNameBytes));
    if (record == nullptr) return;  // the launch that follows will be lost or go without a name
    const uint16_t goes_on = rest.empty() ? 0 : ring::kSymbolGoesOn;
    new (record) RecordHeader{static_cast<uint8_t>(bytes / 8), RecordKind::kSymbol, goes_on,
                              static_cast<uint32_t>(piece.size()), now};
    std::memcpy(record + sizeof(RecordHeader), &symbol, 8);
    std::memcpy(record + kPieceHead, piece.data(), piece.size());
    thread->ring.Commit();
  } while (!rest.empty());
  slot = symbol;
}

// The operands that follow CallTarget; returns how many words.
size_t Operands(const CallDescriptor& call, const CallbackData* data, uint64_t words[3]) noexcept {
  switch (call.kind) {
    case CallKind::kLaunch:
      words[0] = reinterpret_cast<uintptr_t>(data->symbol_name);
      return 1;
    case CallKind::kGraphLaunch:
    case CallKind::kEventRecord:
    case CallKind::kEventWait:
      words[0] = ReadOr0(data->params, call.handle);
      return 1;
    case CallKind::kSynchronize:
      if (call.handle == cupti::kNone) return 0;
      words[0] = ReadAt<uint64_t>(data->params, call.handle);
      return 1;
    case CallKind::kCopy:
    case CallKind::kMemset:
      words[0] = ReadOr0(data->params, call.destination);
      words[1] = ReadOr0(data->params, call.source);
      words[2] = BytesOf(call, data->params);
      return 3;
    case CallKind::kAllocate:
    case CallKind::kFree:
    case CallKind::kMemory:
      words[0] = ReadOr0(data->params, call.address);
      words[1] = BytesOf(call, data->params);
      return 2;
    default:
      return 0;
  }
}

void Enter(ThreadState* thread, const CallDescriptor& call, uint32_t domain, uint32_t cbid,
           const CallbackData* data) noexcept {
  ring::OpenCall& open = thread->open_call;
  if (open.active && open.correlation == data->correlation) return;  // part of the call around it
  const uint64_t now = base::Stamp();
  open = {true, false, domain, cbid, data->correlation};
  if (call.kind == CallKind::kGraphLaunch) BeforeGraphLaunch(ReadOr0(data->params, call.handle));
  if (call.unloads_module) g_symbol_epoch.fetch_add(1, std::memory_order_relaxed);
  if (call.kind == CallKind::kLaunch && data->symbol_name != nullptr) DefineSymbol(thread, data->symbol_name, now);

  uint64_t words[3];
  const size_t operands = Operands(call, data, words);
  const size_t bytes = kEnterBytes + operands * 8;
  std::byte* record = thread->ring.Reserve(bytes, kLongestExitBytes);
  if (record == nullptr) {
    thread->last_lost_call.store(data->correlation, std::memory_order_relaxed);
    thread->lost_calls.Add(now);
    return;
  }
  open.recorded = true;
  const uint64_t stream = StreamOf(call, data->params);
  const uint16_t aux = static_cast<uint16_t>(cbid | (domain == cupti::kDriverDomain ? ring::kDriverBit : 0));
  uint8_t copy_kind = 0;
  if (call.fixed_copy_kind >= 0) {
    copy_kind = static_cast<uint8_t>(call.fixed_copy_kind);
  } else if (call.copy_kind != cupti::kNone) {
    copy_kind = ReadAt<uint8_t>(data->params, call.copy_kind);
  }
  new (record) RecordHeader{static_cast<uint8_t>(bytes / 8), RecordKind::kCallEnter, aux, data->correlation, now};
  new (record + sizeof(RecordHeader))
      ring::CallTarget{data->context_id, g_captures.StateOf(stream), copy_kind, 0, stream};
  std::memcpy(record + kEnterBytes, words, operands * 8);
  thread->ring.Commit();
}

// The end of an invalid capture returns an error, and ends it. Same values in cudaError_t and CUresult.
bool EndsCaptureAnyway(uint32_t result) noexcept {
  constexpr uint32_t kCaptureInvalidated = 901;
  constexpr uint32_t kCaptureUnjoined = 904;
  return result == kCaptureInvalidated || result == kCaptureUnjoined;
}

// What a finished call means for graph captures.
void FollowCaptures(const CallDescriptor& call, const void* params) noexcept {
  switch (call.kind) {
    case CallKind::kBeginCapture:
      g_captures.Begin(StreamOf(call, params));
      break;
    case CallKind::kEndCapture:
      g_captures.End();
      break;
    case CallKind::kEventRecord:
      g_captures.EventRecorded(ReadOr0(params, call.handle), StreamOf(call, params));
      break;
    case CallKind::kEventWait:
      g_captures.StreamWaits(StreamOf(call, params), ReadOr0(params, call.handle));
      break;
    default:
      break;
  }
}

void Exit(ThreadState* thread, const CallDescriptor& call, uint32_t domain, uint32_t cbid,
          const CallbackData* data) noexcept {
  ring::OpenCall& open = thread->open_call;
  // An inner driver call, or one that was entered before the session began.
  if (!open.active || open.correlation != data->correlation || open.cbid != cbid || open.domain != domain) return;
  const uint64_t now = base::Stamp();
  open.active = false;
  const uint32_t result = data->return_value == nullptr ? 0 : ReadAt<uint32_t>(data->return_value, 0);
  if (result == 0 || (call.kind == CallKind::kEndCapture && EndsCaptureAnyway(result))) {
    FollowCaptures(call, data->params);
  }
  if (!open.recorded) return;
  const bool has_address = call.kind == CallKind::kAllocate && call.address_out != cupti::kNone && result == 0;
  const size_t bytes = sizeof(RecordHeader) + (has_address ? 8 : 0);
  std::byte* record = thread->ring.Reserve(bytes);  // cannot fail: the enter kept this room
  if (record == nullptr) return;
  new (record) RecordHeader{static_cast<uint8_t>(bytes / 8), RecordKind::kCallExit,
                            static_cast<uint16_t>(std::min<uint32_t>(result, UINT16_MAX)), data->correlation, now};
  if (has_address) {
    const auto* where = ReadAt<const void*>(data->params, call.address_out);
    const uint64_t address = where == nullptr ? 0 : ReadAt<uint64_t>(where, 0);
    std::memcpy(record + sizeof(RecordHeader), &address, 8);
  }
  thread->ring.Commit();
}

// What is known of a call whose parameters CUPTI does not give (a function newer than its headers): its kind.
const CallDescriptor& WithoutParameters(CallKind kind) noexcept {
  static constexpr auto kKinds = [] {
    std::array<CallDescriptor, static_cast<size_t>(CallKind::kControl) + 1> kinds{};
    for (size_t i = 0; i < kinds.size(); ++i) kinds[i].kind = static_cast<CallKind>(i);
    return kinds;
  }();
  return kKinds[static_cast<size_t>(kind)];
}

void Dispatch(ThreadState* thread, uint32_t domain, uint32_t cbid, const CallbackData* data) noexcept {
  const CallDescriptor* call = Find(domain, cbid);
  if (__builtin_expect(call == nullptr, 0)) {
    if (domain == cupti::kResourceDomain) OnResource(cbid, data);
    return;
  }
  if (__builtin_expect(data->params == nullptr, 0)) call = &WithoutParameters(call->kind);
  if (data->site == cupti::kSiteEnter) {
    Enter(thread, *call, domain, cbid, data);
  } else {
    Exit(thread, *call, domain, cbid, data);
  }
}

__attribute__((noinline, cold)) void Inactive(uint32_t domain, const CallbackData* data) noexcept {
  if (domain != cupti::kDriverDomain || data->site != cupti::kSiteExit) return;
  if (!g_exit_function_set.load(std::memory_order_relaxed) || base::InForkedChild()) return;
  if (auto* function = t_exit_function) {
    t_exit_function = nullptr;
    g_exit_function_set.store(false, std::memory_order_relaxed);
    function();
  }
}

}  // namespace

void OnCallback(void*, uint32_t domain, uint32_t cbid, const CallbackData* data) noexcept {
  if (__builtin_expect(!Active(), 0)) {
    Inactive(domain, data);
    return;
  }
  ThreadState* thread = ring::Current();
  if (__builtin_expect(thread == nullptr, 0)) return;
  const uint64_t count = ++thread->callback_count;
  if (__builtin_expect((count & kSampleMask) != 0, 1)) {
    Dispatch(thread, domain, cbid, data);
    return;
  }
  const uint64_t begin = base::Ticks();
  Dispatch(thread, domain, cbid, data);
  const uint64_t ticks = base::Ticks() - begin;
  const auto relaxed = std::memory_order_relaxed;
  thread->callbacks.store(count, relaxed);
  thread->sampled_callbacks.store(thread->sampled_callbacks.load(relaxed) + 1, relaxed);
  thread->sampled_ticks.store(thread->sampled_ticks.load(relaxed) + ticks, relaxed);
}

uint32_t EnableTracedCalls(const cupti::Api& api, cupti::Subscriber subscriber) noexcept {
  uint32_t enabled = 0;
  for (uint32_t domain : {cupti::kRuntimeDomain, cupti::kDriverDomain}) {
    const bool runtime = domain == cupti::kRuntimeDomain;
    const size_t count = runtime ? cupti::kRuntimeCallCount : cupti::kDriverCallCount;
    const CallDescriptor* calls = runtime ? cupti::kRuntimeCalls : cupti::kDriverCalls;
    for (uint32_t cbid = 0; cbid < count; ++cbid) {
      if (calls[cbid].kind == CallKind::kNotTraced) continue;
      if (api.EnableCallback(1, subscriber, domain, cbid) == cupti::kSuccess) ++enabled;
    }
  }
  ring::TracedCalls().begin.store(base::Stamp(), std::memory_order_relaxed);
  return enabled;
}

void ResetCallSource() noexcept {
  g_captures.Reset();
  g_symbol_epoch.fetch_add(1, std::memory_order_relaxed);
}

void RunAtNextExit(void (*function)()) noexcept {
  t_exit_function = function;
  g_exit_function_set.store(function != nullptr, std::memory_order_relaxed);
}

bool CapturingGraphs() noexcept { return g_captures.Active(); }

MuteThisThread::MuteThisThread() noexcept : state_(ring::t_state) { ring::t_state = ring::Gone(); }

MuteThisThread::~MuteThisThread() { ring::t_state = state_; }

}  // namespace gpuperf::source
