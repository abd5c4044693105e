// steps, annotations, marks, counters, losses, outages and clock_pairs, from a Scan.
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
    return filter->WantsName(row.name) && filter->WantsHostTime(row.begin_host_ns, end);
  });
  TableBuilder table("annotations", rows.size());
  table.AddName("name", [&](size_t i) { return rows[i]->name; });
  table.Add<int64_t>("begin_host_ns", [&](size_t i) { return rows[i]->begin_host_ns; });
  table.AddOrNull<int64_t>("end_host_ns", [&](size_t i) { return rows[i]->end_host_ns; });
  table.AddOrNull<int64_t>("duration_ns", [&](size_t i) -> std::optional<int64_t> {
    if (!rows[i]->end_host_ns) return std::nullopt;
    return *rows[i]->end_host_ns - rows[i]->begin_host_ns;
  });
  AddThread(rows, &table);
  return table.Finish();
}

std::shared_ptr<const Table> BuildMarks(const char* name, const std::vector<ScannedMark>& marks, bool have_values,
                                        RowFilter* filter) {
  const auto rows = Chosen(marks, [&](const ScannedMark& row) {
    return filter->WantsName(row.name) && filter->WantsHostTime(row.host_ns, row.host_ns);
  });
  TableBuilder table(name, rows.size());
  table.AddName("name", [&](size_t i) { return rows[i]->name; });
  table.Add<int64_t>("host_ns", [&](size_t i) { return rows[i]->host_ns; });
  if (have_values) table.Add<double>("value", [&](size_t i) { return rows[i]->value; });
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
  if (name == "marks") return BuildMarks("marks", scan.marks, false, filter);
  if (name == "counters") return BuildMarks("counters", scan.counters, true, filter);
  if (name == "losses") return BuildLosses(scan, *filter);
  if (name == "outages") return BuildOutages(scan, *filter);
  if (name == "clock_pairs") return BuildClockPairs(scan, *filter);
  return nullptr;
}

}  // namespace gpuperf::tables
