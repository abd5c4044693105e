// Tables in memory: named columns of one type each, with nulls, as Arrow and NumPy want them.
//
// Built once by a TableBuilder, then constant: a shared_ptr<const Table> may be read from any thread, and exported
// arrays keep it alive. Nothing here knows Python or Arrow's interface (tables/arrow.h).
#ifndef GPUPERF_TABLES_TABLE_H_
#define GPUPERF_TABLES_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace gpuperf::tables {

enum class Type { kInt64, kUint64, kInt32, kUint32, kDouble, kBool, kText };

// The texts of a column: the row's code is its place here. Valid UTF-8.
struct Names {
  std::string bytes;
  std::vector<int64_t> offsets = {0};  // size() + 1 of them

  size_t size() const { return offsets.size() - 1; }
  absl::string_view operator[](size_t code) const {
    return absl::string_view(bytes).substr(static_cast<size_t>(offsets[code]),
                                           static_cast<size_t>(offsets[code + 1] - offsets[code]));
  }
};

struct Column {
  std::string name;
  Type type = Type::kInt64;
  bool nullable = false;             // a property of the kind of table, not of the rows that are there
  std::unique_ptr<uint64_t[]> data;  // one value a row: a byte for kBool, an int32_t code for kText; 0 where null
  std::vector<uint8_t> validity;     // a bit a row, the lowest first, 1 where there is a value; empty: no nulls
  size_t nulls = 0;
  Names names;  // kText

  bool IsValid(size_t row) const { return validity.empty() || (validity[row / 8] >> (row % 8) & 1) != 0; }
  template <class T>
  const T* values() const {
    return reinterpret_cast<const T*>(data.get());
  }
};

size_t WidthOf(Type type);

struct Table {
  std::string name;
  size_t rows = 0;
  std::vector<Column> columns;
};

// Texts with their codes, in the order in which they come.
class NameCoder {
 public:
  // `key` stands for the text that `make` returns, which is asked for once a key; equal texts have one code.
  template <class Make>
  int32_t Code(uint64_t key, const Make& make) {
    if (key == last_key_ && last_code_ >= 0) return last_code_;
    const auto [place, is_new] = by_key_.try_emplace(key, 0);
    if (is_new) place->second = Add(make());
    last_key_ = key;
    last_code_ = place->second;
    return last_code_;
  }
  Names Take() { return std::move(names_); }

 private:
  int32_t Add(const std::string& text);

  Names names_;
  absl::flat_hash_map<uint64_t, int32_t> by_key_;
  absl::flat_hash_map<std::string, int32_t> by_text_;
  uint64_t last_key_ = 0;
  int32_t last_code_ = -1;
};

// Makes a Table column by column; each `get` is called with every row in turn.
class TableBuilder {
 public:
  TableBuilder(std::string name, size_t rows) : table_(std::make_shared<Table>()) {
    table_->name = std::move(name);
    table_->rows = rows;
  }

  // get(row) -> T
  template <class T, class Get>
  TableBuilder& Add(const char* name, const Get& get) {
    Column& column = NewColumn(name, TypeOf<T>(), false);
    T* data = Values<T>(&column);
    for (size_t row = 0; row < table_->rows; ++row) data[row] = get(row);
    return *this;
  }

  // get(row) -> std::optional<T>
  template <class T, class Get>
  TableBuilder& AddOrNull(const char* name, const Get& get) {
    Column& column = NewColumn(name, TypeOf<T>(), true);
    T* data = Values<T>(&column);
    for (size_t row = 0; row < table_->rows; ++row) {
      const std::optional<T> value = get(row);
      data[row] = value.value_or(T{});
      if (!value) SetNull(&column, row);
    }
    return *this;
  }

  // key(row) -> std::optional<uint64_t>, or uint64_t where there always is a text; text(key) -> std::string, for each
  // key once.
  template <class Key, class Text>
  TableBuilder& AddText(const char* name, const Key& key, const Text& text) {
    constexpr bool kNullable = !std::is_same_v<decltype(key(size_t{0})), uint64_t>;
    Column& column = NewColumn(name, Type::kText, kNullable);
    auto* data = Values<int32_t>(&column);
    NameCoder coder;
    for (size_t row = 0; row < table_->rows; ++row) {
      const std::optional<uint64_t> of_row = key(row);
      data[row] = of_row ? coder.Code(*of_row, [&] { return text(*of_row); }) : 0;
      if (!of_row) SetNull(&column, row);
    }
    column.names = coder.Take();
    return *this;
  }

  // name(row) -> const std::string*, nullptr where it is not known and "" where it is not set: null both; `text` makes
  // it one for people.
  template <class Name, class Text>
  TableBuilder& AddName(const char* column, const Name& name, const Text& text) {
    const auto key = [&](size_t row) -> std::optional<uint64_t> {
      const std::string* of_row = name(row);
      return of_row == nullptr || of_row->empty() ? std::nullopt
                                                  : std::optional<uint64_t>(reinterpret_cast<uintptr_t>(of_row));
    };
    return AddText(column, key, [&](uint64_t of_row) {
      return text(*reinterpret_cast<const std::string*>(static_cast<uintptr_t>(of_row)));
    });
  }
  template <class Name>
  TableBuilder& AddName(const char* column, const Name& name) {
    return AddName(column, name, [](const std::string& text) { return text; });
  }

  // What depends on a small number of the row alone: of_code(code) -> std::optional<T>, asked once for each code.
  template <class T, class OfCode>
  TableBuilder& AddCoded(const char* name, const std::vector<uint32_t>& codes, size_t code_count,
                         const OfCode& of_code) {
    std::vector<T> values(code_count);
    std::vector<bool> is_null(code_count);
    for (size_t code = 0; code < code_count; ++code) {
      const std::optional<T> value = of_code(static_cast<uint32_t>(code));
      values[code] = value.value_or(T{});
      is_null[code] = !value;
    }
    Column& column = NewColumn(name, TypeOf<T>(), true);
    FillCoded(codes, values, is_null, &column);
    return *this;
  }
  // name(code) and text as AddName's.
  template <class Name, class Text>
  TableBuilder& AddCodedName(const char* name, const std::vector<uint32_t>& codes, size_t code_count,
                             const Name& of_code, const Text& text) {
    std::vector<int32_t> values(code_count);
    std::vector<bool> is_null(code_count);
    NameCoder coder;
    for (size_t code = 0; code < code_count; ++code) {
      const std::string* known = of_code(static_cast<uint32_t>(code));
      is_null[code] = known == nullptr || known->empty();
      if (is_null[code]) continue;
      values[code] = coder.Code(reinterpret_cast<uintptr_t>(known), [&] { return text(*known); });
    }
    Column& column = NewColumn(name, Type::kText, true);
    FillCoded(codes, values, is_null, &column);
    column.names = coder.Take();
    return *this;
  }
  template <class Name>
  TableBuilder& AddCodedName(const char* name, const std::vector<uint32_t>& codes, size_t code_count,
                             const Name& of_code) {
    return AddCodedName(name, codes, code_count, of_code, [](const std::string& text) { return text; });
  }

  std::shared_ptr<const Table> Finish() { return std::move(table_); }

 private:
  template <class T>
  static constexpr Type TypeOf() {
    if constexpr (std::is_same_v<T, int64_t>) return Type::kInt64;
    if constexpr (std::is_same_v<T, uint64_t>) return Type::kUint64;
    if constexpr (std::is_same_v<T, int32_t>) return Type::kInt32;
    if constexpr (std::is_same_v<T, uint32_t>) return Type::kUint32;
    if constexpr (std::is_same_v<T, double>) return Type::kDouble;
    return Type::kBool;
  }
  template <class T>
  static T* Values(Column* column) {
    return reinterpret_cast<T*>(column->data.get());
  }
  template <class T>
  void FillCoded(const std::vector<uint32_t>& codes, const std::vector<T>& values, const std::vector<bool>& is_null,
                 Column* column) {
    T* data = Values<T>(column);
    for (size_t row = 0; row < table_->rows; ++row) data[row] = values[codes[row]];
    if (std::find(is_null.begin(), is_null.end(), true) == is_null.end()) return;
    for (size_t row = 0; row < table_->rows; ++row) {
      if (is_null[codes[row]]) SetNull(column, row);
    }
  }
  Column& NewColumn(const char* name, Type type, bool nullable);
  void SetNull(Column* column, size_t row);

  std::shared_ptr<Table> table_;
};

}  // namespace gpuperf::tables

#endif  // GPUPERF_TABLES_TABLE_H_
