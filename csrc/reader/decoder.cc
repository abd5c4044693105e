#include "reader/decoder.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "reader/wire.h"

namespace gpuperf::reader {
namespace {

using ::google::protobuf::RepeatedField;

// A column of a batch; an absent one reads as `otherwise` in every row.
template <class T>
class Column {
 public:
  Column(const RepeatedField<T>& field, int rows, bool* sound, T otherwise = 0)
      : data_(field.empty() ? nullptr : field.data()), otherwise_(otherwise) {
    *sound &= field.empty() || field.size() == rows;
  }
  T operator[](int row) const { return data_ != nullptr ? data_[row] : otherwise_; }

 private:
  const T* data_;
  T otherwise_;
};

// The rows of a sparse group of columns, asked for in rising order.
class SparseRows {
 public:
  SparseRows(const RepeatedField<uint32_t>& rows, int batch_rows, bool* sound) : rows_(rows) {
    for (int i = 0; i < rows.size(); ++i) {
      *sound &= rows[i] < static_cast<uint32_t>(batch_rows) && (i == 0 || rows[i - 1] < rows[i]);
    }
  }
  int size() const { return rows_.size(); }
  // The row's place in the group's value columns, or -1.
  int Place(int row) { return next_ < rows_.size() && rows_[next_] == static_cast<uint32_t>(row) ? next_++ : -1; }

 private:
  const RepeatedField<uint32_t>& rows_;
  int next_ = 0;
};

// Whether all times of a batch can be told: columns of equal length, and every time in [0, kMaxNs).
bool TimesAreSound(uint64_t base, const RepeatedField<int64_t>& gaps, const RepeatedField<uint64_t>& durations) {
  constexpr auto kMax = static_cast<uint64_t>(kMaxNs);
  if (gaps.size() != durations.size() || base >= kMax) return false;
  auto time = static_cast<int64_t>(base);
  for (int i = 0; i < gaps.size(); ++i) {
    // In turn: every sum stays below 2^63.
    if (gaps[i] <= -kMaxNs || gaps[i] >= kMaxNs || durations[i] >= kMax) return false;
    time += gaps[i];
    if (time < 0 || time >= kMaxNs) return false;
    time += static_cast<int64_t>(durations[i]);
    if (time >= kMaxNs) return false;
  }
  return true;
}

}  // namespace

void Decoder::BeginFile(const std::string& path) {
  path_ = path;
  dictionary_.BeginFile();
}

void Decoder::Report(std::string what) { damages_->Add({path_, offset_, 0, std::move(what), 0, 0}); }

bool Decoder::InTime(uint64_t time, const char* what) {
  if (time < static_cast<uint64_t>(kMaxNs)) return true;
  Report(absl::StrCat("a ", what, " has an impossible time"));
  return false;
}

bool Decoder::Parse(absl::string_view bytes, Fields fields) {
  if (fields == kAllFields) return body_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  chosen_.clear();
  WireCursor cursor(bytes);
  WireField field;
  while (!cursor.done()) {
    if (!cursor.ReadField(&field)) return false;
    if (field.number < 64 && (fields & FieldBit(static_cast<int>(field.number))) != 0) {
      chosen_.append(bytes.data() + field.begin, cursor.position() - field.begin);
    }
  }
  return body_.ParseFromString(chosen_);
}

void Decoder::Decode(const Frame& frame, Fields fields, Visitor* visitor) {
  offset_ = frame.offset;
  // What this parse cannot read has a right check sum: its writer was wrong, or is of a format that this one is not.
  if (!Parse(frame.body, fields)) {
    damages_->Add({path_, frame.offset, frame.bytes, "a chunk body is malformed", frame.header.first_host_ns(),
                   frame.header.last_host_ns()});
    return;
  }
  visitor->OnChunk(frame);
  Define(body_, visitor);
  const auto decode_all = [&](const auto& batches, const char* what) {
    for (const auto& batch : batches) {
      if (!Decode(batch, visitor)) Report(absl::StrCat("a batch of ", what, " breaks the rules of its columns"));
    }
  };
  decode_all(body_.kernel_batches(), "kernels");
  decode_all(body_.copy_batches(), "copies");
  decode_all(body_.memset_batches(), "memory sets");
  decode_all(body_.call_batches(), "calls");
  DecodeMarkers(body_, visitor);
  DecodeRest(body_, visitor);
}

template <class Definitions, class Callback>
void Decoder::DefineAll(const Definitions& definitions, const char* what, Callback callback) {
  uint64_t refused = 0;
  bool redefined = false;
  for (const auto& definition : definitions) {
    if (const auto entry = dictionary_.Define(definition, &redefined)) {
      callback(definition, entry);
    } else {
      ++refused;
    }
  }
  if (refused != 0) Report(absl::StrCat(refused, " definitions of ", what, " are not usable"));
  if (redefined) Report(absl::StrCat("an id of ", what, " is given a second meaning"));
}

void Decoder::Define(const v1::ChunkBody& body, Visitor* visitor) {
  DefineAll(body.strings(), "strings", [&](const auto& definition, bool) { visitor->OnString(definition); });
  DefineAll(body.threads(), "threads", [&](const auto&, auto* entry) { visitor->OnThread(*entry); });
  DefineAll(body.streams(), "streams", [&](const auto&, auto* entry) { visitor->OnStream(*entry); });
  DefineAll(body.kernels(), "kernels", [&](const auto&, auto* entry) { visitor->OnKernelDefinition(*entry); });
  DefineAll(body.call_sites(), "call sites", [&](const auto&, auto* entry) { visitor->OnCallSite(*entry); });
}

bool Decoder::Decode(const v1::KernelBatch& batch, Visitor* visitor) {
  const int rows = batch.gap_ns_size();
  bool sound = TimesAreSound(batch.base_device_ns(), batch.gap_ns(), batch.duration_ns());
  const Column<int64_t> gap(batch.gap_ns(), rows, &sound);
  const Column<uint64_t> duration(batch.duration_ns(), rows, &sound);
  const Column<uint32_t> kernel(batch.kernel_iid(), rows, &sound);
  const Column<int64_t> correlation(batch.correlation_delta(), rows, &sound);
  const Column<uint32_t> graph(batch.graph_id(), rows, &sound);
  const Column<uint64_t> node(batch.graph_node_id(), rows, &sound);
  const Column<uint64_t> queued(batch.queued_ns(), rows, &sound);
  const Column<uint64_t> submitted(batch.submitted_ns(), rows, &sound);
  if (!sound) return false;

  KernelRow row;
  row.stream_iid = batch.stream_iid();
  row.stream = &dictionary_.stream(row.stream_iid);
  row.correlation = batch.base_correlation();
  row.end_device_ns = static_cast<int64_t>(batch.base_device_ns());
  for (int i = 0; i < rows; ++i) {
    row.begin_device_ns = row.end_device_ns + gap[i];
    row.end_device_ns = row.begin_device_ns + static_cast<int64_t>(duration[i]);
    row.correlation += static_cast<uint64_t>(correlation[i]);
    row.kernel_iid = kernel[i];
    row.kernel = &dictionary_.kernel(row.kernel_iid);
    row.graph_id = graph[i];
    row.graph_node_id = node[i];
    row.queued_device_ns = queued[i];
    row.submitted_device_ns = submitted[i];
    visitor->OnKernel(row);
  }
  return true;
}

bool Decoder::Decode(const v1::CopyBatch& batch, Visitor* visitor) {
  const int rows = batch.gap_ns_size();
  bool sound = TimesAreSound(batch.base_device_ns(), batch.gap_ns(), batch.duration_ns());
  const Column<int64_t> gap(batch.gap_ns(), rows, &sound);
  const Column<uint64_t> duration(batch.duration_ns(), rows, &sound);
  const Column<uint64_t> bytes(batch.bytes(), rows, &sound);
  const Column<int64_t> correlation(batch.correlation_delta(), rows, &sound);
  const Column<uint32_t> copy_kind(batch.copy_kind(), rows, &sound);
  const Column<uint32_t> source_kind(batch.source_kind(), rows, &sound);
  const Column<uint32_t> destination_kind(batch.destination_kind(), rows, &sound);
  const Column<uint32_t> flags(batch.flags(), rows, &sound);
  const Column<uint64_t> copy_count(batch.copy_count(), rows, &sound, 1);
  const Column<uint32_t> graph(batch.graph_id(), rows, &sound);
  const Column<uint64_t> node(batch.graph_node_id(), rows, &sound);
  const Column<uint32_t> source_device(batch.source_device(), rows, &sound);
  const Column<uint32_t> source_context(batch.source_context(), rows, &sound);
  const Column<uint32_t> destination_device(batch.destination_device(), rows, &sound);
  const Column<uint32_t> destination_context(batch.destination_context(), rows, &sound);
  if (!sound) return false;

  CopyRow row;
  row.stream_iid = batch.stream_iid();
  row.stream = &dictionary_.stream(row.stream_iid);
  row.correlation = batch.base_correlation();
  row.end_device_ns = static_cast<int64_t>(batch.base_device_ns());
  row.peer = batch.source_device_size() != 0;
  for (int i = 0; i < rows; ++i) {
    row.begin_device_ns = row.end_device_ns + gap[i];
    row.end_device_ns = row.begin_device_ns + static_cast<int64_t>(duration[i]);
    row.correlation += static_cast<uint64_t>(correlation[i]);
    row.bytes = bytes[i];
    row.copy_kind = copy_kind[i];
    row.source_kind = source_kind[i];
    row.destination_kind = destination_kind[i];
    row.flags = flags[i];
    row.copy_count = copy_count[i];
    row.graph_id = graph[i];
    row.graph_node_id = node[i];
    row.source_device = source_device[i];
    row.source_context = source_context[i];
    row.destination_device = destination_device[i];
    row.destination_context = destination_context[i];
    visitor->OnCopy(row);
  }
  return true;
}

bool Decoder::Decode(const v1::MemsetBatch& batch, Visitor* visitor) {
  const int rows = batch.gap_ns_size();
  bool sound = TimesAreSound(batch.base_device_ns(), batch.gap_ns(), batch.duration_ns());
  const Column<int64_t> gap(batch.gap_ns(), rows, &sound);
  const Column<uint64_t> duration(batch.duration_ns(), rows, &sound);
  const Column<uint64_t> bytes(batch.bytes(), rows, &sound);
  const Column<int64_t> correlation(batch.correlation_delta(), rows, &sound);
  const Column<uint32_t> value(batch.value(), rows, &sound);
  const Column<uint32_t> memory_kind(batch.memory_kind(), rows, &sound);
  const Column<uint32_t> flags(batch.flags(), rows, &sound);
  const Column<uint32_t> graph(batch.graph_id(), rows, &sound);
  const Column<uint64_t> node(batch.graph_node_id(), rows, &sound);
  if (!sound) return false;

  MemsetRow row;
  row.stream_iid = batch.stream_iid();
  row.stream = &dictionary_.stream(row.stream_iid);
  row.correlation = batch.base_correlation();
  row.end_device_ns = static_cast<int64_t>(batch.base_device_ns());
  for (int i = 0; i < rows; ++i) {
    row.begin_device_ns = row.end_device_ns + gap[i];
    row.end_device_ns = row.begin_device_ns + static_cast<int64_t>(duration[i]);
    row.correlation += static_cast<uint64_t>(correlation[i]);
    row.bytes = bytes[i];
    row.value = value[i];
    row.memory_kind = memory_kind[i];
    row.flags = flags[i];
    row.graph_id = graph[i];
    row.graph_node_id = node[i];
    visitor->OnMemset(row);
  }
  return true;
}

bool Decoder::Decode(const v1::CallBatch& batch, Visitor* visitor) {
  const int rows = batch.gap_ns_size();
  bool sound = TimesAreSound(batch.base_host_ns(), batch.gap_ns(), batch.duration_ns());
  const Column<int64_t> gap(batch.gap_ns(), rows, &sound);
  const Column<uint64_t> duration(batch.duration_ns(), rows, &sound);
  const Column<uint32_t> site(batch.call_site_iid(), rows, &sound);
  const Column<int64_t> correlation(batch.correlation_delta(), rows, &sound);
  SparseRows results(batch.result_row(), rows, &sound);
  const Column<uint32_t> result(batch.result_code(), results.size(), &sound);
  SparseRows copies(batch.copy_row(), rows, &sound);
  const Column<uint64_t> copy_destination(batch.copy_destination(), copies.size(), &sound);
  const Column<uint64_t> copy_source(batch.copy_source(), copies.size(), &sound);
  const Column<uint64_t> copy_bytes(batch.copy_bytes(), copies.size(), &sound);
  const Column<uint32_t> copy_kind(batch.copy_kind(), copies.size(), &sound);
  SparseRows events(batch.event_row(), rows, &sound);
  const Column<uint64_t> event_handle(batch.event_handle(), events.size(), &sound);
  SparseRows memories(batch.memory_row(), rows, &sound);
  const Column<uint64_t> memory_address(batch.memory_address(), memories.size(), &sound);
  const Column<uint64_t> memory_bytes(batch.memory_bytes(), memories.size(), &sound);
  SparseRows graphs(batch.graph_row(), rows, &sound);
  const Column<uint64_t> graph_handle(batch.graph_handle(), graphs.size(), &sound);
  if (!sound) return false;

  CallRow row;
  row.thread_iid = batch.thread_iid();
  row.thread = &dictionary_.thread(row.thread_iid);
  row.correlation = batch.base_correlation();
  row.exit_host_ns = static_cast<int64_t>(batch.base_host_ns());
  const auto found = open_calls_.find(row.thread->definition.tid());
  OpenCalls* open = found == open_calls_.end() || found->second.empty() ? nullptr : &found->second;
  for (int i = 0; i < rows; ++i) {
    row.enter_host_ns = row.exit_host_ns + gap[i];
    row.exit_host_ns = row.enter_host_ns + static_cast<int64_t>(duration[i]);
    row.correlation += static_cast<uint64_t>(correlation[i]);
    row.site_iid = site[i];
    row.site = &dictionary_.call_site(row.site_iid);
    int place = results.Place(i);
    row.result = place < 0 ? 0 : result[place];
    place = copies.Place(i);
    row.has_copy = place >= 0;
    row.copy_destination = row.has_copy ? copy_destination[place] : 0;
    row.copy_source = row.has_copy ? copy_source[place] : 0;
    row.copy_bytes = row.has_copy ? copy_bytes[place] : 0;
    row.copy_kind = row.has_copy ? copy_kind[place] : 0;
    place = events.Place(i);
    row.has_event = place >= 0;
    row.event_handle = row.has_event ? event_handle[place] : 0;
    place = memories.Place(i);
    row.has_memory = place >= 0;
    row.memory_address = row.has_memory ? memory_address[place] : 0;
    row.memory_bytes = row.has_memory ? memory_bytes[place] : 0;
    place = graphs.Place(i);
    row.has_graph = place >= 0;
    row.graph_handle = row.has_graph ? graph_handle[place] : 0;
    if (open != nullptr && open->erase(row.correlation) != 0 && open->empty()) open = nullptr;
    visitor->OnCall(row);
  }
  return true;
}

template <typename Message>
Name Decoder::DomainOf(const Message& message) const {
  return message.nvtx().domain_iid() == 0 ? nullptr : dictionary_.name(message.nvtx().domain_iid());
}

void Decoder::DecodeMarkers(const v1::ChunkBody& body, Visitor* visitor) {
  for (const v1::OpenCall& open : body.open_calls()) {
    if (!InTime(open.enter_host_ns(), "open call")) continue;
    const ThreadEntry& thread = dictionary_.thread(open.thread_iid());
    const OpenCallRow row{&thread, &dictionary_.call_site(open.call_site_iid()), open};
    visitor->OnOpenCall(row);
    open_calls_[thread.definition.tid()].insert_or_assign(open.correlation(), row);
  }
  for (const v1::Step& step : body.steps()) {
    if (InTime(step.host_ns(), "step")) visitor->OnStep({&dictionary_.thread(step.thread_iid()), nullptr, step});
  }
  for (const v1::Annotation& annotation : body.annotations()) {
    const uint64_t begin = annotation.begin_host_ns();
    if (!InTime(begin, "annotation") || !InTime(annotation.duration_ns(), "annotation")) continue;
    const ThreadEntry& thread = dictionary_.thread(annotation.thread_iid());
    const Name name = dictionary_.name(annotation.name_iid());
    open_annotations_.erase({thread.definition.tid(), begin, name});
    const uint32_t end_iid = annotation.end_thread_iid();
    const ThreadEntry& end_thread = end_iid == 0 ? thread : dictionary_.thread(end_iid);
    visitor->OnAnnotation({&thread, name, annotation, DomainOf(annotation), &end_thread});
  }
  for (const v1::Mark& mark : body.marks()) {
    if (!InTime(mark.host_ns(), "mark")) continue;
    const Name name = dictionary_.name(mark.name_iid());
    visitor->OnMark({&dictionary_.thread(mark.thread_iid()), name, mark, DomainOf(mark)});
  }
  for (const v1::Counter& counter : body.counters()) {
    if (!InTime(counter.host_ns(), "counter")) continue;
    visitor->OnCounter({&dictionary_.thread(counter.thread_iid()), dictionary_.name(counter.name_iid()), counter});
  }
}

void Decoder::DecodeRest(const v1::ChunkBody& body, Visitor* visitor) {
  for (const v1::ClockPair& pair : body.clock_pairs()) {
    if (!InTime(pair.host_ns(), "clock pair") || !InTime(pair.device_ns(), "clock pair")) continue;
    clock_points_.push_back({static_cast<int64_t>(pair.host_ns()), static_cast<int64_t>(pair.device_ns())});
    visitor->OnClockPair(pair);
  }
  if (body.has_run_info()) {
    run_info_ = body.run_info();
    visitor->OnRunInfo(*run_info_);
  }
  for (const v1::Loss& loss : body.losses()) {
    if (!InTime(loss.first_host_ns(), "loss") || !InTime(loss.last_host_ns(), "loss")) continue;
    visitor->OnLoss({&dictionary_.thread(loss.thread_iid()), nullptr, loss});
  }
  for (const v1::Outage& outage : body.outages()) {
    if (InTime(outage.begin_host_ns(), "outage") && InTime(outage.end_host_ns(), "outage")) visitor->OnOutage(outage);
  }
  for (const v1::LevelChange& change : body.level_changes()) {
    if (InTime(change.host_ns(), "level change")) visitor->OnLevelChange(change);
  }
  for (const v1::OpaqueInterval& opaque : body.opaque_intervals()) {
    if (!InTime(opaque.begin_device_ns(), "opaque interval")) continue;
    if (!InTime(opaque.end_device_ns(), "opaque interval")) continue;
    visitor->OnOpaqueInterval({&dictionary_.stream(opaque.stream_iid()), opaque});
  }
  for (const v1::Certificate& certificate : body.certificates()) visitor->OnCertificate(certificate);
  if (body.has_self_cost()) {
    self_cost_ = body.self_cost();
    visitor->OnSelfCost(*self_cost_);
  }
  for (const v1::OpenAnnotation& open : body.open_annotations()) {
    if (!InTime(open.begin_host_ns(), "open annotation")) continue;
    const ThreadEntry& thread = dictionary_.thread(open.thread_iid());
    const Name name = dictionary_.name(open.name_iid());
    const Name domain = DomainOf(open);
    visitor->OnOpenAnnotation({&thread, name, open, domain});
    open_annotations_.insert_or_assign({thread.definition.tid(), open.begin_host_ns(), name},
                                       OpenAnnotation{&thread, name, open, domain});
  }
  for (const v1::ResourceName& named : body.resource_names()) {
    const Name domain = named.domain_iid() == 0 ? nullptr : dictionary_.name(named.domain_iid());
    visitor->OnResourceName({dictionary_.name(named.name_iid()), domain, named});
  }
  for (const v1::ResourceEvent& event : body.resource_events()) {
    if (!InTime(event.host_ns(), "resource event")) continue;
    visitor->OnResourceEvent({&dictionary_.thread(event.thread_iid()), nullptr, event});
  }
}

void Decoder::Finish(Visitor* visitor) {
  std::vector<const OpenCallRow*> calls;
  for (const auto& [tid, open] : open_calls_) {
    for (const auto& [correlation, row] : open) calls.push_back(&row);
  }
  std::sort(calls.begin(), calls.end(), [](const OpenCallRow* a, const OpenCallRow* b) {
    return std::make_tuple(a->thread->definition.tid(), a->row.enter_host_ns(), a->row.correlation()) <
           std::make_tuple(b->thread->definition.tid(), b->row.enter_host_ns(), b->row.correlation());
  });
  for (const OpenCallRow* row : calls) visitor->OnUnfinishedCall(*row);
  open_calls_.clear();

  std::vector<const OpenAnnotation*> annotations;
  for (const auto& [key, open] : open_annotations_) annotations.push_back(&open);
  const auto order = [](const OpenAnnotation* open) {
    return std::make_tuple(open->thread->definition.tid(), open->row.begin_host_ns(),
                           open->name == nullptr ? std::string() : *open->name);
  };
  std::sort(annotations.begin(), annotations.end(),
            [&](const OpenAnnotation* a, const OpenAnnotation* b) { return order(a) < order(b); });
  for (const OpenAnnotation* open : annotations) {
    visitor->OnUnfinishedAnnotation({open->thread, open->name, open->row, open->domain});
  }
  open_annotations_.clear();
}

}  // namespace gpuperf::reader
