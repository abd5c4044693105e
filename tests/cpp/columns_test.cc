// Columns against Protobuf's own packed encoding of the same values.
#include "collector/columns.h"

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "catch.h"
#include "gpuperf/trace/v1/events.pb.h"

using gpuperf::collector::Column;
using gpuperf::collector::OptionalColumn;
namespace v1 = gpuperf::trace::v1;

namespace {

// The payload of the only field of a message: what follows its tag (of one byte) and its length.
std::string Payload(const v1::KernelBatch& batch) {
  const std::string bytes = batch.SerializeAsString();
  size_t at = 1;
  while (at < bytes.size() && (bytes[at] & 0x80) != 0) ++at;
  return bytes.empty() ? "" : bytes.substr(at + 1);
}

// Values at every border between lengths of a varint, and random ones of every length.
std::vector<uint64_t> Values() {
  std::vector<uint64_t> values = {0};
  std::mt19937_64 random(7);
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    for (const uint64_t value : {power - 1, power, power + 1, random() >> bit}) values.push_back(value);
  }
  values.push_back(std::numeric_limits<uint64_t>::max());
  return values;
}

}  // namespace

TEST_CASE("unsigned columns are what Protobuf would write") {
  Column column;
  v1::KernelBatch batch;
  for (const uint64_t value : Values()) {
    column.Append(value);
    batch.add_duration_ns(value);
    REQUIRE(column.bytes() == Payload(batch));
  }
  column.Clear();
  CHECK(column.bytes().empty());
}

TEST_CASE("signed columns are what Protobuf would write") {
  Column column;
  v1::KernelBatch batch;
  for (const uint64_t value : Values()) {
    for (const uint64_t each : {value, uint64_t{0} - value}) {
      column.AppendSigned(static_cast<int64_t>(each));
      batch.add_gap_ns(static_cast<int64_t>(each));
      REQUIRE(column.bytes() == Payload(batch));
    }
  }
}

TEST_CASE("an optional column is left out while all is zero, and whole from the first value on") {
  for (const size_t zeros : {size_t{0}, size_t{1}, size_t{300}}) {
    OptionalColumn column;
    v1::KernelBatch batch;
    size_t row = 0;
    for (; row < zeros; ++row) {
      column.Append(row, 0);
      batch.add_graph_id(0);
    }
    CHECK(column.Bytes().empty());
    CHECK(column.size() == 0);
    for (const uint64_t value : {uint64_t{200}, uint64_t{0}, uint64_t{7}, uint64_t{0}}) {
      column.Append(row++, value);
      batch.add_graph_id(static_cast<uint32_t>(value));
      REQUIRE(column.Bytes() == Payload(batch));
    }
    column.Clear();
    column.Append(0, 0);
    CHECK(column.Bytes().empty());
    column.Append(1, 5);
    CHECK(column.Bytes() == std::string("\0\5", 2));
  }
}
