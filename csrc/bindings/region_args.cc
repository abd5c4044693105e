#include "bindings/region_args.h"

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

namespace gpuperf::bindings {

namespace py = pybind11;

analysis::RegionSpec ToRegionSpec(const py::object& region) {
  using Steps = std::pair<std::optional<int64_t>, std::optional<int64_t>>;
  using Point = std::optional<std::pair<int, int64_t>>;
  using Times = std::pair<Point, Point>;

  analysis::RegionSpec spec;
  if (region.is_none()) return spec;
  using Nvtx = std::pair<std::string, std::optional<std::string>>;
  const auto [steps, annotation, time, nvtx] = region.cast<
      std::tuple<std::optional<Steps>, std::optional<std::string>, std::optional<Times>, std::optional<Nvtx>>>();
  if (steps) spec.steps = {steps->first, steps->second};
  spec.annotation = annotation;
  if (nvtx) spec.nvtx = {nvtx->first, nvtx->second};
  if (time) {
    const auto point = [](const Point& told) -> std::optional<analysis::TimePoint> {
      if (!told) return std::nullopt;
      if (told->first < 0 || told->first > 2) throw py::value_error("no such origin of a time");
      return analysis::TimePoint{static_cast<analysis::TimePoint::Origin>(told->first), told->second};
    };
    spec.time = {point(time->first), point(time->second)};
  }
  return spec;
}

}  // namespace gpuperf::bindings
