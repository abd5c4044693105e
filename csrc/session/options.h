// Options of a session: one table (options.def), three sources. Values given to start() beat GPUPERF_* variables, which
// beat the defaults. An empty variable is none. Not for the hot path.
#ifndef GPUPERF_SESSION_OPTIONS_H_
#define GPUPERF_SESSION_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpuperf/gpuperf.h"

namespace gpuperf::session {

struct Options {
  using path = std::string;
  using text = std::string;
  using bool_ = bool;
  using bytes = uint64_t;
  using int_ = uint64_t;
#define GPUPERF_OPTION(field, name, type, fallback, env, help) type field{};
#include "session/options.def"
#undef GPUPERF_OPTION
};

// GPUPERF_DISABLE is on, whatever else is set: to be asked before anything else is read, and beats what is given.
bool DisabledByEnvironment();

// Neither GPUPERF_DISABLE nor GPUPERF_NVTX=0: libraries that use NVTX are to be listened to.
bool NvtxWanted();

// `output` becomes "" if there is to be no file. False, with one sentence in `error`, for an unknown name or a value
// that does not parse.
bool ParseOptions(const gpuperf_option* given, size_t count, Options* options, std::string* error);

// Every option as text, for the trace.
std::vector<std::pair<std::string, std::string>> DescribeOptions(const Options& options);

// GPUPERF_* variables of the environment that are no option.
std::vector<std::string> UnknownVariables();

// See gpuperf_option_table_json.
const std::string& OptionTableJson();

}  // namespace gpuperf::session

#endif  // GPUPERF_SESSION_OPTIONS_H_
