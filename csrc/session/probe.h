// What this machine offers, for `gpuperf doctor`. Initialises CUDA in this process.
#ifndef GPUPERF_SESSION_PROBE_H_
#define GPUPERF_SESSION_PROBE_H_

#include <string>

namespace gpuperf::session {

// JSON object: driver {version, cuda, error}, cupti {path, version, found_by, error, candidates}, slot {free, holder,
// error}, nvml {gpm, error}, gpus [{name, …}], warnings […].
std::string ProbeJson();

}  // namespace gpuperf::session

#endif  // GPUPERF_SESSION_PROBE_H_
