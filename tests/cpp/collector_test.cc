// Collector and writer together: rings and activity buffers in, a file out, parsed by protoc-generated code.
#include <sys/resource.h>

#include <csignal>

#include "recorded_run.h"

TEST_CASE("every field of a kernel record is in the trace") {
  Run run;
  run.Launch(5);
  cupti::KernelRecord kernel = Run::Kernel(5, 1'000'000, 1'000'700);
  kernel.device = 2;
  kernel.context = 3;
  kernel.stream = 14;
  kernel.channel = 6;
  kernel.channel_type = 1;
  kernel.grid_x = 10;
  kernel.grid_y = 11;
  kernel.grid_z = 12;
  kernel.cluster_x = 2;
  kernel.registers_per_thread = 40;
  kernel.static_shared_bytes = 100;
  kernel.dynamic_shared_bytes = 200;
  kernel.executed_shared_bytes = 300;
  kernel.local_bytes_per_thread = 8;
  kernel.local_bytes_total = uint64_t{1} << 33;
  kernel.cache_config = 0x12;
  kernel.launch_type = 1;
  kernel.graph_id = 77;
  kernel.graph_node_id = uint64_t{1} << 40;
  kernel.queued = 999'000;
  kernel.carveout_requested = 1;
  kernel.carveout_percent = 50;
  kernel.device_launched = 1;
  run.Deliver(std::vector<cupti::KernelRecord>{kernel});
  run.Finish();

  const v1::TraceFile file = run.Parse();
  const v1::ChunkBody& body = file.chunks(0).body();
  CHECK(file.chunks(0).header().dictionary_checkpoint());
  REQUIRE(body.kernel_batches_size() == 1);
  const v1::KernelBatch& batch = body.kernel_batches(0);
  CHECK(batch.base_device_ns() + static_cast<uint64_t>(batch.gap_ns(0)) == 1'000'000);
  CHECK(batch.duration_ns(0) == 700);
  CHECK(batch.base_correlation() + static_cast<uint64_t>(batch.correlation_delta(0)) == 5);
  CHECK(batch.graph_id(0) == 77);
  CHECK(batch.graph_node_id(0) == uint64_t{1} << 40);
  CHECK(batch.queued_ns(0) == 999'000);
  CHECK(batch.submitted_ns_size() == 0);
  REQUIRE(body.streams_size() == 1);
  CHECK(body.streams(0).device() == 2);
  CHECK(body.streams(0).context() == 3);
  CHECK(body.streams(0).stream() == 14);
  CHECK(body.streams(0).channel() == 6);
  CHECK(body.streams(0).channel_type() == 1);
  CHECK_FALSE(body.streams(0).has_priority());  // not in records of 216 bytes
  REQUIRE(body.kernels_size() == 1);
  const v1::Kernel& info = body.kernels(0);
  CHECK(info.grid_y() == 11);
  CHECK(info.block_x() == 128);
  CHECK(info.cluster_x() == 2);
  CHECK(info.registers_per_thread() == 40);
  CHECK(info.static_shared_bytes() == 100);
  CHECK(info.dynamic_shared_bytes() == 200);
  CHECK(info.executed_shared_bytes() == 300);
  CHECK(info.local_bytes_total() == uint64_t{1} << 33);
  CHECK(info.cache_config() == 0x12);
  CHECK(info.launch_type() == 1);
  CHECK(info.shared_carveout_percent() == 50);
  CHECK(info.shared_carveout_requested());
  CHECK(info.device_launched());
  CHECK(Lost(file, v1::LOSS_REASON_NO_LAUNCH) == 0);
}

TEST_CASE("every field of copies and memory sets is in the trace") {
  Run run;
  for (uint32_t id = 1; id <= 4; ++id) run.Launch(id);
  cupti::MemcpyRecord copy{};
  copy.kind = cupti::kMemcpyKind;
  copy.copy_kind = 1;
  copy.source_kind = 2;
  copy.destination_kind = 3;
  copy.flags = 1;
  copy.bytes = uint64_t{5} << 32;
  copy.start = 1000;
  copy.end = 1300;
  copy.stream = 7;
  copy.correlation = 1;
  copy.graph_id = 4;
  copy.graph_node_id = uint64_t{1} << 33;
  copy.copy_count = 1;
  cupti::MemcpyRecord batched = copy;
  batched.start = 1100;  // overlaps the one before: a gap below zero
  batched.end = 1500;
  batched.correlation = 2;
  batched.copy_count = 9;
  run.Deliver(std::vector<cupti::MemcpyRecord>{copy, batched}, 96);
  cupti::PeerMemcpyRecord peer{};
  peer.kind = cupti::kPeerMemcpyKind;
  peer.copy_kind = 10;
  peer.bytes = 77;
  peer.start = 3000;
  peer.end = 3001;
  peer.stream = 7;
  peer.correlation = 3;
  peer.source_device = 1;
  peer.source_context = 2;
  peer.destination_device = 3;
  peer.destination_context = 4;
  run.Deliver(std::vector<cupti::PeerMemcpyRecord>{peer}, 96);
  cupti::MemsetRecord set{};
  set.kind = cupti::kMemsetKind;
  set.value = 0xFFFFFFFF;
  set.bytes = 4096;
  set.start = 4000;
  set.end = 4000;  // too short for the clock is not reversed
  set.stream = 7;
  set.correlation = 4;
  set.flags = 1;
  set.memory_kind = 3;
  run.Deliver(std::vector<cupti::MemsetRecord>{set}, 88);
  run.Finish();

  const v1::TraceFile file = run.Parse();
  const v1::ChunkBody& body = file.chunks(0).body();
  REQUIRE(body.streams_size() == 1);
  REQUIRE(body.copy_batches_size() == 2);
  const v1::CopyBatch& copies = body.copy_batches(0);
  REQUIRE(copies.bytes_size() == 2);
  CHECK(copies.bytes(0) == uint64_t{5} << 32);
  CHECK(copies.gap_ns(1) == -200);
  CHECK(copies.duration_ns(1) == 400);
  CHECK(copies.copy_kind(0) == 1);
  CHECK(copies.source_kind(0) == 2);
  CHECK(copies.destination_kind(0) == 3);
  CHECK(copies.flags(0) == 1);
  CHECK(copies.graph_id(0) == 4);
  CHECK(copies.graph_node_id(1) == uint64_t{1} << 33);
  REQUIRE(copies.copy_count_size() == 2);
  CHECK(copies.copy_count(0) == 1);
  CHECK(copies.copy_count(1) == 9);
  CHECK(copies.source_device_size() == 0);
  const v1::CopyBatch& peers = body.copy_batches(1);
  REQUIRE(peers.bytes_size() == 1);
  CHECK(peers.copy_count_size() == 0);  // one copy each: left out
  CHECK(peers.source_device(0) == 1);
  CHECK(peers.source_context(0) == 2);
  CHECK(peers.destination_device(0) == 3);
  CHECK(peers.destination_context(0) == 4);
  REQUIRE(body.memset_batches_size() == 1);
  const v1::MemsetBatch& sets = body.memset_batches(0);
  CHECK(sets.value(0) == 0xFFFFFFFF);
  CHECK(sets.bytes(0) == 4096);
  CHECK(sets.duration_ns(0) == 0);
  CHECK(sets.flags(0) == 1);
  CHECK(sets.memory_kind(0) == 3);
  CHECK(run.collector().counts().copies.load() == 3);
  CHECK(run.collector().counts().memsets.load() == 1);
  CHECK(Lost(file, v1::LOSS_REASON_NO_LAUNCH) == 0);
}

TEST_CASE("libcupti's own walk finds each of the four kinds behind the other") {
  std::string error;
  const cupti::Api* api = cupti::Load("", &error);
  if (api == nullptr) {
    std::fprintf(stderr, "skipped, no libcupti here: %s\n", error.c_str());
    return;
  }
  Run run(*api);
  for (uint32_t id = 1; id <= 5; ++id) run.Launch(id);
  std::string bytes;
  const auto add = [&](auto record, uint32_t kind) {
    record.kind = kind;
    record.start = 1000;
    record.end = 2000;
    record.stream = 7;
    const uint32_t size = api->record_bytes[kind];
    REQUIRE(size != 0);
    std::string longest(std::max<size_t>(sizeof record, size), '\0');
    std::memcpy(longest.data(), &record, sizeof record);
    bytes += longest.substr(0, size);
  };
  cupti::KernelRecord kernel = Run::Kernel(1, 0, 0);
  kernel.device_launched = 1;
  kernel.priority = -3;
  cupti::MemcpyRecord copy{};
  copy.correlation = 2;
  copy.bytes = 64;
  cupti::PeerMemcpyRecord peer{};
  peer.correlation = 3;
  peer.destination_context = 4;
  cupti::MemsetRecord set{};
  set.correlation = 4;
  set.value = 9;
  add(kernel, cupti::kConcurrentKernelKind);
  add(copy, cupti::kMemcpyKind);
  add(peer, cupti::kPeerMemcpyKind);
  add(set, cupti::kMemsetKind);
  kernel.correlation = 5;
  add(kernel, cupti::kConcurrentKernelKind);
  run.Deliver(bytes);
  run.Finish();

  const v1::TraceFile file = run.Parse();
  const v1::ChunkBody& body = file.chunks(0).body();
  CHECK(Kernels(file) == 2);
  REQUIRE(body.copy_batches_size() == 2);
  CHECK(body.copy_batches(0).bytes(0) == 64);
  CHECK(body.copy_batches(1).destination_context(0) == 4);
  REQUIRE(body.memset_batches_size() == 1);
  CHECK(body.memset_batches(0).value(0) == 9);
  REQUIRE(body.kernels_size() == 1);
  const uint32_t kernel_bytes = api->record_bytes[cupti::kConcurrentKernelKind];
  CHECK(body.kernels(0).device_launched() == GPUPERF_HAS(kernel_bytes, KernelRecord, device_launched));
  for (const v1::Stream& stream : body.streams()) {
    if (stream.has_priority()) CHECK(stream.priority() == -3);
  }
  CHECK(Lost(file, v1::LOSS_REASON_UNREADABLE) == 0);
  CHECK(Lost(file, v1::LOSS_REASON_NO_LAUNCH) == 0);
}

TEST_CASE("a second session names the kernels that the first one had seen") {
  for (int session = 0; session < 2; ++session) {
    INFO("session " << session);
    Run run;
    run.Launch(1, "_Z4samev");
    run.Finish();
    const v1::TraceFile file = run.Parse();
    const v1::ChunkBody& body = file.chunks(0).body();
    std::map<uint32_t, std::string> strings;
    for (const v1::InternedString& entry : body.strings()) strings[entry.iid()] = entry.value();
    REQUIRE(body.call_sites_size() == 1);
    CHECK(strings[body.call_sites(0).function_name_iid()] == "_Z4samev");
  }
}

TEST_CASE("records without times and without calls are counted, exactly") {
  Run run;
  for (uint32_t id = 1; id <= 10; ++id) run.Launch(id);
  std::vector<cupti::KernelRecord> kernels;
  for (uint32_t id = 1; id <= 10; ++id) kernels.push_back(Run::Kernel(id, 1000 * id, 1000 * id + 500));
  kernels[0].start = kernels[0].end = 0;
  kernels[1].end = 0;
  kernels[2].end = kernels[2].start - 1;
  kernels[3].correlation = 5000;
  kernels[4].correlation = 5001;
  run.Deliver(kernels);
  run.Finish();
  const v1::TraceFile file = run.Parse();
  CHECK(Kernels(file) == 7);
  CHECK(Lost(file, v1::LOSS_REASON_ZERO_TIMESTAMP) == 2);
  CHECK(Lost(file, v1::LOSS_REASON_REVERSED_TIMESTAMP) == 1);
  CHECK(Lost(file, v1::LOSS_REASON_NO_LAUNCH) == 2);
  CHECK(run.collector().counts().lost.load() == 3);
  CHECK(run.collector().counts().unjoined.load() == 2);
}

TEST_CASE("a kernel has one name, however long, in its launch and in its record") {
  const size_t length = GENERATE(1024, 1025, 2048, 5000);
  INFO(length);
  Run run;
  const std::string name = "_Z" + std::string(length - 4, 'x') + "\xC3\xBC";  // "ü", which a cut would tear
  run.Launch(1, name.c_str());
  run.Launch(2, name.c_str());
  run.Launch(3, "_Z4nextv");
  run.Deliver(std::vector<cupti::KernelRecord>{Run::Kernel(1, 1000, 2000, name.c_str())});
  run.Finish();
  const v1::TraceFile file = run.Parse();
  const v1::ChunkBody& body = file.chunks(0).body();
  std::map<uint32_t, std::string> strings;
  for (const v1::InternedString& entry : body.strings()) strings[entry.iid()] = entry.value();
  REQUIRE(body.kernels_size() == 1);
  CHECK(strings[body.kernels(0).name_iid()] == name);
  REQUIRE(body.call_sites_size() == 2);
  CHECK(body.call_sites(0).function_name_iid() == body.kernels(0).name_iid());
  CHECK(strings[body.call_sites(1).function_name_iid()] == "_Z4nextv");
}

TEST_CASE("a call that is drained after its kernel is still its call") {
  Run run;
  run.Launch(1);
  run.Deliver(std::vector<cupti::KernelRecord>{Run::Kernel(2, 1000, 2000)});
  run.Poll();
  run.Launch(2);
  run.Finish();
  CHECK(Lost(run.Parse(), v1::LOSS_REASON_NO_LAUNCH) == 0);
}

TEST_CASE("a kind that cannot be walked costs the rest of its buffer, and is counted") {
  Run run;
  run.Launch(1);
  auto kernels = std::vector<cupti::KernelRecord>(3, Run::Kernel(1, 1000, 2000));
  kernels[1].kind = 63;
  run.Deliver(kernels);
  run.Finish();
  const v1::TraceFile file = run.Parse();
  CHECK(Kernels(file) == 1);
  CHECK(Lost(file, v1::LOSS_REASON_UNREADABLE) == 1);
}

TEST_CASE("kernels of calls from before all callbacks were on are no loss, those of lost calls are") {
  Run run;
  run.Launch(100);  // one callback was on already
  ring::TracedCalls().begin = gpuperf::base::Stamp();
  run.Launch(105);
  // 50 was launched before; 102 when its own callback was not on yet; the call of 107 is lost.
  run.Deliver(std::vector<cupti::KernelRecord>{Run::Kernel(50, 1000, 2000), Run::Kernel(102, 2000, 3000),
                                               Run::Kernel(105, 3000, 4000), Run::Kernel(107, 4000, 5000)});
  run.Launch(110);
  run.Finish();
  CHECK(Kernels(run.Parse()) == 4);
  CHECK(Lost(run.Parse(), v1::LOSS_REASON_NO_LAUNCH) == 1);
}

TEST_CASE("a kernel whose call lies millions of calls back is no loss") {
  Run run;
  run.Launch(100);
  run.Launch(5'000'000);
  run.Deliver(std::vector<cupti::KernelRecord>{Run::Kernel(100, 1000, 2000), Run::Kernel(4'999'999, 2000, 3000)});
  run.Finish();
  CHECK(Lost(run.Parse(), v1::LOSS_REASON_NO_LAUNCH) == 1);  // of a call that is remembered not to have been
}

TEST_CASE("kernels of calls from before the session are no loss when ids wrap in between") {
  Run run;
  ring::TracedCalls().begin = gpuperf::base::Stamp();
  run.Launch(5);
  run.Poll();
  run.Deliver(std::vector<cupti::KernelRecord>{Run::Kernel(0xFFFFFFFE, 1000, 2000), Run::Kernel(7, 2000, 3000)});
  run.Launch(9);
  run.Finish();
  CHECK(Lost(run.Parse(), v1::LOSS_REASON_NO_LAUNCH) == 1);  // 7's
}

TEST_CASE("kernels of calls from after the session's end are no loss, those of lost calls are") {
  constexpr uint64_t kAhead = 5'000'000'000;  // CUPTI's clock
  Run run;
  run.Launch(100);
  run.Launch(200);
  const uint64_t before = gpuperf::base::NowNs();
  source::EmitClockPair(before, before + kAhead, 10);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ring::Current()->last_lost_call = 203;
  ring::Current()->lost_calls.Add(gpuperf::base::Stamp());
  source::SetActive(false);
  const uint64_t after = gpuperf::base::NowNs() + kAhead;
  run.Deliver(std::vector<cupti::KernelRecord>{
      Run::Kernel(205, after, after + 10),                      // launched when nobody listened any more
      Run::Kernel(206, before + kAhead, before + kAhead + 10),  // began before that: its call is lost
      Run::Kernel(150, after, after + 10),                      // later calls were seen: this one's is lost
      Run::Kernel(203, after, after + 10),                      // known to be lost
  });
  run.Finish();
  CHECK(Lost(run.Parse(), v1::LOSS_REASON_NO_LAUNCH) == 3);
}

TEST_CASE("records without their calls wait in bounded memory, and each is counted once") {
  constexpr uint32_t kRecords = 200'000;
  Run run;
  run.Launch(1);
  for (uint32_t id = 2; id < 2 + kRecords;) {
    std::vector<cupti::KernelRecord> kernels;
    for (int i = 0; i < 10'000; ++i, ++id) kernels.push_back(Run::Kernel(id, 1000 * id, 1000 * id + 10));
    run.Deliver(kernels);
    run.Poll();
  }
  CHECK(run.collector().counts().unjoined.load() >= kRecords - 65'536);
  run.Finish();
  CHECK(run.collector().counts().unjoined.load() == kRecords);
  CHECK(Lost(run.Parse(), v1::LOSS_REASON_NO_LAUNCH) == kRecords);
}

TEST_CASE("losses alone are in the file within a second") {
  ring::LossCell refused;
  gpuperf::collector::CollectorOptions options;
  options.refused_buffers = &refused;
  Run run(FakeApi(), options);
  run.Launch(1);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  run.Poll();
  REQUIRE(run.files().size() == 1);
  const uint64_t now = gpuperf::base::NowNs();
  // The ring was full and the pool empty, and then the process hangs.
  ring::Current()->last_lost_call = 3;
  ring::Current()->lost_calls.Add(gpuperf::base::Stamp());
  ring::Current()->lost_calls.Add(gpuperf::base::Stamp());
  refused.Add(now);
  ring::Pool().lost_buffers().Add(now);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  run.Poll();
  std::ifstream stream(run.files()[0], std::ios::binary);
  v1::TraceFile file;
  REQUIRE(file.ParseFromIstream(&stream));  // as a kill would leave it
  CHECK(Lost(file, v1::LOSS_REASON_RING_FULL) == 2);
  CHECK(Lost(file, v1::LOSS_REASON_POOL_EMPTY) == 1);
  CHECK(Lost(file, v1::LOSS_REASON_QUEUE_FULL) == 1);
  // Two calls and at least one record of the buffer; CUPTI itself counts what it could not store.
  CHECK(run.collector().counts().lost.load() == 3);
}

TEST_CASE("what a full ring takes of an annotation takes that annotation, and no other gets its begin or end") {
  Run run;
  run.Launch(1);
  run.Poll();
  const auto lose = [&](const auto& emit) {  // costs one mark, too
    const ring::SpscByteRing& ring = ring::Current()->ring;
    size_t pending = 0;
    do {
      pending = ring.Pending();
      source::EmitMark("");
    } while (ring.Pending() != pending);
    emit();
    run.Poll();
  };
  const auto end = [] { source::EmitAnnotationEnd(); };
  std::vector<std::string> expected;
  uint64_t lost = 0;
  source::EmitAnnotationEnd();  // of before the session: neither a row nor a loss
  SECTION("a begin") {
    source::EmitAnnotationBegin("outer");
    lose([] { source::EmitAnnotationBegin("lost"); });
    end();
    source::EmitAnnotationBegin("inner");
    end();
    end();
    expected = {"inner", "outer"};
    lost = 2;
  }
  SECTION("an end") {
    source::EmitAnnotationBegin("outer");
    source::EmitAnnotationBegin("unended");
    lose(end);
    source::EmitAnnotationBegin("inner");
    end();
    end();
    expected = {"inner", "outer"};
    lost = 2;
  }
  SECTION("an end, and the begin of the next") {
    source::EmitAnnotationBegin("unended");
    lose([&] {
      end();
      source::EmitAnnotationBegin("lost");
    });
    end();
    lost = 4;
  }
  SECTION("one that was whole") {
    source::EmitAnnotationBegin("outer");
    lose([&] {
      source::EmitAnnotationBegin("lost");
      end();
    });
    end();
    expected = {"outer"};
    lost = 2;
  }
  run.Finish();

  const v1::TraceFile file = run.Parse();
  std::map<uint32_t, std::string> strings;
  std::vector<std::string> names;
  for (const v1::Chunk& chunk : file.chunks()) {
    for (const v1::InternedString& entry : chunk.body().strings()) strings[entry.iid()] = entry.value();
    for (const v1::Annotation& row : chunk.body().annotations()) names.push_back(strings.at(row.name_iid()));
  }
  CHECK(names == expected);
  CHECK(Lost(file, v1::LOSS_REASON_RING_FULL) == lost + 1);
}

TEST_CASE("an annotation that a session cuts does not shift those of the next") {
  {
    Run run;
    source::EmitAnnotationBegin("cut");
  }
  source::EmitAnnotationEnd();
  Run run;
  run.Launch(1);
  source::EmitAnnotationEnd();  // of one that began while nobody listened
  source::EmitAnnotationBegin("whole");
  source::EmitAnnotationEnd();
  run.Finish();
  const v1::TraceFile file = run.Parse();
  CHECK(file.chunks(0).body().annotations_size() == 1);
  CHECK(Lost(file, v1::LOSS_REASON_RING_FULL) == 0);
}

TEST_CASE("a graph launch whose insides are not recorded is an opaque interval of its launch") {
  Run run;
  run.Launch(7);
  cupti::GraphTraceRecord graph{};
  graph.kind = cupti::kGraphTraceKind;
  graph.correlation = 7;
  graph.start = 5'000;
  graph.end = 9'000;
  graph.device = 1;
  graph.context = 2;
  graph.stream = 13;
  graph.graph_id = 4;
  cupti::GraphTraceRecord broken = graph;
  broken.start = 0;
  std::string records(2 * 56, '\0');
  std::memcpy(records.data(), &graph, sizeof graph);
  std::memcpy(records.data() + 56, &broken, sizeof broken);
  Run::Deliver(records);
  run.Finish();
  const v1::TraceFile file = run.Parse();
  const v1::ChunkBody& body = file.chunks(0).body();
  CHECK(file.chunks(0).header().event_count() == 1);  // the launch
  REQUIRE(body.opaque_intervals_size() == 1);
  const v1::OpaqueInterval& opaque = body.opaque_intervals(0);
  CHECK(opaque.begin_device_ns() == 5'000);
  CHECK(opaque.end_device_ns() == 9'000);
  CHECK(opaque.correlation() == 7);
  CHECK(opaque.graph_id() == 4);
  REQUIRE(body.streams_size() == 1);
  CHECK(opaque.stream_iid() == body.streams(0).iid());
  CHECK(body.streams(0).stream() == 13);
  CHECK(Lost(file, v1::LOSS_REASON_ZERO_TIMESTAMP) == 1);
  CHECK(Lost(file, v1::LOSS_REASON_NO_LAUNCH) == 0);
}

TEST_CASE("calls, markers and what is open at a cut") {
  Run run;
  source::EmitAnnotationBegin("outer");
  source::EmitAnnotationBegin("inner");
  source::EmitAnnotationEnd();
  run.Launch(1, "_Z5firstv");
  source::EmitStep(8, 512);
  source::EmitMark("here");
  source::EmitCounter("loss", 0.5);
  std::vector<uint64_t> params(32);
  cupti::CallbackData open{};
  open.params = params.data();
  open.correlation = 2;
  source::OnCallback(nullptr, cupti::kRuntimeDomain, kLaunchKernel, &open);  // never left
  run.Finish();

  const v1::TraceFile file = run.Parse();
  const v1::ChunkBody& body = file.chunks(0).body();
  std::map<uint32_t, std::string> strings;
  for (const v1::InternedString& entry : body.strings()) strings[entry.iid()] = entry.value();
  REQUIRE(body.call_batches_size() == 1);
  CHECK(body.call_batches(0).gap_ns_size() == 1);
  REQUIRE(body.call_sites_size() == 2);
  std::map<uint32_t, const v1::CallSite*> sites;
  for (const v1::CallSite& site : body.call_sites()) sites[site.iid()] = &site;
  const v1::CallSite& site = *sites.at(body.call_batches(0).call_site_iid(0));
  CHECK(strings.at(site.name_iid()) == "cudaLaunchKernel");
  CHECK(strings.at(site.function_name_iid()) == "_Z5firstv");
  CHECK(site.domain() == v1::CALL_DOMAIN_RUNTIME);
  CHECK(site.kind() == v1::CALL_KIND_LAUNCH);
  REQUIRE(body.open_calls_size() == 1);
  CHECK(body.open_calls(0).correlation() == 2);
  REQUIRE(body.annotations_size() == 1);
  CHECK(strings.at(body.annotations(0).name_iid()) == "inner");
  REQUIRE(body.open_annotations_size() == 1);
  CHECK(strings.at(body.open_annotations(0).name_iid()) == "outer");
  REQUIRE(body.steps_size() == 1);
  CHECK(body.steps(0).samples() == 8);
  CHECK(body.steps(0).tokens() == 512);
  REQUIRE(body.counters_size() == 1);
  CHECK(body.counters(0).value() == 0.5);
  REQUIRE(body.threads_size() == 1);
  CHECK(body.threads(0).tid() == static_cast<uint32_t>(gettid()));
}

TEST_CASE("a call that begins after silence is in the file while it lasts") {
  Run run;
  run.Launch(1);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  run.Poll();
  REQUIRE(run.files().size() == 1);
  std::vector<uint64_t> params(32);
  cupti::CallbackData open{};
  open.params = params.data();
  open.correlation = 2;
  source::OnCallback(nullptr, cupti::kRuntimeDomain, kLaunchKernel, &open);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  run.Poll();
  // As a kill would leave it: nothing is closed.
  std::ifstream stream(run.files()[0], std::ios::binary);
  v1::TraceFile file;
  REQUIRE(file.ParseFromIstream(&stream));
  REQUIRE(file.chunks_size() == 2);
  REQUIRE(file.chunks(1).body().open_calls_size() == 1);
  CHECK(file.chunks(1).body().open_calls(0).correlation() == 2);
}

TEST_CASE("a process that never used CUDA leaves no file") {
  Run run;
  source::EmitStep(-1, -1);
  run.Poll();
  run.Finish();
  CHECK(run.files().empty());
}

TEST_CASE("parts stand on their own") {
  Run run(uint64_t{1} << 20);
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back("_Z9kernel_" + std::to_string(i) + "v");
  uint32_t id = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<cupti::KernelRecord> kernels;
    for (int i = 0; i < 5000; ++i) {
      ++id;
      run.Launch(id, names[id % names.size()].c_str());
      kernels.push_back(Run::Kernel(id, 1000 * id, 1000 * id + 300 + id % 97, names[id % names.size()].c_str()));
    }
    run.Deliver(kernels);
    run.Poll();
  }
  run.Finish();
  const auto files = run.files();
  REQUIRE(files.size() >= 3);
  size_t kernels = 0;
  for (const std::string& path : files) {
    const v1::TraceFile file = run.Parse(path);
    CHECK(file.ByteSizeLong() <= uint64_t{1} << 20);
    kernels += Kernels(file);
    std::map<uint32_t, const v1::Kernel*> known;
    for (const v1::Chunk& chunk : file.chunks()) {
      for (const v1::Kernel& kernel : chunk.body().kernels()) known[kernel.iid()] = &kernel;
      for (const v1::KernelBatch& batch : chunk.body().kernel_batches()) {
        for (const uint32_t iid : batch.kernel_iid()) REQUIRE(known.count(iid) == 1);
      }
    }
    CHECK(file.chunks(0).header().dictionary_checkpoint());
  }
  CHECK(kernels == id);
}

TEST_CASE("names without end: dictionaries are begun anew, and every row keeps its name") {
  Run run;
  constexpr uint32_t kNames = 120'000;  // more than the tables hold
  std::vector<std::string> names(kNames);
  uint32_t id = 0;
  while (id < kNames) {
    std::vector<cupti::KernelRecord> kernels;
    for (int i = 0; i < 5000 && id < kNames; ++i) {
      names[id] = "_Z1k" + std::to_string(id);
      run.Launch(id + 1, names[id].c_str());
      kernels.push_back(Run::Kernel(id + 1, 1000 * (id + 1), 1000 * (id + 1) + 10, names[id].c_str()));
      ++id;
    }
    run.Deliver(kernels);
    run.Poll();
  }
  run.Launch(kNames + 1, names[0].c_str());
  run.Finish();

  const v1::TraceFile file = run.Parse();
  std::map<uint32_t, std::string> strings;
  std::map<uint32_t, uint32_t> kernel_names;
  size_t kernels = 0;
  size_t checkpoints = 0;
  for (const v1::Chunk& chunk : file.chunks()) {
    if (chunk.header().dictionary_checkpoint()) {
      ++checkpoints;
      strings.clear();
      kernel_names.clear();
    }
    for (const v1::InternedString& entry : chunk.body().strings()) strings[entry.iid()] = entry.value();
    for (const v1::Kernel& kernel : chunk.body().kernels()) kernel_names[kernel.iid()] = kernel.name_iid();
    std::map<uint32_t, uint32_t> functions;
    for (const v1::CallSite& site : chunk.body().call_sites()) functions[site.iid()] = site.function_name_iid();
    for (const v1::KernelBatch& batch : chunk.body().kernel_batches()) {
      uint64_t correlation = batch.base_correlation();
      for (int i = 0; i < batch.kernel_iid_size(); ++i) {
        correlation += static_cast<uint64_t>(batch.correlation_delta(i));
        REQUIRE(strings.at(kernel_names.at(batch.kernel_iid(i))) == names[correlation - 1]);
        ++kernels;
      }
    }
    for (const auto& [iid, name] : functions) REQUIRE(strings.count(name) == 1);
  }
  CHECK(kernels == kNames);
  CHECK(checkpoints >= 2);
}

TEST_CASE("streams without end: memory stays bounded, and every row keeps its stream") {
  // Looks at what is kept while chunks are cut.
  class Watch final : public gpuperf::collector::ChunkSink {
   public:
    explicit Watch(gpuperf::collector::ChunkSink& sink) : sink_(sink) {}
    bool Write(gpuperf::collector::Batches& batches) override {
      streams = std::max(streams, batches.dictionaries.streams.entries().size());
      kept = std::max({kept, batches.kernels.size(), batches.copies.size(), batches.memsets.size()});
      return sink_.Write(batches);
    }
    bool failed() const override { return sink_.failed(); }
    void Close(const gpuperf::collector::Batches& rest) override { sink_.Close(rest); }
    size_t streams = 0;
    size_t kept = 0;

   private:
    gpuperf::collector::ChunkSink& sink_;
  };
  constexpr uint32_t kStreams = 40'000;
  constexpr size_t kBound = 16'384;
  std::unique_ptr<Watch> watch;
  Run run(FakeApi(), {}, uint64_t{1} << 30, [&](gpuperf::collector::ChunkSink& sink) -> gpuperf::collector::ChunkSink& {
    watch = std::make_unique<Watch>(sink);
    return *watch;
  });
  for (uint32_t id = 1; id <= kStreams;) {
    std::vector<cupti::KernelRecord> kernels;
    std::vector<cupti::MemsetRecord> sets;
    for (int i = 0; i < 1000; ++i, ++id) {
      run.Launch(id);
      kernels.push_back(Run::Kernel(id, 1000 * id, 1000 * id + 10));
      kernels.back().stream = id;
      cupti::MemsetRecord set{};
      set.kind = cupti::kMemsetKind;
      set.start = set.end = 1000 * id + 20;
      set.stream = id;
      set.correlation = id;
      sets.push_back(set);
    }
    run.Deliver(kernels);
    run.Deliver(sets, 88);
    run.Poll();
  }
  run.Finish();
  CHECK(watch->streams < kBound);
  CHECK(watch->kept < kBound);

  const v1::TraceFile file = run.Parse();
  std::map<uint32_t, uint32_t> ever;  // no iid has a second meaning in the whole file …
  std::map<uint32_t, uint32_t> streams;
  size_t checkpoints = 0;
  const auto check = [&](const auto& batch) {
    uint64_t correlation = batch.base_correlation();
    for (const int64_t delta : batch.correlation_delta()) {
      correlation += static_cast<uint64_t>(delta);
      REQUIRE(streams.at(batch.stream_iid()) == correlation);
    }
    return batch.correlation_delta_size();
  };
  size_t kernels = 0;
  size_t sets = 0;
  for (const v1::Chunk& chunk : file.chunks()) {
    if (chunk.header().dictionary_checkpoint()) {
      ++checkpoints;
      streams.clear();  // … and none needs a definition from before the last checkpoint
    }
    for (const v1::Stream& stream : chunk.body().streams()) {
      REQUIRE(ever.emplace(stream.iid(), stream.stream()).first->second == stream.stream());
      streams[stream.iid()] = stream.stream();
    }
    for (const v1::KernelBatch& batch : chunk.body().kernel_batches()) kernels += check(batch);
    for (const v1::MemsetBatch& batch : chunk.body().memset_batches()) sets += check(batch);
  }
  CHECK(kernels == kStreams);
  CHECK(sets == kStreams);
  CHECK(checkpoints >= 3);
}

TEST_CASE("rows that could not be written are lost from their first to their last moment") {
  // Fails once and takes the next chunk, to see what that says.
  class FailsOnce final : public gpuperf::collector::ChunkSink {
   public:
    bool Write(gpuperf::collector::Batches& batches) override {
      if (++writes_ == 1) {
        begin_ns = batches.begin_ns;
        end_ns = batches.end_ns;
        return false;
      }
      losses = batches.losses;
      return true;
    }
    bool failed() const override { return writes_ == 1; }
    void Close(const gpuperf::collector::Batches&) override {}
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    std::vector<gpuperf::collector::Loss> losses;

   private:
    int writes_ = 0;
  } sink;
  const cupti::Api api = FakeApi();
  Collector collector(api, sink, {});
  source::SetActive(true);
  source::EmitMark("m");
  collector.Start();
  CHECK_FALSE(collector.Flush(60'000));
  collector.Stop({});
  source::SetActive(false);
  REQUIRE(sink.losses.size() == 1);
  CHECK(sink.losses[0].reason == gpuperf::collector::LossReason::kWriteFailed);
  CHECK(sink.losses[0].count == 1);
  CHECK(sink.begin_ns < sink.end_ns);
  CHECK(sink.losses[0].first_ns == sink.begin_ns);
  CHECK(sink.losses[0].last_ns == sink.end_ns);
}

TEST_CASE("want of memory ends the tracing, says so once, and counts what it cost; the job goes on") {
  class NoMemory final : public gpuperf::collector::ChunkSink {
   public:
    bool Write(gpuperf::collector::Batches&) override { throw std::bad_alloc(); }
    bool failed() const override { return false; }
    void Close(const gpuperf::collector::Batches&) override { closed = true; }
    bool closed = false;
  } sink;
  std::FILE* said = std::tmpfile();
  const int error_output = dup(STDERR_FILENO);
  dup2(fileno(said), STDERR_FILENO);
  const cupti::Api api = FakeApi();
  Collector collector(api, sink, {});
  source::SetActive(true);
  for (int i = 0; i < 10; ++i) source::EmitMark("before");
  collector.Start();
  CHECK_FALSE(collector.Flush(60'000));
  for (int i = 0; i < 5; ++i) source::EmitMark("after");
  CHECK_FALSE(collector.Flush(60'000));
  collector.Stop({});
  source::SetActive(false);
  dup2(error_output, STDERR_FILENO);
  close(error_output);
  CHECK_FALSE(sink.closed);  // what is missing must show: the file ends as after a kill
  CHECK(collector.counts().lost.load() == 15);
  char line[256] = "";
  REQUIRE(std::fseek(said, 0, SEEK_SET) == 0);
  REQUIRE(std::fgets(line, sizeof line, said) != nullptr);
  CHECK(std::string(line).find("tracing stops here, the job goes on") != std::string::npos);
  CHECK(std::fgets(line, sizeof line, said) == nullptr);
  std::fclose(said);
}

TEST_CASE("a process that never uses CUDA keeps few clock pairs, and what it knows of the run") {
  class Waits final : public gpuperf::collector::ChunkSink {
   public:
    bool Write(gpuperf::collector::Batches& batches) override {
      pairs = batches.clock_pairs.size();
      run_info = batches.run_info;
      return false;
    }
    bool failed() const override { return false; }
    void Close(const gpuperf::collector::Batches&) override {}
    size_t pairs = 0;
    std::string run_info;
  } sink;
  const cupti::Api api = FakeApi();
  Collector collector(api, sink, {});
  source::SetActive(true);
  collector.SetRunInfo("info");
  for (uint64_t i = 1; i <= 100'000; ++i) {
    source::EmitClockPair(i, i, 10);
    if (i % 5'000 == 0) collector.Poll();
  }
  collector.Start();
  CHECK(collector.Flush(60'000));
  CHECK(sink.pairs == 100'000);
  CHECK(collector.Flush(60'000));
  CHECK(sink.pairs == 0);
  CHECK(sink.run_info == "info");
  collector.Stop({});
  source::SetActive(false);
}

TEST_CASE("a disk that refuses loses events, says how many, and nothing else happens") {
  const cupti::Api api = FakeApi();
  REQUIRE(ring::Pool().Open(size_t{16} << 20));
  WriterOptions options;
  options.output.path = "/proc/no-such-folder/t.gpuperf";
  TraceWriter writer(options);
  Collector collector(api, writer, {});
  source::SetActive(true);
  for (int i = 0; i < 10; ++i) source::EmitMark("m");
  {
    std::vector<uint64_t> params(32);
    cupti::CallbackData data{};
    data.params = params.data();
    data.correlation = 1;
    source::OnCallback(nullptr, cupti::kRuntimeDomain, kLaunchKernel, &data);
    data.site = cupti::kSiteExit;
    source::OnCallback(nullptr, cupti::kRuntimeDomain, kLaunchKernel, &data);
  }
  collector.Start();
  CHECK_FALSE(collector.Flush(60'000));
  CHECK(writer.failed());
  CHECK(collector.counts().lost.load() == 11);
  source::EmitMark("m");  // a failed sink stays failed: nothing is kept for later, and all is counted
  CHECK_FALSE(collector.Flush(60'000));
  CHECK(writer.failed());
  CHECK(collector.counts().lost.load() == 12);
  collector.Stop({});
  source::SetActive(false);
}

TEST_CASE("a disk that is full: what it still takes is a whole trace, and says what was not written") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  Run run;
  run.Launch(1);
  const rlimit limit{60'000, before.rlim_max};  // room for the header and some chunks
  setrlimit(RLIMIT_FSIZE, &limit);
  run.collector().Start();
  int marks = 0;
  bool flushed = true;
  while (flushed && marks < 100'000) {
    for (int i = 0; i < 500; ++i) source::EmitMark("a mark");
    marks += 500;
    flushed = run.collector().Flush(60'000);
  }
  for (int i = 0; i < 7; ++i) source::EmitMark("one more");
  marks += 7;
  run.collector().Stop({});
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, old_handler);
  CHECK_FALSE(flushed);
  const v1::TraceFile file = run.Parse();
  REQUIRE(file.has_index());
  REQUIRE(file.chunks_size() == file.index().entries_size());
  int written = 0;
  for (const v1::Chunk& chunk : file.chunks()) written += chunk.body().marks_size();
  CHECK(written > 0);
  CHECK(written + static_cast<int>(Lost(file, v1::LOSS_REASON_WRITE_FAILED)) == marks);
  CHECK(file.chunks(file.chunks_size() - 1).header().event_count() == 0);
}
