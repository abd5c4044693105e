// Everything of a trace but its device rows and calls, kept: what the small tables are made of, and what places device
// times and regions.
//
// Filled by one light reading, which checks every chunk and of its batches looks at nothing but the times. Keeps its
// own copies of names. One thread while it is filled, constant then.
#ifndef GPUPERF_TABLES_SCAN_H_
#define GPUPERF_TABLES_SCAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/timeline.h"
#include "reader/chunk_times.h"
#include "reader/frames.h"

namespace gpuperf::tables {

namespace v1 = ::gpuperf::trace::v1;

struct ScannedChunk {
  uint64_t offset = 0;
  bool is_checkpoint = false;
  reader::ChunkTimes times;
};
// Who and what; names are the Scan's, nullptr where they are not known.
struct ScannedThread {
  std::optional<uint32_t> tid;
  reader::Name name = nullptr;
};
struct ScannedStep {
  v1::Step row;
  ScannedThread thread;
};
// Whose an annotation or mark is, and what NVTX says of it.
struct ScannedLabel {
  reader::Name name = nullptr;
  reader::Name domain = nullptr;  // "": none, or the default domain
  v1::MarkerSource source = v1::MARKER_SOURCE_GPUPERF;
  v1::PayloadKind payload_kind = v1::PAYLOAD_KIND_NONE;
  uint64_t payload = 0;
  uint32_t category = 0;
  std::optional<uint32_t> color;
  std::optional<uint32_t> payload_bytes;
};
struct ScannedAnnotation {
  int64_t begin_host_ns = 0;
  std::optional<int64_t> end_host_ns;  // absent: it did not end
  ScannedLabel label;
  ScannedThread thread;
  std::optional<uint32_t> end_tid;
};
struct ScannedMark {
  int64_t host_ns = 0;
  ScannedLabel label;
  ScannedThread thread;
};
struct ScannedCounter {
  int64_t host_ns = 0;
  double value = 0;
  reader::Name name = nullptr;
  ScannedThread thread;
};
struct ScannedName {
  v1::ResourceKind kind = v1::RESOURCE_KIND_UNSPECIFIED;
  uint64_t id = 0;
  reader::Name domain = nullptr;  // "": the default domain
  reader::Name name = nullptr;
};
struct ScannedResource {
  v1::ResourceEvent row;
  ScannedThread thread;
};
struct ScannedLoss {
  v1::Loss row;
  ScannedThread thread;
};

class Scan : public analysis::Timeline {
 public:
  static constexpr reader::Fields kFields =
      Timeline::kFields | reader::FieldBit(Body::kMarksFieldNumber) | reader::FieldBit(Body::kCountersFieldNumber) |
      reader::FieldBit(Body::kRunInfoFieldNumber) | reader::FieldBit(Body::kLossesFieldNumber) |
      reader::FieldBit(Body::kOutagesFieldNumber) | reader::FieldBit(Body::kResourceNamesFieldNumber) |
      reader::FieldBit(Body::kResourceEventsFieldNumber);

  void OnFile(const std::string& /*path*/, const v1::FileHeader& /*header*/) override { parts.emplace_back(); }
  void OnChunk(const reader::Frame& frame) override;
  void OnStep(const reader::StepRow& row) override;
  void OnAnnotation(const reader::AnnotationRow& row) override;
  void OnUnfinishedAnnotation(const reader::OpenAnnotationRow& row) override;
  void OnMark(const reader::MarkRow& row) override;
  void OnCounter(const reader::CounterRow& row) override;
  void OnResourceName(const reader::ResourceNameRow& row) override;
  void OnResourceEvent(const reader::ResourceEventRow& row) override {
    resources.push_back({row.row, Keep(*row.thread)});
  }
  void OnClockPair(const v1::ClockPair& row) override { clock_pairs.push_back(row); }
  void OnLoss(const reader::LossRow& row) override;
  void OnOutage(const v1::Outage& row) override { outages.push_back(row); }

  // After reader.Read(), in the place of Finish(): sorts the steps by time, too.
  void Complete(const reader::TraceReader& reader);

  // A reading of the chunks of which `wants(const reader::ChunkTimes&)` is true.
  template <class Wants>
  std::vector<reader::TraceReader::PartSelection> Select(const Wants& wants) const {
    std::vector<reader::TraceReader::PartSelection> selection;
    for (const std::vector<ScannedChunk>& part : parts) {
      reader::TraceReader::PartSelection& selected = selection.emplace_back();
      for (const ScannedChunk& chunk : part) {
        if (chunk.is_checkpoint && selected.wanted.empty()) selected.begin = chunk.offset;
        if (wants(chunk.times)) selected.wanted.push_back(chunk.offset);
      }
    }
    return selection;
  }

  std::vector<std::vector<ScannedChunk>> parts;
  std::vector<ScannedStep> all_steps;
  std::vector<ScannedAnnotation> all_annotations;
  std::vector<ScannedMark> marks;
  std::vector<ScannedCounter> counters;
  std::vector<ScannedName> resource_names;  // the last one for each thing that is known to be the same
  std::vector<ScannedResource> resources;
  std::vector<v1::ClockPair> clock_pairs;
  std::vector<ScannedLoss> losses;
  std::vector<v1::Outage> outages;
  uint64_t lost = 0;  // sum of `losses`

 private:
  using Timeline::Keep;
  ScannedThread Keep(const reader::ThreadEntry& thread);
  template <class Row>
  ScannedLabel LabelOf(const Row& row);

  absl::flat_hash_map<std::tuple<int, uint64_t, reader::Name>, size_t> place_of_name_;
};

}  // namespace gpuperf::tables

#endif  // GPUPERF_TABLES_SCAN_H_
