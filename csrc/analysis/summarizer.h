// Reads a trace, or a region of it, into a Summary in one pass (with a region a light one comes before it).
//
// One thread. Memory: some bits for each correlation id, 24 bytes for each distinct kernel duration, 16 bytes for each
// idle interval of a stream; the rows are not kept. The result does not depend on the order in which rows were
// delivered.
#ifndef GPUPERF_ANALYSIS_SUMMARIZER_H_
#define GPUPERF_ANALYSIS_SUMMARIZER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "analysis/exact_distribution.h"
#include "analysis/id_set.h"
#include "analysis/intervals.h"
#include "analysis/ranges.h"
#include "analysis/region.h"
#include "analysis/summary.h"
#include "analysis/transfers.h"
#include "reader/trace_reader.h"
#include "reader/visitor.h"

namespace gpuperf::analysis {

class Summarizer : public reader::Visitor {
 public:
  Summarizer() = default;
  // Of a region only; its place on the device clock must be known.
  Summarizer(const RegionSpec& spec, Region region)
      : spec_(spec), region_(std::move(region.host)), device_region_(region.device.value_or(Intervals())) {
    ranges_.SetRegion(*region_, device_region_);
  }

  void OnKernel(const reader::KernelRow& row) override;
  void OnCopy(const reader::CopyRow& row) override;
  void OnMemset(const reader::MemsetRow& row) override;
  void OnCall(const reader::CallRow& row) override;
  void OnOpenCall(const reader::OpenCallRow& row) override;
  void OnUnfinishedCall(const reader::OpenCallRow& row) override;
  void OnStep(const reader::StepRow& row) override;
  void OnAnnotation(const reader::AnnotationRow& row) override;
  void OnUnfinishedAnnotation(const reader::OpenAnnotationRow& row) override { ranges_.AddOpen(row); }
  void OnClockPair(const v1::ClockPair& row) override;
  void OnLoss(const reader::LossRow& row) override;
  void OnOutage(const v1::Outage& row) override;
  void OnOpaqueInterval(const reader::OpaqueRow& row) override;
  void OnLevelChange(const v1::LevelChange& row) override;
  void OnChunk(const reader::Frame& frame) override;

  // After reader.Read(&summarizer); once. What is left to be done when this is not empty: the ranges' second reading.
  Summary Finish(const reader::TraceReader& reader);
  RangeProjection& ranges() { return ranges_; }

 private:
  struct KernelState {
    const reader::KernelEntry* entry = nullptr;
    ExactDistribution durations;
  };
  struct DeviceState {
    DeviceFigures figures;
    IntervalCollector opaque;     // device clock
    std::vector<Intervals> busy;  // of its streams, likewise; from FinishStreams on
  };
  struct StreamState {
    StreamFigures figures;
    DeviceState* device = nullptr;
    IntervalCollector busy;  // device clock
  };
  struct CallState {
    const reader::CallSiteEntry* site = nullptr;
    uint64_t count = 0;
    int64_t total_ns = 0;
    int64_t max_ns = 0;
    uint64_t errors = 0;

    void Add(int64_t duration_ns);
  };
  struct Step {
    int64_t host_ns;
    uint64_t index;
    std::optional<uint64_t> samples;
    std::optional<uint64_t> tokens;
  };
  struct CopyCall {
    uint64_t correlation;
    const reader::CallSiteEntry* site;
    int64_t duration_ns;
  };
  using StreamKey = std::tuple<std::optional<uint32_t>, std::optional<uint32_t>, std::optional<uint32_t>>;
  struct Join {
    uint64_t records = 0;
    std::vector<uint64_t> pending;  // correlation ids whose call has not come yet
  };

  KernelState& StateOf(const reader::KernelEntry& entry);
  StreamState& StateOf(const reader::StreamEntry& stream);
  std::optional<int64_t> DeviceTime(const reader::DeviceRow& row) const;
  std::optional<int64_t> HostTime(int64_t begin, int64_t end) const;
  void AddDeviceRow(const reader::DeviceRow& row, Join* join);
  JoinFigures Joined(const Join& join) const;
  void FinishSpan(const reader::TraceReader& reader, Summary* summary);
  void FinishSteps(Summary* summary);
  void PlaceLongestIdle(DeviceFigures* figures) const;
  void FinishDevices(const reader::ClockMap& clock, Summary* summary);
  void FinishStreams(const reader::ClockMap& clock, Summary* summary);
  void FinishKernels(Summary* summary);
  void FinishCalls(Summary* summary);

  std::optional<RegionSpec> spec_;
  std::optional<Intervals> region_;  // host clock; absent: the whole trace
  Intervals device_region_;          // the same on the device clock
  std::deque<KernelState> kernels_;
  absl::flat_hash_map<const void*, KernelState*> kernel_by_name_;
  std::vector<KernelState*> kernel_by_index_;
  std::map<std::optional<uint32_t>, DeviceState> devices_;
  std::map<StreamKey, StreamState> streams_;
  std::vector<StreamState*> stream_by_index_;
  std::vector<CallState> calls_;  // by call site index
  TransferCollector transfers_;
  std::map<std::string, AnnotationFigures> annotations_;
  std::map<std::pair<int, int>, LossFigures> losses_;
  std::vector<Step> steps_;
  RangeProjection ranges_;
  std::vector<v1::Outage> outages_;
  std::vector<v1::LevelChange> levels_;
  std::vector<UnfinishedCall> unfinished_calls_;
  uint64_t unfinished_call_count_ = 0;
  IdSet call_ids_;
  IdSet launch_ids_;  // of launches that must have a kernel
  IdSet kernel_ids_;  // of kernels outside graphs
  IdSet pageable_copies_;
  std::vector<CopyCall> copy_calls_;
  Join kernel_join_;
  Join copy_join_;
  Join memset_join_;
  uint64_t clock_width_ns_ = 0;
  std::optional<int64_t> first_host_ns_;
  Intervals captured_;  // host clock; from FinishSpan on
};

// Opens, reads and summarises the trace at `path`, or that region of it. Errors are TraceReader::Open's, Cancelled when
// `progress` stops it, and OutOfRange for a region that the trace does not have or that holds no time.
absl::StatusOr<Summary> Summarize(const std::string& path, const RegionSpec& spec = {},
                                  const reader::TraceReader::Progress& progress = nullptr);

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_SUMMARIZER_H_
