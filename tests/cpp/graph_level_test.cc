#include "source/graph_level.h"

#include <thread>
#include <vector>

#include "catch.h"
#include "cupti/call_table.h"
#include "source/active.h"
#include "source/call_source.h"

namespace cupti = gpuperf::cupti;
namespace source = gpuperf::source;

namespace {

constexpr uint32_t kCudaGraphLaunch = 311;  // runtime

// A CUPTI that notes whether the kind is on.
bool g_kind_on = false;
int g_disabled = 0;
std::vector<uint32_t> g_callbacks;
int g_enable_answer = cupti::kSuccess;

cupti::Api FakeApi() {
  cupti::Api api;
  api.EnableCallback = [](uint32_t, cupti::Subscriber, uint32_t domain, uint32_t cbid) {
    CHECK(domain == cupti::kResourceDomain);
    g_callbacks.push_back(cbid);
    return cupti::kSuccess;
  };
  api.ActivityEnable = [](uint32_t kind) {
    CHECK(kind == cupti::kGraphTraceKind);
    g_kind_on = g_enable_answer == cupti::kSuccess;
    return g_enable_answer;
  };
  api.ActivityDisable = [](uint32_t kind) {
    CHECK(kind == cupti::kGraphTraceKind);
    g_kind_on = false;
    ++g_disabled;
    return cupti::kSuccess;
  };
  return api;
}

class Session {
 public:
  Session() {
    g_disabled = 0;
    g_callbacks.clear();
    source::SetActive(true);
    answer = source::BeginGraphLevel(api_, nullptr);
  }
  ~Session() {
    source::EndGraphLevel(api_);
    source::SetActive(false);
  }
  int answer;

 private:
  cupti::Api api_ = FakeApi();
};

void Resource(uint32_t cbid, uint64_t exec) {
  cupti::GraphData graph{};
  graph.exec = exec;
  const cupti::ResourceData data{nullptr, 0, &graph};
  source::OnCallback(nullptr, cupti::kResourceDomain, cbid, reinterpret_cast<const cupti::CallbackData*>(&data));
}

void Instantiate(uint64_t exec) {
  Resource(cupti::kGraphExecCreateStarting, 0);
  Resource(cupti::kGraphExecCreated, exec);
}

// Whether the kind was on when CUDA got the launch.
bool Launch(uint64_t exec, uint32_t correlation) {
  const uint64_t params[2] = {exec, 0};
  cupti::CallbackData data{};
  data.params = params;
  data.correlation = correlation;
  source::OnCallback(nullptr, cupti::kRuntimeDomain, kCudaGraphLaunch, &data);
  const bool on = g_kind_on;
  data.site = cupti::kSiteExit;
  source::OnCallback(nullptr, cupti::kRuntimeDomain, kCudaGraphLaunch, &data);
  return on;
}

}  // namespace

TEST_CASE("graphs instantiated in the session are recorded as a whole until another one is launched") {
  const Session session;
  REQUIRE(session.answer == cupti::kSuccess);
  CHECK(g_callbacks.size() == 3);
  Instantiate(0x10);
  Instantiate(0x20);
  CHECK(Launch(0x10, 1));
  CHECK(Launch(0x20, 2));
  CHECK(source::GraphLevelFallback().load() == 0);
  CHECK(source::GraphsNeedCupti());

  CHECK_FALSE(Launch(0x30, 3));  // with the kind on CUDA would crash in it
  CHECK(source::GraphLevelFallback().load() != 0);
  CHECK_FALSE(Launch(0x10, 4));
  CHECK(g_disabled == 1);  // not once for each launch
}

TEST_CASE("a handle that was destroyed is a stranger's when it comes back") {
  const Session session;
  Instantiate(0x10);
  Resource(cupti::kGraphExecDestroying, 0x10);
  CHECK_FALSE(Launch(0x10, 1));
}

TEST_CASE("an instantiation that began without the kind does not have it") {
  source::SetActive(true);
  Resource(cupti::kGraphExecCreateStarting, 0);
  {
    const Session session;
    Resource(cupti::kGraphExecCreated, 0x10);
    CHECK_FALSE(Launch(0x10, 1));
  }
}

TEST_CASE("no later session knows the graphs of an earlier one, which may be gone") {
  {
    const Session session;
    Instantiate(0x10);
  }
  const Session session;
  CHECK_FALSE(Launch(0x10, 1));
}

TEST_CASE("more graphs than are remembered end the level, not the job") {
  const Session session;
  for (uint64_t exec = 1; exec <= 1100; ++exec) Instantiate(exec);
  CHECK(Launch(1, 1));
  CHECK_FALSE(Launch(1100, 2));
}

TEST_CASE("a CUPTI without the kind: nothing is on") {
  g_enable_answer = cupti::kInvalidKind;
  {
    const Session session;
    CHECK(session.answer == cupti::kInvalidKind);
    CHECK_FALSE(Launch(0x10, 1));
    CHECK(source::GraphLevelFallback().load() == 0);
  }
  g_enable_answer = cupti::kSuccess;
}

TEST_CASE("many threads launch strangers at once: none comes through with the kind on") {
  for (int round = 0; round < 50; ++round) {
    const Session session;
    Instantiate(0x10);
    std::vector<std::thread> threads;
    std::atomic<int> through{0};
    for (uint32_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        source::BeforeGraphLaunch(0x99 + i);
        if (g_disabled != 1) ++through;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(through == 0);
    CHECK(g_disabled == 1);
  }
}
