// What the link between a GPU and its host carries at most. Pure; any thread.
#ifndef GPUPERF_ANALYSIS_LINK_H_
#define GPUPERF_ANALYSIS_LINK_H_

#include <cstdint>
#include <optional>

#include "gpuperf/trace/v1/metadata.pb.h"

namespace gpuperf::analysis {

namespace v1 = ::gpuperf::trace::v1;

// Bytes a second in one direction, after the line code and before packet headers: lanes × what a lane of that PCIe
// generation carries. The generation is the greatest that GPU and slot can do (an idle GPU lowers it for a while, and
// no copy runs then), the width is that of the link now. Absent: not told, or a generation that is not known here.
std::optional<uint64_t> PcieBytesPerSecond(const v1::Device& device);

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_LINK_H_
