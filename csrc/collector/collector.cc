#include "collector/collector.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"

namespace gpuperf::collector {
namespace {

constexpr auto kPollPeriod = std::chrono::milliseconds(5);
constexpr size_t kChunkBytes = size_t{256} << 10;
constexpr uint64_t kChunkNs = 900'000'000;
// A launch may be seen after its kernel only by the time that a ring takes to be drained; after this it never comes.
constexpr uint64_t kJoinPatienceNs = 2'000'000'000;
// Rows kept for a process that has not touched CUDA yet.
constexpr size_t kMaxRowsWithoutCuda = 65536;
// Dictionary bounds: beyond them everything is forgotten and numbered anew. A stream has columns of its own, about 1
// KB.
constexpr size_t kMaxKernels = 65536;
constexpr size_t kMaxCallSites = 65536;
constexpr size_t kMaxStrings = 65536;
constexpr size_t kMaxStreams = 4096;
// Schema Level.
constexpr uint8_t kLevelFull = 1;
constexpr uint8_t kLevelGraph = 3;
// What a batch with rows adds to a chunk, with the definition of its stream.
constexpr size_t kBatchBytes = 40;

template <typename Batch>
size_t RowsBytes(const std::vector<Batch>& batches) {
  size_t bytes = 0;
  for (const Batch& batch : batches) {
    if (batch.device.rows != 0) bytes += kBatchBytes + batch.device.bytes() + batch.device.rows * 2;
  }
  return bytes;
}

// Empties the batches but keeps their places: ActivityDecoder remembers which stream has which.
template <typename Batch>
void ForgetRows(std::vector<Batch>& batches) {
  for (Batch& batch : batches) {
    const uint32_t stream_iid = batch.device.stream_iid;
    batch = Batch{};
    batch.device.stream_iid = stream_iid;
  }
}

bool IsEvent(ring::RecordKind kind) {
  return kind == ring::RecordKind::kCallEnter ||
         (kind >= ring::RecordKind::kStep && kind <= ring::RecordKind::kCounter);
}

// Empties rings, losses and activity buffers of a time that nobody collects. Returns how many events there were at
// least: a buffer holds one or more.
uint64_t Discard(ring::LossCell* refused_buffers) {
  uint64_t events = 0;
  uint64_t first = 0;
  uint64_t last = 0;
  for (ring::ThreadState* state = ring::All(); state != nullptr; state = state->next) {
    state->ring.Drain([&](const ring::RecordHeader& header, const std::byte*) { events += IsEvent(header.kind); });
    events += state->lost_calls.Take(&first, &last) + state->lost_markers.Take(&first, &last);
  }
  ring::ActivityBuffer buffer;
  while (ring::Pool().Next(&buffer)) {
    events += buffer.valid != 0;
    ring::Pool().Return(buffer);
  }
  events += ring::Pool().lost_buffers().Take(&first, &last) + ring::UnregisteredLoss().Take(&first, &last);
  if (refused_buffers != nullptr) refused_buffers->Take(&first, &last);
  return events;
}

}  // namespace

Collector::Collector(const cupti::Api& api, ChunkSink& sink, const CollectorOptions& options)
    : api_(api), sink_(sink), options_(options), activity_(api, context_) {
  start_ns_ = last_cut_ns_ = base::NowNs();
  start_ticks_ = base::Ticks();
  context_.batches.begin_ns = start_ns_;
  if (options_.graph_level_end != nullptr) {
    graph_level_ = true;
    context_.batches.level_changes.push_back({start_ns_, kLevelGraph});
  }
  Discard(options_.refused_buffers);  // late callbacks and late buffers of an earlier session
  for (ring::ThreadState* state = ring::All(); state != nullptr; state = state->next) {
    const auto relaxed = std::memory_order_relaxed;
    callbacks_at_start_ += state->callbacks.load(relaxed);
    sampled_callbacks_at_start_ += state->sampled_callbacks.load(relaxed);
    sampled_ticks_at_start_ += state->sampled_ticks.load(relaxed);
  }
}

Collector::~Collector() = default;

void Collector::Start() {
  thread_ = base::StartThread("gpuperf", [this] { Run(); });
}

void Collector::Stop(std::vector<Outage> outages) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    outages_ = std::move(outages);
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Collector::SetRunInfo(std::string run_info) {
  const std::lock_guard<std::mutex> lock(mutex_);
  run_info_ = std::move(run_info);
}

bool Collector::Flush(uint32_t timeout_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t wanted = ++flush_wanted_;
  wake_.notify_all();
  return flushed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                           [&] { return flush_done_ >= wanted || stopping_ || gave_up_; }) &&
         flush_done_ >= wanted && !sink_.failed();
}

SelfCost Collector::self_cost() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return self_cost_;
}

void Collector::Run() {
  try {
    Collect();
  } catch (const std::exception& failure) {
    GiveUp(failure.what());
  } catch (...) {
    GiveUp("unknown failure");
  }
}

// From now on rings fill and drop. At the end it is known how much.
void Collector::GiveUp(const char* why) noexcept {
  AddTo(context_.counts.lost, context_.batches.events);
  context_.batches = Batches{};  // gives back the memory that saying so takes
  base::Log(base::LogLevel::kError, "the collector failed (%s); tracing stops here, the job goes on", why);
  std::unique_lock<std::mutex> lock(mutex_);
  gave_up_ = true;
  flushed_.notify_all();
  wake_.wait(lock, [&] { return stopping_; });
  AddTo(context_.counts.lost, Discard(options_.refused_buffers));
}

void Collector::Collect() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, kPollPeriod, [&] { return stopping_ || flush_wanted_ != flush_done_; });
    const uint64_t flush = flush_wanted_;
    if (!run_info_.empty()) context_.batches.run_info = std::exchange(run_info_, "");
    lock.unlock();
    Poll();
    if (flush != flush_done_) Cut();
    lock.lock();
    if (flush != flush_done_) {
      flush_done_ = flush;
      flushed_.notify_all();
    }
  }
  if (!run_info_.empty()) context_.batches.run_info = std::exchange(run_info_, "");
  context_.batches.outages = std::move(outages_);
  lock.unlock();
  Poll();
  CheckJoins(/*last=*/true);
  Cut();
  sink_.Close(context_.batches);
  lock.lock();
  flushed_.notify_all();
}

size_t Collector::Poll() {
  context_.clock.Update();
  ring::ActivityBuffer buffer;
  while (ring::Pool().Next(&buffer)) buffers_.push_back(buffer);
  DrainRings();
  TakeLosses();
  FollowGraphLevel();
  const size_t buffers = buffers_.size();
  for (const ring::ActivityBuffer& filled : buffers_) {
    if (filled.valid != 0) {
      activity_.Decode(filled);
      context_.batches.cuda_seen = true;
      if (filled.owner != nullptr && filled.filled_ns > filled.taken_ns) {
        filled.owner->activity_rate.store(filled.valid * uint64_t{1'000'000'000} / (filled.filled_ns - filled.taken_ns),
                                          std::memory_order_relaxed);
      }
    }
    ring::Pool().Return(filled);
    if (PendingBytes() >= kChunkBytes) Cut();
  }
  buffers_.clear();
  const Batches& batches = context_.batches;
  const bool due = base::NowNs() - last_cut_ns_ >= kChunkNs;
  // A process that loses everything and then hangs has no rows: its losses are what there is to tell.
  const bool anything = batches.events != 0 || batches.opened || !batches.losses.empty() || WaitedForCudaInVain();
  if (PendingBytes() >= kChunkBytes || (due && anything)) Cut();
  return buffers;
}

RingDecoder& Collector::DecoderOf(ring::ThreadState* state) {
  RingDecoder*& decoder = decoder_of_[state];
  if (decoder == nullptr) {
    decoders_.push_back(std::make_unique<RingDecoder>(state, context_));
    decoder = decoders_.back().get();
  }
  return *decoder;
}

void Collector::DrainRings() {
  for (ring::ThreadState* state = ring::All(); state != nullptr; state = state->next) {
    if (state->ring.Pending() == 0 && !state->retired.load(std::memory_order_relaxed)) continue;
    DecoderOf(state).Drain();
  }
  context_.ranges.NextRound();
}

// What chunks list: names that the application has given since the last one, and ranges that have begun.
void Collector::ListNew() {
  Batches& batches = context_.batches;
  StringTable& strings = batches.dictionaries.strings;
  for (; const ring::ResourceName* named = ring::ResourceNameAt(resource_names_seen_); ++resource_names_seen_) {
    const std::string_view domain = ring::DomainName(named->domain);
    batches.resource_names.push_back(
        {named->kind, named->id, domain.empty() ? 0 : strings.Intern(domain), strings.Intern(named->name)});
  }
  context_.ranges.ListNew([&](const RangeTable::Range& range) {
    batches.open_annotations.push_back(
        {range.begin_ns, 0, context_.LabelOf(MarkerSource::kNvtxStartEnd, range.domain, range.attributes, range.name),
         range.thread_iid});
  });
}

void Collector::FollowGraphLevel() {
  const uint64_t end = graph_level_ ? options_.graph_level_end->load(std::memory_order_acquire) : 0;
  if (end == 0) return;
  graph_level_ = false;
  context_.batches.level_changes.push_back({context_.clock.ToNs(end), kLevelFull});
  base::Log(base::LogLevel::kWarning,
            "a CUDA graph from before this session was launched, which CUPTI can only record node by node: so are all "
            "graphs from now on (--graphs graph wants the session to start before graphs are instantiated)");
}

void Collector::TakeLosses() {
  for (const auto& decoder : decoders_) decoder->TakeLosses();
  const auto take = [this](ring::LossCell& cell, LossReason reason, EventKind kind) {
    uint64_t first = 0;
    uint64_t last = 0;
    const uint64_t count = cell.Take(&first, &last);
    context_.AddLoss(reason, kind, 0, count, first, last);
  };
  if (options_.refused_buffers != nullptr) take(*options_.refused_buffers, LossReason::kPoolEmpty, EventKind::kDevice);
  take(ring::Pool().lost_buffers(), LossReason::kQueueFull, EventKind::kDevice);
  take(ring::UnregisteredLoss(), LossReason::kNoRing, EventKind::kAny);
}

bool Collector::WaitedForCudaInVain() const {
  const Batches& batches = context_.batches;
  return !batches.cuda_seen && batches.events + batches.clock_pairs.size() > kMaxRowsWithoutCuda;
}

size_t Collector::PendingBytes() const {
  const Batches& batches = context_.batches;
  // Good enough for deciding when to cut: about 6 bytes a row on the host side too.
  return RowsBytes(batches.kernels) + RowsBytes(batches.copies) + RowsBytes(batches.memsets) + batches.events * 6;
}

void Collector::CheckJoins(bool last) {
  const uint64_t now = base::NowNs();
  size_t kept = 0;
  for (const Unjoined& record : context_.unjoined) {
    if (context_.joins.HasCall(record.correlation)) continue;
    if (last || now - record.seen_ns > kJoinPatienceNs) {
      context_.GiveUp(record);
    } else {
      context_.unjoined[kept++] = record;
    }
  }
  context_.unjoined.resize(kept);
}

void Collector::MeasureSelf() {
  const uint64_t now = base::NowNs();
  const uint64_t ticks = base::Ticks() - start_ticks_;
  SelfCost cost;
  cost.time_ns = now;
  uint64_t sampled_ticks = 0;
  for (const ring::ThreadState* state = ring::All(); state != nullptr; state = state->next) {
    cost.callbacks += state->callbacks.load(std::memory_order_relaxed);
    cost.callback_samples += state->sampled_callbacks.load(std::memory_order_relaxed);
    sampled_ticks += state->sampled_ticks.load(std::memory_order_relaxed);
  }
  cost.callbacks -= callbacks_at_start_;
  cost.callback_samples -= sampled_callbacks_at_start_;
  sampled_ticks -= sampled_ticks_at_start_;
  if (cost.callback_samples != 0 && ticks != 0) {
    const double ns_per_tick = static_cast<double>(now - start_ns_) / static_cast<double>(ticks);
    cost.callback_ns =
        static_cast<uint64_t>(static_cast<double>(sampled_ticks) * ns_per_tick * static_cast<double>(cost.callbacks) /
                              static_cast<double>(cost.callback_samples));
  }
  cost.collector_cpu_ns = base::ThreadCpuNs();
  if (options_.flush_cpu_ns != nullptr) cost.flush_cpu_ns = options_.flush_cpu_ns();
  cost.buffer_bytes_peak = ring::Pool().peak_bytes();
  cost.ring_bytes = ring::TotalRingBytes();
  context_.batches.self_cost = cost;
  const std::lock_guard<std::mutex> lock(mutex_);
  self_cost_ = cost;
}

void Collector::Cut() {
  Batches& batches = context_.batches;
  TakeLosses();
  for (const auto& decoder : decoders_) decoder->PrepareCut();
  if (batches.cuda_seen) ListNew();
  CheckJoins(/*last=*/false);
  MeasureSelf();
  batches.end_ns = last_cut_ns_ = base::NowNs();

  const bool written = sink_.Write(batches);
  const bool failed = sink_.failed();
  if (!written && !failed) {
    batches.open_calls.clear();
    batches.open_annotations.clear();
    if (!WaitedForCudaInVain()) return;
  }
  const size_t events = batches.events;
  ForgetRows(batches.kernels);
  ForgetRows(batches.copies);
  ForgetRows(batches.memsets);
  batches.calls.clear();
  batches.open_calls.clear();
  batches.steps.clear();
  batches.annotations.clear();
  batches.open_annotations.clear();
  batches.marks.clear();
  batches.resource_names.clear();
  batches.counters.clear();
  batches.clock_pairs.clear();
  if (written) batches.losses.clear();
  batches.outages.clear();
  batches.opaque_intervals.clear();
  batches.level_changes.clear();
  batches.resource_events.clear();
  if (written || failed) batches.run_info.clear();
  batches.events = 0;
  batches.opened = false;
  if (!written) {
    context_.AddLoss(LossReason::kWriteFailed, EventKind::kAny, 0, events, batches.begin_ns, batches.end_ns);
  }
  batches.begin_ns = batches.end_ns;
  const Dictionaries& dictionaries = batches.dictionaries;
  if (dictionaries.kernels.entries().size() > kMaxKernels || dictionaries.strings.entries().size() > kMaxStrings ||
      dictionaries.call_sites.entries().size() > kMaxCallSites || dictionaries.streams.entries().size() > kMaxStreams) {
    RestartDictionaries();
  }
}

void Collector::RestartDictionaries() {
  // A batch belongs to a stream: they go together. Their rows are written.
  Batches& batches = context_.batches;
  batches.kernels = {};
  batches.copies = {};
  batches.memsets = {};
  Dictionaries& dictionaries = batches.dictionaries;
  for (const auto& decoder : decoders_) decoder->SaveNames();
  std::vector<std::string> thread_names;
  for (const Thread& thread : dictionaries.threads) {
    thread_names.push_back(thread.name_iid == 0 ? "" : dictionaries.strings.EntryOf(thread.name_iid));
  }
  dictionaries.strings.Restart();
  dictionaries.kernels.Restart();
  dictionaries.streams.Restart();
  dictionaries.call_sites.Restart();
  for (size_t i = 0; i < thread_names.size(); ++i) {
    Thread& thread = dictionaries.threads[i];
    if (thread.name_iid != 0) thread.name_iid = dictionaries.strings.Intern(thread_names[i]);
  }
  for (const auto& decoder : decoders_) decoder->RestoreNames();
  activity_.Forget();
  dictionaries.restarted = true;
}

}  // namespace gpuperf::collector
