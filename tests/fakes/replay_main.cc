// gpuperf-replay: a program that looks to a CUDA tool like a CUDA job. It starts the stand-in driver (which loads what
// CUDA_INJECTION64_PATH names), plays a capture, or a synthetic one, through the stand-in libcupti, and prints as JSON
// what was really dispatched and delivered. It links nothing of gpuperf's: the tool under test sees it from outside.
#include <dlfcn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "capture.h"
#include "fake_cupti.h"
#include "replayer.h"
#include "synthetic.h"

namespace {

using namespace gpuperf::fakes;

constexpr char kUsage[] = R"(usage: gpuperf-replay [CAPTURE.gpcap[.gz]] [options]
Plays a capture (without one: a synthetic one) through the stand-in libcupti.
  --loops N             play it N times
  --speed F             1: recorded pace (2: twice as fast); 0, the default: as fast as it goes
  --concurrent          recorded threads run freely instead of taking turns
  --wrap-correlation    correlation ids pass 2^32 in the middle
  --scenario FAULTS     see fake_cupti.h
  --second-client       a second CUPTI client subscribes in the middle, as torch.profiler does
  --gpus N              number of GPUs of the machine (synthetic captures use them all)
  --threads N --operations N --streams N --interval-ns N    shape of the synthetic capture
  --save FILE           write the capture that is played to FILE and exit
  --steps               call gpuperf_step of the injected library at every device synchronize
  --fork-in-middle      fork in the middle; the child makes some CUDA calls and exits by exit(0)
  --linger-ms N         wait before the end
  --progress FILE       append "CLOCK_MONOTONIC-ns callbacks kernels" to FILE every 10 ms
  --json FILE           write the JSON there instead of to stdout
  --exit-with CODE      exit(CODE) at the end
  --os-exit CODE        _exit(CODE) at the end: no exit function runs
  --kill-self SIGNAL    at the end
)";

struct Arguments {
  std::string capture, scenario, save, progress, json;
  ReplayOptions replay;
  SyntheticOptions synthetic;
  bool second_client = false, steps = false, fork_in_middle = false;
  int linger_ms = 0, exit_with = 0, os_exit = -1, kill_self = 0;
};

uint64_t Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

[[noreturn]] void Fail(int code, const std::string& message) {
  std::fprintf(stderr, "gpuperf-replay: %s\n", message.c_str());
  std::exit(code);
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  int i = 1;
  const auto value = [&]() -> std::string {
    if (i + 1 >= argc) Fail(2, std::string(argv[i]) + " needs a value\n" + kUsage);
    return argv[++i];
  };
  const auto number = [&] { return static_cast<uint32_t>(std::strtoul(value().c_str(), nullptr, 10)); };
  const auto signed_number = [&] { return static_cast<int>(number()); };
  ReplayOptions& replay = arguments.replay;
  SyntheticOptions& synthetic = arguments.synthetic;
  const std::map<std::string, std::function<void()>> options = {
      {"--loops", [&] { replay.loops = number(); }},
      {"--speed", [&] { replay.speed = std::strtod(value().c_str(), nullptr); }},
      {"--concurrent", [&] { replay.concurrent = true; }},
      {"--wrap-correlation", [&] { replay.wrap_correlation = true; }},
      {"--scenario", [&] { arguments.scenario = value(); }},
      {"--second-client", [&] { arguments.second_client = true; }},
      {"--gpus", [&] { synthetic.devices = number(); }},
      {"--threads", [&] { synthetic.threads = number(); }},
      {"--operations", [&] { synthetic.operations = number(); }},
      {"--streams", [&] { synthetic.streams = number(); }},
      {"--interval-ns", [&] { synthetic.interval_ns = number(); }},
      {"--save", [&] { arguments.save = value(); }},
      {"--steps", [&] { arguments.steps = true; }},
      {"--fork-in-middle", [&] { arguments.fork_in_middle = true; }},
      {"--linger-ms", [&] { arguments.linger_ms = signed_number(); }},
      {"--progress", [&] { arguments.progress = value(); }},
      {"--json", [&] { arguments.json = value(); }},
      {"--exit-with", [&] { arguments.exit_with = signed_number(); }},
      {"--os-exit", [&] { arguments.os_exit = signed_number(); }},
      {"--kill-self", [&] { arguments.kill_self = signed_number(); }},
      {"--help",
       [] {
         std::fputs(kUsage, stdout);
         std::exit(0);
       }},
  };
  for (; i < argc; ++i) {
    const std::string name = argv[i];
    const auto option = options.find(name);
    if (option != options.end()) {
      option->second();
    } else if (name.rfind("--", 0) == 0 || !arguments.capture.empty()) {
      Fail(2, "unknown argument " + name + "\n" + kUsage);
    } else {
      arguments.capture = name;
    }
  }
  if (synthetic.devices != 1) setenv("GPUPERF_FAKE_GPUS", std::to_string(synthetic.devices).c_str(), 1);
  return arguments;
}

// A second client of CUPTI: subscribes, which fails while another holds the slot; the result is CUPTI's.
int SubscribeSecond() {
  void* cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (cupti == nullptr) return -1;
  using Callback = void (*)(void*, int, uint32_t, const void*);
  const auto subscribe = reinterpret_cast<int (*)(void**, Callback, void*)>(dlsym(cupti, "cuptiSubscribe"));
  void* handle = nullptr;
  return subscribe(&handle, [](void*, int, uint32_t, const void*) {}, nullptr);
}

// The child of a fork: a few CUDA calls that would be traced, then a normal exit with all exit functions.
[[noreturn]] void RunChild(const FakeCuptiApi& api) {
  SyntheticOptions options;
  options.threads = 1;
  options.operations = 20;
  const Capture capture = MakeSynthetic(options);
  struct {
    uint32_t site;
    const char* a;
    const void* params;
    void* result;
    const char* symbol;
    void* context;
    uint32_t uid;
    uint64_t* data;
    uint32_t correlation;
  } data{};
  alignas(8) uint8_t params[512] = {};
  uint64_t slot = 0;
  data.params = params;
  data.data = &slot;
  for (const CapturedEvent& event : capture.events) {
    if (event.type != CapturedEvent::kCallback) continue;
    std::memset(params, 0, sizeof params);
    std::memcpy(params, capture.bytes.data() + event.params_offset, event.params_size);
    if (event.params_size != 0 && std::strcmp(event.function_name, "cudaLaunchKernelExC") == 0) continue;
    data.site = event.callback.site;
    data.a = event.function_name;
    data.symbol = event.symbol_name;
    data.correlation = event.callback.correlation_id;
    int result = 0;
    data.result = &result;
    api.callback(event.callback.domain, event.callback.cbid, &data);
  }
  std::exit(0);
}

std::string Quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

template <typename Map, typename Key, typename Value>
std::string Object(const Map& map, Key key, Value value) {
  std::string out = "{";
  for (const auto& item : map) {
    if (out.size() > 1) out += ", ";
    out += Quote(key(item)) + ": " + std::to_string(value(item));
  }
  return out + "}";
}

std::string KindCounts(const uint64_t (&counts)[FAKE_CUPTI_KINDS]) {
  std::string out = "{";
  for (size_t kind = 0; kind < FAKE_CUPTI_KINDS; ++kind) {
    if (counts[kind] == 0) continue;
    if (out.size() > 1) out += ", ";
    out += "\"" + std::to_string(kind) + "\": " + std::to_string(counts[kind]);
  }
  return out + "}";
}

std::string Report(const Arguments& arguments, const Capture& capture, const ReplayResult& result,
                   const fake_cupti_stats& stats, int second_client, int child_status) {
  std::string threads = "[";
  for (size_t i = 0; i < result.threads.size(); ++i) {
    threads += (i != 0 ? ", " : "") + std::string("{\"thread\": ") + std::to_string(i) +
               ", \"tid\": " + std::to_string(result.tids[i]) +
               ", \"enters\": " + std::to_string(result.threads[i].enters) +
               ", \"exits\": " + std::to_string(result.threads[i].exits) + "}";
  }
  std::string violations = "[";
  for (uint64_t i = 0; i < stats.violations && i < FAKE_CUPTI_VIOLATIONS; ++i) {
    violations += (i != 0 ? ", " : "") + Quote(stats.violation[i]);
  }
  const auto number = [](const char* name, uint64_t value) {
    return ",\n  \"" + std::string(name) + "\": " + std::to_string(value);
  };
  return "{\n  \"capture\": " + Quote(arguments.capture) + ",\n  \"metadata\": " + capture.metadata +
         number("pid", static_cast<uint64_t>(getpid())) + number("loops", arguments.replay.loops) +
         number("events", result.events) + ",\n  \"threads\": " + threads + "]" + ",\n  \"dispatched\": " +
         Object(
             result.dispatched, [](const auto& i) { return i.first; }, [](const auto& i) { return i.second; }) +
         ",\n  \"pushed\": " +
         Object(
             result.pushed, [](const auto& i) { return std::to_string(i.first); },
             [](const auto& i) { return i.second; }) +
         ",\n  \"stored\": " + KindCounts(stats.stored) + ",\n  \"not_enabled\": " + KindCounts(stats.not_enabled) +
         ",\n  \"delivered\": " + KindCounts(stats.delivered) + number("callbacks", stats.callbacks) +
         number("pending", stats.pending) + number("buffers_requested", stats.buffers_requested) +
         number("buffers_completed", stats.buffers_completed) + number("null_buffers", stats.null_buffers) +
         number("dropped", stats.dropped) + number("zero_timestamps", stats.zero_timestamps) +
         number("reversed_timestamps", stats.reversed_timestamps) + number("no_launch", stats.no_launch) +
         number("unknown_records", stats.unknown_records) + number("lost_at_finalize", stats.lost_at_finalize) +
         number("finalizes", stats.finalizes) + number("flushes", stats.flushes) +
         number("subscribes", stats.subscribes) + number("violation_count", stats.violations) +
         ",\n  \"violations\": " + violations + "]" + ",\n  \"walker\": " + Quote(stats.walker) +
         number("correlation_first", result.correlation_first) + number("correlation_base", result.correlation_base) +
         number("correlation_stride", result.correlation_stride) + number("device_shift_ns", result.device_shift_ns) +
         number("period_ns", result.period_ns) + ",\n  \"second_client\": " + std::to_string(second_client) +
         ",\n  \"child_status\": " + std::to_string(child_status) + "\n}\n";
}

// Appends lines of progress until the process ends.
void StartProgress(const std::string& path, const FakeCuptiApi& api) {
  FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) Fail(4, "cannot write " + path);
  std::thread([file, &api] {
    for (;;) {
      fake_cupti_stats stats;
      api.get_stats(&stats);
      std::fprintf(file, "%llu %llu %llu\n", static_cast<unsigned long long>(Now()),
                   static_cast<unsigned long long>(stats.callbacks), static_cast<unsigned long long>(stats.stored[10]));
      std::fflush(file);
      usleep(10000);
    }
  }).detach();
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments = Parse(argc, argv);
  std::string error;
  Capture capture;
  if (arguments.capture.empty()) {
    capture = MakeSynthetic(arguments.synthetic);
  } else if (!capture.Load(arguments.capture, &error)) {
    Fail(3, error);
  }
  if (!arguments.save.empty()) {
    if (!capture.Save(arguments.save, &error)) Fail(4, error);
    return 0;
  }

  static FakeCuptiApi api;
  if (!api.Load(&error)) Fail(6, error);
  if (!arguments.scenario.empty() && api.configure(arguments.scenario.c_str()) != 0) {
    Fail(2, "unknown scenario " + arguments.scenario);
  }
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (cuda == nullptr) Fail(6, dlerror());
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(cuda, "cuInit"));
  if (init == nullptr) Fail(6, "libcuda.so.1 has no cuInit");
  if (const int result = init(0)) std::fprintf(stderr, "gpuperf-replay: cuInit gives %d\n", result);

  void (*step)(int64_t, int64_t) = nullptr;
  if (const char* injected = std::getenv("CUDA_INJECTION64_PATH"); arguments.steps && injected != nullptr) {
    if (void* library = dlopen(injected, RTLD_NOW | RTLD_NOLOAD)) {
      step = reinterpret_cast<decltype(step)>(dlsym(library, "gpuperf_step"));
    }
  }
  if (step != nullptr) arguments.replay.on_device_synchronize = [step] { step(-1, -1); };

  static int second_client = -1;
  static int child_status = -1;
  const uint64_t middle = uint64_t{arguments.replay.loops} * capture.events.size() / 2;
  if (arguments.second_client || arguments.fork_in_middle) {
    arguments.replay.after_event = [&arguments, middle](uint64_t position) {
      if (position != middle) return;
      if (arguments.second_client) second_client = SubscribeSecond();
      if (!arguments.fork_in_middle) return;
      const pid_t child = fork();
      if (child == 0) RunChild(api);
      waitpid(child, &child_status, 0);
    };
  }
  if (!arguments.progress.empty()) StartProgress(arguments.progress, api);

  Replayer replayer(capture, api, arguments.replay);
  const ReplayResult result = replayer.Run();
  if (arguments.linger_ms != 0) usleep(static_cast<useconds_t>(arguments.linger_ms) * 1000);

  fake_cupti_stats stats;
  api.get_stats(&stats);
  const std::string report = Report(arguments, capture, result, stats, second_client, child_status);
  FILE* out = arguments.json.empty() ? stdout : std::fopen(arguments.json.c_str(), "w");
  if (out == nullptr) Fail(4, "cannot write " + arguments.json);
  std::fputs(report.c_str(), out);
  std::fflush(out);
  if (arguments.kill_self != 0) std::raise(arguments.kill_self);
  if (arguments.os_exit >= 0) _exit(arguments.os_exit);
  return arguments.exit_with;
}
