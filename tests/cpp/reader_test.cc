// TraceReader against files built with the generated schema: whole, torn at every byte, flipped, hostile.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"
#include "reader/trace_reader.h"
#include "trace_builder.h"

namespace gpuperf::reader {
namespace {

using namespace ::gpuperf::tests;  // NOLINT: a test

// Keeps what it is told.
class Recorder : public Visitor {
 public:
  void OnFile(const std::string&, const v1::FileHeader& header) override { parts.push_back(header.part()); }
  void OnChunk(const Frame& frame) override { chunks.push_back(frame.offset); }
  void OnKernel(const KernelRow& row) override {
    kernels.push_back(row);
    kernel_names.push_back(row.kernel->name == nullptr ? "?" : *row.kernel->name);
  }
  void OnCopy(const CopyRow& row) override { copies.push_back(row); }
  void OnMemset(const MemsetRow& row) override { memsets.push_back(row); }
  void OnCall(const CallRow& row) override { calls.push_back(row); }
  void OnOpenCall(const OpenCallRow&) override { ++open_calls; }
  void OnUnfinishedCall(const OpenCallRow& row) override { unfinished.push_back(row); }
  void OnUnfinishedAnnotation(const OpenAnnotationRow& row) override {
    unfinished_annotations.push_back(row.row.begin_host_ns());
  }
  void OnStep(const StepRow& row) override { steps.push_back(row.row.index()); }

  std::vector<uint32_t> parts;
  std::vector<uint64_t> chunks;
  std::vector<KernelRow> kernels;
  std::vector<std::string> kernel_names;
  std::vector<CopyRow> copies;
  std::vector<MemsetRow> memsets;
  std::vector<CallRow> calls;
  int open_calls = 0;
  std::vector<OpenCallRow> unfinished;
  std::vector<uint64_t> unfinished_annotations;
  std::vector<uint64_t> steps;
};

struct Result {
  absl::Status status;
  Recorder rows;
  std::vector<Damage> damages;
  bool cleanly_closed = false;
  std::unique_ptr<TraceReader> reader;  // owns what rows point to
};

Result ReadFile(const std::string& path) {
  Result result;
  absl::StatusOr<TraceReader> reader = TraceReader::Open(path);
  result.status = reader.status();
  if (!reader.ok()) return result;
  result.reader = std::make_unique<TraceReader>(*std::move(reader));
  result.reader->Read(&result.rows);
  result.damages = result.reader->damages().kept();
  result.cleanly_closed = result.reader->cleanly_closed();
  return result;
}

Result ReadBytes(const std::string& bytes) {
  TemporaryFolder folder;
  return ReadFile(folder.Write("t.gpuperf", bytes));
}

void AddStep(v1::ChunkBody* body, uint64_t index) {
  v1::Step* step = body->add_steps();
  step->set_host_ns(1000 + 100 * index);
  step->set_index(index);
  step->set_thread_iid(1);
}

// Four chunks with one step each; the first has the dictionaries and two kernels.
TraceBuilder FourSteps() {
  TraceBuilder builder;
  for (uint64_t i = 0; i < 4; ++i) {
    v1::ChunkBody body;
    if (i == 0) AddDictionaries(&body);
    AddKernels(&body, {{600, 700, 1, 11}, {650, 690, 2, 12}});
    AddStep(&body, i);
    builder.Chunk(body, 1000 + 100 * i, 1100 + 100 * i);
  }
  return builder;
}

TEST_CASE("a whole trace is read row by row") {
  TraceBuilder builder;
  v1::ChunkBody body;
  AddDictionaries(&body);
  v1::KernelBatch* kernels = AddKernels(&body, {{600, 700, 1, 11}, {650, 690, 2, 9}});
  kernels->add_graph_id(0);
  kernels->add_graph_id(5);
  v1::CallBatch* calls = AddCalls(&body, {{1000, 1010, 1, 11}, {1005, 1020, 3, 12}, {1030, 1040, 1, 13}});
  calls->add_result_row(2);
  calls->add_result_code(700);
  calls->add_copy_row(1);
  calls->add_copy_destination(0x1000);
  calls->add_copy_source(0x2000);
  calls->add_copy_bytes(64);
  calls->add_copy_kind(1);
  v1::CopyBatch* copies = body.add_copy_batches();
  copies->set_stream_iid(1);
  copies->set_base_device_ns(100);
  copies->add_gap_ns(5);
  copies->add_duration_ns(10);
  copies->add_bytes(64);
  copies->add_copy_kind(1);
  const Result result = ReadBytes(builder.Chunk(body).Bytes());

  REQUIRE(result.status.ok());
  CHECK(result.cleanly_closed);
  CHECK(result.damages.empty());
  REQUIRE(result.rows.kernels.size() == 2);
  CHECK(result.rows.kernel_names == std::vector<std::string>{"_Z3addPf", "triton_gemm"});
  CHECK(result.rows.kernels[0].begin_device_ns == 600);
  CHECK(result.rows.kernels[0].end_device_ns == 700);
  CHECK(result.rows.kernels[0].correlation == 11);
  CHECK(result.rows.kernels[0].stream->definition.stream() == 7);
  CHECK(result.rows.kernels[1].begin_device_ns == 650);  // a gap may be negative
  CHECK(result.rows.kernels[1].correlation == 9);
  CHECK(result.rows.kernels[1].graph_id == 5);
  CHECK(result.rows.kernels[1].kernel->definition.grid_x() == 8);
  REQUIRE(result.rows.calls.size() == 3);
  CHECK(*result.rows.calls[0].site->name == "cudaLaunchKernel");
  CHECK(result.rows.calls[0].result == 0);
  CHECK(!result.rows.calls[0].has_copy);
  CHECK(result.rows.calls[1].enter_host_ns == 1005);
  CHECK(result.rows.calls[1].has_copy);
  CHECK(result.rows.calls[1].copy_bytes == 64);
  CHECK(result.rows.calls[2].result == 700);
  CHECK(!result.rows.calls[2].has_copy);
  REQUIRE(result.rows.copies.size() == 1);
  CHECK(result.rows.copies[0].copy_count == 1);
  CHECK(!result.rows.copies[0].peer);
  CHECK(result.reader->ListChunks().size() == 1);
}

TEST_CASE("an open call is superseded by its row and stays when there is none") {
  TraceBuilder builder;
  v1::ChunkBody body;
  AddDictionaries(&body);
  for (const uint64_t correlation : {21, 22}) {
    v1::OpenCall* open = body.add_open_calls();
    open->set_thread_iid(1);
    open->set_call_site_iid(2);
    open->set_correlation(correlation);
    open->set_enter_host_ns(1000);
  }
  for (const uint64_t begin : {30, 40}) {
    v1::OpenAnnotation* open = body.add_open_annotations();
    open->set_begin_host_ns(begin);
    open->set_name_iid(7);
    open->set_thread_iid(1);
  }
  builder.Chunk(body);
  v1::ChunkBody later;
  AddCalls(&later, {{1000, 1500, 2, 21}});
  v1::Annotation* annotation = later.add_annotations();
  annotation->set_begin_host_ns(30);
  annotation->set_duration_ns(5);
  annotation->set_name_iid(7);
  annotation->set_thread_iid(1);
  const Result result = ReadBytes(builder.Chunk(later).Bytes());
  CHECK(result.rows.open_calls == 2);
  REQUIRE(result.rows.unfinished.size() == 1);
  CHECK(result.rows.unfinished[0].row.correlation() == 22);
  CHECK(*result.rows.unfinished[0].site->name == "cudaStreamSynchronize");
  CHECK(result.rows.unfinished_annotations == std::vector<uint64_t>{40});
}

TEST_CASE("a file torn at any byte keeps every chunk that is whole") {
  std::vector<size_t> offsets;
  const std::string whole = FourSteps().Bytes(true, &offsets);
  TemporaryFolder folder;
  for (size_t size = 0; size < whole.size(); ++size) {
    INFO("cut to " << size << " of " << whole.size());
    const Result result = ReadFile(folder.Write("t.gpuperf", whole.substr(0, size)));
    constexpr size_t kCheckSum = 5;
    if (size < offsets[0] - kCheckSum) {  // inside the header
      REQUIRE(absl::IsInvalidArgument(result.status));
      continue;
    }
    REQUIRE(result.status.ok());
    const auto sound =
        static_cast<size_t>(std::count_if(offsets.begin() + 1, offsets.end(), [&](size_t end) { return end <= size; }));
    REQUIRE(result.rows.steps.size() == sound);
    REQUIRE(result.rows.kernels.size() == 2 * sound);
    REQUIRE(!result.cleanly_closed);
    const bool at_an_end =
        size == offsets[0] - kCheckSum || std::find(offsets.begin(), offsets.end(), size) != offsets.end();
    const bool behind_index = size == whole.size() - 9;
    REQUIRE(result.damages.size() == (at_an_end || behind_index ? 0 : 1));
    if (!result.damages.empty()) REQUIRE(result.damages[0].offset + result.damages[0].bytes == size);
  }
}

TEST_CASE("a flipped bit in a chunk costs that chunk only") {
  std::vector<size_t> offsets;
  const std::string whole = FourSteps().Bytes(true, &offsets);
  TemporaryFolder folder;
  for (size_t at = offsets[1]; at < offsets[2]; ++at) {
    for (const int bit : {0, 3, 7}) {
      INFO("bit " << bit << " of byte " << at - offsets[1]);
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      const Result result = ReadFile(folder.Write("t.gpuperf", bytes));
      REQUIRE(result.status.ok());
      // The header has no check sum over it: a flip in its times or its sequence lets the chunk be read.
      std::vector<uint64_t> steps = result.rows.steps;
      if (result.damages.empty()) REQUIRE(steps.size() == 4);
      steps.erase(std::remove(steps.begin(), steps.end(), 1), steps.end());
      REQUIRE(steps == std::vector<uint64_t>{0, 2, 3});
    }
  }
}

TEST_CASE("a flipped bit anywhere never crashes and never costs two chunks") {
  std::vector<size_t> offsets;
  const std::string whole = FourSteps().Bytes(true, &offsets);
  TemporaryFolder folder;
  for (size_t at = 10; at < whole.size(); ++at) {
    INFO("byte " << at);
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    const Result result = ReadFile(folder.Write("t.gpuperf", bytes));
    if (result.status.ok()) {
      REQUIRE(result.rows.steps.size() >= 3);
    } else {
      REQUIRE(at < offsets[0]);
      REQUIRE(absl::IsUnimplemented(result.status));  // the format version itself became greater
    }
  }
}

TEST_CASE("the next chunk is found wherever the blocks of the search end") {
  TemporaryFolder folder;
  for (size_t size = 3950; size < 4110; ++size) {
    INFO("a bad chunk with a body of " << size);
    TraceBuilder builder;
    v1::ChunkBody last;
    AddStep(&last, 9);
    std::vector<size_t> offsets;
    std::string bytes = builder.RawChunk(Field(900, std::string(size, 'x'))).Chunk(last).Bytes(true, &offsets);
    bytes[offsets[1] - 1] = 'y';
    const Result result = ReadFile(folder.Write("t.gpuperf", bytes));
    REQUIRE(result.rows.steps == std::vector<uint64_t>{9});
  }
}

TEST_CASE("after a lost dictionary names are not known until the next checkpoint") {
  TraceBuilder builder;
  v1::ChunkBody first;
  AddDictionaries(&first);
  v1::ChunkBody second;
  AddKernels(&second, {{600, 700, 1, 11}});
  v1::ChunkBody checkpoint;
  AddDictionaries(&checkpoint);
  AddKernels(&checkpoint, {{800, 900, 1, 12}});
  std::vector<size_t> offsets;
  std::string bytes = builder.Chunk(first).Chunk(second).Chunk(checkpoint).Bytes(true, &offsets);
  bytes[offsets[1] - 1] ^= 1;
  const Result result = ReadBytes(bytes);
  CHECK(result.rows.kernel_names == std::vector<std::string>{"?", "_Z3addPf"});
  CHECK(result.rows.kernels[0].kernel_iid == 1);
  CHECK(!result.rows.kernels[0].stream->known);
  REQUIRE(!result.damages.empty());
  CHECK(result.damages[0].offset == offsets[0]);
  CHECK(result.damages[0].bytes == offsets[1] - offsets[0]);
  CHECK(result.damages[0].before_host_ns == 1000);
}

TEST_CASE("a batch that breaks the rules is left out, and nothing else") {
  v1::ChunkBody body;
  AddDictionaries(&body);
  v1::KernelBatch* bad = AddKernels(&body, {{600, 700, 1, 11}, {650, 690, 2, 12}});
  SECTION("columns of unequal length") { bad->add_duration_ns(1); }
  SECTION("a value column of unequal length") { bad->add_graph_id(1); }
  SECTION("a time beyond the end of time") { bad->set_duration_ns(0, uint64_t{1} << 62); }
  SECTION("a time before its beginning") { bad->set_gap_ns(0, -501); }
  SECTION("the greatest gap") { bad->set_gap_ns(1, INT64_MAX); }
  SECTION("the least gap") { bad->set_gap_ns(1, INT64_MIN); }
  SECTION("an impossible base") { bad->set_base_device_ns(UINT64_MAX); }
  AddKernels(&body, {{800, 900, 2, 13}});
  const Result result = ReadBytes(TraceBuilder().Chunk(body).Bytes());
  CHECK(result.rows.kernel_names == std::vector<std::string>{"triton_gemm"});
  CHECK(result.damages.size() == 1);
}

TEST_CASE("sparse columns that break the rules cost their batch") {
  v1::ChunkBody body;
  AddDictionaries(&body);
  v1::CallBatch* bad = AddCalls(&body, {{1000, 1010, 1, 11}, {1020, 1030, 1, 12}});
  SECTION("a row behind the last") {
    bad->add_result_row(2);
    bad->add_result_code(1);
  }
  SECTION("falling rows") {
    bad->add_result_row(1);
    bad->add_result_row(0);
    bad->add_result_code(1);
    bad->add_result_code(1);
  }
  SECTION("fewer values than rows") {
    bad->add_copy_row(0);
    bad->add_copy_row(1);
    bad->add_copy_bytes(1);
  }
  AddCalls(&body, {{1000, 1010, 2, 13}});
  const Result result = ReadBytes(TraceBuilder().Chunk(body).Bytes());
  REQUIRE(result.rows.calls.size() == 1);
  CHECK(result.rows.calls[0].correlation == 13);
  CHECK(result.damages.size() == 1);
}

TEST_CASE("unknown fields are skipped at every level") {
  v1::ChunkBody body;
  AddDictionaries(&body);
  AddStep(&body, 3);
  const std::string unknown = Field(900, "from the future") + Varint(901 << 3) + Varint(12345);
  TraceBuilder builder;
  builder.RawChunk(body.SerializeAsString() + unknown);
  std::vector<size_t> offsets;
  std::string bytes = builder.Bytes(false, &offsets);
  bytes.insert(offsets[0], unknown);  // between the header and the chunk
  const Result result = ReadBytes(bytes + unknown);
  REQUIRE(result.status.ok());
  CHECK(result.rows.steps == std::vector<uint64_t>{3});
  CHECK(result.damages.empty());
}

TEST_CASE("a chunk body that does not parse is damage") {
  const Result result = ReadBytes(FourSteps().RawChunk("\x0A\xFF\xFF").Bytes());
  CHECK(result.rows.steps.size() == 4);
  REQUIRE(result.damages.size() == 1);
  CHECK(result.damages[0].what == "a chunk body is malformed");
}

TEST_CASE("a missing index is found out and costs nothing") {
  const Result result = ReadBytes(FourSteps().Bytes(/*closed=*/false));
  CHECK(result.rows.steps.size() == 4);
  CHECK(!result.cleanly_closed);
  CHECK(result.damages.empty());
  CHECK(result.reader->ListChunks().empty());  // its file is gone by now
}

TEST_CASE("without an index the chunks are listed by walking") {
  TemporaryFolder folder;
  std::vector<size_t> offsets;
  const std::string path = folder.Write("t.gpuperf", FourSteps().Bytes(false, &offsets));
  const std::vector<v1::IndexEntry> chunks = TraceReader::Open(path)->ListChunks();
  REQUIRE(chunks.size() == 4);
  for (size_t i = 0; i < 4; ++i) CHECK(chunks[i].offset() == offsets[i]);
}

TEST_CASE("a chunk that is missing between its neighbours is noticed") {
  std::vector<size_t> offsets;
  std::string bytes = FourSteps().Bytes(false, &offsets);
  bytes.erase(offsets[1], offsets[2] - offsets[1]);
  const Result result = ReadBytes(bytes);
  CHECK(result.rows.steps == std::vector<uint64_t>{0, 2, 3});
  REQUIRE(result.damages.size() == 1);
  CHECK(result.damages[0].after_host_ns == 1100);
  CHECK(result.damages[0].before_host_ns == 1200);
}

TEST_CASE("parts are read one after the other, and only those of the trace") {
  TemporaryFolder folder;
  const std::string path = folder.Write("t.gpuperf", FourSteps().Bytes());
  TraceBuilder second;
  second.header().set_part(1);
  v1::ChunkBody body;
  AddStep(&body, 4);
  AddKernels(&body, {{600, 700, 1, 11}});
  folder.Write("t.gpuperf.0001", second.Chunk(body).Bytes());
  TraceBuilder foreign;
  foreign.header().set_part(2);
  foreign.header().set_trace_uuid("another trace!!!");
  folder.Write("t.gpuperf.0002", foreign.Chunk(body).Bytes());

  const Result result = ReadFile(path);
  CHECK(result.rows.parts == std::vector<uint32_t>{0, 1});
  CHECK(result.rows.steps == std::vector<uint64_t>{0, 1, 2, 3, 4});
  CHECK(result.rows.kernel_names.back() == "?");  // ids are of one file
  CHECK(result.cleanly_closed);
  CHECK(result.damages.empty());

  const Result alone = ReadFile(path + ".0001");
  CHECK(alone.rows.steps == std::vector<uint64_t>{4});
  CHECK(alone.damages.size() == 1);
}

TEST_CASE("a part that is missing is told, and what lies behind it is read") {
  TemporaryFolder folder;
  const auto part = [](uint32_t number, uint64_t step) {
    TraceBuilder builder;
    builder.header().set_part(number);
    v1::ChunkBody body;
    AddStep(&body, step);
    builder.Chunk(body);
    return builder;
  };
  const std::string path = folder.Write("t.gpuperf", FourSteps().Continues().Bytes());
  SECTION("the last") {
    folder.Write("t.gpuperf.0001", part(1, 4).Continues().Bytes());
    const Result result = ReadFile(path);
    CHECK(result.rows.steps == std::vector<uint64_t>{0, 1, 2, 3, 4});
    REQUIRE(result.damages.size() == 1);
    CHECK(result.damages[0].file == path + ".0002");
    CHECK(result.damages[0].what.find("its end is not known") != std::string::npos);
  }
  SECTION("one in the middle") {
    folder.Write("t.gpuperf.0002", part(2, 9).Bytes());
    const Result result = ReadFile(path);
    CHECK(result.rows.steps == std::vector<uint64_t>{0, 1, 2, 3, 9});
    REQUIRE(result.damages.size() == 1);
    CHECK(result.damages[0].file == path + ".0001");
    CHECK(result.damages[0].what == "missing");
  }
  SECTION("some, and another trace lies behind them") {
    TraceBuilder foreign = part(3, 9);
    foreign.header().set_trace_uuid("another trace!!!");
    folder.Write("t.gpuperf.0003", foreign.Bytes());
    const Result result = ReadFile(path);
    CHECK(result.rows.steps == std::vector<uint64_t>{0, 1, 2, 3});
    REQUIRE(result.damages.size() == 1);
    CHECK(result.damages[0].file == path + ".0001");
  }
  SECTION("none") {
    folder.Write("t.gpuperf.0001", part(1, 4).Bytes());
    CHECK(ReadFile(path).damages.empty());
  }
}

TEST_CASE("every bit of the header counts") {
  const std::string whole = FourSteps().Bytes(false);
  const size_t header = FourSteps().header().ByteSizeLong();
  size_t told = 0;
  for (size_t at = 12; at < 12 + header; ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    const Result result = ReadBytes(bytes);
    REQUIRE(result.status.ok());  // its chunks are read all the same
    CHECK(result.rows.steps.size() == 4);
    told += result.damages.size();
  }
  CHECK(told == header);
  const Result old = ReadBytes(FourSteps().CheckSum(false).Bytes());
  CHECK(old.damages.empty());
}

TEST_CASE("format version 0 is none") {
  TraceBuilder builder;
  builder.header().set_format_version(0);
  CHECK(absl::IsInvalidArgument(ReadBytes(builder.Bytes()).status));
}

TEST_CASE("a part that is not a trace is damage of the whole") {
  TemporaryFolder folder;
  const std::string path = folder.Write("t.gpuperf", FourSteps().Bytes());
  folder.Write("t.gpuperf.0001", "garbage");
  const Result result = ReadFile(path);
  CHECK(result.rows.steps.size() == 4);
  REQUIRE(result.damages.size() == 1);
  CHECK(result.damages[0].what == "not read: not a gpuperf trace");
}

TEST_CASE("what is no trace is said in one line that begins with the path") {
  TemporaryFolder folder;
  const auto open = [&](const std::string& bytes) { return TraceReader::Open(folder.Write("x", bytes)).status(); };
  CHECK(absl::IsInvalidArgument(open("")));
  CHECK(absl::IsInvalidArgument(open("hello")));
  CHECK(absl::IsInvalidArgument(open(std::string(100000, '\0'))));
  CHECK(absl::IsInvalidArgument(open("\x7A\x08GPUPERF2")));
  CHECK(absl::IsNotFound(TraceReader::Open(folder.path() + "/missing").status()));
  CHECK(absl::IsUnavailable(TraceReader::Open(folder.path()).status()));
  const std::string message(open("hello").message());
  CHECK(message == folder.path() + "/x: not a gpuperf trace");
  CHECK(message.find('\n') == std::string::npos);
}

TEST_CASE("a newer format is refused with advice") {
  TraceBuilder builder;
  builder.header().set_format_version(kFormatVersion + 1);
  builder.header().set_producer("gpuperf 9.0");
  const Result result = ReadBytes(builder.Bytes());
  CHECK(absl::IsUnimplemented(result.status));
  CHECK(std::string(result.status.message()).find("made by a newer gpuperf (gpuperf 9.0") != std::string::npos);
}

TEST_CASE("impossible lengths cost no memory and no crash") {
  const std::string whole = FourSteps().Bytes(/*closed=*/false);
  for (const uint64_t length : {uint64_t{1} << 31, uint64_t{1} << 40, UINT64_MAX}) {
    const Result tail = ReadBytes(whole + "\x12" + Varint(length) + "\x0A\x20");
    CHECK(tail.rows.steps.size() == 4);
    CHECK(tail.damages.size() == 1);
  }
}

TEST_CASE("two traces joined end to end: the first is read") {
  const std::string one = FourSteps().Bytes();
  const Result result = ReadBytes(one + one);
  CHECK(result.rows.steps.size() == 4);
  CHECK(!result.damages.empty());
}

TEST_CASE("an iid with a second meaning is noted and the rows follow it") {
  v1::ChunkBody first;
  AddDictionaries(&first);
  AddKernels(&first, {{600, 700, 1, 11}});
  v1::ChunkBody second;
  v1::Kernel* kernel = second.add_kernels();
  kernel->set_iid(1);
  kernel->set_name_iid(2);
  AddKernels(&second, {{800, 900, 1, 12}});
  const Result result = ReadBytes(TraceBuilder().Chunk(first).Chunk(second).Bytes());
  CHECK(result.rows.kernel_names == std::vector<std::string>{"_Z3addPf", "triton_gemm"});
  CHECK(result.damages.size() == 1);
}

TEST_CASE("a trace is read again from the beginning, and only the fields that are asked for") {
  TemporaryFolder folder;
  std::string bytes = FourSteps().Bytes();
  const std::string path = folder.Write("t.gpuperf", bytes + "x");  // and some damage
  absl::StatusOr<TraceReader> reader = TraceReader::Open(path);
  REQUIRE(reader.ok());
  for (int round = 0; round < 2; ++round) {
    Recorder all;
    CHECK(reader->Read(&all));
    CHECK(all.steps.size() == 4);
    CHECK(all.kernels.size() == 8);
    CHECK(reader->chunks() == 4);
    CHECK(reader->damages().count() == 1);
    Recorder steps;
    CHECK(reader->Read(&steps, nullptr, {FieldBit(v1::ChunkBody::kStepsFieldNumber)}));
    CHECK(steps.steps.size() == 4);
    CHECK(steps.kernels.empty());
  }
}

TEST_CASE("a damaged header is told in every reading") {
  std::string bytes = FourSteps().Bytes();
  bytes[11] = '\x7F';  // the header's length
  TemporaryFolder folder;
  absl::StatusOr<TraceReader> reader = TraceReader::Open(folder.Write("t.gpuperf", bytes));
  REQUIRE(reader.ok());
  for (int round = 0; round < 2; ++round) {
    Recorder rows;
    CHECK(reader->Read(&rows));
    CHECK(rows.steps.size() == 4);
    REQUIRE(reader->damages().count() >= 1);
    CHECK(reader->damages().kept()[0].what == "the file header is damaged");
  }
}

TEST_CASE("a reading of chosen chunks begins at a checkpoint and ends with the last one") {
  TraceBuilder builder;
  for (uint32_t at = 0; at < 8; ++at) {
    v1::ChunkBody body;
    if (at % 4 == 0) AddDictionaries(&body);
    AddKernels(&body, {{100 * at + 10, 100 * at + 90, 1, at + 1}});
    builder.Chunk(body);
  }
  std::vector<size_t> offsets;
  TemporaryFolder folder;
  absl::StatusOr<TraceReader> reader = TraceReader::Open(folder.Write("t.gpuperf", builder.Bytes(true, &offsets)));
  REQUIRE(reader.ok());
  const auto offset = [&](size_t chunk) { return static_cast<uint64_t>(offsets[chunk]); };
  const auto check = [&](uint64_t begin, const std::vector<uint64_t>& wanted, const std::vector<uint64_t>& read) {
    TraceReader::Selection selection;
    selection.parts.push_back({begin, wanted});
    Recorder rows;
    CHECK(reader->Read(&rows, nullptr, selection));
    CHECK(rows.chunks == read);
    CHECK(rows.kernels.size() == wanted.size());
    CHECK(std::count(rows.kernel_names.begin(), rows.kernel_names.end(), "?") == 0);
    CHECK(reader->damages().count() == 0);
  };
  check(0, {offset(0), offset(3)}, {offset(0), offset(1), offset(2), offset(3)});
  check(0, {offset(1)}, {offset(0), offset(1)});
  check(offset(4), {offset(4)}, {offset(4)});
  check(offset(4), {offset(5), offset(7)}, {offset(4), offset(5), offset(6), offset(7)});
  check(offset(4), {}, {});
}

TEST_CASE("reading stops when asked to") {
  TemporaryFolder folder;
  const std::string path = folder.Write("t.gpuperf", FourSteps().Bytes());
  absl::StatusOr<TraceReader> reader = TraceReader::Open(path);
  Recorder rows;
  CHECK(!reader->Read(&rows, [](uint64_t) { return false; }));
  CHECK(rows.steps.size() == 1);
}

}  // namespace
}  // namespace gpuperf::reader
