#include "analysis/exact_distribution.h"

#include <algorithm>
#include <limits>

#include "analysis/arithmetic.h"

namespace gpuperf::analysis {

void ExactDistribution::Fold() {
  if (waiting_.empty()) return;
  std::sort(waiting_.begin(), waiting_.end());
  std::vector<Pair> merged;
  merged.reserve(pairs_.size() + waiting_.size() / 4);
  const auto append = [&](int64_t value, uint64_t count) {
    if (!merged.empty() && merged.back().value == value) {
      merged.back().count += count;
    } else {
      merged.push_back({value, count});
    }
  };
  size_t next = 0;
  for (const int64_t value : waiting_) {
    for (; next < pairs_.size() && pairs_[next].value <= value; ++next) append(pairs_[next].value, pairs_[next].count);
    append(value, 1);
  }
  for (; next < pairs_.size(); ++next) append(pairs_[next].value, pairs_[next].count);
  pairs_ = std::move(merged);
  waiting_.clear();
}

void ExactDistribution::Add(const ExactDistribution& other) {
  waiting_.insert(waiting_.end(), other.waiting_.begin(), other.waiting_.end());
  Fold();
  std::vector<Pair> merged;
  merged.reserve(pairs_.size() + other.pairs_.size());
  std::merge(pairs_.begin(), pairs_.end(), other.pairs_.begin(), other.pairs_.end(), std::back_inserter(merged),
             [](const Pair& a, const Pair& b) { return a.value < b.value; });
  pairs_.clear();
  for (const Pair& pair : merged) {
    if (!pairs_.empty() && pairs_.back().value == pair.value) {
      pairs_.back().count += pair.count;
    } else {
      pairs_.push_back(pair);
    }
  }
}

uint64_t ExactDistribution::count() const {
  uint64_t sum = waiting_.size();
  for (const Pair& pair : pairs_) sum += pair.count;
  return sum;
}

int64_t ExactDistribution::total() const {
  __extension__ __int128 sum = 0;
  for (const Pair& pair : pairs_) {
    __extension__ const __int128 part = static_cast<__int128>(pair.value) * pair.count;
    sum += part;
  }
  for (const int64_t value : waiting_) sum += value;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return sum > kMost ? kMost : static_cast<int64_t>(sum);
}

int64_t ExactDistribution::min() {
  Fold();
  return pairs_.empty() ? 0 : pairs_.front().value;
}

int64_t ExactDistribution::max() {
  Fold();
  return pairs_.empty() ? 0 : pairs_.back().value;
}

int64_t ExactDistribution::Percentile(uint32_t permille) {
  Fold();
  const uint64_t values = count();
  // ceil(values × permille / 1000), at least 1, without a product that could wrap.
  const uint64_t rank = std::max<uint64_t>(1, values / 1000 * permille + (values % 1000 * permille + 999) / 1000);
  uint64_t seen = 0;
  for (const Pair& pair : pairs_) {
    seen += pair.count;
    if (seen >= rank) return pair.value;
  }
  return 0;
}

}  // namespace gpuperf::analysis
