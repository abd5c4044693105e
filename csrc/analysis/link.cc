#include "analysis/link.h"

namespace gpuperf::analysis {
namespace {

// Of one lane, rounded down: 2.5 and 5 GT/s with 8b/10b, 8 to 32 GT/s with 128b/130b, 64 GT/s with 242 of 256 bytes of
// a flit.
constexpr uint64_t kLaneBytesPerSecond[] = {
    0, 250'000'000, 500'000'000, 984'615'384, 1'969'230'769, 3'938'461'538, 7'562'500'000};
constexpr uint32_t kMaxLanes = 32;

}  // namespace

std::optional<uint64_t> PcieBytesPerSecond(const v1::Device& device) {
  const uint32_t generation =
      device.pcie_generation_max() != 0 ? device.pcie_generation_max() : device.pcie_generation();
  const uint32_t width = device.pcie_width() != 0 ? device.pcie_width() : device.pcie_width_max();
  constexpr uint32_t kKnown = sizeof kLaneBytesPerSecond / sizeof kLaneBytesPerSecond[0];
  if (generation == 0 || generation >= kKnown || width == 0 || width > kMaxLanes) return std::nullopt;
  return width * kLaneBytesPerSecond[generation];
}

}  // namespace gpuperf::analysis
