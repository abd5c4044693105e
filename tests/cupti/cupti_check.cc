// Reads activity records with a given libcupti, without a driver: gpuperf's own loading and probing, CUPTI's own record
// walk, gpuperf's own collector and writer.
//
//   gpuperf-cupti-check LIBCUPTI RECORDS TRACE
//   gpuperf-cupti-check sizes:KIND=BYTES,… RECORDS TRACE    a walk by these sizes: from 13.2 on CUPTI's wants a driver
//
// RECORDS are raw records (make_records.cc), TRACE is what comes of them. Prints version and probed record sizes as
// JSON. Exit code: 0 done, 1 the library cannot be used (stderr says why), 2 usage.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "collector/collector.h"
#include "cupti/cupti_api.h"
#include "ring/buffer_pool.h"
#include "source/activity_source.h"
#include "trace/trace_writer.h"

namespace cupti = gpuperf::cupti;

namespace {

constexpr const char* kSizes = "sizes:";
std::map<uint32_t, uint32_t> g_sizes;

int NextRecord(uint8_t* buffer, size_t valid, void** record) {
  uint8_t* at = buffer;
  uint32_t kind = 0;
  if (*record != nullptr) {
    std::memcpy(&kind, *record, sizeof kind);
    at = static_cast<uint8_t*>(*record) + g_sizes.at(kind);
  }
  if (at >= buffer + valid) return cupti::kMaxLimitReached;
  std::memcpy(&kind, at, sizeof kind);
  if (g_sizes.count(kind) == 0) return cupti::kInvalidKind;
  *record = at;
  return cupti::kSuccess;
}

const cupti::Api* BySizes(const char* text) {
  static cupti::Api api;
  api.ActivityGetNextRecord = NextRecord;
  while (*text != '\0') {
    char* end = nullptr;
    const auto kind = static_cast<uint32_t>(std::strtoul(text, &end, 10));
    if (*end != '=' || kind >= api.record_bytes.size()) break;
    g_sizes[kind] = api.record_bytes[kind] = static_cast<uint32_t>(std::strtoul(end + 1, &end, 10));
    text = *end == ',' ? end + 1 : end;
  }
  return &api;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: gpuperf-cupti-check LIBCUPTI RECORDS TRACE\n");
    return 2;
  }
  std::string why;
  const bool by_sizes = std::strncmp(argv[1], kSizes, std::strlen(kSizes)) == 0;
  const cupti::Api* api = by_sizes ? BySizes(argv[1] + std::strlen(kSizes)) : cupti::Load(argv[1], &why);
  if (api == nullptr) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 1;
  }
  std::printf("{\"version\": %u, \"sizes\": {", api->version);
  const char* separator = "";
  for (const uint32_t kind : {cupti::kConcurrentKernelKind, cupti::kMemcpyKind, cupti::kPeerMemcpyKind,
                              cupti::kMemsetKind, cupti::kGraphTraceKind}) {
    std::printf("%s\"%u\": %u", separator, kind, api->record_bytes[kind]);
    separator = ", ";
  }
  std::printf("}}\n");

  std::ifstream file(argv[2], std::ios::binary);
  const std::string records{std::istreambuf_iterator<char>(file), {}};
  if (!gpuperf::ring::Pool().Open(size_t{1} << 20)) return 1;
  gpuperf::trace::WriterOptions options;
  options.output.path = argv[3];
  gpuperf::trace::TraceWriter writer(std::move(options));
  gpuperf::collector::Collector collector(*api, writer, {});
  uint8_t* buffer = nullptr;
  size_t size = 0;
  size_t max_records = 0;
  gpuperf::source::OnBufferRequested(&buffer, &size, &max_records);
  if (buffer == nullptr || size < records.size()) return 1;
  std::copy(records.begin(), records.end(), buffer);
  gpuperf::source::OnBufferCompleted(nullptr, 0, buffer, size, records.size());
  collector.Start();
  collector.Stop({});
  return 0;
}
