// A region as Python hands it over: None, or the tuple that gpuperf.regions.Region is. With the GIL.
#ifndef GPUPERF_BINDINGS_REGION_ARGS_H_
#define GPUPERF_BINDINGS_REGION_ARGS_H_

#include <pybind11/pybind11.h>

#include "analysis/region.h"

namespace gpuperf::bindings {

// (steps: (begin, end) | None, annotation: bytes | None, time: ((origin, ns) | None, (origin, ns) | None) | None,
//  nvtx: (name: bytes, domain: bytes | None) | None)
analysis::RegionSpec ToRegionSpec(const pybind11::object& region);

}  // namespace gpuperf::bindings

#endif  // GPUPERF_BINDINGS_REGION_ARGS_H_
