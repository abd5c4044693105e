// steps, annotations, marks, counters, names, losses, outages and clock_pairs, from a Scan.
#include "absl/base/casts.h"
#include "analysis/names.h"
#include "tables/builders.h"

namespace gpuperf::tables {
namespace {

// The rows that a filter wants, by their places in `rows`.
template <class Row, class Wants>
std::vector<const Row*> Chosen(const std::vector<Row>& rows, const Wants& wants) {
  std::vector<const Row*> chosen;
  for (const Row& row : rows) {
    if (wants(row)) chosen.push_back(&row);
  }
  return chosen;
}

template <class Row>
void AddThread(const std::vector<const Row*>& rows, TableBuilder* table) {
  table->AddOrNull<uint32_t>("tid", [&](size_t i) { return rows[i]->thread.tid; });
  table->AddName("thread", [&](size_t i) { return rows[i]->thread.name; });
}

// get(row) -> reader::Name: "" is the default domain, which has no name; one that is not known is told as lost.
template <class Get>
void AddDomain(const Get& get, TableBuilder* table) {
  table->AddName("domain", get);
  table->Add<bool>("domain_lost", [&](size_t i) { return get(i) == nullptr; });
}

// What NVTX says of annotations and marks. A payload's value stands in the column of its kind.
template <class Row>
void AddNvtx(const std::vector<const Row*>& rows, TableBuilder* table) {
  table->AddText(
      "source", [&](size_t i) { return static_cast<uint64_t>(rows[i]->label.source); },
      [](uint64_t source) { return analysis::MarkerSourceName(static_cast<v1::MarkerSource>(source)); });
  AddDomain([&](size_t i) { return rows[i]->label.domain; }, table);
  table->AddOrNull<uint32_t>("category", [&](size_t i) -> std::optional<uint32_t> {
    if (rows[i]->label.category == 0) return std::nullopt;
    return rows[i]->label.category;
  });
  table->AddOrNull<uint32_t>("color", [&](size_t i) { return rows[i]->label.color; });
  table->AddText(
      "payload_kind",
      [&](size_t i) -> std::optional<uint64_t> {
        const v1::PayloadKind kind = rows[i]->label.payload_kind;
        return kind == v1::PAYLOAD_KIND_NONE ? std::nullopt : std::optional<uint64_t>(kind);
      },
      [](uint64_t kind) { return analysis::PayloadKindName(static_cast<v1::PayloadKind>(kind)); });
  const auto bits_of = [&](size_t i, v1::PayloadKind kind) -> std::optional<uint64_t> {
    if (rows[i]->label.payload_kind != kind) return std::nullopt;
    return rows[i]->label.payload;
  };
  table->AddOrNull<uint64_t>("payload_unsigned", [&](size_t i) { return bits_of(i, v1::PAYLOAD_KIND_UNSIGNED); });
  table->AddOrNull<int64_t>("payload_signed", [&](size_t i) -> std::optional<int64_t> {
    const std::optional<uint64_t> bits = bits_of(i, v1::PAYLOAD_KIND_SIGNED);
    if (!bits) return std::nullopt;
    return static_cast<int64_t>(*bits);
  });
  table->AddOrNull<double>("payload_double", [&](size_t i) -> std::optional<double> {
    const std::optional<uint64_t> bits = bits_of(i, v1::PAYLOAD_KIND_DOUBLE);
    if (!bits) return std::nullopt;
    return absl::bit_cast<double>(*bits);
  });
  table->AddOrNull<uint64_t>("payload_schema", [&](size_t i) { return bits_of(i, v1::PAYLOAD_KIND_EXTENDED); });
  table->AddOrNull<uint32_t>("payload_bytes", [&](size_t i) { return rows[i]->label.payload_bytes; });
}

int64_t HostNs(uint64_t time) { return static_cast<int64_t>(time); }

std::shared_ptr<const Table> BuildSteps(const Scan& scan, const RowFilter& filter) {
  // By time, each with where it began: the end before it, if that is of the step before it.
  struct Row {
    const ScannedStep* step;
    std::optional<int64_t> begin_host_ns;
  };
  std::vector<Row> rows;
  const ScannedStep* before = nullptr;
  for (const ScannedStep& step : scan.all_steps) {
    std::optional<int64_t> begin;
    if (before != nullptr && step.row.index() == before->row.index() + 1) begin = HostNs(before->row.host_ns());
    before = &step;
    if (filter.WantsStepEnd(HostNs(step.row.host_ns()))) rows.push_back({&step, begin});
  }
  TableBuilder table("steps", rows.size());
  table.Add<uint64_t>("index", [&](size_t i) { return rows[i].step->row.index(); });
  table.AddOrNull<int64_t>("begin_host_ns", [&](size_t i) { return rows[i].begin_host_ns; });
  table.Add<int64_t>("end_host_ns", [&](size_t i) { return HostNs(rows[i].step->row.host_ns()); });
  table.AddOrNull<int64_t>("duration_ns", [&](size_t i) -> std::optional<int64_t> {
    if (!rows[i].begin_host_ns) return std::nullopt;
    return HostNs(rows[i].step->row.host_ns()) - *rows[i].begin_host_ns;
  });
  table.AddOrNull<uint64_t>("samples", [&](size_t i) {
    const v1::Step& step = rows[i].step->row;
    return step.has_samples() ? std::optional<uint64_t>(step.samples()) : std::nullopt;
  });
  table.AddOrNull<uint64_t>("tokens", [&](size_t i) {
    const v1::Step& step = rows[i].step->row;
    return step.has_tokens() ? std::optional<uint64_t>(step.tokens()) : std::nullopt;
  });
  table.AddOrNull<uint32_t>("tid", [&](size_t i) { return rows[i].step->thread.tid; });
  table.AddName("thread", [&](size_t i) { return rows[i].step->thread.name; });
  return table.Finish();
}

std::shared_ptr<const Table> BuildAnnotations(const Scan& scan, RowFilter* filter) {
  const auto rows = Chosen(scan.all_annotations, [&](const ScannedAnnotation& row) {
    const int64_t end = row.end_host_ns.value_or(std::max(row.begin_host_ns, scan.span().end));
    return filter->WantsName(row.label.name) && filter->WantsHostTime(row.begin_host_ns, end);
  });
  TableBuilder table("annotations", rows.size());
  table.AddName("name", [&](size_t i) { return rows[i]->label.name; });
  table.Add<int64_t>("begin_host_ns", [&](size_t i) { return rows[i]->begin_host_ns; });
  table.AddOrNull<int64_t>("end_host_ns", [&](size_t i) { return rows[i]->end_host_ns; });
  table.AddOrNull<int64_t>("duration_ns", [&](size_t i) -> std::optional<int64_t> {
    if (!rows[i]->end_host_ns) return std::nullopt;
    return *rows[i]->end_host_ns - rows[i]->begin_host_ns;
  });
  AddThread(rows, &table);
  table.AddOrNull<uint32_t>("end_tid", [&](size_t i) { return rows[i]->end_tid; });
  AddNvtx(rows, &table);
  return table.Finish();
}

std::shared_ptr<const Table> BuildMarks(const Scan& scan, RowFilter* filter) {
  const auto rows = Chosen(scan.marks, [&](const ScannedMark& row) {
    return filter->WantsName(row.label.name) && filter->WantsHostTime(row.host_ns, row.host_ns);
  });
  TableBuilder table("marks", rows.size());
  table.AddName("name", [&](size_t i) { return rows[i]->label.name; });
  table.Add<int64_t>("host_ns", [&](size_t i) { return rows[i]->host_ns; });
  AddThread(rows, &table);
  AddNvtx(rows, &table);
  return table.Finish();
}

std::shared_ptr<const Table> BuildCounters(const Scan& scan, RowFilter* filter) {
  const auto rows = Chosen(scan.counters, [&](const ScannedCounter& row) {
    return filter->WantsName(row.name) && filter->WantsHostTime(row.host_ns, row.host_ns);
  });
  TableBuilder table("counters", rows.size());
  table.AddName("name", [&](size_t i) { return rows[i]->name; });
  table.Add<int64_t>("host_ns", [&](size_t i) { return rows[i]->host_ns; });
  table.Add<double>("value", [&](size_t i) { return rows[i]->value; });
  AddThread(rows, &table);
  return table.Finish();
}

// A name holds all the time, whenever it was given.
std::shared_ptr<const Table> BuildNames(const Scan& scan, RowFilter* filter) {
  const auto rows = Chosen(scan.resource_names, [&](const ScannedName& row) { return filter->WantsName(row.name); });
  TableBuilder table("names", rows.size());
  table.AddText(
      "kind", [&](size_t i) { return static_cast<uint64_t>(rows[i]->kind); },
      [](uint64_t kind) { return analysis::ResourceKindName(static_cast<v1::ResourceKind>(kind)); });
  table.Add<uint64_t>("id", [&](size_t i) { return rows[i]->id; });
  AddDomain([&](size_t i) { return rows[i]->domain; }, &table);
  table.AddName("name", [&](size_t i) { return rows[i]->name; });
  return table.Finish();
}

std::shared_ptr<const Table> BuildResources(const Scan& scan, const RowFilter& filter) {
  const auto stream_of = [](const v1::ResourceEvent& row) {
    const bool is_stream =
        row.change() == v1::RESOURCE_CHANGE_STREAM_CREATED || row.change() == v1::RESOURCE_CHANGE_STREAM_DESTROYED;
    return is_stream ? std::optional<uint32_t>(row.stream()) : std::nullopt;
  };
  const auto rows = Chosen(scan.resources, [&](const ScannedResource& row) {
    const int64_t time = HostNs(row.row.host_ns());
    return filter.WantsStream(row.row.device(), stream_of(row.row)) && filter.WantsHostTime(time, time);
  });
  TableBuilder table("resources", rows.size());
  table.AddText(
      "change", [&](size_t i) { return static_cast<uint64_t>(rows[i]->row.change()); },
      [](uint64_t change) { return analysis::ResourceChangeName(static_cast<v1::ResourceChange>(change)); });
  table.Add<int64_t>("host_ns", [&](size_t i) { return HostNs(rows[i]->row.host_ns()); });
  table.Add<uint32_t>("device", [&](size_t i) { return rows[i]->row.device(); });
  table.Add<uint32_t>("context", [&](size_t i) { return rows[i]->row.context(); });
  table.AddOrNull<uint32_t>("stream", [&](size_t i) { return stream_of(rows[i]->row); });
  table.Add<uint64_t>("handle", [&](size_t i) { return rows[i]->row.handle(); });
  AddThread(rows, &table);
  return table.Finish();
}

std::shared_ptr<const Table> BuildLosses(const Scan& scan, const RowFilter& filter) {
  const auto rows = Chosen(scan.losses, [&](const ScannedLoss& row) {
    return filter.WantsHostRange(HostNs(row.row.first_host_ns()), HostNs(row.row.last_host_ns()));
  });
  TableBuilder table("losses", rows.size());
  table.AddText(
      "reason", [&](size_t i) { return static_cast<uint64_t>(rows[i]->row.reason()); },
      [](uint64_t reason) { return analysis::LossReasonName(static_cast<v1::LossReason>(reason)); });
  table.AddText(
      "kind", [&](size_t i) { return static_cast<uint64_t>(rows[i]->row.kind()); },
      [](uint64_t kind) { return analysis::EventKindName(static_cast<v1::EventKind>(kind)); });
  table.Add<uint64_t>("count", [&](size_t i) { return rows[i]->row.count(); });
  table.Add<int64_t>("first_host_ns", [&](size_t i) { return HostNs(rows[i]->row.first_host_ns()); });
  table.Add<int64_t>("last_host_ns", [&](size_t i) { return HostNs(rows[i]->row.last_host_ns()); });
  AddThread(rows, &table);
  return table.Finish();
}

std::shared_ptr<const Table> BuildOutages(const Scan& scan, const RowFilter& filter) {
  const auto end_of = [](const v1::Outage& row) {
    return row.end_host_ns() == 0 ? std::nullopt : std::optional<int64_t>(HostNs(row.end_host_ns()));
  };
  const auto rows = Chosen(scan.outages, [&](const v1::Outage& row) {
    const int64_t begin = HostNs(row.begin_host_ns());
    return filter.WantsHostTime(begin, std::max(begin, end_of(row).value_or(scan.span().end)));
  });
  TableBuilder table("outages", rows.size());
  table.AddText(
      "reason", [&](size_t i) { return static_cast<uint64_t>(rows[i]->reason()); },
      [](uint64_t reason) { return analysis::OutageReasonName(static_cast<v1::OutageReason>(reason)); });
  table.Add<int64_t>("begin_host_ns", [&](size_t i) { return HostNs(rows[i]->begin_host_ns()); });
  table.AddOrNull<int64_t>("end_host_ns", [&](size_t i) { return end_of(*rows[i]); });
  table.AddName("detail", [&](size_t i) { return &rows[i]->detail(); });
  return table.Finish();
}

std::shared_ptr<const Table> BuildClockPairs(const Scan& scan, const RowFilter& filter) {
  const auto rows = Chosen(scan.clock_pairs, [&](const v1::ClockPair& row) {
    return filter.WantsHostTime(HostNs(row.host_ns()), HostNs(row.host_ns()));
  });
  TableBuilder table("clock_pairs", rows.size());
  table.Add<int64_t>("host_ns", [&](size_t i) { return HostNs(rows[i]->host_ns()); });
  table.Add<int64_t>("device_ns", [&](size_t i) { return HostNs(rows[i]->device_ns()); });
  table.Add<uint32_t>("width_ns", [&](size_t i) { return rows[i]->width_ns(); });
  return table.Finish();
}

}  // namespace

std::shared_ptr<const Table> BuildSmall(const std::string& name, const Scan& scan, RowFilter* filter) {
  if (name == "steps") return BuildSteps(scan, *filter);
  if (name == "annotations") return BuildAnnotations(scan, filter);
  if (name == "marks") return BuildMarks(scan, filter);
  if (name == "counters") return BuildCounters(scan, filter);
  if (name == "resources") return BuildResources(scan, *filter);
  if (name == "names") return BuildNames(scan, filter);
  if (name == "losses") return BuildLosses(scan, *filter);
  if (name == "outages") return BuildOutages(scan, *filter);
  if (name == "clock_pairs") return BuildClockPairs(scan, *filter);
  return nullptr;
}

}  // namespace gpuperf::tables
