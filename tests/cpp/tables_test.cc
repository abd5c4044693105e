// Tables and their Arrow export in C++ (what they say is tested in Python, against a slow recomputation): lifetimes,
// release callbacks, moved children, batches.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "tables/arrow.h"
#include "tables/call_index.h"
#include "tables/rows.h"
#include "tables/table.h"
#include "tables/trace.h"

namespace gpuperf::tables {
namespace {

constexpr char kGolden[] = GPUPERF_TEST_DATA_DIR "/golden/format1.gpuperf";

std::shared_ptr<const Table> SomeTable(size_t rows) {
  TableBuilder table("some", rows);
  table.Add<int64_t>("number", [](size_t i) { return static_cast<int64_t>(i) - 2; });
  table.AddOrNull<uint32_t>(
      "odd", [](size_t i) { return i % 2 == 0 ? std::nullopt : std::optional<uint32_t>(static_cast<uint32_t>(i)); });
  table.Add<bool>("third", [](size_t i) { return i % 3 == 0; });
  table.AddText(
      "text", [](size_t i) { return i % 5 == 0 ? std::nullopt : std::optional<uint64_t>(i % 4); },
      [](uint64_t key) { return key == 3 ? std::string("1") : std::to_string(key); });  // 1 and 3: the same text
  return table.Finish();
}

TEST_CASE("a table has values, nulls, and texts once each") {
  const auto table = SomeTable(10);
  REQUIRE(table->columns.size() == 4);
  const Column& odd = table->columns[1];
  CHECK(odd.nulls == 5);
  CHECK(!odd.IsValid(4));
  CHECK(odd.IsValid(5));
  CHECK(odd.values<uint32_t>()[5] == 5);
  CHECK(table->columns[0].validity.empty());
  const Column& text = table->columns[3];
  REQUIRE(text.names.size() == 3);
  CHECK(text.names[0] == "1");
  CHECK(text.values<int32_t>()[1] == text.values<int32_t>()[3]);
  CHECK(text.nulls == 2);
}

TEST_CASE("exported batches are the table's memory and outlive everything else") {
  const size_t rows = kBatchRows + 11;
  std::weak_ptr<const Table> alive;
  std::vector<ArrowArray> batches;
  {
    auto table = SomeTable(rows);
    alive = table;
    const int64_t* numbers = table->columns[0].values<int64_t>();
    ArrowArrayStream stream;
    ExportStream(std::move(table), &stream);
    ArrowArray batch;
    while (stream.get_next(&stream, &batch) == 0 && batch.release != nullptr) batches.push_back(batch);
    CHECK(stream.get_last_error(&stream) == nullptr);
    stream.release(&stream);
    CHECK(stream.release == nullptr);
    REQUIRE(batches.size() == 2);
    CHECK(batches[1].children[0]->buffers[1] == numbers + kBatchRows);
  }
  CHECK(!alive.expired());
  const ArrowArray& second = batches[1];
  CHECK(second.length == 11);
  REQUIRE(second.n_children == 4);
  CHECK(static_cast<const int64_t*>(second.children[0]->buffers[1])[10] == static_cast<int64_t>(rows) - 3);
  const auto* valid = static_cast<const uint8_t*>(second.children[1]->buffers[0]);
  const auto* bits = static_cast<const uint8_t*>(second.children[2]->buffers[1]);
  for (size_t i = 0; i < 11; ++i) {
    CHECK((valid[i / 8] >> (i % 8) & 1) == (kBatchRows + i) % 2);
    CHECK((bits[i / 8] >> (i % 8) & 1) == ((kBatchRows + i) % 3 == 0));
  }
  REQUIRE(second.children[3]->dictionary != nullptr);
  CHECK(second.children[3]->dictionary->length == 3);
  CHECK(second.children[0]->dictionary == nullptr);

  // A consumer may move a child out, and let it go last, on another thread.
  ArrowArray moved = *batches[0].children[3];
  batches[0].children[3]->release = nullptr;
  for (ArrowArray& batch : batches) batch.release(&batch);
  CHECK(batches[0].release == nullptr);
  CHECK(!alive.expired());
  const auto* offsets = static_cast<const int32_t*>(moved.dictionary->buffers[1]);
  const auto* bytes = static_cast<const char*>(moved.dictionary->buffers[2]);
  CHECK(std::string(bytes + offsets[0], bytes + offsets[1]) == "1");
  std::thread([&] { moved.release(&moved); }).join();
  CHECK(alive.expired());
}

TEST_CASE("the schema says types, names and what may be null") {
  ArrowSchema schema;
  ExportSchema(*SomeTable(3), &schema);
  CHECK(std::string(schema.format) == "+s");
  REQUIRE(schema.n_children == 4);
  const std::vector<std::string> formats = {"l", "I", "b", "i"};
  for (int i = 0; i < 4; ++i) CHECK(schema.children[i]->format == formats[static_cast<size_t>(i)]);
  CHECK(std::string(schema.children[1]->name) == "odd");
  CHECK((schema.children[0]->flags & ARROW_FLAG_NULLABLE) == 0);
  CHECK((schema.children[1]->flags & ARROW_FLAG_NULLABLE) != 0);
  CHECK(std::string(schema.children[3]->dictionary->format) == "u");
  ArrowSchema moved = *schema.children[1];
  schema.children[1]->release = nullptr;
  schema.release(&schema);
  CHECK(std::string(moved.name) == "odd");
  moved.release(&moved);
}

TEST_CASE("a table without rows is one empty batch") {
  ArrowArrayStream stream;
  ExportStream(SomeTable(0), &stream);
  ArrowArray batch;
  REQUIRE(stream.get_next(&stream, &batch) == 0);
  REQUIRE(batch.release != nullptr);
  CHECK(batch.length == 0);
  CHECK(batch.children[3]->dictionary->length == 1);
  batch.release(&batch);
  REQUIRE(stream.get_next(&stream, &batch) == 0);
  CHECK(batch.release == nullptr);
  stream.release(&stream);
}

TEST_CASE("places are found by correlation id, and the first one stays") {
  PlaceByCorrelation places;
  CHECK(places.Find(7) == PlaceByCorrelation::kNone);
  for (uint32_t i = 0; i < 1000; ++i) CHECK(places.Add(i * 0x9E3779B97F4A7C15U, i));
  CHECK(!places.Add(0, 99));
  for (uint32_t i = 0; i < 1000; ++i) CHECK(places.Find(i * 0x9E3779B97F4A7C15U) == i);
  CHECK(places.Find(1) == PlaceByCorrelation::kNone);
}

TEST_CASE("rows are where they were put") {
  Rows<int> rows;
  for (int i = 0; i < 10'000; ++i) rows.Add(i);
  REQUIRE(rows.size() == 10'000);
  for (size_t i = 0; i < rows.size(); ++i) REQUIRE(rows[i] == static_cast<int>(i));
}

TEST_CASE("every table of a trace is read, by several threads at once") {
  auto trace = Trace::Open(kGolden);
  REQUIRE(trace.ok());
  CHECK((*trace)->facts().chunks == 2U);
  std::vector<std::thread> threads;
  std::atomic<size_t> kernels{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (const char* name : {"kernels", "calls", "steps"}) {
        const auto table = (*trace)->Load(name, {}, nullptr);
        if (table.ok() && std::strcmp(name, "kernels") == 0) kernels += (*table)->rows;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(kernels == 4 * 3U);
  CHECK(absl::IsNotFound((*trace)->Load("nothing", {}, nullptr).status()));
  CHECK(absl::IsCancelled((*trace)->Load("kernels", {}, [](uint64_t) { return false; }).status()));
  CHECK((*trace)->Load("kernels", {}, nullptr).ok());  // and again
}

TEST_CASE("a scan that was stopped is made again") {
  auto trace = Trace::Open(kGolden);
  REQUIRE(trace.ok());
  CHECK(absl::IsCancelled((*trace)->Completeness([](uint64_t) { return false; }).status()));
  const auto told = (*trace)->Completeness(nullptr);
  REQUIRE(told.ok());
  CHECK(told->lost == 3);
  CHECK(!told->is_complete());
}

}  // namespace
}  // namespace gpuperf::tables
