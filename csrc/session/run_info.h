// Metadata of a run, as serialised messages of the schema (metadata.proto). Not the hot path.
#ifndef GPUPERF_SESSION_RUN_INFO_H_
#define GPUPERF_SESSION_RUN_INFO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cupti/cupti_api.h"
#include "session/driver.h"
#include "session/options.h"

namespace gpuperf::session {

struct Ranks {
  std::optional<uint32_t> rank;
  std::optional<uint32_t> world_size;
  std::optional<uint32_t> local_rank;
};

// From the variables that torchrun, Slurm, Open MPI, MPICH and MVAPICH set. Application threads only (getenv).
Ranks ReadRanks();

// This process's arguments.
std::vector<std::string> CommandLine();

// `arguments` with the values of those whose name holds key, token, secret or password replaced. The value of an option
// is what follows "=", or the next argument unless that is a long option: rather too much goes than a secret stays.
std::vector<std::string> Redact(std::vector<std::string> arguments);

// What the default output name calls the job: the script's or module's name, else the program's.
std::string ScriptName(const std::vector<std::string>& arguments);

std::string HostName();

// Serialised ProcessInfo and ClockSnapshot.
std::string BuildProcessInfo(bool with_command_line);
std::string BuildClockSnapshot();

// Serialised Device rows with their tags (RunInfo.devices); "" while CUDA is not initialised.
std::string BuildDevices(const Driver& driver);
std::string DriverVersion();  // of the kernel driver, "" if not known

struct RunInfoParts {
  Ranks ranks;
  const cupti::Api* cupti = nullptr;
  std::string driver_version;
  uint32_t cuda_driver_api = 0;
  std::string devices;
  std::vector<std::pair<std::string, std::string>> versions;
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<std::string> warnings;
};
std::string BuildRunInfo(const RunInfoParts& parts);

// One sentence for each thing that is known to be wrong with this CUPTI.
std::vector<std::string> KnownProblems(uint32_t cupti_version);

}  // namespace gpuperf::session

#endif  // GPUPERF_SESSION_RUN_INFO_H_
