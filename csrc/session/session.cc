#include "session/session.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fork_guard.h"
#include "base/log.h"
#include "base/stamp_clock.h"
#include "collector/collector.h"
#include "cupti/cupti_api.h"
#include "ring/buffer_pool.h"
#include "session/detach.h"
#include "session/driver.h"
#include "session/flush_thread.h"
#include "session/options.h"
#include "session/run_info.h"
#include "session/slot.h"
#include "source/active.h"
#include "source/activity_source.h"
#include "source/call_source.h"
#include "source/graph_level.h"
#include "source/marker_source.h"
#include "source/resource_source.h"
#include "trace/trace_writer.h"

namespace gpuperf::session {
namespace {

using base::Format;
using base::Log;
using base::LogLevel;

// From this CUPTI on (CUDA 12.9) a refused buffer request does not crash it.
constexpr uint32_t kMayRefuseSince = 27;
// Up to this CUPTI (CUDA 12.4) finalizing a process with CUDA graphs may crash it.
constexpr uint32_t kFinalizeUnsafeUpTo = 22;

// Schema OutageReason.
constexpr uint8_t kOutageYielded = 2;

struct Capture {
  Options options;
  const Driver* driver = nullptr;
  const cupti::Api* api = nullptr;
  cupti::Subscriber subscriber = nullptr;
  RunInfoParts run_info;
  std::unique_ptr<collector::ChunkSink> sink;
  trace::TraceWriter* writer = nullptr;  // the sink, if it is a file
  std::unique_ptr<collector::Collector> collector;
  std::unique_ptr<FlushThread> flush;
  uint64_t finalize_ns = 0;
};

struct Process {
  std::mutex mutex;
  std::atomic<int> state{GPUPERF_STATE_IDLE};
  std::atomic<bool> busy{false};     // in Start or Stop: InitializeInjection may be called from inside
  std::unique_ptr<Capture> capture;  // the current or the last
  std::string error;
  std::vector<std::pair<std::string, std::string>> versions;
  bool versions_told = true;         // all of `versions` are in the trace
  bool loaded_cupti = false;         // a session of ours was the first to load it
  bool cupti_stuck = false;          // the last stop did not get CUPTI back
  std::atomic<bool> started{false};  // a Start has come as far as having memory that no child inherits
  std::set<std::string> own_paths;   // traces of earlier sessions of this process
  std::mutex info_mutex;             // guards what the flush thread adds: capture->run_info and versions
};

Process& TheProcess() {
  static auto* process = new Process();  // immortal
  return *process;
}

// In the child of a fork. Before any session of ours CUDA may not have been touched, and the child may capture itself;
// but a fork in the middle of a Start has copied locks that nobody will open.
bool ForkedChild() {
  Process& process = TheProcess();
  if (!process.busy.load() && !process.started.load()) {
    new (&process.mutex) std::mutex;  // some other thread may have held them, for a look
    new (&process.info_mutex) std::mutex;
    return false;
  }
  source::SetActive(false);
  ring::ForgetInForkedChild();
  return true;
}

gpuperf_status Refuse(Process& process, gpuperf_status status, const std::string& why) {
  process.error = why;
  return status;
}

// When this process began, CLOCK_REALTIME.
uint64_t ProcessStartNs() {
  std::FILE* file = std::fopen("/proc/self/stat", "re");
  if (file == nullptr) return 0;
  char text[2048] = {};
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const char* field = size == 0 ? nullptr : std::strrchr(text, ')');
  for (int i = 0; field != nullptr && i < 20; ++i) field = std::strchr(field + 1, ' ');
  if (field == nullptr) return 0;
  const uint64_t since_boot_ns =
      std::strtoull(field, nullptr, 10) * (1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
  return base::ReadClock(CLOCK_REALTIME) - base::ReadClock(CLOCK_BOOTTIME) + since_boot_ns;
}

std::string ExpandName(const std::string& pattern, const Options& options, const Ranks& ranks) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      name += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'h':
        name += HostName();
        break;
      case 'p':
        name += std::to_string(getpid());
        break;
      case 'r':
        name += std::to_string(ranks.rank.value_or(0));
        break;
      case 's':
        name += options.script.empty() ? ScriptName(CommandLine()) : options.script;
        break;
      case '%':
        name += '%';
        break;
      default:
        name += std::string("%") + pattern[i];
    }
  }
  return name;
}

// The file is made later, and the job may change its folder before.
std::string Absolute(const std::string& path) {
  char folder[PATH_MAX];
  if (path.empty() || path[0] == '/' || getcwd(folder, sizeof folder) == nullptr) return path;
  return std::string(folder) + '/' + path;
}

trace::OutputPlan PlanOutput(Process& process, const Options& options, const Ranks& ranks) {
  trace::OutputPlan plan;
  plan.path = Absolute(ExpandName(options.output, options, ranks));
  plan.suffix = Format("-r%u-%d", ranks.rank.value_or(0), static_cast<int>(getpid()));
  plan.force = options.force;
  plan.run_start_ns = options.run_start_ns != 0 ? options.run_start_ns : ProcessStartNs();
  if (process.own_paths.count(plan.path) != 0) plan.run_start_ns = UINT64_MAX;
  return plan;
}

bool Writable(const std::string& path, std::string* why) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (access(folder.c_str(), W_OK | X_OK) == 0) return true;
  *why = Format("cannot write the trace into %s: %s; choose another place with -o/--output", folder.c_str(),
                std::strerror(errno));
  return false;
}

gpuperf_status Subscribe(Process& process, Capture& capture) {
  const cupti::Api& api = *capture.api;
  const int result = api.Subscribe(&capture.subscriber, source::OnCallback, nullptr);
  if (result == cupti::kSuccess) return GPUPERF_OK;
  if (result == cupti::kMultipleSubscribers) {
    const std::string holder = SlotHolder(api);
    return Refuse(process, GPUPERF_BUSY,
                  Format("CUPTI is in use by %s; it serves one tool at a time, so run the job without that tool (nsys, "
                         "ncu, compute-sanitizer, an earlier torch.profiler session)",
                         holder.empty() ? "another tool" : holder.c_str()));
  }
  return Refuse(
      process, GPUPERF_UNAVAILABLE,
      Format("CUPTI cannot be used: %s; is a GPU visible to this process (nvidia-smi)?", api.Describe(result).c_str()));
}

gpuperf_status EnableActivity(Process& process, Capture& capture) {
  const cupti::Api& api = *capture.api;
  PromiseZeroedBuffers(api, true);
  source::SetMayRefuseBuffers(api.version >= kMayRefuseSince);
  int result = api.ActivityRegisterCallbacks(source::OnBufferRequested, source::OnBufferCompleted);
  for (const uint32_t kind : cupti::kTracedKinds) {
    if (result == cupti::kSuccess) result = api.ActivityEnable(kind);
  }
  if (result == cupti::kSuccess && capture.options.graphs == "graph") {
    result = source::BeginGraphLevel(api, capture.subscriber);
  }
  if (result == cupti::kSuccess) return GPUPERF_OK;
  source::EndGraphLevel(api);
  DisableActivity(api);
  PromiseZeroedBuffers(api, false);
  return Refuse(process, GPUPERF_UNAVAILABLE,
                Format("CUPTI cannot record this GPU's activity: %s", api.Describe(result).c_str()));
}

void UpdateRunInfo(Process& process, Capture& capture) {
  capture.run_info.versions = process.versions;
  process.versions_told = true;
  capture.collector->SetRunInfo(BuildRunInfo(capture.run_info));
}

// Flush thread, each round: devices can be asked only once CUDA is up, and NVML takes its time; versions come when the
// job imports torch. Not the ranks: another thread must not read the environment, which the job may be changing.
void CompleteRunInfo(Process& process, Capture& capture) {
  std::string devices;
  if (capture.run_info.devices.empty()) devices = BuildDevices(*capture.driver);
  const std::lock_guard<std::mutex> lock(process.info_mutex);
  if (!devices.empty()) {
    capture.run_info.devices = std::move(devices);
    capture.run_info.driver_version = DriverVersion();
    int version = 0;
    capture.driver->DriverGetVersion(&version);
    capture.run_info.cuda_driver_api = static_cast<uint32_t>(version);
  } else if (process.versions_told) {
    return;
  }
  UpdateRunInfo(process, capture);
}

void MakeSink(Capture& capture, const trace::OutputPlan& plan) {
  if (capture.options.output.empty()) {
    capture.sink = std::make_unique<trace::NullSink>();
    return;
  }
  trace::WriterOptions writer;
  writer.output = plan;
  writer.max_part_bytes = capture.options.max_part_bytes;
  writer.process_info = BuildProcessInfo(capture.options.cmdline);
  writer.clock_snapshot = BuildClockSnapshot();
  if (getrandom(writer.uuid.data(), writer.uuid.size(), GRND_NONBLOCK) < 0) {
    const uint64_t now = base::NowNs();
    std::memcpy(writer.uuid.data(), &now, sizeof now);
  }
  auto sink = std::make_unique<trace::TraceWriter>(std::move(writer));
  capture.writer = sink.get();
  capture.sink = std::move(sink);
}

gpuperf_status StartLocked(Process& process, const gpuperf_option* given, size_t count, EntryWay way) {
  base::ChooseStamps();
  auto capture = std::make_unique<Capture>();
  std::string why;
  if (DisabledByEnvironment()) return Refuse(process, GPUPERF_DISABLED, "GPUPERF_DISABLE is set");
  if (!ParseOptions(given, count, &capture->options, &why)) return Refuse(process, GPUPERF_INVALID_OPTION, why);
  const Options& options = capture->options;
  LogLevel level = LogLevel::kWarning;
  base::ParseLogLevel(options.log, &level);
  base::SetLogLevel(level);
  if (options.disable) return Refuse(process, GPUPERF_DISABLED, "the option disable is set");
  // `gpuperf run` has said it once, for all processes of the job.
  if (options.run_start_ns == 0) {
    for (const std::string& variable : UnknownVariables()) {
      Log(LogLevel::kWarning, "%s is no variable of gpuperf's and was ignored (docs/options.md lists them)",
          variable.c_str());
    }
  }

  const Ranks ranks = ReadRanks();
  const trace::OutputPlan plan = PlanOutput(process, options, ranks);
  if (!options.output.empty()) {
    const std::string old = options.force ? "" : trace::StoodBeforeRun(plan);
    if (!old.empty()) return Refuse(process, GPUPERF_OUTPUT_EXISTS, trace::AlreadyExists(old));
    if (!Writable(plan.path, &why)) return Refuse(process, GPUPERF_OUTPUT_UNWRITABLE, why);
  }

  if (process.cupti_stuck) {
    return Refuse(process, GPUPERF_BUSY,
                  "CUPTI has not come back from the last stop (the GPU hangs?); this process cannot record again");
  }
  base::ArmForkGuard(ForkedChild);
  capture->driver = LoadDriver();
  if (capture->driver == nullptr) {
    return Refuse(process, GPUPERF_UNAVAILABLE,
                  "no NVIDIA driver (libcuda.so.1) in this machine or container: nothing can be recorded");
  }
  if (way == EntryWay::kApi) {
    const int result = capture->driver->Init(0);
    if (result != kCudaSuccess) {
      return Refuse(
          process, GPUPERF_UNAVAILABLE,
          Format("no usable GPU: cuInit says %s; nothing can be recorded", capture->driver->Describe(result).c_str()));
    }
  }
  const bool was_loaded = !cupti::LoadedLibrary("libcupti.so.").empty();
  capture->api = cupti::Load(options.cupti, &why);
  if (capture->api == nullptr) return Refuse(process, GPUPERF_UNAVAILABLE, why);
  if (!was_loaded) process.loaded_cupti = true;
  process.started.store(true);
  if (!ring::Pool().Open(options.pool_bytes)) {
    return Refuse(process, GPUPERF_UNEXPECTED, "no address space for activity buffers");
  }
  ring::SetRingBytes(options.ring_bytes);

  const gpuperf_status subscribed = Subscribe(process, *capture);
  if (subscribed != GPUPERF_OK) return subscribed;

  capture->run_info.ranks = ranks;
  capture->run_info.cupti = capture->api;
  capture->run_info.options = DescribeOptions(options);
  capture->run_info.warnings = KnownProblems(capture->api->version);
  for (const std::string& warning : capture->run_info.warnings) Log(LogLevel::kWarning, "%s", warning.c_str());
  MakeSink(*capture, plan);
  collector::CollectorOptions collector_options;
  collector_options.flush_cpu_ns = FlushThread::CpuNs;
  collector_options.refused_buffers = &source::RefusedBuffers();
  if (options.graphs == "graph") collector_options.graph_level_end = &source::GraphLevelFallback();
  capture->collector = std::make_unique<collector::Collector>(*capture->api, *capture->sink, collector_options);
  Capture* running = capture.get();
  capture->flush = std::make_unique<FlushThread>(*capture->api, static_cast<uint32_t>(options.flush_ms),
                                                 [&process, running] { CompleteRunInfo(process, *running); });
  {
    const std::lock_guard<std::mutex> lock(process.info_mutex);
    UpdateRunInfo(process, *capture);
  }
  EmitClocks(*capture->api);

  source::ResetCallSource();
  source::SetActive(true);
  const gpuperf_status enabled = EnableActivity(process, *capture);
  if (enabled != GPUPERF_OK) {
    source::SetActive(false);
    capture->api->Unsubscribe(capture->subscriber);
    return enabled;
  }
  source::EnableTracedCalls(*capture->api, capture->subscriber);
  source::EnableResources(*capture->api, capture->subscriber);
  try {
    capture->collector->Start();
    capture->flush->Start();
  } catch (...) {  // the kernel has no thread for us: leave no trace of the attempt
    source::EndGraphLevel(*capture->api);
    source::SetActive(false);
    DisableActivity(*capture->api);
    PromiseZeroedBuffers(*capture->api, false);
    capture->api->Unsubscribe(capture->subscriber);
    capture->collector->Stop({});
    throw;
  }
  process.capture = std::move(capture);
  process.state.store(GPUPERF_STATE_RUNNING, std::memory_order_release);
  Log(LogLevel::kInfo, "recording with %s", process.capture->api->path.c_str());
  return GPUPERF_OK;
}

std::string SummaryLine(const Capture& capture, const gpuperf_stats& stats) {
  const std::string path = capture.writer == nullptr ? "" : capture.writer->path();
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::string line = path.empty() ? std::string("nothing written") : path;
  if (!path.empty()) line += Format(", %.1f MB", static_cast<double>(stats.written_bytes) / 1e6);
  line += Format(
      ": %llu steps, %llu kernels; own callbacks %.3f s, collector CPU %.3f s, CUPTI's own share not "
      "measured; %llu records lost",
      number(stats.steps), number(stats.kernels), static_cast<double>(stats.callback_ns) / 1e9,
      static_cast<double>(stats.collector_cpu_ns) / 1e9, number(stats.lost));
  if (stats.unjoined != 0) line += Format(", %llu without their launch", number(stats.unjoined));
  if (!path.empty()) line += "; next: gpuperf report " + path;
  return line;
}

void FillStats(const Capture& capture, gpuperf_stats* stats) {
  const collector::Counts& counts = capture.collector->counts();
  const collector::SelfCost cost = capture.collector->self_cost();
  const auto relaxed = std::memory_order_relaxed;
  stats->kernels = counts.kernels.load(relaxed);
  stats->copies = counts.copies.load(relaxed);
  stats->memsets = counts.memsets.load(relaxed);
  stats->calls = counts.calls.load(relaxed);
  stats->opened_calls = counts.opened_calls.load(relaxed);
  stats->steps = counts.steps.load(relaxed);
  stats->lost = counts.lost.load(relaxed);
  stats->unjoined = counts.unjoined.load(relaxed);
  stats->written_bytes = capture.writer == nullptr ? 0 : capture.writer->written_bytes();
  stats->callback_ns = cost.callback_ns;
  stats->collector_cpu_ns = cost.collector_cpu_ns + cost.flush_cpu_ns;
  stats->ring_bytes = cost.ring_bytes;
  stats->buffer_bytes_peak = cost.buffer_bytes_peak;
  stats->finalize_ns = capture.finalize_ns;
}

// Lets go of the GPU and of CUPTI.
void Release(Process& process, Capture& capture) {
  const cupti::Api& api = *capture.api;
  const Options& options = capture.options;
  const bool graphs = source::CapturingGraphs();
  GpuState gpu = GpuState::kBusy;
  if (graphs) {
    Log(LogLevel::kWarning, "stopped during a CUDA graph capture: the GPU was not waited for, last records may miss");
  } else {
    gpu = WaitForGpu(*capture.driver, api, options.stop_wait_ms);
    if (gpu == GpuState::kBusy) {
      Log(LogLevel::kWarning,
          "stopped while the GPU was busy: its work was not done within %llu ms (GPUPERF_STOP_WAIT_MS) and is not in "
          "the trace",
          static_cast<unsigned long long>(options.stop_wait_ms));
    }
  }
  if (gpu == GpuState::kEnding) return;
  EmitClocks(api);
  source::EndGraphLevel(api);  // while launches are still looked at
  source::SetActive(false);
  const bool finalize = options.finalize && api.version > kFinalizeUnsafeUpTo && !source::GraphsNeedCupti();
  if (options.finalize && source::GraphsNeedCupti()) {
    Log(LogLevel::kWarning,
        "CUPTI stays attached: this process has CUDA graphs that were recorded as a whole (--graphs graph) and would "
        "not "
        "survive its end; the speed comes back with --graphs node only");
  }
  const Detachment detachment =
      DetachCupti(*capture.driver, api, capture.subscriber, gpu == GpuState::kIdle, finalize, options.stop_wait_ms);
  if (detachment.dropped != 0) source::EmitCuptiDropped(detachment.dropped);
  capture.finalize_ns = detachment.finalize_ns;
  process.cupti_stuck = !detachment.done;
}

void StopLocked(Process& process, const char* yield_to) {
  Capture& capture = *process.capture;
  capture.flush->Stop();
  Release(process, capture);
  source::SetActive(false);
  std::vector<collector::Outage> outages;
  if (yield_to != nullptr) outages.push_back({kOutageYielded, base::NowNs(), 0, yield_to});
  {
    const std::lock_guard<std::mutex> lock(process.info_mutex);
    const Ranks ranks = ReadRanks();
    if (ranks.rank) capture.run_info.ranks = ranks;
    UpdateRunInfo(process, capture);
  }
  capture.collector->Stop(std::move(outages));
  if (capture.writer != nullptr && !capture.writer->path().empty()) process.own_paths.insert(capture.writer->path());
  process.state.store(yield_to != nullptr ? GPUPERF_STATE_YIELDED : GPUPERF_STATE_STOPPED, std::memory_order_release);

  gpuperf_stats stats{};
  FillStats(capture, &stats);
  if (yield_to != nullptr) {
    base::Print(Format("stopped recording: %s begins and needs CUPTI for itself", yield_to));
  }
  if (!capture.options.quiet && stats.opened_calls + stats.kernels + stats.steps != 0) {
    base::Print(SummaryLine(capture, stats));
  }
}

// Marks Start and Stop as under way for as long as it lives.
class Busy {
 public:
  explicit Busy(Process& process) : process_(process), lock_(process.mutex) { process_.busy.store(true); }
  // Injected: CUDA's initialisation holds a lock of its own, for which whoever is busy may be waiting. Never waits for
  // that one; see Held().
  Busy(Process& process, std::try_to_lock_t) : process_(process), lock_(process.mutex, std::defer_lock) {
    while (!process.busy.load() && !lock_.try_lock()) std::this_thread::yield();
    if (lock_.owns_lock()) process_.busy.store(true);
  }
  ~Busy() {
    if (lock_.owns_lock()) process_.busy.store(false);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  bool Held() const { return lock_.owns_lock(); }

 private:
  Process& process_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace

gpuperf_status Start(const gpuperf_option* options, size_t count, EntryWay way) noexcept {
  if (base::InForkedChild()) return GPUPERF_DISABLED;
  Process& process = TheProcess();
  // CUDA's initialisation, started by a Start of ours, loads this very library again.
  const auto busy = way == EntryWay::kInjection ? Busy(process, std::try_to_lock) : Busy(process);
  if (!busy.Held() || process.state.load() == GPUPERF_STATE_RUNNING) return GPUPERF_ALREADY_RUNNING;
  try {
    return StartLocked(process, options, count, way);
  } catch (const std::exception& failure) {
    source::SetActive(false);
    return Refuse(process, GPUPERF_UNEXPECTED, Format("could not start: %s", failure.what()));
  }
}

gpuperf_status Stop(const char* yield_to) noexcept {
  if (base::InForkedChild()) return GPUPERF_NOT_RUNNING;
  Process& process = TheProcess();
  if (process.state.load() != GPUPERF_STATE_RUNNING) return GPUPERF_NOT_RUNNING;
  const Busy busy(process);
  if (process.state.load() != GPUPERF_STATE_RUNNING) return GPUPERF_NOT_RUNNING;
  try {
    StopLocked(process, yield_to);
    return GPUPERF_OK;
  } catch (const std::exception& failure) {
    source::SetActive(false);
    process.state.store(GPUPERF_STATE_STOPPED);
    return Refuse(process, GPUPERF_UNEXPECTED, Format("could not stop cleanly: %s", failure.what()));
  }
}

void AtExit() noexcept {
  if (base::InForkedChild()) return;
  if (Stop(nullptr) == GPUPERF_OK) return;
  Process& process = TheProcess();
  const Busy busy(process);
  if (process.capture == nullptr || !process.loaded_cupti) return;
  process.loaded_cupti = false;
  void* context = nullptr;
  if (process.capture->driver->CtxGetCurrent(&context) == kCudaDeinitialized) return;
  const cupti::Api& api = *process.capture->api;
  const Slot slot = ProbeSlot(api);
  if (!slot.free && slot.error.empty()) api.Finalize();
}

gpuperf_status Flush(uint32_t timeout_ms) noexcept {
  if (base::InForkedChild()) return GPUPERF_NOT_RUNNING;
  Process& process = TheProcess();
  const Busy busy(process);
  if (process.state.load() != GPUPERF_STATE_RUNNING) return GPUPERF_NOT_RUNNING;
  process.capture->flush->FlushNow(timeout_ms);
  return process.capture->collector->Flush(timeout_ms) ? GPUPERF_OK : GPUPERF_UNEXPECTED;
}

gpuperf_state State() noexcept {
  if (base::InForkedChild()) return GPUPERF_STATE_FORKED;
  Process& process = TheProcess();
  const auto state = static_cast<gpuperf_state>(process.state.load(std::memory_order_acquire));
  if (state != GPUPERF_STATE_RUNNING) return state;
  const std::unique_lock<std::mutex> lock(process.mutex, std::try_to_lock);  // not while a stop is under way
  const bool refused = lock.owns_lock() && process.capture != nullptr && process.capture->sink->failed();
  return refused ? GPUPERF_STATE_UNWRITABLE : state;
}

gpuperf_status Stats(gpuperf_stats* stats) noexcept {
  if (stats == nullptr || stats->struct_size < sizeof stats->struct_size) return GPUPERF_INVALID_OPTION;
  gpuperf_stats full{};
  gpuperf_status status = GPUPERF_NOT_RUNNING;
  if (!base::InForkedChild()) {
    Process& process = TheProcess();
    const std::lock_guard<std::mutex> lock(process.mutex);
    if (process.capture != nullptr) {
      FillStats(*process.capture, &full);
      status = GPUPERF_OK;
    }
  }
  full.struct_size = std::min(stats->struct_size, sizeof full);
  std::memcpy(stats, &full, full.struct_size);
  return status;
}

std::string OutputPath() noexcept {
  if (base::InForkedChild()) return "";
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return process.capture != nullptr && process.capture->writer != nullptr ? process.capture->writer->path() : "";
}

std::string LastError() noexcept {
  if (base::InForkedChild()) return "gpuperf does nothing in forked processes";
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return process.error;
}

void SetVersion(const char* key, const char* value) noexcept {
  if (base::InForkedChild() || key == nullptr || value == nullptr) return;
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> info_lock(process.info_mutex);
  process.versions_told = false;
  for (auto& [known, text] : process.versions) {
    if (known == key) {
      text = value;
      return;
    }
  }
  process.versions.emplace_back(key, value);
}

}  // namespace gpuperf::session
