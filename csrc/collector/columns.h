// Columns in the form in which the trace stores them: packed varints, built value by value, so that cutting a chunk is
// a copy and nothing is kept twice.
//
//   varint:  7 bits a byte, least significant first, high bit set on all bytes but the last
//   zig-zag: 0, -1, 1, -2, … → 0, 1, 2, 3, …
//
// Collector thread only.
#ifndef GPUPERF_COLLECTOR_COLUMNS_H_
#define GPUPERF_COLLECTOR_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace gpuperf::collector {

class Column {
 public:
  void Append(uint64_t value) {
    char bytes[10];
    size_t size = 0;
    while (value >= 0x80) {
      bytes[size++] = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes[size++] = static_cast<char>(value);
    bytes_.append(bytes, size);
  }
  void AppendSigned(int64_t value) { Append((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63)); }
  const std::string& bytes() const { return bytes_; }
  void Clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

// A column that stays empty as long as all its values are 0.
class OptionalColumn {
 public:
  // `row`: number of rows before this one.
  void Append(size_t row, uint64_t value) {
    if (value == 0 && column_.bytes().empty()) return;
    if (column_.bytes().empty()) zeros_ = row;
    column_.Append(value);
  }
  // The packed column, "" if all values were 0.
  std::string Bytes() const {
    if (column_.bytes().empty()) return "";
    return std::string(zeros_, '\0') + column_.bytes();
  }
  size_t size() const { return column_.bytes().size(); }
  void Clear() {
    column_.Clear();
    zeros_ = 0;
  }

 private:
  Column column_;
  size_t zeros_ = 0;  // rows before the first value that is not 0
};

}  // namespace gpuperf::collector

#endif  // GPUPERF_COLLECTOR_COLUMNS_H_
