// libFuzzer: the reader must get through any bytes without a crash, a leak or undefined behaviour (`make fuzz`).
//
// An input is a whole file; or, behind a first byte that is odd (a file's is 7A), the body of a chunk, which gets a
// sound frame around it, so that the decoder behind the check sum is reached too. Seeds: tests/data/golden,
// tests/fuzz/seeds.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "analysis/dump.h"
#include "analysis/summarizer.h"
#include "base/crc32c.h"
#include "gpuperf/trace/v1/trace.pb.h"
#include "reader/trace_reader.h"
#include "tables/arrow.h"
#include "tables/trace.h"

namespace {

namespace reader = gpuperf::reader;
namespace v1 = gpuperf::trace::v1;

// A field of wire type 2: its tag, the length, the bytes.
void AppendField(std::string* out, uint8_t tag, const std::string& bytes) {
  out->push_back(static_cast<char>(tag));
  for (size_t rest = bytes.size();; rest >>= 7) {
    out->push_back(static_cast<char>(rest < 0x80 ? rest : (rest & 0x7f) | 0x80));
    if (rest < 0x80) break;
  }
  *out += bytes;
}

std::string FileAround(const std::string& body) {
  v1::FileHeader file_header;
  file_header.set_format_version(reader::kFormatVersion);
  file_header.set_trace_uuid("0123456789abcdef");
  v1::ChunkHeader header;
  header.set_sync_marker(std::string(reader::SyncMarker()));
  header.set_body_crc32c(gpuperf::base::Crc32c(body.data(), body.size()));
  header.set_body_size(static_cast<uint32_t>(body.size()));
  header.set_last_host_ns(1'000'000'000);
  header.set_dictionary_checkpoint(true);

  std::string chunk;
  AppendField(&chunk, 0x0a, header.SerializeAsString());
  AppendField(&chunk, 0x12, body);
  std::string file = "\x7a\x08GPUPERF1";
  AppendField(&file, 0x0a, file_header.SerializeAsString());
  AppendField(&file, 0x12, chunk);
  return file;
}

// Every table, whole and of a region that begins late, as a consumer of Arrow takes it.
void ReadTables(const std::string& path) {
  namespace tables = gpuperf::tables;
  auto trace = tables::Trace::Open(path);
  if (!trace.ok()) return;
  for (const char* name : {"kernels", "copies", "memsets", "calls", "launches", "syncs", "allocations", "steps",
                           "annotations", "marks", "counters", "losses", "outages", "clock_pairs"}) {
    for (const bool late : {false, true}) {
      tables::Filter filter;
      if (late) {
        using Point = gpuperf::analysis::TimePoint;
        filter.region.time = {Point{Point::Origin::kEnd, -1'000}, std::nullopt};
        filter.name = [](const std::string& text) { return text.size() % 2 == 0; };
      }
      const auto table = (*trace)->Load(name, filter, nullptr);
      if (!table.ok()) continue;
      ArrowArrayStream stream;
      tables::ExportStream(*table, &stream);
      ArrowSchema schema;
      if (stream.get_schema(&stream, &schema) == 0) schema.release(&schema);
      ArrowArray batch;
      while (stream.get_next(&stream, &batch) == 0 && batch.release != nullptr) batch.release(&batch);
      stream.release(&stream);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string file(reinterpret_cast<const char*>(data), size);
  if (data[0] % 2 == 1) file = FileAround(file.substr(1));

  const int descriptor = memfd_create("trace", MFD_CLOEXEC);
  if (descriptor < 0) std::abort();
  for (size_t done = 0; done < file.size();) {
    const ssize_t written = write(descriptor, file.data() + done, file.size() - done);
    if (written <= 0) std::abort();
    done += static_cast<size_t>(written);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  if (const auto trace = reader::TraceReader::Open(path); trace.ok()) trace->ListChunks();
  if (const auto summary = gpuperf::analysis::Summarize(path); summary.ok()) gpuperf::analysis::ToJson(*summary);
  gpuperf::analysis::DumpResult result;
  gpuperf::analysis::Dump(path, /*chunks_only=*/false, [](absl::string_view) { return true; }, &result).IgnoreError();
  ReadTables(path);
  close(descriptor);
  return 0;
}
