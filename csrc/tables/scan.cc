#include "tables/scan.h"

#include <algorithm>

#include "analysis/arithmetic.h"

namespace gpuperf::tables {

ScannedThread Scan::Keep(const reader::ThreadEntry& thread) {
  if (!thread.known) return {};
  return {thread.definition.tid(), Keep(thread.name)};
}

template <class Row>
ScannedLabel Scan::LabelOf(const Row& row) {
  ScannedLabel label;
  label.name = Keep(row.name);
  label.domain = DomainOf(row);
  label.source = row.row.source();
  const v1::NvtxAttributes& nvtx = row.row.nvtx();
  label.category = nvtx.category();
  if (nvtx.has_color()) label.color = nvtx.color();
  label.payload_kind = nvtx.payload_kind();
  label.payload = nvtx.payload();
  if (nvtx.has_payload_bytes()) label.payload_bytes = nvtx.payload_bytes();
  return label;
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
  ScannedAnnotation& annotation = all_annotations.emplace_back();
  annotation.begin_host_ns = begin;
  annotation.end_host_ns = begin + static_cast<int64_t>(row.row.duration_ns());
  annotation.label = LabelOf(row);
  annotation.thread = Keep(*row.thread);
  if (row.end_thread->known) annotation.end_tid = row.end_thread->definition.tid();
}

void Scan::OnUnfinishedAnnotation(const reader::OpenAnnotationRow& row) {
  Timeline::OnUnfinishedAnnotation(row);
  ScannedAnnotation& annotation = all_annotations.emplace_back();
  annotation.begin_host_ns = static_cast<int64_t>(row.row.begin_host_ns());
  annotation.label = LabelOf(row);
  annotation.thread = Keep(*row.thread);
}

void Scan::OnMark(const reader::MarkRow& row) {
  marks.push_back({static_cast<int64_t>(row.row.host_ns()), LabelOf(row), Keep(*row.thread)});
}

void Scan::OnCounter(const reader::CounterRow& row) {
  counters.push_back({static_cast<int64_t>(row.row.host_ns()), row.row.value(), Keep(row.name), Keep(*row.thread)});
}

// The last one counts. Of one whose domain is not known nothing tells what it is the same as.
void Scan::OnResourceName(const reader::ResourceNameRow& row) {
  const bool in_default = row.row.domain_iid() == 0;
  const std::string none;
  const ScannedName named = {row.row.kind(), row.row.id(), in_default ? Keep(&none) : Keep(row.domain), Keep(row.name)};
  if (named.domain != nullptr) {
    const auto [place, is_new] =
        place_of_name_.try_emplace({named.kind, named.id, named.domain}, resource_names.size());
    if (!is_new) {
      resource_names[place->second] = named;
      return;
    }
  }
  resource_names.push_back(named);
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
