// Correlation ids: from CUPTI's wrapping 32 bits to 64, and whether a device record's call has been seen.
//
// Ids are handed out one after the other by the whole process, so a bit for each of the last four million is enough to
// answer "was there a call with this id?" in a few ns. Collector thread only.
#ifndef GPUPERF_COLLECTOR_JOIN_TRACKER_H_
#define GPUPERF_COLLECTOR_JOIN_TRACKER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuperf::collector {

class JoinTracker {
 public:
  // The 64-bit id whose low half is `id` and which lies nearest to the newest one so far.
  uint64_t Unwrap(uint32_t id) {
    if (!seeded_) {
      seeded_ = true;
      newest_ = id;
      return id;
    }
    const auto distance = static_cast<int32_t>(id - static_cast<uint32_t>(newest_));
    if (distance < 0 && newest_ < static_cast<uint64_t>(-int64_t{distance})) return id;  // before the first wrap
    const uint64_t unwrapped = newest_ + static_cast<uint64_t>(int64_t{distance});
    newest_ = std::max(newest_, unwrapped);
    return unwrapped;
  }

  void AddCall(uint64_t correlation) {
    if (correlation >= end_) {
      Advance(correlation + 1);
    } else if (end_ - correlation > kWindow) {
      return;
    }
    words_[Word(correlation)] |= Bit(correlation);
  }

  // A call that was entered when all calls were seen. Ids rise from enter to enter: nothing from the first of them on
  // can have gone unseen.
  void AddFirst(uint64_t correlation) { first_ = std::min(first_, correlation); }
  // What is above the newest id is from before the first wrap.
  bool IsBeforeFirst(uint64_t correlation) const { return correlation < first_ || correlation > newest_; }
  // A call that was lost is no call to be joined, but there was one with this id.
  void AddLostCall(uint64_t correlation) { last_lost_ = std::max(last_lost_, correlation); }
  bool IsBehindLastCall(uint64_t correlation) const { return correlation >= end_ && correlation > last_lost_; }

  // So many calls came since that nothing is known of this one any more.
  bool IsForgotten(uint64_t correlation) const { return correlation < end_ && end_ - correlation > kWindow; }

  bool HasCall(uint64_t correlation) const {
    if (correlation >= end_ || IsForgotten(correlation)) return false;
    return (words_[Word(correlation)] & Bit(correlation)) != 0;
  }

 private:
  static constexpr uint64_t kWindow = uint64_t{1} << 22;

  static size_t Word(uint64_t id) { return (id & (kWindow - 1)) / 64; }
  static uint64_t Bit(uint64_t id) { return uint64_t{1} << (id & 63); }

  // Makes [end_ - kWindow, end_) end at `end`, forgetting what falls out.
  void Advance(uint64_t end) {
    if (end - end_ >= kWindow) {
      std::fill(words_.begin(), words_.end(), 0);
    } else {
      for (uint64_t id = end_; id < end;) {
        if ((id & 63) == 0 && end - id >= 64) {
          words_[Word(id)] = 0;
          id += 64;
        } else {
          words_[Word(id)] &= ~Bit(id);
          ++id;
        }
      }
    }
    end_ = end;
  }

  bool seeded_ = false;
  uint64_t newest_ = 0;
  uint64_t first_ = UINT64_MAX;
  uint64_t last_lost_ = 0;
  uint64_t end_ = 0;
  std::vector<uint64_t> words_ = std::vector<uint64_t>(kWindow / 64);
};

}  // namespace gpuperf::collector

#endif  // GPUPERF_COLLECTOR_JOIN_TRACKER_H_
