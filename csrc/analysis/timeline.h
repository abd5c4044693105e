// What regions of a trace are told in: the session's span, its steps and its annotations.
//
//   Timeline timeline;
//   reader.Read(&timeline, progress, {Timeline::kFields});     // parses no device row and no call
//   timeline.Finish(reader);
//
// One thread. Keeps its own copies: what it tells outlives the reading.
#ifndef GPUPERF_ANALYSIS_TIMELINE_H_
#define GPUPERF_ANALYSIS_TIMELINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/node_hash_set.h"
#include "analysis/intervals.h"
#include "reader/clock_map.h"
#include "reader/trace_reader.h"
#include "reader/visitor.h"

namespace gpuperf::analysis {

namespace v1 = ::gpuperf::trace::v1;

class Timeline : public reader::Visitor {
 public:
  using Body = v1::ChunkBody;
  static constexpr reader::Fields kFields =
      reader::FieldBit(Body::kStringsFieldNumber) | reader::FieldBit(Body::kThreadsFieldNumber) |
      reader::FieldBit(Body::kStepsFieldNumber) | reader::FieldBit(Body::kAnnotationsFieldNumber) |
      reader::FieldBit(Body::kClockPairsFieldNumber) | reader::FieldBit(Body::kOpenAnnotationsFieldNumber);

  struct StepEnd {
    int64_t host_ns = 0;
    uint64_t index = 0;
  };
  struct NamedInterval {
    reader::Name name = nullptr;    // the Timeline's
    reader::Name domain = nullptr;  // "": the default domain; nullptr: not known, or not of NVTX
    bool is_nvtx = false;
    Interval interval;
  };

  void OnChunk(const reader::Frame& frame) override;
  void OnStep(const reader::StepRow& row) override;
  void OnAnnotation(const reader::AnnotationRow& row) override;
  void OnUnfinishedAnnotation(const reader::OpenAnnotationRow& row) override;

  // After reader.Read(); once.
  void Finish(const reader::TraceReader& reader);

  // From the session's start to the cut of the last chunk.
  const Interval& span() const { return span_; }
  const std::vector<StepEnd>& steps() const { return steps_; }  // by time
  // Those whose name is known; those that did not end reach to the end of the span.
  const std::vector<NamedInterval>& annotations() const { return annotations_; }
  const reader::ClockMap& clock() const { return clock_; }

 protected:
  // The Timeline's own copy, equal ones at one address.
  reader::Name Keep(reader::Name name) { return name == nullptr ? nullptr : &*names_.insert(*name).first; }
  // Of an annotation or mark: "" where it names none, nullptr where its name is not known.
  template <class Row>
  reader::Name DomainOf(const Row& row) {
    return row.row.nvtx().domain_iid() == 0 ? Keep(&empty_) : Keep(row.domain);
  }

 private:
  template <class Row>
  NamedInterval Named(const Row& row, Interval interval);

  const std::string empty_;
  absl::node_hash_set<std::string> names_;  // stable addresses
  Interval span_;
  std::optional<int64_t> first_host_ns_;
  std::vector<StepEnd> steps_;
  std::vector<NamedInterval> annotations_;
  std::vector<NamedInterval> unfinished_;
  reader::ClockMap clock_;
};

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_TIMELINE_H_
