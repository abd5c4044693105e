// Builds trace files for tests with the generated schema, as docs/trace_format.md has them. One thread.
#ifndef GPUPERF_TESTS_CPP_TRACE_BUILDER_H_
#define GPUPERF_TESTS_CPP_TRACE_BUILDER_H_

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "gpuperf/trace/v1/trace.pb.h"
#include "reader/frames.h"

namespace gpuperf::tests {

namespace v1 = ::gpuperf::trace::v1;

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  bytes += static_cast<char>(value);
  return bytes;
}

// A length-delimited field.
inline std::string Field(uint32_t number, const std::string& content) {
  return Varint(number << 3 | 2) + Varint(content.size()) + content;
}

class TraceBuilder {
 public:
  TraceBuilder() {
    header_.set_format_version(1);
    header_.set_trace_uuid("0123456789abcdef");
    header_.set_producer("gpuperf test");
    header_.mutable_start()->set_monotonic_ns(1000);
  }

  v1::FileHeader& header() { return header_; }

  // Appends a chunk with this body; its times are first and last.
  TraceBuilder& Chunk(const v1::ChunkBody& body, uint64_t first = 1000, uint64_t last = 2000) {
    return RawChunk(body.SerializeAsString(), first, last);
  }
  TraceBuilder& RawChunk(const std::string& body, uint64_t first = 1000, uint64_t last = 2000) {
    v1::ChunkHeader header;
    header.set_sync_marker(std::string(reader::SyncMarker()));
    header.set_sequence(chunks_.size());
    header.set_body_crc32c(base::Crc32c(body.data(), body.size()));
    header.set_body_size(static_cast<uint32_t>(body.size()));
    header.set_first_host_ns(first);
    header.set_last_host_ns(last);
    header.set_dictionary_checkpoint(chunks_.empty());
    chunks_.push_back(Field(2, Field(1, header.SerializeAsString()) + Field(2, body)));
    return *this;
  }

  // Whether its header has a check sum, as those of old have not; whether it says that a further part follows.
  TraceBuilder& CheckSum(bool there) {
    check_sum_ = there;
    return *this;
  }
  TraceBuilder& Continues() {
    continues_ = true;
    return *this;
  }

  // The file; `offsets`, if given, gets where each chunk begins, and the end of the last.
  std::string Bytes(bool closed = true, std::vector<size_t>* offsets = nullptr) const {
    std::string file("\x7A\x08GPUPERF1", 10);
    const std::string header = header_.SerializeAsString();
    file += Field(1, header);
    if (check_sum_) {
      file += '\x25';
      const uint32_t sum = base::Crc32c(header.data(), header.size());
      for (int i = 0; i < 4; ++i) file += static_cast<char>(sum >> (8 * i));
    }
    v1::TraceIndex index;
    index.set_continues(continues_);
    for (const std::string& chunk : chunks_) {
      if (offsets != nullptr) offsets->push_back(file.size());
      index.add_entries()->set_offset(file.size());
      file += chunk;
    }
    if (offsets != nullptr) offsets->push_back(file.size());
    if (!closed) return file;
    const uint64_t at = file.size();
    file += Field(3, index.SerializeAsString()) + "\x71";
    for (int i = 0; i < 8; ++i) file += static_cast<char>(at >> (8 * i));
    return file;
  }

 private:
  bool check_sum_ = true;
  bool continues_ = false;
  v1::FileHeader header_;
  std::vector<std::string> chunks_;
};

// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = "/tmp/gpuperf-test-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    for (const std::string& file : files_) std::remove(file.c_str());
    rmdir(path_.c_str());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string Write(const std::string& name, const std::string& bytes) {
    std::string file = path_ + "/" + name;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    files_.push_back(file);
    return file;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

// Dictionaries that the tests' rows use: thread 1 (tid 77), stream 1 (device 0), kernels 1 and 2, call sites 1 … 4.
inline void AddDictionaries(v1::ChunkBody* body) {
  const auto string = [&](uint32_t iid, const std::string& value) {
    v1::InternedString* entry = body->add_strings();
    entry->set_iid(iid);
    entry->set_value(value);
  };
  string(1, "_Z3addPf");
  string(2, "triton_gemm");
  string(3, "cudaLaunchKernel");
  string(4, "cudaStreamSynchronize");
  string(5, "cudaMemcpyAsync");
  string(6, "cudaMemcpy");
  string(7, "forward");
  v1::Thread* thread = body->add_threads();
  thread->set_iid(1);
  thread->set_tid(77);
  v1::Stream* stream = body->add_streams();
  stream->set_iid(1);
  stream->set_context(1);
  stream->set_stream(7);
  for (uint32_t iid : {1, 2}) {
    v1::Kernel* kernel = body->add_kernels();
    kernel->set_iid(iid);
    kernel->set_name_iid(iid);
    kernel->set_grid_x(4 * iid);
  }
  const auto site = [&](uint32_t iid, v1::CallKind kind, uint32_t name) {
    v1::CallSite* entry = body->add_call_sites();
    entry->set_iid(iid);
    entry->set_domain(v1::CALL_DOMAIN_RUNTIME);
    entry->set_kind(kind);
    entry->set_name_iid(name);
  };
  site(1, v1::CALL_KIND_LAUNCH, 3);
  site(2, v1::CALL_KIND_SYNCHRONIZE, 4);
  site(3, v1::CALL_KIND_COPY, 5);
  site(4, v1::CALL_KIND_COPY, 6);
}

struct TestKernel {
  int64_t begin;
  int64_t end;
  uint32_t kernel;
  uint64_t correlation;
};

inline v1::KernelBatch* AddKernels(v1::ChunkBody* body, const std::vector<TestKernel>& kernels, uint32_t stream = 1) {
  v1::KernelBatch* batch = body->add_kernel_batches();
  batch->set_stream_iid(stream);
  batch->set_base_device_ns(500);
  batch->set_base_correlation(10);
  int64_t end = 500;
  uint64_t correlation = 10;
  for (const TestKernel& kernel : kernels) {
    batch->add_gap_ns(kernel.begin - end);
    batch->add_duration_ns(static_cast<uint64_t>(kernel.end - kernel.begin));
    batch->add_kernel_iid(kernel.kernel);
    batch->add_correlation_delta(static_cast<int64_t>(kernel.correlation - correlation));
    end = kernel.end;
    correlation = kernel.correlation;
  }
  return batch;
}

struct TestCall {
  int64_t enter;
  int64_t exit;
  uint32_t site;
  uint64_t correlation;
};

inline v1::CallBatch* AddCalls(v1::ChunkBody* body, const std::vector<TestCall>& calls, uint32_t thread = 1) {
  v1::CallBatch* batch = body->add_call_batches();
  batch->set_thread_iid(thread);
  batch->set_base_host_ns(900);
  int64_t exit = 900;
  uint64_t correlation = 0;
  for (const TestCall& call : calls) {
    batch->add_gap_ns(call.enter - exit);
    batch->add_duration_ns(static_cast<uint64_t>(call.exit - call.enter));
    batch->add_call_site_iid(call.site);
    batch->add_correlation_delta(static_cast<int64_t>(call.correlation - correlation));
    exit = call.exit;
    correlation = call.correlation;
  }
  return batch;
}

inline void AddClockPair(v1::ChunkBody* body, uint64_t host, uint64_t device) {
  v1::ClockPair* pair = body->add_clock_pairs();
  pair->set_host_ns(host);
  pair->set_device_ns(device);
  pair->set_width_ns(3);
}

}  // namespace gpuperf::tests

#endif  // GPUPERF_TESTS_CPP_TRACE_BUILDER_H_
