// Words for the numbers of the schema and of CUPTI, the same in the dump, the report and its JSON. Pure; any thread.
#ifndef GPUPERF_ANALYSIS_NAMES_H_
#define GPUPERF_ANALYSIS_NAMES_H_

#include <cstdint>
#include <string>

#include "gpuperf/trace/v1/events.pb.h"

namespace gpuperf::analysis {

namespace v1 = ::gpuperf::trace::v1;

// CUpti_ActivityMemcpyKind: "h2d", "d2h", "d2d" …; a number that this version does not know as itself.
std::string CopyKindName(uint32_t kind);
// CUpti_ActivityMemoryKind: "pageable", "pinned", "device" …
std::string MemoryKindName(uint32_t kind);
// The schema's enums in lower case without their prefix: "ring_full", "kernel", "yielded", "launch" …
std::string LossReasonName(v1::LossReason reason);
std::string EventKindName(v1::EventKind kind);
std::string OutageReasonName(v1::OutageReason reason);
std::string LevelName(v1::Level level);
std::string CallKindName(v1::CallKind kind);
std::string CallDomainName(v1::CallDomain domain);
std::string CaptureStateName(v1::CaptureState state);
std::string MarkerSourceName(v1::MarkerSource source);
std::string PayloadKindName(v1::PayloadKind kind);
std::string ResourceChangeName(v1::ResourceChange change);
std::string ResourceKindName(v1::ResourceKind kind);

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_NAMES_H_
