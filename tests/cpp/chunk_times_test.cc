// TimesOfChunk against the decoder: the same bounds, and no crash and no bound too narrow whatever the bytes are.
#include "reader/chunk_times.h"

#include <random>
#include <string>

#include "catch.h"
#include "reader/decoder.h"
#include "trace_builder.h"

namespace gpuperf::reader {
namespace {

using namespace ::gpuperf::tests;  // NOLINT: a test

class Bounds : public Visitor {
 public:
  void OnKernel(const KernelRow& row) override { times.device.Add(row.begin_device_ns, row.end_device_ns); }
  void OnCopy(const CopyRow& row) override { times.device.Add(row.begin_device_ns, row.end_device_ns); }
  void OnMemset(const MemsetRow& row) override { times.device.Add(row.begin_device_ns, row.end_device_ns); }
  void OnCall(const CallRow& row) override { times.host.Add(row.enter_host_ns, row.exit_host_ns); }
  void OnOpenCall(const OpenCallRow& row) override {
    times.host.Add(static_cast<int64_t>(row.row.enter_host_ns()), INT64_MAX);
  }

  ChunkTimes times;
};

ChunkTimes Decoded(const std::string& body) {
  Damages damages;
  Decoder decoder(&damages);
  decoder.BeginFile("test");
  Frame frame;
  frame.body = body;
  Bounds bounds;
  decoder.Decode(frame, kAllFields, &bounds);
  return bounds.times;
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

TEST_CASE("the bounds are those of the rows") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::string body = RandomBody(&random);
    const ChunkTimes times = TimesOfChunk(body);
    const ChunkTimes decoded = Decoded(body);
    REQUIRE(times.device.earliest == decoded.device.earliest);
    REQUIRE(times.device.latest == decoded.device.latest);
    REQUIRE(times.host.earliest == decoded.host.earliest);
    REQUIRE(times.host.latest == decoded.host.latest);
  }
}

TEST_CASE("whatever the bytes are, no row is outside of the bounds") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 5000; ++round) {
    std::string body = RandomBody(&random);
    for (uint64_t flips = 1 + random() % 4; flips > 0 && !body.empty(); --flips) {
      body[random() % body.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) body.resize(random() % (body.size() + 1));
    const ChunkTimes times = TimesOfChunk(body);
    const ChunkTimes decoded = Decoded(body);
    REQUIRE(times.device.earliest <= decoded.device.earliest);
    REQUIRE(times.device.latest >= decoded.device.latest);
    REQUIRE(times.host.earliest <= decoded.host.earliest);
    REQUIRE(times.host.latest >= decoded.host.latest);
  }
}

}  // namespace
}  // namespace gpuperf::reader
