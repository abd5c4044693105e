#include "source/graph_level.h"

#include "base/stamp_clock.h"
#include "cupti/call_table.h"
#include "source/small_set.h"
#include "source/turn.h"

namespace gpuperf::source {
namespace {

const cupti::Api* g_api = nullptr;
std::atomic<bool> g_on{false};    // the kind may be on
std::atomic<bool> g_sure{false};  // it is: a graph whose instantiation begins now has it
std::atomic_flag g_turn = ATOMIC_FLAG_INIT;
std::atomic<uint64_t> g_fallback{0};
std::atomic<bool> g_instantiated{false};
// Instantiated with the kind on. One that finds no room here counts as one that was not.
SmallSet<1024> g_execs;
__thread bool t_instantiating __attribute__((tls_model("initial-exec"))) = false;

void TurnOff(const cupti::Api& api) noexcept {
  g_sure.store(false, std::memory_order_relaxed);
  api.ActivityDisable(cupti::kGraphTraceKind);
  g_on.store(false, std::memory_order_release);
}

// Whoever finds the kind being turned off waits: CUDA looks at it right after.
void FallBack() noexcept {
  const Turn turn(g_turn);
  if (!g_on.load(std::memory_order_relaxed)) return;
  TurnOff(*g_api);
  g_fallback.store(base::Stamp(), std::memory_order_release);
}

}  // namespace

int BeginGraphLevel(const cupti::Api& api, cupti::Subscriber subscriber) noexcept {
  const Turn turn(g_turn);
  g_api = &api;
  g_fallback.store(0, std::memory_order_relaxed);
  g_execs.Clear();
  for (const uint32_t cbid : {cupti::kGraphExecCreateStarting, cupti::kGraphExecCreated, cupti::kGraphExecDestroying}) {
    const int result = api.EnableCallback(1, subscriber, cupti::kResourceDomain, cbid);
    if (result != cupti::kSuccess) return result;
  }
  g_on.store(true, std::memory_order_release);
  const int result = api.ActivityEnable(cupti::kGraphTraceKind);
  g_sure.store(result == cupti::kSuccess, std::memory_order_release);
  if (result != cupti::kSuccess) g_on.store(false, std::memory_order_relaxed);
  return result;
}

void EndGraphLevel(const cupti::Api& api) noexcept {
  const Turn turn(g_turn);
  if (g_on.load(std::memory_order_relaxed)) TurnOff(api);
}

void BeforeGraphLaunch(uint64_t graph_exec) noexcept {
  if (g_on.load(std::memory_order_acquire) && !g_execs.Contains(graph_exec)) FallBack();
}

void OnGraphResource(uint32_t cbid, const void* data) noexcept {
  if (cbid == cupti::kGraphExecCreateStarting) {
    g_instantiated.store(true, std::memory_order_relaxed);
    t_instantiating = g_sure.load(std::memory_order_acquire);
    return;
  }
  const auto* graph = static_cast<const cupti::ResourceData*>(data)->graph;
  if (graph == nullptr) return;
  if (cbid == cupti::kGraphExecDestroying) {
    g_execs.Erase(graph->exec);
  } else if (cbid == cupti::kGraphExecCreated && t_instantiating) {
    g_execs.Insert(graph->exec);
    t_instantiating = false;
  }
}

const std::atomic<uint64_t>& GraphLevelFallback() noexcept { return g_fallback; }

bool GraphsNeedCupti() noexcept { return g_instantiated.load(std::memory_order_relaxed); }

}  // namespace gpuperf::source
