// Reader speed: kernels with their launches from a trace file into Arrow record batches, a second of one core.
//
// reader_bench TRACE: a recorded trace is repeated behind itself, with times and correlation ids that go on, until it
// holds some millions of kernels; that file is then read as users do. Everything is in the timed part: opening, check
// sums, the scan for clock pairs, decoding, the join to the calls, the columns, the export.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/crc32c.h"
#include "gpuperf/trace/v1/trace.pb.h"
#include "report.h"
#include "tables/arrow.h"
#include "tables/trace.h"

namespace {

namespace tables = gpuperf::tables;
namespace v1 = gpuperf::trace::v1;

constexpr uint64_t kLeastKernels = 3'000'000;
constexpr int kRounds = 5;

uint64_t KernelsOf(const v1::TraceFile& trace) {
  uint64_t kernels = 0;
  for (const v1::Chunk& chunk : trace.chunks()) {
    for (const v1::KernelBatch& batch : chunk.body().kernel_batches()) kernels += batch.gap_ns_size();
  }
  return kernels;
}

// How far the trace reaches in time and in correlation ids: what a repetition is moved by.
struct Stride {
  uint64_t ns = 0;
  uint64_t correlation = 0;
};

Stride StrideOf(const v1::TraceFile& trace) {
  Stride stride;
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (const v1::Chunk& chunk : trace.chunks()) {
    first = std::min(first, chunk.header().first_host_ns());
    last = std::max(last, chunk.header().last_host_ns());
    for (const v1::CallBatch& batch : chunk.body().call_batches()) {
      uint64_t correlation = batch.base_correlation();
      for (const int64_t delta : batch.correlation_delta()) {
        correlation += static_cast<uint64_t>(delta);
        stride.correlation = std::max(stride.correlation, correlation + 1);
      }
    }
  }
  stride.ns = last - first;
  return stride;
}

void Move(const Stride& stride, uint64_t times, v1::ChunkBody* body) {
  const auto move_device = [&](auto* batches) {
    for (auto& batch : *batches) {
      batch.set_base_device_ns(batch.base_device_ns() + times * stride.ns);
      batch.set_base_correlation(batch.base_correlation() + times * stride.correlation);
    }
  };
  move_device(body->mutable_kernel_batches());
  move_device(body->mutable_copy_batches());
  move_device(body->mutable_memset_batches());
  for (v1::CallBatch& batch : *body->mutable_call_batches()) {
    batch.set_base_host_ns(batch.base_host_ns() + times * stride.ns);
    batch.set_base_correlation(batch.base_correlation() + times * stride.correlation);
  }
  for (v1::ClockPair& pair : *body->mutable_clock_pairs()) {
    pair.set_host_ns(pair.host_ns() + times * stride.ns);
    pair.set_device_ns(pair.device_ns() + times * stride.ns);
  }
  body->clear_open_calls();
  body->clear_open_annotations();
  body->clear_steps();
}

// Appends one field of TraceFile, as the writer does.
template <class Set>
void Append(std::string* out, const Set& set) {
  v1::TraceFile part;
  set(&part);
  part.AppendToString(out);
}

std::string Repeated(const v1::TraceFile& trace, uint64_t repetitions) {
  const Stride stride = StrideOf(trace);
  std::string bytes;
  Append(&bytes, [&](v1::TraceFile* part) { part->set_magic(trace.magic()); });
  Append(&bytes, [&](v1::TraceFile* part) { *part->mutable_header() = trace.header(); });
  v1::TraceIndex index;
  for (uint64_t times = 0; times < repetitions; ++times) {
    for (const v1::Chunk& original : trace.chunks()) {
      v1::Chunk chunk = original;
      Move(stride, times, chunk.mutable_body());
      const std::string body = chunk.body().SerializeAsString();
      v1::ChunkHeader* header = chunk.mutable_header();
      header->set_sequence(static_cast<uint64_t>(index.entries_size()));
      header->set_body_size(static_cast<uint32_t>(body.size()));
      header->set_body_crc32c(gpuperf::base::Crc32c(body.data(), body.size()));
      header->set_first_host_ns(header->first_host_ns() + times * stride.ns);
      header->set_last_host_ns(header->last_host_ns() + times * stride.ns);
      v1::IndexEntry* entry = index.add_entries();
      entry->set_offset(bytes.size());
      entry->set_first_host_ns(header->first_host_ns());
      entry->set_last_host_ns(header->last_host_ns());
      entry->set_event_count(header->event_count());
      entry->set_dictionary_checkpoint(header->dictionary_checkpoint());
      Append(&bytes, [&](v1::TraceFile* part) { part->add_chunks()->Swap(&chunk); });
    }
  }
  const uint64_t offset = bytes.size();
  Append(&bytes, [&](v1::TraceFile* part) { *part->mutable_index() = index; });
  Append(&bytes, [&](v1::TraceFile* part) { part->set_index_offset(offset); });
  return bytes;
}

// Reads the table and walks its batches; the kernels that have a launch.
uint64_t ReadKernels(const std::string& path) {
  auto trace = tables::Trace::Open(path);
  if (!trace.ok()) return 0;
  auto table = (*trace)->Load("kernels", {}, nullptr);
  if (!table.ok()) return 0;
  uint64_t joined = 0;
  for (const tables::Column& column : (*table)->columns) {
    if (column.name == "call_enter_host_ns") joined = (*table)->rows - column.nulls;
  }
  ArrowArrayStream stream;
  tables::ExportStream(*table, &stream);
  uint64_t exported = 0;
  while (true) {
    ArrowArray batch;
    if (stream.get_next(&stream, &batch) != 0 || batch.release == nullptr) break;
    exported += static_cast<uint64_t>(batch.length);
    batch.release(&batch);
  }
  stream.release(&stream);
  return std::min(joined, exported);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: reader_bench TRACE\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::string recorded((std::istreambuf_iterator<char>(file)), {});
  v1::TraceFile trace;
  const bool parsed = trace.ParseFromString(recorded);
  const uint64_t kernels_once = parsed ? KernelsOf(trace) : 0;
  if (kernels_once == 0) {
    std::fprintf(stderr, "reader_bench: %s: no whole trace with kernels\n", argv[1]);
    return 1;
  }
  const std::string path = std::string(argv[1]) + ".repeated-" + std::to_string(getpid());
  const std::string bytes = Repeated(trace, kLeastKernels / kernels_once + 1);
  std::ofstream(path, std::ios::binary) << bytes;

  std::vector<uint64_t> rounds;
  uint64_t kernels = 0;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t begin = gpuperf::base::ThreadCpuNs();
    kernels = ReadKernels(path);
    rounds.push_back(gpuperf::base::ThreadCpuNs() - begin);
  }
  unlink(path.c_str());
  if (kernels < kLeastKernels) {
    std::fprintf(stderr, "reader_bench: only %lu kernels have a launch\n", static_cast<unsigned long>(kernels));
    return 1;
  }
  const auto median = static_cast<double>(gpuperf::benchmarks::Percentile(rounds, 0.5));
  gpuperf::benchmarks::Print("reader.kernels_per_second", static_cast<double>(kernels) * 1e9 / median, "1/s", "higher");
  gpuperf::benchmarks::Print("reader.bytes_per_second", static_cast<double>(bytes.size()) * 1e9 / median, "B/s",
                             "higher");
  gpuperf::benchmarks::Print("reader.kernels", static_cast<double>(kernels), "kernels", "higher");
  return 0;
}
