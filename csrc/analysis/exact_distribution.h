// Durations whose every percentile can be told exactly.
//
// Keeps (value, count) pairs, not values: GPU clocks tick in steps of 32 ns or so, so millions of kernels have some
// thousands of distinct durations. New values wait unsorted and are folded in when they outnumber the pairs: amortised
// O(log n) a value, at most 24 bytes per distinct value. One thread.
#ifndef GPUPERF_ANALYSIS_EXACT_DISTRIBUTION_H_
#define GPUPERF_ANALYSIS_EXACT_DISTRIBUTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuperf::analysis {

class ExactDistribution {
 public:
  void Add(int64_t value) {
    waiting_.push_back(value);
    if (waiting_.size() >= kLeastFold && waiting_.size() >= pairs_.size()) Fold();
  }
  void Add(const ExactDistribution& other);

  uint64_t count() const;
  int64_t total() const;  // saturated
  // Of an empty distribution 0.
  int64_t min();
  int64_t max();
  // Nearest rank: the smallest value such that at least `permille` / 1000 of all values are not greater.
  int64_t Percentile(uint32_t permille);

 private:
  struct Pair {
    int64_t value;
    uint64_t count;
  };
  static constexpr size_t kLeastFold = 1024;

  void Fold();

  std::vector<Pair> pairs_;  // by value
  std::vector<int64_t> waiting_;
};

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_EXACT_DISTRIBUTION_H_
