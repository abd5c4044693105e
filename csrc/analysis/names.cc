#include "analysis/names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gpuperf::analysis {
namespace {

// "LOSS_REASON_RING_FULL" → "ring_full"; a value of a later schema → "7".
std::string EnumName(const std::string& name, absl::string_view prefix, int value) {
  if (name.size() <= prefix.size()) return absl::StrCat(value);
  return absl::AsciiStrToLower(absl::string_view(name).substr(prefix.size()));
}

template <size_t kSize>
std::string TableName(const char* const (&table)[kSize], uint32_t value) {
  return value < kSize ? std::string(table[value]) : absl::StrCat(value);
}

}  // namespace

std::string CopyKindName(uint32_t kind) {
  static constexpr const char* kNames[] = {"unknown", "h2d", "d2h", "h2a", "a2h", "a2a",
                                           "a2d",     "d2a", "d2d", "h2h", "p2p"};
  return TableName(kNames, kind);
}

std::string MemoryKindName(uint32_t kind) {
  static constexpr const char* kNames[] = {"unknown", "pageable", "pinned",        "device",
                                           "array",   "managed",  "device_static", "managed_static"};
  return TableName(kNames, kind);
}

std::string LossReasonName(v1::LossReason reason) {
  return EnumName(v1::LossReason_Name(reason), "LOSS_REASON_", reason);
}
std::string EventKindName(v1::EventKind kind) { return EnumName(v1::EventKind_Name(kind), "EVENT_KIND_", kind); }
std::string OutageReasonName(v1::OutageReason reason) {
  return EnumName(v1::OutageReason_Name(reason), "OUTAGE_REASON_", reason);
}
std::string LevelName(v1::Level level) { return EnumName(v1::Level_Name(level), "LEVEL_", level); }
std::string CallKindName(v1::CallKind kind) { return EnumName(v1::CallKind_Name(kind), "CALL_KIND_", kind); }
std::string CallDomainName(v1::CallDomain domain) {
  return EnumName(v1::CallDomain_Name(domain), "CALL_DOMAIN_", domain);
}
std::string CaptureStateName(v1::CaptureState state) {
  return EnumName(v1::CaptureState_Name(state), "CAPTURE_STATE_", state);
}
std::string MarkerSourceName(v1::MarkerSource source) {
  return EnumName(v1::MarkerSource_Name(source), "MARKER_SOURCE_", source);
}
std::string PayloadKindName(v1::PayloadKind kind) {
  return EnumName(v1::PayloadKind_Name(kind), "PAYLOAD_KIND_", kind);
}
std::string ResourceChangeName(v1::ResourceChange change) {
  return EnumName(v1::ResourceChange_Name(change), "RESOURCE_CHANGE_", change);
}
std::string ResourceKindName(v1::ResourceKind kind) {
  return EnumName(v1::ResourceKind_Name(kind), "RESOURCE_KIND_", kind);
}

}  // namespace gpuperf::analysis
