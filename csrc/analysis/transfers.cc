#include "analysis/transfers.h"

#include <algorithm>

#include "analysis/arithmetic.h"
#include "analysis/link.h"

namespace gpuperf::analysis {
namespace {

__extension__ using uint128 = unsigned __int128;

// Classes of size: below 1 KiB, and from there on by a factor of 4 up to 1 GiB and more.
constexpr int kFirstBit = 10;
constexpr int kLastBit = 30;

int SizeClass(uint64_t bytes) {
  int size_class = 0;
  for (int bit = kFirstBit; bit <= kLastBit && bytes >> bit != 0; bit += 2) ++size_class;
  return size_class;
}

uint64_t LeastBytes(int size_class) { return size_class == 0 ? 0 : uint64_t{1} << (kFirstBit + 2 * (size_class - 1)); }

// CUpti_ActivityMemcpyKind of copies that cross the link to the host: HtoD, DtoH, HtoA, AtoH.
bool CrossesHostLink(uint32_t copy_kind) { return copy_kind >= 1 && copy_kind <= 4; }

void AddTo(TransferFigures* figures, uint64_t bytes, int64_t ns, int64_t whole_ns) {
  ++figures->operations;
  figures->bytes = AddSaturated(figures->bytes, bytes);
  figures->total_ns = AddSaturated(figures->total_ns, ns);
  figures->whole_ns = AddSaturated(figures->whole_ns, whole_ns);
}

void Merge(TransferFigures* into, const TransferFigures& from) {
  into->operations += from.operations;
  into->bytes = AddSaturated(into->bytes, from.bytes);
  into->total_ns = AddSaturated(into->total_ns, from.total_ns);
  into->whole_ns = AddSaturated(into->whole_ns, from.whole_ns);
}

// What the links of several devices carry at most, weighted by how long each was copied over.
class LinkAverage {
 public:
  void Add(const std::optional<uint64_t>& bytes_per_second, int64_t ns) {
    is_known_ &= bytes_per_second.has_value();
    const auto weight = static_cast<uint64_t>(ns);
    product_ += uint128{bytes_per_second.value_or(0)} * weight;
    weight_ += weight;
  }
  std::optional<uint64_t> Get() const {
    if (!is_known_ || weight_ == 0) return std::nullopt;
    return static_cast<uint64_t>(product_ / weight_);
  }

 private:
  bool is_known_ = true;
  uint128 product_ = 0;
  uint128 weight_ = 0;
};

}  // namespace

void TransferCollector::Add(const reader::CopyRow& row, int64_t ns) {
  Device device;
  if (row.stream->known) device = row.stream->definition.device();
  CopyFigures& copies = copies_[{row.copy_kind, row.source_kind, row.destination_kind, device}];
  AddTo(&copies, row.bytes, ns, row.duration_ns());
  copies.copies = AddSaturated(copies.copies, row.copy_count);
  const uint64_t size = row.bytes / std::max<uint64_t>(row.copy_count, 1);
  AddTo(&sizes_[{row.copy_kind, SizeClass(size), device}], row.bytes, ns, row.duration_ns());
}

void TransferCollector::Add(const reader::MemsetRow& row, int64_t ns) {
  MemsetFigures& memsets = memsets_[row.memory_kind];
  memsets.memory_kind = row.memory_kind;
  AddTo(&memsets, row.bytes, ns, row.duration_ns());
}

void TransferCollector::Finish(Summary* summary) const {
  std::map<uint32_t, std::optional<uint64_t>> links;
  if (summary->run_info) {
    for (const v1::Device& device : summary->run_info->devices()) links[device.device()] = PcieBytesPerSecond(device);
  }
  const auto link_of = [&](uint32_t copy_kind, const Device& device) -> std::optional<uint64_t> {
    if (!CrossesHostLink(copy_kind) || !device) return std::nullopt;
    const auto found = links.find(*device);
    return found == links.end() ? std::nullopt : found->second;
  };

  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::pair<CopyFigures, LinkAverage>> copies;
  for (const auto& [key, figures] : copies_) {
    const auto& [copy_kind, source, destination, device] = key;
    auto& [merged, link] = copies[{copy_kind, source, destination}];
    merged.copy_kind = copy_kind;
    merged.source_kind = source;
    merged.destination_kind = destination;
    merged.copies = AddSaturated(merged.copies, figures.copies);
    Merge(&merged, figures);
    link.Add(link_of(copy_kind, device), figures.whole_ns);
  }
  for (auto& [key, entry] : copies) {
    entry.first.link_bytes_per_second = entry.second.Get();
    summary->copies.push_back(entry.first);
  }

  std::map<std::pair<uint32_t, int>, std::pair<CopySizeFigures, LinkAverage>> sizes;
  for (const auto& [key, figures] : sizes_) {
    const auto& [copy_kind, size_class, device] = key;
    auto& [merged, link] = sizes[{copy_kind, size_class}];
    merged.copy_kind = copy_kind;
    merged.least_bytes = LeastBytes(size_class);
    if (kFirstBit + 2 * size_class <= kLastBit) merged.below_bytes = LeastBytes(size_class + 1);
    Merge(&merged, figures);
    link.Add(link_of(copy_kind, device), figures.whole_ns);
  }
  for (auto& [key, entry] : sizes) {
    entry.first.link_bytes_per_second = entry.second.Get();
    summary->copy_sizes.push_back(entry.first);
  }

  for (const auto& [key, memsets] : memsets_) summary->memsets.push_back(memsets);
}

}  // namespace gpuperf::analysis
