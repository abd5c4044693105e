// Named ranges (gpuperf.annotate, NVTX) carried to the GPU by what was launched inside them.
//
//   RangeProjection ranges;
//   … first reading: AddInstance() for every annotation, AddOpen() for every one that did not end …
//   if (!ranges.empty()) reader.Read(&ranges, progress, {RangeProjection::kFields});
//   ranges.Finish(…)
//
// A call is inside a range if it was entered from the range's begin on and before its end: in the same thread for those
// that belong to one, in any for NVTX's start/end ranges. Its kernels, copies and memory sets are the range's work,
// those of a graph launch, too, whenever they ran. docs/report.md defines the figures.
//
// One thread. Memory: 32 bytes a range, 4 bytes a correlation id, 16 bytes for each idle time within a range's work.
#ifndef GPUPERF_ANALYSIS_RANGES_H_
#define GPUPERF_ANALYSIS_RANGES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/id_map.h"
#include "analysis/intervals.h"
#include "reader/visitor.h"

namespace gpuperf::analysis {

namespace v1 = ::gpuperf::trace::v1;

struct RangeFigures {
  v1::MarkerSource source = v1::MARKER_SOURCE_GPUPERF;
  std::optional<std::string> domain;  // absent: the default domain, or not of NVTX
  bool domain_lost = false;
  std::optional<std::string> name;  // absent: lost
  uint64_t count = 0;               // that ended …
  int64_t total_ns = 0;             // … on the host
  int64_t max_ns = 0;
  uint64_t open = 0;      // that did not end: they reach to the end of the span, and have no host time
  uint64_t launches = 0;  // calls inside that put work on a device
  uint64_t operations = 0;
  int64_t gpu_ns = 0;       // union of the work, device by device
  int64_t gpu_idle_ns = 0;  // from the first to the last of each range's work, when the device ran nothing at all
};

class RangeProjection : public reader::Visitor {
 public:
  using Body = v1::ChunkBody;
  static constexpr reader::Fields kFields = reader::kDictionaries | reader::FieldBit(Body::kKernelBatchesFieldNumber) |
                                            reader::FieldBit(Body::kCopyBatchesFieldNumber) |
                                            reader::FieldBit(Body::kMemsetBatchesFieldNumber) |
                                            reader::FieldBit(Body::kCallBatchesFieldNumber);
  // So many ranges of one nest (of a thread and domain; of the process) are seen around one call, and so many of a nest
  // may overlap without one being in the other. More are not carried to the GPU.
  static constexpr size_t kMostDepth = 64;

  // Of a region only; a device-clock interval set for the device rows.
  void SetRegion(Intervals host, Intervals device);

  void AddInstance(const reader::AnnotationRow& row);
  void AddOpen(const reader::OpenAnnotationRow& row);
  bool empty() const { return groups_.empty(); }
  // Between the two readings. `span_end`: where ranges end that did not.
  void Prepare(int64_t span_end);

  void OnKernel(const reader::KernelRow& row) override { OnWork(row); }
  void OnCopy(const reader::CopyRow& row) override { OnWork(row); }
  void OnMemset(const reader::MemsetRow& row) override { OnWork(row); }
  void OnCall(const reader::CallRow& row) override;

  // By total_ns, falling. Once.
  std::vector<RangeFigures> Finish();
  // False if there were more ranges around something than are seen.
  bool complete() const { return complete_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Instance {
    int64_t begin;
    int64_t end;
    uint32_t group;
    uint32_t outer = kNone;  // the next one around it, in its lane
  };
  // Ranges of which any two lie one in the other or apart. By begin.
  struct Lane {
    std::vector<uint32_t> instances;
    std::vector<uint32_t> open;  // while it is made: those that the next may lie in, the innermost last
    // Where the last call was found, because calls come almost in order: the last range begun, and the innermost of
    // those around it.
    size_t last = 0;
    uint32_t innermost = kNone;
    int64_t host_ns = INT64_MAX;
  };
  // Ranges of one thread and domain, which nest as a rule, or of the process, which need not.
  struct Nest {
    std::vector<uint32_t> instances;
    std::vector<Lane> lanes;
  };
  struct Work {
    std::optional<uint32_t> device;
    int64_t begin;
    int64_t end;
    uint64_t correlation;
  };
  using GroupKey = std::tuple<int, std::string, bool, bool, std::string>;  // source, domain, lost?, name known?, name

  template <class Row>
  uint32_t GroupOf(const Row& row);
  template <class Row>
  void Add(const Row& row, uint32_t group, int64_t begin, int64_t end);
  void MakeLanes(Nest* nest);
  void OnWork(const reader::DeviceRow& row);
  void Assign(const Work& work, uint32_t stack);
  void CollectAround(Nest* nest, int64_t host_ns);
  uint32_t Intern();

  std::optional<Intervals> region_;
  Intervals device_region_;
  std::vector<RangeFigures> groups_;
  std::map<GroupKey, uint32_t> group_by_key_;
  std::vector<Instance> instances_;
  std::map<uint32_t, std::map<uint64_t, Nest>> threads_;  // by tid, by source and domain
  Nest process_;                                          // start/end ranges
  bool complete_ = true;

  // Sets of instances around calls: those of stack i are stack_items_[stack_begins_[i] … stack_begins_[i + 1]).
  std::vector<uint32_t> stack_items_;
  std::vector<size_t> stack_begins_ = {0, 0, 0};  // 0: call not seen, 1: in no range
  std::vector<uint32_t> around_;                  // of the call at hand
  IdMap stacks_;                                  // by correlation id
  std::vector<Work> early_;                       // work that came before its call
  std::map<std::optional<uint32_t>, IntervalCollector> busy_;
  std::map<std::pair<uint32_t, std::optional<uint32_t>>, IntervalCollector> work_;  // by group and device
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, Interval> extents_;            // by instance and device slot
  std::vector<std::optional<uint32_t>> devices_;                                    // by slot
};

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_RANGES_H_
