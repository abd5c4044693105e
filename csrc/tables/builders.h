// From rows to tables: one function a kind of table. docs/python.md is the normative text of the columns.
//
// Called after the reading that gathered the rows, while its dictionaries live. Pure.
#ifndef GPUPERF_TABLES_BUILDERS_H_
#define GPUPERF_TABLES_BUILDERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/clock_map.h"
#include "reader/rows.h"
#include "tables/call_index.h"
#include "tables/filter.h"
#include "tables/rows.h"
#include "tables/scan.h"
#include "tables/table.h"

namespace gpuperf::tables {

// A call of the trace, and the device work that it put there.
struct CallWithWork {
  const reader::ThreadEntry* thread = nullptr;
  const reader::CallSiteEntry* site = nullptr;
  int64_t enter_host_ns = 0;
  int64_t exit_host_ns = -1;  // -1: did not return
  uint64_t correlation = 0;
  uint32_t result = 0;
  int32_t detail = -1;  // place among the details, -1: none
  uint32_t work_rows = 0;
  int64_t work_begin_device_ns = 0;
  int64_t work_end_device_ns = 0;
  const reader::StreamEntry* work_stream = nullptr;  // of the work that came first
};

std::shared_ptr<const Table> BuildKernels(const Rows<reader::KernelRow>& rows, CallIndex* calls,
                                          const reader::ClockMap& clock);
std::shared_ptr<const Table> BuildCopies(const Rows<reader::CopyRow>& rows, CallIndex* calls,
                                         const reader::ClockMap& clock);
std::shared_ptr<const Table> BuildMemsets(const Rows<reader::MemsetRow>& rows, CallIndex* calls,
                                          const reader::ClockMap& clock);
// `name`: calls, launches or syncs. `details`: what CallWithWork::detail tells places in.
std::shared_ptr<const Table> BuildCalls(const char* name, const std::vector<CallWithWork>& rows,
                                        const std::vector<reader::CallRow>& details, const reader::ClockMap& clock);
std::shared_ptr<const Table> BuildAllocations(const std::vector<CallWithWork>& rows,
                                              const std::vector<reader::CallRow>& details);
// Tables of what a Scan holds: steps, annotations, marks, counters, names, resources, losses, outages, clock_pairs;
// nullptr: not one of them.
std::shared_ptr<const Table> BuildSmall(const std::string& name, const Scan& scan, RowFilter* filter);

}  // namespace gpuperf::tables

#endif  // GPUPERF_TABLES_BUILDERS_H_
