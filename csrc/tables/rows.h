// Rows that are gathered while a trace is read: grows without moving what is there. One thread.
#ifndef GPUPERF_TABLES_ROWS_H_
#define GPUPERF_TABLES_ROWS_H_

#include <cstddef>
#include <vector>

namespace gpuperf::tables {

template <class Row>
class Rows {
 public:
  void Add(const Row& row) {
    if (size_ == blocks_.size() << kBlockBits) blocks_.emplace_back().reserve(kBlock);
    blocks_.back().push_back(row);
    ++size_;
  }
  size_t size() const { return size_; }
  const Row& operator[](size_t at) const { return blocks_[at >> kBlockBits][at & (kBlock - 1)]; }

 private:
  static constexpr size_t kBlockBits = 12;
  static constexpr size_t kBlock = size_t{1} << kBlockBits;

  std::vector<std::vector<Row>> blocks_;
  size_t size_ = 0;
};

}  // namespace gpuperf::tables

#endif  // GPUPERF_TABLES_ROWS_H_
