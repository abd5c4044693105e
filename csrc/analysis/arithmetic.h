// Sums that a hostile trace cannot make wrap around: they stay at the greatest value. Pure.
#ifndef GPUPERF_ANALYSIS_ARITHMETIC_H_
#define GPUPERF_ANALYSIS_ARITHMETIC_H_

#include <cstdint>
#include <limits>

namespace gpuperf::analysis {

template <class Integer>
Integer AddSaturated(Integer a, Integer b) {
  Integer sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<Integer>::max() : sum;
}

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_ARITHMETIC_H_
