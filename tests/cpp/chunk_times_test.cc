// EarliestTimes against the decoder: the same earliest rows, and no crash and no late bound whatever the bytes are.
#include "reader/chunk_times.h"

#include <algorithm>
#include <random>
#include <string>

#include "catch.h"
#include "reader/decoder.h"
#include "trace_builder.h"

namespace gpuperf::reader {
namespace {

using namespace ::gpuperf::tests;  // NOLINT: a test

class Earliest : public Visitor {
 public:
  void OnKernel(const KernelRow& row) override { Device(row); }
  void OnCopy(const CopyRow& row) override { Device(row); }
  void OnMemset(const MemsetRow& row) override { Device(row); }
  void OnCall(const CallRow& row) override { times.host_ns = std::min(times.host_ns, row.enter_host_ns); }
  void OnOpenCall(const OpenCallRow& row) override {
    times.host_ns = std::min(times.host_ns, static_cast<int64_t>(row.row.enter_host_ns()));
  }

  ChunkTimes times;

 private:
  void Device(const DeviceRow& row) { times.device_ns = std::min(times.device_ns, row.begin_device_ns); }
};

ChunkTimes Decoded(const std::string& body) {
  Damages damages;
  Decoder decoder(&damages);
  decoder.BeginFile("test");
  Frame frame;
  frame.body = body;
  Earliest earliest;
  decoder.Decode(frame, kAllFields, &earliest);
  return earliest.times;
}

template <class Batch, class SetBase>
void Fill(Batch* batch, const SetBase& set_base, std::mt19937_64* random) {
  const auto below = [&](uint64_t limit) { return (*random)() % limit; };
  set_base(batch, 1'000'000 + below(1000));
  for (uint64_t rows = below(5); rows > 0; --rows) {
    batch->add_gap_ns(static_cast<int64_t>(below(2000)) - 1000);
    batch->add_duration_ns(below(3000));
    batch->add_correlation_delta(1);
  }
}

std::string RandomBody(std::mt19937_64* random) {
  v1::ChunkBody body;
  const auto device = [](auto* batch, uint64_t base) { batch->set_base_device_ns(base); };
  const auto host = [](auto* batch, uint64_t base) { batch->set_base_host_ns(base); };
  for (uint64_t batches = (*random)() % 3; batches > 0; --batches) {
    Fill(body.add_kernel_batches(), device, random);
    Fill(body.add_copy_batches(), device, random);
    Fill(body.add_memset_batches(), device, random);
    Fill(body.add_call_batches(), host, random);
  }
  if ((*random)() % 2 == 0) body.add_open_calls()->set_enter_host_ns(999'500 + (*random)() % 1000);
  return body.SerializeAsString();
}

TEST_CASE("the earliest times are those of the rows") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::string body = RandomBody(&random);
    const ChunkTimes times = EarliestTimes(body);
    const ChunkTimes decoded = Decoded(body);
    REQUIRE(times.device_ns == decoded.device_ns);
    REQUIRE(times.host_ns == decoded.host_ns);
  }
}

TEST_CASE("whatever the bytes are, the bound is not late") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 5000; ++round) {
    std::string body = RandomBody(&random);
    for (uint64_t flips = 1 + random() % 4; flips > 0 && !body.empty(); --flips) {
      body[random() % body.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) body.resize(random() % (body.size() + 1));
    const ChunkTimes times = EarliestTimes(body);
    const ChunkTimes decoded = Decoded(body);
    REQUIRE(times.device_ns <= decoded.device_ns);
    REQUIRE(times.host_ns <= decoded.host_ns);
  }
}

}  // namespace
}  // namespace gpuperf::reader
