// Copies and memory sets: bytes, times, sizes, and what the link to the host would have carried.
//
// One thread. Copies are gathered by device, because links are of devices, and told over all devices.
#ifndef GPUPERF_ANALYSIS_TRANSFERS_H_
#define GPUPERF_ANALYSIS_TRANSFERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "analysis/summary.h"
#include "reader/rows.h"

namespace gpuperf::analysis {

class TransferCollector {
 public:
  // `ns`: how much of the row's time lies in the region.
  void Add(const reader::CopyRow& row, int64_t ns);
  void Add(const reader::MemsetRow& row, int64_t ns);

  // Fills copies, copy_sizes and memsets; the links are those of summary->run_info.
  void Finish(Summary* summary) const;

 private:
  using Device = std::optional<uint32_t>;

  // By kind of copy, of source, of destination; by kind of copy and class of size; each by device.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, Device>, CopyFigures> copies_;
  std::map<std::tuple<uint32_t, int, Device>, TransferFigures> sizes_;
  std::map<uint32_t, MemsetFigures> memsets_;
};

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_TRANSFERS_H_
