#include "tables/table.h"

#include <sys/mman.h>

#include <cstdint>

#include "base/utf8.h"

namespace gpuperf::tables {

size_t WidthOf(Type type) {
  switch (type) {
    case Type::kInt64:
    case Type::kUint64:
    case Type::kDouble:
      return 8;
    case Type::kInt32:
    case Type::kUint32:
    case Type::kText:
      return 4;
    case Type::kBool:
      break;
  }
  return 1;
}

namespace {

// A third of the time of building a large table is page faults, and on a virtual machine more. Where the kernel has no
// huge pages to give nothing changes.
void PreferHugePages(void* data, size_t bytes) {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto begin = (reinterpret_cast<uintptr_t>(data) + kHugePage - 1) & ~(kHugePage - 1);
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) & ~(kHugePage - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

int32_t NameCoder::Add(const std::string& text) {
  const auto [place, is_new] = by_text_.try_emplace(text, static_cast<int32_t>(names_.size()));
  if (is_new) {
    names_.bytes += base::ValidUtf8(text);
    names_.offsets.push_back(static_cast<int64_t>(names_.bytes.size()));
  }
  return place->second;
}

Column& TableBuilder::NewColumn(const char* name, Type type, bool nullable) {
  Column& column = table_->columns.emplace_back();
  column.name = name;
  column.type = type;
  column.nullable = nullable;
  const size_t words = (table_->rows * WidthOf(type) + 7) / 8;
  column.data.reset(new uint64_t[words]);  // every value is written: not cleared
  PreferHugePages(column.data.get(), words * 8);
  return column;
}

void TableBuilder::SetNull(Column* column, size_t row) {
  if (column->validity.empty()) column->validity.assign((table_->rows + 7) / 8, 0xFF);
  column->validity[row / 8] &= static_cast<uint8_t>(~(1U << (row % 8)));
  ++column->nulls;
}

}  // namespace gpuperf::tables
