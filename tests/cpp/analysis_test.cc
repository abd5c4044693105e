// The figures of a report against traces whose figures are known, and their parts against plain recomputation.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "analysis/demangle.h"
#include "analysis/dump.h"
#include "analysis/exact_distribution.h"
#include "analysis/id_set.h"
#include "analysis/intervals.h"
#include "analysis/json_writer.h"
#include "analysis/link.h"
#include "analysis/summarizer.h"
#include "catch.h"
#include "trace_builder.h"

namespace gpuperf::analysis {
namespace {

using namespace ::gpuperf::tests;  // NOLINT: a test

Summary SummaryOf(const std::string& bytes) {
  TemporaryFolder folder;
  absl::StatusOr<Summary> summary = Summarize(folder.Write("t.gpuperf", bytes));
  REQUIRE(summary.ok());
  return *std::move(summary);
}

// The same in every run, so that a failure comes again.
std::mt19937 Random(uint32_t seed) { return std::mt19937(seed); }

Intervals RandomIntervals(std::mt19937* random, int count) {
  Intervals intervals;
  for (int i = 0; i < count; ++i) {
    const auto begin = static_cast<int64_t>((*random)() % 100);
    intervals.push_back({begin, begin + static_cast<int64_t>((*random)() % 12)});
  }
  return intervals;
}

std::vector<bool> Cells(const Intervals& intervals) {
  std::vector<bool> cells(120);
  for (const Interval& interval : intervals) {
    for (int64_t at = interval.begin; at < interval.end; ++at) cells[static_cast<size_t>(at)] = true;
  }
  return cells;
}

TEST_CASE("interval sets agree with counting cells") {
  std::mt19937 random = Random(1);
  for (int round = 0; round < 2000; ++round) {
    const Intervals raw_a = RandomIntervals(&random, round % 9);
    const Intervals raw_b = RandomIntervals(&random, round % 7);
    const Intervals a = Union(raw_a);
    const Intervals b = Union(raw_b);
    const std::vector<bool> cells_a = Cells(raw_a);
    const std::vector<bool> cells_b = Cells(raw_b);
    std::vector<bool> both(cells_a.size());
    std::vector<bool> rest(cells_a.size());
    for (size_t i = 0; i < cells_a.size(); ++i) {
      both[i] = cells_a[i] && cells_b[i];
      rest[i] = cells_a[i] && !cells_b[i];
    }
    REQUIRE(Cells(a) == cells_a);
    REQUIRE(Length(a) == std::count(cells_a.begin(), cells_a.end(), true));
    REQUIRE(Cells(Intersection(a, b)) == both);
    REQUIRE(Cells(Difference(a, b)) == rest);
    REQUIRE(Union(Difference(a, b)) == Difference(a, b));
    IntervalCollector collector;
    for (const Interval& interval : raw_a) collector.Add(interval.begin, interval.end);
    REQUIRE(collector.Take() == a);
  }
}

TEST_CASE("an overlap is how much of a row is inside, and whether it is touched") {
  const Intervals set = {{10, 20}, {30, 40}};
  CHECK(Overlap(set, 0, 10) == std::nullopt);
  CHECK(Overlap(set, 0, 11) == 1);
  CHECK(Overlap(set, 12, 15) == 3);
  CHECK(Overlap(set, 15, 35) == 10);
  CHECK(Overlap(set, 0, 100) == 20);
  CHECK(Overlap(set, 20, 30) == std::nullopt);
  CHECK(Overlap(set, 40, 50) == std::nullopt);
  // An empty one belongs where it begins.
  CHECK(Overlap(set, 10, 10) == 0);
  CHECK(Overlap(set, 19, 19) == 0);
  CHECK(Overlap(set, 20, 20) == std::nullopt);
  CHECK(Overlap(set, 9, 9) == std::nullopt);
  CHECK(Overlap({}, 1, 2) == std::nullopt);
}

TEST_CASE("what PCIe carries, where it is known") {
  v1::Device device;
  CHECK(PcieBytesPerSecond(device) == std::nullopt);
  device.set_pcie_generation(1);  // idle: lowered for a while
  CHECK(PcieBytesPerSecond(device) == std::nullopt);
  device.set_pcie_width(16);
  CHECK(PcieBytesPerSecond(device) == 4'000'000'000U);
  device.set_pcie_generation_max(5);
  CHECK(PcieBytesPerSecond(device) == 63'015'384'608U);
  device.set_pcie_width_max(8);  // trained wider than it can be: the link now counts
  CHECK(PcieBytesPerSecond(device) == 63'015'384'608U);
  device.set_pcie_generation_max(7);
  CHECK(PcieBytesPerSecond(device) == std::nullopt);
}

TEST_CASE("the collector compacts and stays exact") {
  IntervalCollector collector;
  Intervals all;
  std::mt19937 random = Random(2);
  for (int i = 0; i < 300'000; ++i) {
    const auto begin = static_cast<int64_t>(random() % 1'000'000);
    all.push_back({begin, begin + 3});
    collector.Add(begin, begin + 3);
  }
  CHECK(collector.Take() == Union(all));
}

TEST_CASE("percentiles are nearest rank, exactly") {
  std::mt19937 random = Random(3);
  for (const size_t size : {1, 2, 3, 10, 99, 100, 101, 1000, 5000}) {
    std::vector<int64_t> values;
    ExactDistribution distribution;
    ExactDistribution half;
    int64_t total = 0;
    for (size_t i = 0; i < size; ++i) {
      values.push_back(static_cast<int64_t>(random() % 700));
      (i % 2 == 0 ? distribution : half).Add(values.back());
      total += values.back();
    }
    distribution.Add(half);
    std::sort(values.begin(), values.end());
    CHECK(distribution.count() == size);
    CHECK(distribution.total() == total);
    CHECK(distribution.min() == values.front());
    CHECK(distribution.max() == values.back());
    for (const uint32_t permille : {1, 500, 950, 990, 1000}) {
      const size_t rank = std::max<size_t>(1, (size * permille + 999) / 1000);
      CHECK(distribution.Percentile(permille) == values[rank - 1]);
    }
  }
  CHECK(ExactDistribution().Percentile(500) == 0);
  CHECK(ExactDistribution().count() == 0);
}

TEST_CASE("the id set holds what was put into it") {
  IdSet set;
  CHECK(!set.Contains(0));
  for (uint64_t id = 1; id < 5000; id += 7) set.Insert(id);
  set.Insert(UINT64_MAX);
  for (uint64_t id = 0; id < 5000; ++id) REQUIRE(set.Contains(id) == (id % 7 == 1));
  CHECK(set.Contains(UINT64_MAX));
  CHECK(!set.Contains(UINT64_MAX - 1));
}

TEST_CASE("names are demangled, others left as they are") {
  CHECK(Demangle("_Z3addPf") == "add(float*)");
  CHECK(Demangle("f") == "f");
  CHECK(Demangle("triton_poi_fused_0") == "triton_poi_fused_0");
  CHECK(Demangle("_Zgarbage") == "_Zgarbage");
}

TEST_CASE("JSON strings are escaped and always UTF-8") {
  CHECK(JsonQuoted("a\"\\\n\x01") == R"("a\"\\\n\u0001")");
  CHECK(JsonQuoted("\xC3\xA9") == "\"\xC3\xA9\"");
  CHECK(JsonQuoted("\xFF\xC3") == R"("\ufffd\ufffd")");
  CHECK(JsonQuoted("\xED\xA0\x80") == R"("\ufffd\ufffd\ufffd")");  // a surrogate
  CHECK(JsonQuoted("\xC0\x80") == R"("\ufffd\ufffd")");            // overlong
}

// One chunk from 1000 to 2000 on the host, device clock = host + 100.
v1::ChunkBody Body() {
  v1::ChunkBody body;
  AddDictionaries(&body);
  AddClockPair(&body, 1000, 1100);
  return body;
}

TEST_CASE("busy is a union, and idle what is left of the captured time") {
  v1::ChunkBody body = Body();
  // On the host: 1000-1200 and 1150-1300, 1900-2100 of which 100 lie behind the end.
  AddKernels(&body, {{1100, 1300, 1, 11}, {1250, 1400, 2, 12}, {2000, 2200, 1, 13}});
  v1::CopyBatch* copies = body.add_copy_batches();
  copies->set_stream_iid(1);
  copies->add_gap_ns(1550);  // 1450-1500
  copies->add_duration_ns(50);
  copies->add_bytes(5000);
  copies->add_copy_kind(1);
  copies->add_source_kind(2);
  copies->add_destination_kind(3);
  const Summary summary = SummaryOf(TraceBuilder().Chunk(body).Bytes());
  CHECK(summary.complete());
  CHECK(summary.span.captured_ns == 1000);
  REQUIRE(summary.devices.size() == 1);
  const DeviceFigures& device = summary.devices[0];
  CHECK(device.device == 0u);
  CHECK(device.kernels == 3);
  CHECK(device.kernel_ns == 200 + 150 + 200);
  CHECK(device.busy_ns == 300 + 50 + 100);
  CHECK(device.idle_ns == 550);
  CHECK(device.idle_intervals == 2u);
  CHECK(device.longest_idle_ns == 400);
  CHECK(!device.steps_busy_ns);
  REQUIRE(summary.copies.size() == 1);
  CHECK(summary.copies[0].bytes == 5000);
  CHECK(summary.copies[0].total_ns == 50);
  REQUIRE(summary.kernels.size() == 2);
  CHECK(summary.kernels[0].name == std::string("add(float*)"));
  CHECK(summary.kernels[0].durations.total_ns == 400);
  CHECK(summary.kernels[0].durations.p99_ns == 200);
}

TEST_CASE("outages are no idle time") {
  v1::ChunkBody body = Body();
  AddKernels(&body, {{1100, 1300, 1, 11}});  // 1000-1200
  const auto outage = [&](uint64_t begin, uint64_t end) {
    v1::Outage* row = body.add_outages();
    row->set_reason(v1::OUTAGE_REASON_YIELDED);
    row->set_begin_host_ns(begin);
    row->set_end_host_ns(end);
  };
  outage(500, 1100);  // from before the session; and the kernel's first half
  outage(1500, 1600);
  outage(1550, 1700);  // overlapping
  outage(1900, 0);     // up to the end
  const Summary summary = SummaryOf(TraceBuilder().Chunk(body).Bytes());
  CHECK(summary.span.outage_ns == 100 + 200 + 100);
  CHECK(summary.span.captured_ns == 600);
  CHECK(summary.devices[0].busy_ns == 100);
  CHECK(summary.devices[0].idle_ns == 500);
}

TEST_CASE("the time of lost chunks is unreadable, not idle") {
  TraceBuilder builder;
  v1::ChunkBody body = Body();
  AddKernels(&body, {{1100, 1300, 1, 11}});
  std::vector<size_t> offsets;
  std::string bytes =
      builder.Chunk(body, 1000, 1400).Chunk({}, 1400, 1700).Chunk(body, 1700, 2000).Bytes(true, &offsets);
  bytes[offsets[1] + 5] ^= 1;
  const Summary summary = SummaryOf(bytes);
  CHECK(!summary.complete());
  CHECK(summary.span.unreadable_ns == 300);
  CHECK(summary.span.captured_ns == 700);
  CHECK(summary.devices[0].idle_ns == 500);
}

TEST_CASE("opaque time is neither busy nor idle") {
  v1::ChunkBody body = Body();
  AddKernels(&body, {{1100, 1300, 1, 11}});  // 1000-1200
  v1::OpaqueInterval* opaque = body.add_opaque_intervals();
  opaque->set_stream_iid(1);
  opaque->set_begin_device_ns(1250);  // 1150-1400
  opaque->set_end_device_ns(1500);
  const DeviceFigures device = SummaryOf(TraceBuilder().Chunk(body).Bytes()).devices[0];
  CHECK(device.busy_ns == 200);
  CHECK(device.opaque_ns == 200);
  CHECK(device.idle_ns == 600);
}

TEST_CASE("without a clock pair idle is not known") {
  v1::ChunkBody body;
  AddDictionaries(&body);
  AddKernels(&body, {{1100, 1300, 1, 11}});
  const Summary summary = SummaryOf(TraceBuilder().Chunk(body).Bytes());
  CHECK(!summary.devices[0].busy_ns);
  CHECK(!summary.devices[0].idle_ns);
  CHECK(ToJson(summary).find("\"idle_ns\":null") != std::string::npos);
}

TEST_CASE("steps: one duration fewer than steps, indexes that are missing, samples of what has a duration") {
  v1::ChunkBody body = Body();
  AddKernels(&body, {{1350, 1400, 1, 11}});  // 1250-1300
  const auto step = [&](uint64_t host, uint64_t index, uint64_t samples) {
    v1::Step* row = body.add_steps();
    row->set_host_ns(host);
    row->set_index(index);
    row->set_samples(samples);
  };
  step(1300, 2, 32);  // delivered out of order
  step(1100, 0, 1000);
  step(1200, 1, 16);
  step(1700, 5, 64);  // steps 3 and 4 are missing: no duration
  step(1850, 6, 64);
  const Summary summary = SummaryOf(TraceBuilder().Chunk(body).Bytes());
  CHECK(summary.steps.count == 5);
  CHECK(summary.steps.not_seen == 2);
  CHECK(summary.steps.durations.count == 3);
  CHECK(summary.steps.durations.p50_ns == 100);
  CHECK(summary.steps.durations.max_ns == 150);
  CHECK(summary.steps.samples == 112u);
  CHECK(summary.steps.samples_ns == 350);
  CHECK(!summary.steps.tokens);
  CHECK(summary.devices[0].steps_captured_ns == 750);
  CHECK(summary.devices[0].steps_busy_ns == 50);
  CHECK(summary.devices[0].steps_idle_ns == 700);
}

TEST_CASE("host waits: synchronisation, blocking copies, and asynchronous copies of pageable memory") {
  v1::ChunkBody body = Body();
  AddCalls(&body, {{1000, 1100, 2, 1}, {1100, 1130, 2, 2}, {1200, 1250, 4, 3}, {1300, 1307, 3, 4}, {1310, 1311, 3, 5}});
  v1::CopyBatch* copies = body.add_copy_batches();
  copies->set_stream_iid(1);
  for (const uint32_t source : {1, 2}) {  // correlation 4: pageable; 5: pinned
    copies->add_gap_ns(10);
    copies->add_duration_ns(10);
    copies->add_source_kind(source);
    copies->add_correlation_delta(source == 1 ? 4 : 1);
  }
  const Summary summary = SummaryOf(TraceBuilder().Chunk(body).Bytes());
  REQUIRE(summary.waits.size() == 3);
  CHECK(summary.waits[0].function == std::string("cudaStreamSynchronize"));
  CHECK(summary.waits[0].count == 2);
  CHECK(summary.waits[0].total_ns == 130);
  CHECK(summary.waits[0].max_ns == 100);
  CHECK(summary.waits[1].reason == WaitReason::kBlockingCopy);
  CHECK(summary.waits[1].total_ns == 50);
  CHECK(summary.waits[2].reason == WaitReason::kPageableCopy);
  CHECK(summary.waits[2].total_ns == 7);
  CHECK(summary.joined_copies.joined == 2);
}

TEST_CASE("kernels are joined to their calls in whatever order they come; those of graphs are not asked for") {
  TraceBuilder builder;
  v1::ChunkBody body = Body();
  v1::KernelBatch* kernels = AddKernels(&body, {{1100, 1110, 1, 11}, {1120, 1130, 1, 12}, {1140, 1150, 1, 99}});
  for (const uint32_t graph : {0, 0, 7}) kernels->add_graph_id(graph);
  AddKernels(&body, {{1160, 1170, 2, 14}, {1180, 1190, 2, 15}});
  AddCalls(&body, {{1000, 1005, 1, 12}});
  v1::OpenCall* open = body.add_open_calls();
  open->set_thread_iid(1);
  open->set_call_site_iid(1);
  open->set_correlation(14);
  open->set_enter_host_ns(1001);
  v1::ChunkBody later;
  AddCalls(&later, {{1000, 1005, 1, 11}});
  const Summary summary = SummaryOf(builder.Chunk(body).Chunk(later).Bytes());
  CHECK(summary.joined_kernels.records == 4);
  CHECK(summary.joined_kernels.joined == 3);  // 15 has none
  CHECK(summary.unfinished_call_count == 1);
  CHECK(summary.unfinished_calls[0].function == std::string("cudaLaunchKernel"));
}

TEST_CASE("losses add up by reason and kind, and make the trace incomplete") {
  v1::ChunkBody body = Body();
  const auto loss = [&](v1::LossReason reason, uint64_t count, uint64_t first, uint64_t last) {
    v1::Loss* row = body.add_losses();
    row->set_reason(reason);
    row->set_kind(v1::EVENT_KIND_CALL);
    row->set_count(count);
    row->set_first_host_ns(first);
    row->set_last_host_ns(last);
  };
  loss(v1::LOSS_REASON_RING_FULL, 3, 1100, 1200);
  loss(v1::LOSS_REASON_RING_FULL, 4, 1050, 1150);
  loss(v1::LOSS_REASON_CUPTI_DROPPED, 5, 1000, 2000);
  const Summary summary = SummaryOf(TraceBuilder().Chunk(body).Bytes());
  CHECK(!summary.complete());
  CHECK(summary.lost == 12);
  REQUIRE(summary.losses.size() == 2);
  CHECK(summary.losses[0].count == 7);
  CHECK(summary.losses[0].first_host_ns == 1050);
  CHECK(summary.losses[0].last_host_ns == 1200);
}

TEST_CASE("refused buffers and records without their call are no lost records, and no complete trace either") {
  for (const v1::LossReason reason : {v1::LOSS_REASON_POOL_EMPTY, v1::LOSS_REASON_NO_LAUNCH}) {
    v1::ChunkBody body = Body();
    v1::Loss* row = body.add_losses();
    row->set_reason(reason);
    row->set_kind(v1::EVENT_KIND_DEVICE);
    row->set_count(7);
    row->set_first_host_ns(1100);
    row->set_last_host_ns(1200);
    const Summary summary = SummaryOf(TraceBuilder().Chunk(body).Bytes());
    CHECK(summary.lost == 0);
    CHECK(summary.losses.size() == 1);
    CHECK(!summary.complete());
  }
}

TEST_CASE("sums do not wrap around") {
  v1::ChunkBody body = Body();
  v1::CopyBatch* copies = body.add_copy_batches();
  copies->set_stream_iid(1);
  for (int i = 0; i < 2; ++i) {
    copies->add_gap_ns(0);
    copies->add_duration_ns(1);
    copies->add_bytes(UINT64_MAX);
    copies->add_copy_count(UINT64_MAX);
  }
  const Summary summary = SummaryOf(TraceBuilder().Chunk(body).Bytes());
  CHECK(summary.copies[0].bytes == UINT64_MAX);
  CHECK(summary.copies[0].copies == UINT64_MAX);
}

TEST_CASE("the summary does not depend on the order of delivery") {
  std::mt19937 random = Random(4);
  std::vector<TestKernel> kernels;
  for (int i = 0; i < 200; ++i) {
    const auto begin = static_cast<int64_t>(1100 + random() % 900);
    kernels.push_back(
        {begin, begin + static_cast<int64_t>(random() % 20), 1 + static_cast<uint32_t>(random() % 2), 11u + i});
  }
  const auto json = [&](bool in_two) {
    TraceBuilder builder;
    v1::ChunkBody body = Body();
    v1::ChunkBody second;
    const auto half = kernels.begin() + static_cast<int>(kernels.size() / 2);
    AddKernels(&body, {kernels.begin(), half});
    AddKernels(in_two ? &second : &body, {half, kernels.end()});
    Summary summary = SummaryOf(builder.Chunk(body).Chunk(second).Bytes());
    summary.path = "";
    summary.bytes = 0;
    return ToJson(summary);
  };
  const std::string in_order = json(false);
  std::shuffle(kernels.begin(), kernels.end(), random);
  CHECK(json(true) == in_order);
}

TEST_CASE("a dump has a line for everything and says what is damaged") {
  TemporaryFolder folder;
  v1::ChunkBody body = Body();
  AddKernels(&body, {{1100, 1300, 1, 11}, {1100, 1300, 9, 11}});
  const std::string path = folder.Write("t.gpuperf", TraceBuilder().Chunk(body).Bytes(/*closed=*/false) + "\x12\x7F");
  std::string text;
  DumpResult result;
  REQUIRE(Dump(
              path, false,
              [&](absl::string_view lines) {
                text.append(lines.data(), lines.size());
                return true;
              },
              &result)
              .ok());
  CHECK(result.damaged);
  CHECK(text.find(
            "kernel begin_ns=1100 duration_ns=200 stream_iid=1 device=0 context=1 stream=7 correlation=11 kernel_iid=1 "
            "name=\"_Z3addPf\"\n") != std::string::npos);
  CHECK(text.find("kernel_iid=9 name=?\n") != std::string::npos);
  CHECK(text.find("bytes=2 what=\"a chunk is cut off\"\n") != std::string::npos);
  CHECK(text.find("end chunks=1 events=0 damages=1 cleanly_closed=no\n") != std::string::npos);
}

}  // namespace
}  // namespace gpuperf::analysis
