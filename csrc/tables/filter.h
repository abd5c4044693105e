// Which rows of a trace a table holds.
//
// A table keeps the rows that a filter says nothing of: streams and devices choose among device work and the calls that
// put it there, names among what has a name. One thread, for one reading: what a name test said is kept by the address
// of the name.
#ifndef GPUPERF_TABLES_FILTER_H_
#define GPUPERF_TABLES_FILTER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/region.h"
#include "reader/rows.h"

namespace gpuperf::tables {

struct Filter {
  // Says of a name whether its rows are wanted.
  using NameTest = std::function<bool(const std::string&)>;

  analysis::RegionSpec region;
  std::optional<std::vector<uint32_t>> streams;  // CUPTI's stream ids
  std::optional<std::vector<uint32_t>> devices;  // ordinals
  NameTest name;                                 // empty: all
};

class RowFilter {
 public:
  // `region` nullptr: the whole trace. Both must outlive the object. Without clock pairs every device time is wanted.
  RowFilter(const Filter& filter, const analysis::Region* region);

  bool WantsDeviceTime(int64_t begin, int64_t end) const {
    return device_ == nullptr || analysis::Overlap(*device_, begin, end);
  }
  bool WantsHostTime(int64_t begin, int64_t end) const {
    return host_ == nullptr || analysis::Overlap(*host_, begin, end);
  }
  // Where a loss lies between two times, both included.
  bool WantsHostRange(int64_t first, int64_t last) const {
    return WantsHostTime(first, last < INT64_MAX ? last + 1 : last);
  }
  // Steps belong to the region that they end in, its end included.
  bool WantsStepEnd(int64_t host_ns) const { return WantsHostTime(host_ns - 1, host_ns); }
  bool WantsStream(const reader::StreamEntry& stream) const;
  // Of what has no stream: absent.
  bool WantsStream(uint32_t device, std::optional<uint32_t> stream) const {
    return (!devices_ || devices_->contains(device)) && (!streams_ || (stream && streams_->contains(*stream)));
  }
  bool has_streams() const { return streams_ || devices_; }
  bool has_names() const { return filter_.name != nullptr; }
  // `name`: as it is in the trace; nullptr: not known, and not wanted by any test. Kernels are tested by their
  // demangled and by their mangled names.
  bool WantsName(reader::Name name);
  bool WantsKernelName(reader::Name name);

 private:
  const Filter& filter_;
  const analysis::Intervals* host_ = nullptr;
  const analysis::Intervals* device_ = nullptr;
  std::optional<absl::flat_hash_set<uint32_t>> streams_;
  std::optional<absl::flat_hash_set<uint32_t>> devices_;
  absl::flat_hash_map<reader::Name, bool> names_;
  absl::flat_hash_map<reader::Name, bool> kernel_names_;
};

}  // namespace gpuperf::tables

#endif  // GPUPERF_TABLES_FILTER_H_
