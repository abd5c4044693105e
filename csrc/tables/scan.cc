#include "tables/scan.h"

#include <algorithm>

#include "analysis/arithmetic.h"

namespace gpuperf::tables {

ScannedThread Scan::Keep(const reader::ThreadEntry& thread) {
  if (!thread.known) return {};
  return {thread.definition.tid(), Keep(thread.name)};
}

void Scan::OnChunk(const reader::Frame& frame) {
  Timeline::OnChunk(frame);
  if (parts.empty()) parts.emplace_back();
  parts.back().push_back({frame.offset, frame.header.dictionary_checkpoint(), reader::TimesOfChunk(frame.body)});
}

void Scan::OnStep(const reader::StepRow& row) {
  Timeline::OnStep(row);
  all_steps.push_back({row.row, Keep(*row.thread)});
}

void Scan::OnAnnotation(const reader::AnnotationRow& row) {
  Timeline::OnAnnotation(row);
  const auto begin = static_cast<int64_t>(row.row.begin_host_ns());
  all_annotations.push_back(
      {begin, begin + static_cast<int64_t>(row.row.duration_ns()), Keep(row.name), Keep(*row.thread)});
}

void Scan::OnUnfinishedAnnotation(const reader::OpenAnnotationRow& row) {
  Timeline::OnUnfinishedAnnotation(row);
  all_annotations.push_back(
      {static_cast<int64_t>(row.row.begin_host_ns()), std::nullopt, Keep(row.name), Keep(*row.thread)});
}

void Scan::OnMark(const reader::MarkRow& row) {
  marks.push_back({static_cast<int64_t>(row.row.host_ns()), 0, Keep(row.name), Keep(*row.thread)});
}

void Scan::OnCounter(const reader::CounterRow& row) {
  counters.push_back({static_cast<int64_t>(row.row.host_ns()), row.row.value(), Keep(row.name), Keep(*row.thread)});
}

void Scan::OnLoss(const reader::LossRow& row) {
  losses.push_back({row.row, Keep(*row.thread)});
  lost = analysis::AddSaturated(lost, row.row.count());
}

void Scan::Complete(const reader::TraceReader& reader) {
  Finish(reader);
  std::stable_sort(all_steps.begin(), all_steps.end(),
                   [](const ScannedStep& a, const ScannedStep& b) { return a.row.host_ns() < b.row.host_ns(); });
}

}  // namespace gpuperf::tables
