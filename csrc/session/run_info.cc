#include "session/run_info.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <protozero/pbf_builder.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "trace/trace_fields.h"

namespace gpuperf::session {
namespace {

namespace fields = trace::fields;
using protozero::pbf_builder;

constexpr const char* kRedacted = "<redacted>";

std::optional<uint32_t> FirstNumber(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    char* end = nullptr;
    const unsigned long number = std::strtoul(text, &end, 10);
    if (*end == '\0' && number <= UINT32_MAX) return static_cast<uint32_t>(number);
  }
  return std::nullopt;
}

bool IsSecret(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* word : {"key", "token", "secret", "password"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  return false;
}

// "--", "--name" or "--name=value", and nothing that only begins like one: a secret may begin with dashes, too.
bool IsLongOption(std::string_view argument) {
  if (argument.substr(0, 2) != "--") return false;
  const std::string_view name = argument.substr(2, argument.find('=') - 2);
  return (name.empty() || std::isalpha(static_cast<unsigned char>(name[0])) != 0) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
}

std::string ReadWhole(const char* path) {
  std::string text;
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return text;
  char block[4096];
  size_t size = 0;
  while ((size = std::fread(block, 1, sizeof block, file)) > 0) text.append(block, size);
  std::fclose(file);
  return text;
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string FileNamePart(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    safe += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' ? c : '_';
  }
  return safe.substr(0, 64);
}

template <typename Field>
void AddText(pbf_builder<Field>& message, Field field, std::string_view text) {
  message.add_string(field, base::ValidUtf8(text));
}

template <typename Field>
void AddKeyValues(pbf_builder<Field>& message, Field field,
                  const std::vector<std::pair<std::string, std::string>>& pairs) {
  for (const auto& [key, value] : pairs) {
    pbf_builder<fields::KeyValue> pair(message, field);
    AddText(pair, fields::KeyValue::kKey, key);
    AddText(pair, fields::KeyValue::kValue, value);
  }
}

// CUdevice_attribute → field.
struct Attribute {
  int attribute;
  fields::Device field;
};
constexpr Attribute kAttributes[] = {
    {75, fields::Device::kComputeMajor},
    {76, fields::Device::kComputeMinor},
    {16, fields::Device::kMultiprocessors},
    {13, fields::Device::kSmClockKhz},
    {36, fields::Device::kMemoryClockKhz},
    {37, fields::Device::kMemoryBusBits},
    {38, fields::Device::kL2Bytes},
    {39, fields::Device::kMaxThreadsPerMultiprocessor},
    {106, fields::Device::kMaxBlocksPerMultiprocessor},
    {82, fields::Device::kRegistersPerMultiprocessor},
    {12, fields::Device::kRegistersPerBlock},
    {81, fields::Device::kSharedBytesPerMultiprocessor},
    {8, fields::Device::kSharedBytesPerBlock},
    {97, fields::Device::kSharedBytesPerBlockOptin},
    {111, fields::Device::kReservedSharedBytesPerBlock},
    {10, fields::Device::kWarpSize},
    {40, fields::Device::kAsyncEngines},
};
constexpr unsigned kMaxNvLinks = 18;

using Query = int (*)(void*, unsigned*);

void AddQuery(pbf_builder<fields::Device>& row, fields::Device field, Query query, void* handle) {
  unsigned value = 0;
  if (query != nullptr && query(handle, &value) == 0) row.add_uint32(field, value);
}

using ModeQuery = int (*)(void*, unsigned*, unsigned*);

void AddMode(pbf_builder<fields::Device>& row, fields::Device field, ModeQuery query, void* handle) {
  unsigned current = 0;
  unsigned pending = 0;
  if (query != nullptr && query(handle, &current, &pending) == 0) row.add_bool(field, current != 0);
}

void AddLinks(pbf_builder<fields::Device>& row, const Nvml& nvml, void* handle) {
  AddQuery(row, fields::Device::kPcieGeneration, nvml.DeviceGetCurrPcieLinkGeneration, handle);
  AddQuery(row, fields::Device::kPcieGenerationMax, nvml.DeviceGetMaxPcieLinkGeneration, handle);
  AddQuery(row, fields::Device::kPcieWidth, nvml.DeviceGetCurrPcieLinkWidth, handle);
  AddQuery(row, fields::Device::kPcieWidthMax, nvml.DeviceGetMaxPcieLinkWidth, handle);
  AddMode(row, fields::Device::kEcc, nvml.DeviceGetEccMode, handle);
  AddMode(row, fields::Device::kMig, nvml.DeviceGetMigMode, handle);
  if (nvml.DeviceGetNvLinkState == nullptr) return;
  bool known = false;
  for (unsigned link = 0; link < kMaxNvLinks; ++link) {
    unsigned active = 0;
    if (nvml.DeviceGetNvLinkState(handle, link, &active) != 0) continue;
    known = true;
    pbf_builder<fields::NvLink> entry(row, fields::Device::kNvlinks);
    entry.add_uint32(fields::NvLink::kLink, link);
    entry.add_bool(fields::NvLink::kActive, active != 0);
    unsigned version = 0;
    if (nvml.DeviceGetNvLinkVersion != nullptr && nvml.DeviceGetNvLinkVersion(handle, link, &version) == 0) {
      entry.add_uint32(fields::NvLink::kVersion, version);
    }
  }
  row.add_bool(fields::Device::kNvlinkKnown, known);
}

void AddDevice(pbf_builder<fields::RunInfo>& info, const Driver& driver, int ordinal) {
  using F = fields::Device;
  int device = 0;
  if (driver.DeviceGet(&device, ordinal) != kCudaSuccess) return;
  pbf_builder<F> row(info, fields::RunInfo::kDevices);
  row.add_uint32(F::kDevice, static_cast<uint32_t>(ordinal));
  char text[256] = {};
  if (driver.DeviceGetName != nullptr && driver.DeviceGetName(text, sizeof text, device) == kCudaSuccess) {
    AddText(row, F::kName, text);
  }
  unsigned char uuid[16] = {};
  if (driver.DeviceGetUuid != nullptr && driver.DeviceGetUuid(uuid, device) == kCudaSuccess) {
    std::string name = "GPU-";
    for (size_t i = 0; i < sizeof uuid; ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) name += '-';
      name += base::Format("%02x", uuid[i]);
    }
    AddText(row, F::kUuid, name);
  }
  size_t memory = 0;
  if (driver.DeviceTotalMem != nullptr && driver.DeviceTotalMem(&memory, device) == kCudaSuccess) {
    row.add_uint64(F::kMemoryBytes, memory);
  }
  for (const Attribute& attribute : kAttributes) {
    int value = 0;
    if (driver.DeviceGetAttribute == nullptr ||
        driver.DeviceGetAttribute(&value, attribute.attribute, device) != kCudaSuccess) {
      continue;
    }
    row.add_uint32(attribute.field, static_cast<uint32_t>(value));
  }
  char bus[64] = {};
  if (driver.DeviceGetPCIBusId == nullptr || driver.DeviceGetPCIBusId(bus, sizeof bus, device) != kCudaSuccess) return;
  AddText(row, F::kPciBusId, bus);
  const Nvml* nvml = LoadNvml();
  void* handle = nullptr;
  if (nvml == nullptr || nvml->DeviceGetHandleByPciBusId == nullptr ||
      nvml->DeviceGetHandleByPciBusId(bus, &handle) != 0) {
    return;
  }
  AddLinks(row, *nvml, handle);
}

}  // namespace

Ranks ReadRanks() {
  return {FirstNumber({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"}),
          FirstNumber({"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}),
          FirstNumber({"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                       "MV2_COMM_WORLD_LOCAL_RANK"})};
}

std::vector<std::string> CommandLine() {
  std::vector<std::string> arguments;
  const std::string text = ReadWhole("/proc/self/cmdline");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    arguments.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return arguments;
}

std::vector<std::string> Redact(std::vector<std::string> arguments) {
  bool next_is_secret = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    const bool names_secret = IsSecret(argument.substr(0, equals));
    const bool is_secret = next_is_secret && !IsLongOption(argument);
    // What was taken for a value may have been an option of a secret itself ("--use-token -password x").
    next_is_secret = names_secret && equals == std::string::npos && argument[0] == '-';
    if (is_secret) {
      argument = kRedacted;
    } else if (names_secret && equals != std::string::npos) {
      argument = argument.substr(0, equals + 1) + kRedacted;
    }
  }
  return arguments;
}

std::string ScriptName(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return "process";
  const std::string_view program = BaseName(arguments[0]);
  if (program.substr(0, 6) != "python") return FileNamePart(program);
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "-m" && i + 1 < arguments.size()) return FileNamePart(arguments[i + 1]);
    if (argument == "-c") return "python-c";
    if (argument == "-W" || argument == "-X") {
      ++i;
    } else if (!argument.empty() && argument[0] != '-') {
      std::string_view script = BaseName(argument);
      if (script.size() > 3 && script.substr(script.size() - 3) == ".py") script.remove_suffix(3);
      return FileNamePart(script);
    }
  }
  return FileNamePart(program);
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string BuildProcessInfo(bool with_command_line) {
  using F = fields::ProcessInfo;
  std::string bytes;
  pbf_builder<F> info(bytes);
  info.add_uint32(F::kPid, static_cast<uint32_t>(getpid()));
  info.add_uint32(F::kParentPid, static_cast<uint32_t>(getppid()));
  AddText(info, F::kHost, HostName());
  if (with_command_line) {
    for (const std::string& argument : Redact(CommandLine())) AddText(info, F::kCommandLine, argument);
  }
  char path[4096] = {};
  if (readlink("/proc/self/exe", path, sizeof path - 1) > 0) AddText(info, F::kExecutable, path);
  return bytes;
}

std::string BuildClockSnapshot() {
  using F = fields::ClockSnapshot;
  std::string bytes;
  pbf_builder<F> clocks(bytes);
  clocks.add_uint64(F::kMonotonicNs, base::NowNs());
  clocks.add_uint64(F::kRealtimeNs, base::ReadClock(CLOCK_REALTIME));
  clocks.add_uint64(F::kBoottimeNs, base::ReadClock(CLOCK_BOOTTIME));
  return bytes;
}

std::string DriverVersion() {
  const Nvml* nvml = LoadNvml();
  char text[80] = {};
  if (nvml == nullptr || nvml->SystemGetDriverVersion == nullptr ||
      nvml->SystemGetDriverVersion(text, sizeof text) != 0) {
    return "";
  }
  return text;
}

std::string BuildDevices(const Driver& driver) {
  int devices = 0;
  if (driver.DeviceGetCount == nullptr || driver.DeviceGet == nullptr ||
      driver.DeviceGetCount(&devices) != kCudaSuccess) {
    return "";
  }
  std::string bytes;
  pbf_builder<fields::RunInfo> info(bytes);
  for (int ordinal = 0; ordinal < devices; ++ordinal) AddDevice(info, driver, ordinal);
  return bytes;
}

std::string BuildRunInfo(const RunInfoParts& parts) {
  using F = fields::RunInfo;
  std::string bytes;
  pbf_builder<F> info(bytes);
  if (parts.ranks.rank) info.add_uint32(F::kRank, *parts.ranks.rank);
  if (parts.ranks.world_size) info.add_uint32(F::kWorldSize, *parts.ranks.world_size);
  if (parts.ranks.local_rank) info.add_uint32(F::kLocalRank, *parts.ranks.local_rank);
  if (parts.cupti != nullptr) {
    using C = fields::CuptiInfo;
    pbf_builder<C> cupti(info, F::kCupti);
    cupti.add_uint32(C::kVersion, parts.cupti->version);
    AddText(cupti, C::kPath, parts.cupti->path);
    AddText(cupti, C::kFoundBy, parts.cupti->found_by);
    std::vector<uint32_t> kinds;
    std::vector<uint32_t> sizes;
    for (uint32_t kind = 0; kind < parts.cupti->record_bytes.size(); ++kind) {
      if (parts.cupti->record_bytes[kind] == 0) continue;
      kinds.push_back(kind);
      sizes.push_back(parts.cupti->record_bytes[kind]);
    }
    cupti.add_packed_uint32(C::kRecordKind, kinds.begin(), kinds.end());
    cupti.add_packed_uint32(C::kRecordBytes, sizes.begin(), sizes.end());
  }
  if (!parts.driver_version.empty()) AddText(info, F::kDriverVersion, parts.driver_version);
  if (parts.cuda_driver_api != 0) info.add_uint32(F::kCudaDriverApi, parts.cuda_driver_api);
  AddKeyValues(info, F::kVersions, parts.versions);
  AddKeyValues(info, F::kOptions, parts.options);
  for (const std::string& warning : parts.warnings) AddText(info, F::kWarnings, warning);
  return bytes + parts.devices;
}

std::vector<std::string> KnownProblems(uint32_t version) {
  std::vector<std::string> problems;
  if (version == 130000) {
    problems.emplace_back(
        "CUPTI 13.0.0 can crash in cuptiActivityFlushAll and loses records of cudaDeviceSynchronize; use 13.0.85 or "
        "later");
  }
  if (version >= 19 && version <= 22) {
    problems.emplace_back(
        "CUPTI before 12.5 can crash when it is detached from a process with CUDA graphs; gpuperf "
        "stays attached at stop");
  }
  if (version >= 130200 && version < 130300) {
    problems.emplace_back("CUPTI 13.2 is slower than its neighbours; use 13.0.85 or 13.3 and later");
  }
  return problems;
}

}  // namespace gpuperf::session
