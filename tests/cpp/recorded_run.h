// A collector with its writer in a test: what goes into rings and activity buffers, and the file that came of it,
// parsed by protoc-generated code.
#ifndef GPUPERF_TESTS_CPP_RECORDED_RUN_H_
#define GPUPERF_TESTS_CPP_RECORDED_RUN_H_

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/stamp_clock.h"
#include "catch.h"
#include "collector/collector.h"
#include "cupti/call_table.h"
#include "gpuperf/trace/v1/trace.pb.h"
#include "ring/buffer_pool.h"
#include "ring/call_span.h"
#include "source/active.h"
#include "source/call_source.h"
#include "source/marker_source.h"
#include "trace/trace_writer.h"

namespace cupti = gpuperf::cupti;
namespace ring = gpuperf::ring;
namespace source = gpuperf::source;
namespace v1 = gpuperf::trace::v1;
using gpuperf::collector::Collector;
using gpuperf::trace::TraceWriter;
using gpuperf::trace::WriterOptions;

constexpr uint32_t kLaunchKernel = 211;
constexpr uint32_t kKernelBytes = 216;  // CUDA 13.0

// Walks records as libcupti 13.0 does: by kind.
inline int NextRecord(uint8_t* buffer, size_t valid, void** record) {
  const std::map<uint32_t, size_t> sizes = {{1, 96}, {2, 88}, {10, kKernelBytes}, {22, 96}, {51, 56}};
  uint8_t* at = buffer;
  if (*record != nullptr) {
    uint32_t kind = 0;
    std::memcpy(&kind, *record, sizeof kind);
    at = static_cast<uint8_t*>(*record) + sizes.at(kind);
  }
  if (at >= buffer + valid) return cupti::kMaxLimitReached;
  uint32_t kind = 0;
  std::memcpy(&kind, at, sizeof kind);
  if (sizes.count(kind) == 0) return cupti::kInvalidKind;
  *record = at;
  return cupti::kSuccess;
}

inline cupti::Api FakeApi() {
  cupti::Api api;
  api.ActivityGetNextRecord = NextRecord;
  api.record_bytes[cupti::kConcurrentKernelKind] = kKernelBytes;
  api.record_bytes[cupti::kMemcpyKind] = 96;
  api.record_bytes[cupti::kMemsetKind] = 88;
  api.record_bytes[cupti::kPeerMemcpyKind] = 96;
  return api;
}

// The length-delimited fields numbered `field` of a message, as they stand in its bytes.
inline std::vector<std::string> RawFields(const std::string& message, int field) {
  using google::protobuf::internal::WireFormatLite;
  std::vector<std::string> found;
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(message.data()),
                                               static_cast<int>(message.size()));
  while (const uint32_t tag = input.ReadTag()) {
    if (WireFormatLite::GetTagFieldNumber(tag) == field) {
      uint32_t size = 0;
      std::string bytes;
      REQUIRE(input.ReadVarint32(&size));
      REQUIRE(input.ReadString(&bytes, static_cast<int>(size)));
      found.push_back(bytes);
    } else {
      REQUIRE(WireFormatLite::SkipField(&input, tag));
    }
  }
  return found;
}

inline std::vector<std::string> RawBodies(const std::string& file) {
  std::vector<std::string> bodies;
  for (const std::string& chunk : RawFields(file, v1::TraceFile::kChunksFieldNumber)) {
    bodies.push_back(RawFields(chunk, v1::Chunk::kBodyFieldNumber).at(0));
  }
  return bodies;
}

class Run {
 public:
  explicit Run(uint64_t max_part_bytes = uint64_t{1} << 30) : Run(FakeApi(), {}, max_part_bytes) {}
  using Wrap = std::function<gpuperf::collector::ChunkSink&(gpuperf::collector::ChunkSink&)>;
  explicit Run(const cupti::Api& api, const gpuperf::collector::CollectorOptions& collector_options = {},
               uint64_t max_part_bytes = uint64_t{1} << 30, const Wrap& wrap = nullptr)
      : api_(api), path_(MakePath()) {
    REQUIRE(ring::Pool().Open(size_t{16} << 20));
    WriterOptions options;
    options.output.path = path_;
    options.max_part_bytes = max_part_bytes;
    writer_ = std::make_unique<TraceWriter>(options);
    gpuperf::collector::ChunkSink& sink = wrap == nullptr ? *writer_ : wrap(*writer_);
    collector_ = std::make_unique<Collector>(api_, sink, collector_options);
    source::ResetCallSource();
    source::SetActive(true);
  }
  ~Run() {
    source::SetActive(false);
    for (const std::string& file : files()) unlink(file.c_str());
  }

  void Launch(uint32_t correlation, const char* symbol = "_Z1kv") {
    std::vector<uint64_t> params(32);
    uint32_t result = 0;
    cupti::CallbackData data{};
    data.params = params.data();
    data.symbol_name = symbol;
    data.correlation = correlation;
    source::OnCallback(nullptr, cupti::kRuntimeDomain, kLaunchKernel, &data);
    data.site = cupti::kSiteExit;
    data.return_value = &result;
    source::OnCallback(nullptr, cupti::kRuntimeDomain, kLaunchKernel, &data);
  }

  static cupti::KernelRecord Kernel(uint32_t correlation, uint64_t start, uint64_t end, const char* name = "_Z1kv") {
    cupti::KernelRecord kernel{};
    kernel.kind = cupti::kConcurrentKernelKind;
    kernel.correlation = correlation;
    kernel.start = start;
    kernel.end = end;
    kernel.name = name;
    kernel.stream = 7;
    kernel.context = 1;
    kernel.grid_x = kernel.grid_y = kernel.grid_z = kernel.block_y = kernel.block_z = 1;
    kernel.block_x = 128;
    return kernel;
  }

  template <typename Record>
  void Deliver(const std::vector<Record>& records, size_t bytes_each = kKernelBytes) {
    uint8_t* data = nullptr;
    size_t size = 0;
    for (size_t first = 0; first < records.size();) {
      REQUIRE(ring::Pool().Take(nullptr, &data, &size));
      size_t used = 0;
      for (; first < records.size() && used + bytes_each <= size; ++first, used += bytes_each) {
        std::memcpy(data + used, &records[first], bytes_each);
      }
      REQUIRE(ring::Pool().Complete(data, size, used));
    }
  }

  // Records of several kinds, laid out by the caller.
  static void Deliver(const std::string& records) {
    uint8_t* data = nullptr;
    size_t size = 0;
    REQUIRE(ring::Pool().Take(nullptr, &data, &size));
    REQUIRE(records.size() <= size);
    std::copy(records.begin(), records.end(), data);
    REQUIRE(ring::Pool().Complete(data, size, records.size()));
  }

  void Poll() { collector_->Poll(); }

  // Ends the run and reads what was written.
  void Finish() {
    collector_->Start();
    collector_->Stop({});
  }

  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (int part = 0; part < 1000; ++part) {
      char suffix[16] = "";
      if (part != 0) std::snprintf(suffix, sizeof suffix, ".%04d", part);
      if (access((path_ + suffix).c_str(), F_OK) != 0) break;
      found.push_back(path_ + suffix);
    }
    return found;
  }

  v1::TraceFile Parse(const std::string& path) const {
    std::ifstream stream(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    v1::TraceFile file;
    REQUIRE(file.ParseFromString(bytes));
    CHECK(file.magic() == "GPUPERF1");
    CHECK(file.header().format_version() == 1);
    CHECK(file.index().entries_size() == file.chunks_size());
    const std::vector<std::string> bodies = RawBodies(bytes);
    REQUIRE(bodies.size() == static_cast<size_t>(file.chunks_size()));
    for (size_t i = 0; i < bodies.size(); ++i) {
      const v1::ChunkHeader& header = file.chunks(static_cast<int>(i)).header();
      CHECK(header.sequence() == i);
      CHECK(header.body_size() == bodies[i].size());
      CHECK(header.body_crc32c() == gpuperf::base::Crc32c(bodies[i].data(), bodies[i].size()));
    }
    return file;
  }

  v1::TraceFile Parse() const {
    REQUIRE(files().size() == 1);
    return Parse(path_);
  }

  Collector& collector() { return *collector_; }

 private:
  static std::string MakePath() {
    static int count = 0;
    return "/tmp/gpuperf-collector-test-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".gpuperf";
  }

  cupti::Api api_;
  std::string path_;
  std::unique_ptr<TraceWriter> writer_;
  std::unique_ptr<Collector> collector_;
};

inline uint64_t Lost(const v1::TraceFile& file, v1::LossReason reason) {
  uint64_t count = 0;
  for (const v1::Chunk& chunk : file.chunks()) {
    for (const v1::Loss& loss : chunk.body().losses()) count += loss.reason() == reason ? loss.count() : 0;
  }
  return count;
}

inline size_t Kernels(const v1::TraceFile& file) {
  size_t count = 0;
  for (const v1::Chunk& chunk : file.chunks()) {
    for (const v1::KernelBatch& batch : chunk.body().kernel_batches()) count += batch.gap_ns_size();
  }
  return count;
}

#endif  // GPUPERF_TESTS_CPP_RECORDED_RUN_H_
