#include "source/call_source.h"

#include <cstring>
#include <string>
#include <vector>

#include "catch.h"
#include "cupti/call_table.h"
#include "ring/thread_state.h"
#include "source/active.h"
#include "source/marker_source.h"

namespace cupti = gpuperf::cupti;
namespace ring = gpuperf::ring;
namespace source = gpuperf::source;
using ring::RecordKind;

namespace {

// Callback ids of CUDA's headers.
constexpr uint32_t kLaunchKernel = 211;    // runtime
constexpr uint32_t kMemcpyAsync = 41;      // runtime
constexpr uint32_t kMemcpy2DAsync = 45;    // runtime
constexpr uint32_t kMalloc = 20;           // runtime
constexpr uint32_t kCuLaunchKernel = 307;  // driver
constexpr uint32_t kCuModuleUnload = 22;   // driver

struct Record {
  ring::RecordHeader header;
  std::vector<uint64_t> words;
  uint64_t Word(size_t i) const { return words.at(i); }
};

std::vector<Record> Drain() {
  std::vector<Record> records;
  ring::Current()->ring.Drain([&](const ring::RecordHeader& header, const std::byte* payload) {
    Record record{header, std::vector<uint64_t>(header.words - 2U)};
    if (!record.words.empty()) std::memcpy(record.words.data(), payload, record.words.size() * 8);
    records.push_back(record);
  });
  return records;
}

class Call {
 public:
  Call(uint32_t domain, uint32_t cbid, uint32_t correlation) : domain_(domain), cbid_(cbid) {
    data_.params = params_.data();
    data_.context_id = 9;
    data_.correlation = correlation;
  }
  template <typename Value>
  Call& Set(int16_t offset, Value value) {
    std::memcpy(reinterpret_cast<std::byte*>(params_.data()) + offset, &value, sizeof value);
    return *this;
  }
  Call& Symbol(const char* symbol) {
    data_.symbol_name = symbol;
    return *this;
  }
  const cupti::CallDescriptor& table() const {
    return domain_ == cupti::kRuntimeDomain ? cupti::kRuntimeCalls[cbid_] : cupti::kDriverCalls[cbid_];
  }
  void Enter() {
    data_.site = cupti::kSiteEnter;
    source::OnCallback(nullptr, domain_, cbid_, &data_);
  }
  void Exit(uint32_t result = 0) {
    data_.site = cupti::kSiteExit;
    data_.return_value = &result;
    source::OnCallback(nullptr, domain_, cbid_, &data_);
  }

 private:
  uint32_t domain_;
  uint32_t cbid_;
  std::vector<uint64_t> params_ = std::vector<uint64_t>(32);
  cupti::CallbackData data_{};
};

class Session {
 public:
  Session() {
    Drain();
    source::ResetCallSource();
    source::SetActive(true);
  }
  ~Session() { source::SetActive(false); }
};

}  // namespace

TEST_CASE("a launch: its name once, the enter at enter, the exit with its code") {
  const Session session;
  const std::string name = "_Z3addPf";
  Call call(cupti::kRuntimeDomain, kLaunchKernel, 100);
  call.Symbol(name.c_str()).Set(call.table().stream, uint64_t{0xABC});
  call.Enter();
  auto records = Drain();
  REQUIRE(records.size() == 2);
  CHECK(records[0].header.kind == RecordKind::kSymbol);
  CHECK(records[0].Word(0) == reinterpret_cast<uintptr_t>(name.c_str()));
  CHECK(std::memcmp(&records[0].words[1], name.data(), name.size()) == 0);
  CHECK(records[1].header.kind == RecordKind::kCallEnter);
  CHECK(records[1].header.aux == kLaunchKernel);
  CHECK(records[1].header.correlation == 100);
  CHECK(static_cast<uint32_t>(records[1].Word(0)) == 9);  // context
  CHECK(records[1].Word(1) == 0xABC);                     // stream
  CHECK(records[1].Word(2) == reinterpret_cast<uintptr_t>(name.c_str()));

  call.Exit(719);
  records = Drain();
  REQUIRE(records.size() == 1);
  CHECK(records[0].header.kind == RecordKind::kCallExit);
  CHECK(records[0].header.aux == 719);

  Call again(cupti::kRuntimeDomain, kLaunchKernel, 101);
  again.Symbol(name.c_str()).Enter();
  again.Exit();
  CHECK(Drain().size() == 2);  // the ring knows the name

  Call unload(cupti::kDriverDomain, kCuModuleUnload, 102);
  unload.Enter();
  unload.Exit();
  Drain();
  Call later(cupti::kRuntimeDomain, kLaunchKernel, 103);
  later.Symbol(name.c_str()).Enter();
  CHECK(Drain().front().header.kind == RecordKind::kSymbol);  // another kernel may stand at that address now
  later.Exit();
}

TEST_CASE("a driver call under a runtime call counts once, one alone counts") {
  const Session session;
  Call outer(cupti::kRuntimeDomain, kLaunchKernel, 7);
  Call inner(cupti::kDriverDomain, kCuLaunchKernel, 7);
  outer.Enter();
  CHECK(Drain().size() == 1);
  inner.Enter();
  inner.Exit();
  CHECK(Drain().empty());
  outer.Exit();
  CHECK(Drain().size() == 1);

  Call alone(cupti::kDriverDomain, kCuLaunchKernel, 8);
  alone.Enter();
  alone.Exit();
  const auto records = Drain();
  REQUIRE(records.size() == 2);
  CHECK(records[0].header.aux == (kCuLaunchKernel | ring::kDriverBit));
}

TEST_CASE("a call that was left without its exit does not silence the thread") {
  const Session session;
  Call thrown(cupti::kRuntimeDomain, kLaunchKernel, 20);
  thrown.Enter();
  Call next(cupti::kRuntimeDomain, kLaunchKernel, 21);
  next.Enter();
  next.Exit();
  const auto records = Drain();
  REQUIRE(records.size() == 3);
  CHECK(records[2].header.correlation == 21);
}

TEST_CASE("an exit whose enter was before the session is nothing") {
  const Session session;
  Call call(cupti::kRuntimeDomain, kLaunchKernel, 30);
  call.Exit();
  CHECK(Drain().empty());
}

TEST_CASE("without a session nothing is written") {
  Drain();
  source::SetActive(false);
  Call call(cupti::kRuntimeDomain, kLaunchKernel, 40);
  call.Enter();
  call.Exit();
  source::EmitMark("m");
  CHECK(Drain().empty());
}

TEST_CASE("copies carry addresses, bytes and kind; 2-D ones the product") {
  const Session session;
  Call copy(cupti::kRuntimeDomain, kMemcpyAsync, 50);
  copy.Set(copy.table().destination, uint64_t{0x1000}).Set(copy.table().source, uint64_t{0x2000});
  copy.Set(copy.table().bytes, uint64_t{4096}).Set(copy.table().copy_kind, uint32_t{1});
  copy.Enter();
  copy.Exit();
  auto records = Drain();
  CHECK(records[0].Word(2) == 0x1000);
  CHECK(records[0].Word(3) == 0x2000);
  CHECK(records[0].Word(4) == 4096);
  ring::CallTarget target{};
  std::memcpy(&target, records[0].words.data(), sizeof target);
  CHECK(target.copy_kind == 1);

  Call plane(cupti::kRuntimeDomain, kMemcpy2DAsync, 51);
  plane.Set(plane.table().bytes, uint64_t{100}).Set(plane.table().bytes_factor, uint64_t{7});
  plane.Enter();
  plane.Exit();
  CHECK(Drain()[0].Word(4) == 700);
}

TEST_CASE("an allocation tells its size at enter and its address at exit") {
  const Session session;
  uint64_t address = 0xDEAD000;
  Call call(cupti::kRuntimeDomain, kMalloc, 60);
  call.Set(call.table().bytes, uint64_t{1 << 20}).Set(call.table().address_out, &address);
  call.Enter();
  call.Exit();
  auto records = Drain();
  REQUIRE(records.size() == 2);
  CHECK(records[0].Word(3) == 1 << 20);
  REQUIRE(records[1].words.size() == 1);
  CHECK(records[1].Word(0) == 0xDEAD000);
  call.Enter();
  call.Exit(2);  // out of memory: no address
  CHECK(Drain()[1].words.empty());
}

TEST_CASE("a full ring loses whole calls, and counts each") {
  const Session session;
  uint64_t first = 0;
  uint64_t last = 0;
  ring::Current()->lost_calls.Take(&first, &last);
  constexpr uint64_t kCalls = 20'000;  // more than the ring holds
  for (uint32_t i = 0; i < kCalls; ++i) {
    Call call(cupti::kRuntimeDomain, kLaunchKernel, 1000 + i);
    call.Enter();
    call.Exit();
  }
  uint64_t enters = 0;
  uint64_t exits = 0;
  for (const Record& record : Drain()) {
    enters += record.header.kind == RecordKind::kCallEnter ? 1 : 0;
    exits += record.header.kind == RecordKind::kCallExit ? 1 : 0;
  }
  const uint64_t lost = ring::Current()->lost_calls.Take(&first, &last);
  CHECK(enters == exits);
  CHECK(lost > 0);
  CHECK(enters + lost == kCalls);
  CHECK(first <= last);
}

TEST_CASE("a long name goes in whole or not at all") {
  const Session session;
  const std::string name(2500, 'n');
  Call call(cupti::kRuntimeDomain, kLaunchKernel, 110);
  call.Symbol(name.c_str()).Enter();
  call.Exit();
  auto records = Drain();
  REQUIRE(records.size() == 5);
  std::string joined;
  for (size_t i = 0; i < 3; ++i) {
    CHECK(records[i].header.kind == RecordKind::kSymbol);
    CHECK(records[i].header.aux == (i < 2 ? ring::kSymbolGoesOn : 0));
    joined.append(reinterpret_cast<const char*>(&records[i].words[1]), records[i].header.correlation);
  }
  CHECK(joined == name);

  const std::string endless(ring::Current()->ring.capacity(), 'e');  // has no room, not even in an empty ring
  Call launch(cupti::kRuntimeDomain, kLaunchKernel, 111);
  launch.Symbol(endless.c_str()).Enter();
  launch.Exit();
  records = Drain();
  REQUIRE(records.size() == 2);
  CHECK(records[0].header.kind == RecordKind::kCallEnter);  // without a name
}

TEST_CASE("markers carry their names and numbers") {
  const Session session;
  source::EmitStep(32, -1);
  source::EmitCounter("loss", 0.25);
  source::EmitMark(std::string(5000, 'x'));
  const auto records = Drain();
  REQUIRE(records.size() == 3);
  CHECK(static_cast<int64_t>(records[0].Word(0)) == 32);
  CHECK(static_cast<int64_t>(records[0].Word(1)) == -1);
  double value = 0;
  std::memcpy(&value, &records[1].words[0], sizeof value);
  CHECK(value == 0.25);
  CHECK(records[1].header.correlation == 4);
  CHECK(records[2].header.correlation == ring::kMaxNameBytes);  // cut
}

TEST_CASE("a muted thread writes nothing and goes on afterwards") {
  const Session session;
  {
    const source::MuteThisThread mute;
    Call call(cupti::kRuntimeDomain, kLaunchKernel, 70);
    call.Enter();
    call.Exit();
  }
  CHECK(Drain().empty());
  source::EmitMark("back");
  CHECK(Drain().size() == 1);
}

TEST_CASE("the end of an invalid graph capture returns an error and ends it") {
  constexpr uint32_t kBeginCapture = 315;
  constexpr uint32_t kEndCapture = 319;
  const Session session;
  const auto begin = [] {
    Call call(cupti::kRuntimeDomain, kBeginCapture, 801);
    call.Set<uint64_t>(call.table().stream, 0x1234).Enter();
    call.Exit();
  };
  const auto end = [](uint32_t result) {
    Call call(cupti::kRuntimeDomain, kEndCapture, 802);
    call.Set<uint64_t>(call.table().stream, 0x1234).Enter();
    call.Exit(result);
  };
  begin();
  CHECK(source::CapturingGraphs());
  end(905);  // called by another thread than begin: goes on
  CHECK(source::CapturingGraphs());
  end(901);
  CHECK_FALSE(source::CapturingGraphs());
  Drain();
}
