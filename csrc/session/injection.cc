// How an unmodified program gets a session: the CUDA driver loads the library that CUDA_INJECTION64_PATH names inside
// cuInit and calls this. libtorch is loaded by then and no context exists yet, which is the best moment to begin.
#include <cstdlib>
#include <string>

#include "base/log.h"
#include "gpuperf/gpuperf.h"
#include "session/session.h"

extern "C" int InitializeInjection(void) {
  using gpuperf::base::Log;
  using gpuperf::base::LogLevel;
  const gpuperf_status status = gpuperf::session::Start(nullptr, 0, gpuperf::session::EntryWay::kInjection);
  if (status == GPUPERF_OK) {
    // Runs before the driver's own exit functions, which were registered before us. Python's atexit comes earlier
    // still.
    std::atexit(gpuperf_at_exit);
  } else if (status != GPUPERF_DISABLED && status != GPUPERF_ALREADY_RUNNING) {
    Log(LogLevel::kError, "not recording: %s", gpuperf::session::LastError().c_str());
  }
  return 1;
}
