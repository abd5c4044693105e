#include "ring/app_names.h"

#include <cstring>
#include <new>

namespace gpuperf::ring {
namespace {

constexpr size_t kMostResources = 16384;

struct Text {
  size_t size;
  char characters[1];  // size of them

  std::string_view View() const noexcept { return {characters, size}; }
};

const Text* Copy(std::string_view text) noexcept {
  void* memory = ::operator new(sizeof(Text) + text.size(), std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* copy = static_cast<Text*>(memory);
  copy->size = text.size();
  if (!text.empty()) std::memcpy(copy->characters, text.data(), text.size());
  return copy;
}

std::array<std::atomic<const Text*>, kMostDomains> g_domains{};
std::array<std::atomic<const ResourceName*>, kMostResources> g_resources{};
std::atomic<size_t> g_resource_count{0};

}  // namespace

DomainIndex InternDomain(std::string_view name) noexcept {
  const Text* mine = nullptr;
  for (size_t index = kDefaultDomain + 1; index < kMostDomains; ++index) {
    const Text* there = g_domains[index].load(std::memory_order_acquire);
    if (there == nullptr) {
      if (mine == nullptr) mine = Copy(name);
      if (mine == nullptr) return kNoDomain;
      if (g_domains[index].compare_exchange_strong(there, mine, std::memory_order_acq_rel)) {
        return static_cast<DomainIndex>(index);
      }
    }
    if (there->View() == name) {
      ::operator delete(const_cast<Text*>(mine));
      return static_cast<DomainIndex>(index);
    }
  }
  ::operator delete(const_cast<Text*>(mine));
  return kNoDomain;
}

std::string_view DomainName(DomainIndex domain) noexcept {
  const Text* name = domain < kMostDomains ? g_domains[domain].load(std::memory_order_acquire) : nullptr;
  return name == nullptr ? std::string_view() : name->View();
}

bool AddResourceName(ResourceKind kind, DomainIndex domain, uint64_t id, std::string_view name) noexcept {
  if (g_resource_count.load(std::memory_order_relaxed) >= kMostResources) return false;
  const Text* text = Copy(name);
  if (text == nullptr) return false;
  auto* resource = new (std::nothrow) ResourceName{kind, domain, id, text->View()};
  const size_t index = resource == nullptr ? kMostResources : g_resource_count.fetch_add(1, std::memory_order_relaxed);
  if (index >= kMostResources) {
    delete resource;
    ::operator delete(const_cast<Text*>(text));
    return false;
  }
  g_resources[index].store(resource, std::memory_order_release);
  return true;
}

const ResourceName* ResourceNameAt(size_t index) noexcept {
  return index < kMostResources ? g_resources[index].load(std::memory_order_acquire) : nullptr;
}

}  // namespace gpuperf::ring
