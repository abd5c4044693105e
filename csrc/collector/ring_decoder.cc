#include "collector/ring_decoder.h"

#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace gpuperf::collector {
namespace {

using cupti::CallKind;
using ring::RecordHeader;
using ring::RecordKind;

uint64_t WordAt(const std::byte* payload, size_t index) {
  uint64_t word = 0;
  std::memcpy(&word, payload + index * 8, sizeof word);
  return word;
}

// "" if the thread is gone already.
std::string ThreadName(uint32_t tid) {
  const std::string path = base::Format("/proc/self/task/%u/comm", tid);
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return "";
  char text[64] = {};
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  std::string_view name(text, size);
  while (!name.empty() && name.back() == '\n') name.remove_suffix(1);
  return std::string(name);
}

CallKind KindOf(uint16_t aux) {
  const uint32_t cbid = aux & ~uint32_t{ring::kDriverBit};
  if ((aux & ring::kDriverBit) != 0) {
    return cbid < cupti::kDriverCallCount ? cupti::kDriverCalls[cbid].kind : CallKind::kNotTraced;
  }
  return cbid < cupti::kRuntimeCallCount ? cupti::kRuntimeCalls[cbid].kind : CallKind::kNotTraced;
}

}  // namespace

size_t RingDecoder::Drain() {
  const bool retired = state_->retired.load(std::memory_order_acquire);
  const uint32_t generation = state_->generation.load(std::memory_order_acquire);
  const size_t bytes = state_->ring.Drain([&](const RecordHeader& header, const std::byte* payload) {
    if (generation_ != generation) StartThread(generation);
    Visit(header, payload);
  });
  if (retired) {
    TakeLosses();
    PrepareCut();
    open_ = Open{};
    annotations_.clear();
    ring::Recycle(state_);
  }
  return bytes;
}

void RingDecoder::StartThread(uint32_t generation) {
  generation_ = generation;
  PrepareCut();  // rows of the thread that had this ring before
  open_ = Open{};
  annotations_.clear();
  for (Symbol& symbol : symbols_) symbol = Symbol{};
  symbol_name_.clear();
  const uint32_t tid = state_->tid.load(std::memory_order_relaxed);
  Dictionaries& dictionaries = context_.batches.dictionaries;
  const std::string name = ThreadName(tid);
  dictionaries.threads.push_back({tid, name.empty() ? 0 : dictionaries.strings.Intern(name)});
  thread_iid_ = static_cast<uint32_t>(dictionaries.threads.size());
}

void RingDecoder::TakeLosses() {
  uint64_t first = 0;
  uint64_t last = 0;
  if (const uint64_t count = state_->lost_calls.Take(&first, &last)) {
    context_.joins.AddLostCall(context_.joins.Unwrap(state_->last_lost_call.load(std::memory_order_relaxed)));
    context_.AddLoss(LossReason::kRingFull, EventKind::kCall, thread_iid_, count, context_.clock.ToNs(first),
                     context_.clock.ToNs(last));
  }
  if (const uint64_t count = state_->lost_markers.Take(&first, &last)) {
    context_.AddLoss(LossReason::kRingFull, EventKind::kMarker, thread_iid_, count, context_.clock.ToNs(first),
                     context_.clock.ToNs(last));
  }
}

void RingDecoder::PrepareCut() {
  Batches& batches = context_.batches;
  if (calls_.rows != 0) {
    calls_.thread_iid = thread_iid_;
    batches.calls.push_back(std::move(calls_));
    calls_ = CallBatch{};
  }
  if (open_.active) {
    batches.open_calls.push_back(
        {thread_iid_, batches.dictionaries.call_sites.Intern(open_.site), open_.correlation, open_.enter_ns});
  }
  for (const OpenAnnotation& annotation : annotations_) {
    batches.open_annotations.push_back({annotation.begin_ns, 0, annotation.label, thread_iid_});
  }
}

void RingDecoder::Visit(const RecordHeader& header, const std::byte* payload) {
  Batches& batches = context_.batches;
  const auto time_ns = [&] { return context_.clock.ToNs(header.stamp); };
  switch (header.kind) {
    case RecordKind::kPadding:
      break;
    case RecordKind::kCallEnter:
      EnterCall(header, payload);
      break;
    case RecordKind::kCallExit:
      ExitCall(header, payload);
      break;
    case RecordKind::kSymbol:
      DefineSymbol(header, payload);
      break;
    case RecordKind::kStep: {
      const uint64_t index = context_.counts.steps.load(std::memory_order_relaxed);
      batches.steps.push_back({time_ns(), index, thread_iid_, static_cast<int64_t>(WordAt(payload, 0)),
                               static_cast<int64_t>(WordAt(payload, 1))});
      AddTo(context_.counts.steps, 1);
      ++batches.events;
      break;
    }
    case RecordKind::kAnnotationBegin:
      BeginAnnotation(header, payload);
      break;
    case RecordKind::kAnnotationEnd:
      EndAnnotation(header, payload);
      break;
    case RecordKind::kRangeStart:
      StartRange(header, payload);
      break;
    case RecordKind::kRangeEnd:
      EndRange(header, payload);
      break;
    case RecordKind::kMark:
      batches.marks.push_back({time_ns(), LabelOf(Read(header, payload)), thread_iid_});
      ++batches.events;
      break;
    case RecordKind::kCounter: {
      double value = 0;
      std::memcpy(&value, payload, sizeof value);
      batches.counters.push_back({time_ns(), NameIid(header, payload + 8), thread_iid_, value});
      ++batches.events;
      break;
    }
    case RecordKind::kClockPair:
      context_.clock_pair = {WordAt(payload, 1), WordAt(payload, 0), header.correlation};
      batches.clock_pairs.push_back(context_.clock_pair);
      break;
    case RecordKind::kResource: {
      ring::ResourceEvent event{};
      std::memcpy(&event, payload, sizeof event);
      batches.resource_events.push_back({time_ns(), thread_iid_, event});
      break;
    }
    case RecordKind::kCuptiDropped:
      context_.AddLoss(LossReason::kCuptiDropped, EventKind::kDevice, 0, WordAt(payload, 0), time_ns(), time_ns());
      break;
  }
}

void RingDecoder::EnterCall(const RecordHeader& header, const std::byte* payload) {
  // A call that is still open was left by an exception or a thread's end; it never gets a row.
  ring::CallTarget target{};
  std::memcpy(&target, payload, sizeof target);
  const bool driver = (header.aux & ring::kDriverBit) != 0;
  open_.active = true;
  open_.enter_ns = context_.clock.ToNs(header.stamp);
  open_.correlation_32 = header.correlation;
  open_.correlation = context_.joins.Unwrap(header.correlation);
  open_.kind = KindOf(header.aux);
  open_.copy_kind = target.copy_kind;
  const size_t operands = (size_t{header.words} * 8 - sizeof(RecordHeader) - sizeof target) / 8;
  for (size_t i = 0; i < 3; ++i) open_.words[i] = i < operands ? WordAt(payload + sizeof target, i) : 0;
  open_.site = CallSite{};
  open_.site.stream_handle = target.stream;
  open_.site.context = target.context;
  open_.site.cbid = header.aux & ~uint32_t{ring::kDriverBit};
  open_.site.domain = static_cast<uint8_t>(driver ? cupti::kDriverDomain : cupti::kRuntimeDomain);
  open_.site.capture = static_cast<uint8_t>(target.capture);
  if (open_.kind == CallKind::kLaunch) open_.site.function_name_iid = SymbolIid(open_.words[0]);
  context_.joins.AddCall(open_.correlation);
  const uint64_t all_seen_since = ring::TracedCalls().begin.load(std::memory_order_relaxed);
  if (all_seen_since != 0 && header.stamp >= all_seen_since) context_.joins.AddFirst(open_.correlation);
  context_.batches.cuda_seen = true;
  context_.batches.opened = true;
  AddTo(context_.counts.opened_calls, 1);
}

void RingDecoder::ExitCall(const RecordHeader& header, const std::byte* payload) {
  // Without its enter: entered before the session.
  if (!open_.active || open_.correlation_32 != header.correlation) return;
  open_.active = false;
  const auto row = calls_.rows;
  calls_.Append(open_.enter_ns, context_.clock.ToNs(header.stamp),
                context_.batches.dictionaries.call_sites.Intern(open_.site), open_.correlation);
  if (header.aux != 0) {
    calls_.result_row.Append(row);
    calls_.result_code.Append(header.aux);
  }
  switch (open_.kind) {
    case CallKind::kCopy:
    case CallKind::kMemset:
      calls_.copy_row.Append(row);
      calls_.copy_destination.Append(open_.words[0]);
      calls_.copy_source.Append(open_.words[1]);
      calls_.copy_bytes.Append(open_.words[2]);
      calls_.copy_kind.Append(open_.copy_kind);
      break;
    case CallKind::kGraphLaunch:
      calls_.graph_row.Append(row);
      calls_.graph_handle.Append(open_.words[0]);
      break;
    case CallKind::kSynchronize:
      if (open_.words[0] == 0) break;
      [[fallthrough]];
    case CallKind::kEventRecord:
    case CallKind::kEventWait:
      calls_.event_row.Append(row);
      calls_.event_handle.Append(open_.words[0]);
      break;
    case CallKind::kAllocate:
    case CallKind::kFree:
    case CallKind::kMemory: {
      const bool has_address = size_t{header.words} * 8 > sizeof(RecordHeader);
      calls_.memory_row.Append(row);
      calls_.memory_address.Append(has_address ? WordAt(payload, 0) : open_.words[0]);
      calls_.memory_bytes.Append(open_.words[1]);
      break;
    }
    default:
      break;
  }
  AddTo(context_.counts.calls, 1);
  ++context_.batches.events;
}

RingDecoder::Said RingDecoder::Read(const RecordHeader& header, const std::byte* at) {
  Said said{static_cast<ring::DomainIndex>(header.aux & 0xFF), {}, {}};
  if ((header.aux & ring::kHasAttributes) != 0) {
    std::memcpy(&said.attributes, at, sizeof said.attributes);
    at += sizeof said.attributes;
  }
  said.name = {reinterpret_cast<const char*>(at), header.correlation};
  return said;
}

MarkerLabel RingDecoder::LabelOf(const Said& said) {
  const MarkerSource source = said.domain == ring::kOwnDomain ? MarkerSource::kGpuperf : MarkerSource::kNvtx;
  return context_.LabelOf(source, said.domain, said.attributes, said.name);
}

RingDecoder::OpenAnnotation* RingDecoder::InnermostOf(ring::DomainIndex domain) {
  for (size_t i = annotations_.size(); i-- > 0;) {
    if (annotations_[i].domain == domain) return &annotations_[i];
  }
  return nullptr;
}

// Annotations whose ends were lost, as the place of the next record tells, will not end: their begins are lost with
// them.
ring::AnnotationPlace RingDecoder::DropUnended(ring::DomainIndex domain, const std::byte* payload) {
  ring::AnnotationPlace place{};
  std::memcpy(&place, payload, sizeof place);
  for (OpenAnnotation* open = InnermostOf(domain); open != nullptr && open->depth >= place.lost_depth;
       open = InnermostOf(domain)) {
    context_.AddLoss(LossReason::kRingFull, EventKind::kMarker, thread_iid_, 1, open->begin_ns, open->begin_ns);
    annotations_.erase(annotations_.begin() + (open - annotations_.data()));
  }
  return place;
}

void RingDecoder::BeginAnnotation(const RecordHeader& header, const std::byte* payload) {
  const Said said = Read(header, payload + sizeof(ring::AnnotationPlace));
  const ring::AnnotationPlace place = DropUnended(said.domain, payload);
  annotations_.push_back({context_.clock.ToNs(header.stamp), LabelOf(said), said.domain, place.depth});
  context_.batches.opened = true;
}

void RingDecoder::EndAnnotation(const RecordHeader& header, const std::byte* payload) {
  const auto domain = static_cast<ring::DomainIndex>(header.aux & 0xFF);
  const ring::AnnotationPlace place = DropUnended(domain, payload);
  if (place.depth == 0) return;  // its begin was before the session
  const uint64_t now_ns = context_.clock.ToNs(header.stamp);
  OpenAnnotation* open = InnermostOf(domain);
  if (open == nullptr || open->depth != place.depth) {  // its begin was lost
    context_.AddLoss(LossReason::kRingFull, EventKind::kMarker, thread_iid_, 1, now_ns, now_ns);
    return;
  }
  context_.batches.annotations.push_back({open->begin_ns, now_ns, open->label, thread_iid_});
  ++context_.batches.events;
  annotations_.erase(annotations_.begin() + (open - annotations_.data()));
}

void RingDecoder::StartRange(const RecordHeader& header, const std::byte* payload) {
  const Said said = Read(header, payload + 8);
  const uint64_t begin_ns = context_.clock.ToNs(header.stamp);
  const bool kept = context_.ranges.Start(
      WordAt(payload, 0), {begin_ns, thread_iid_, said.domain, said.attributes, std::string(said.name)},
      [this](const RangeTable::Range& range, const RangeTable::End& end) { context_.AddRange(range, end); });
  if (!kept) context_.AddLoss(LossReason::kRingFull, EventKind::kMarker, thread_iid_, 1, begin_ns, begin_ns);
  context_.batches.opened = true;
}

void RingDecoder::EndRange(const RecordHeader& header, const std::byte* payload) {
  context_.ranges.Finished(
      WordAt(payload, 0), {context_.clock.ToNs(header.stamp), thread_iid_},
      [this](const RangeTable::Range& range, const RangeTable::End& end) { context_.AddRange(range, end); });
}

void RingDecoder::DefineSymbol(const RecordHeader& header, const std::byte* payload) {
  symbol_name_.append(reinterpret_cast<const char*>(payload + 8), header.correlation);
  if (header.aux == ring::kSymbolGoesOn) return;
  Symbol& symbol = symbols_[ring::ThreadState::SymbolSlot(WordAt(payload, 0))];
  symbol = {WordAt(payload, 0), context_.batches.dictionaries.strings.Intern(symbol_name_)};
  symbol_name_.clear();
}

uint32_t RingDecoder::SymbolIid(uint64_t pointer) const {
  if (pointer == 0) return 0;
  const Symbol& symbol = symbols_[ring::ThreadState::SymbolSlot(pointer)];
  return symbol.pointer == pointer ? symbol.iid : 0;
}

uint32_t RingDecoder::NameIid(const RecordHeader& header, const std::byte* name) {
  return context_.batches.dictionaries.strings.Intern({reinterpret_cast<const char*>(name), header.correlation});
}

template <typename Visitor>
void RingDecoder::VisitNames(Visitor&& visit) {
  for (Symbol& symbol : symbols_) visit(symbol.iid);
  visit(open_.site.function_name_iid);
  for (OpenAnnotation& annotation : annotations_) {
    visit(annotation.label.name_iid);
    visit(annotation.label.domain_iid);
  }
}

void RingDecoder::SaveNames() {
  const StringTable& strings = context_.batches.dictionaries.strings;
  VisitNames([&](const uint32_t& iid) { saved_names_.push_back(iid == 0 ? "" : strings.EntryOf(iid)); });
}

void RingDecoder::RestoreNames() {
  StringTable& strings = context_.batches.dictionaries.strings;
  size_t next = 0;
  VisitNames([&](uint32_t& iid) {
    const std::string& name = saved_names_[next++];
    if (iid != 0) iid = strings.Intern(name);
  });
  saved_names_ = {};
}

}  // namespace gpuperf::collector
