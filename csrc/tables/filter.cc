#include "tables/filter.h"

#include "analysis/demangle.h"

namespace gpuperf::tables {
namespace {

std::optional<absl::flat_hash_set<uint32_t>> SetOf(const std::optional<std::vector<uint32_t>>& numbers) {
  if (!numbers) return std::nullopt;
  return absl::flat_hash_set<uint32_t>(numbers->begin(), numbers->end());
}

}  // namespace

RowFilter::RowFilter(const Filter& filter, const analysis::Region* region)
    : filter_(filter), streams_(SetOf(filter.streams)), devices_(SetOf(filter.devices)) {
  if (region == nullptr) return;
  host_ = &region->host;
  if (region->device) device_ = &*region->device;
}

bool RowFilter::WantsStream(const reader::StreamEntry& stream) const {
  if (streams_ && !(stream.known && streams_->contains(stream.definition.stream()))) return false;
  return !devices_ || (stream.known && devices_->contains(stream.definition.device()));
}

bool RowFilter::WantsName(reader::Name name) {
  if (filter_.name == nullptr) return true;
  if (name == nullptr) return false;
  const auto [place, is_new] = names_.try_emplace(name, false);
  if (is_new) place->second = filter_.name(*name);
  return place->second;
}

bool RowFilter::WantsKernelName(reader::Name name) {
  if (filter_.name == nullptr) return true;
  if (name == nullptr) return false;
  const auto [place, is_new] = kernel_names_.try_emplace(name, false);
  if (is_new) place->second = filter_.name(analysis::Demangle(*name)) || filter_.name(*name);
  return place->second;
}

}  // namespace gpuperf::tables
