// Names that the application gives through NVTX: to domains, and to threads, streams, categories and the like.
//
// Append-only, bounded, never freed: producers (application threads, not the hot path) add, anybody reads without a
// lock, and a session that begins later still finds what was named before it.
#ifndef GPUPERF_RING_APP_NAMES_H_
#define GPUPERF_RING_APP_NAMES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuperf::ring {

// 0: gpuperf's own markers, 1: NVTX's default domain, 2 …: those that the application creates.
using DomainIndex = uint8_t;
inline constexpr DomainIndex kOwnDomain = 0;
inline constexpr DomainIndex kDefaultDomain = 1;
inline constexpr size_t kMostDomains = 64;
inline constexpr DomainIndex kNoDomain = UINT8_MAX;  // there was no room for it: its events are counted as lost

// The domain of this name, the same for the same name whichever library asks; kNoDomain: too many.
DomainIndex InternDomain(std::string_view name) noexcept;

// "" for the first two.
std::string_view DomainName(DomainIndex domain) noexcept;

// Same values as the schema's ResourceKind.
enum class ResourceKind : uint8_t {
  kThread = 1,    // id: tid
  kCategory = 2,  // id: category of the domain
  kDevice = 3,    // id: CUDA ordinal
  kContext = 4,   // id: handle
  kStream = 5,    // id: handle
  kEvent = 6,     // id: handle
};

struct ResourceName {
  ResourceKind kind;
  DomainIndex domain;
  uint64_t id;
  std::string_view name;
};

// False: there are too many already (counted by the caller).
bool AddResourceName(ResourceKind kind, DomainIndex domain, uint64_t id, std::string_view name) noexcept;

// Number `index` of all names added, nullptr: not yet.
const ResourceName* ResourceNameAt(size_t index) noexcept;

}  // namespace gpuperf::ring

#endif  // GPUPERF_RING_APP_NAMES_H_
