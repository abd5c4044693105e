// The trace's dictionaries: what repeats is stored once and named by a number (iid, from 1).
//
// A Table remembers every entry so that a checkpoint can write them all again; `written` tells which ones the file
// has. When tables grow past a bound they are emptied at a chunk's end (Restart) and numbering goes on, so memory stays
// bounded however many names a run makes, and no iid ever gets a second meaning. Collector thread only.
#ifndef GPUPERF_COLLECTOR_DICTIONARY_H_
#define GPUPERF_COLLECTOR_DICTIONARY_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpuperf::collector {

inline uint64_t HashWords(const uint64_t* words, size_t count) {
  uint64_t hash = 0x9E3779B97F4A7C15ULL;
  for (size_t i = 0; i < count; ++i) {
    hash = (hash ^ words[i]) * 0xD6E8FEB86659FD93ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

inline uint64_t HashBytes(std::string_view bytes) {
  uint64_t hash = 0x9E3779B97F4A7C15ULL ^ bytes.size();
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t size = bytes.size() < 8 ? bytes.size() : 8;
    std::memcpy(&word, bytes.data(), size);
    hash = (hash ^ word) * 0xD6E8FEB86659FD93ULL;
    hash ^= hash >> 32;
    bytes.remove_prefix(size);
  }
  return hash;
}

// Entries by content. `Entry` needs static Hash(view) and Equal(entry, view).
template <typename Entry, typename View, typename Traits>
class Table {
 public:
  // The entry's iid; adds it if it is new.
  uint32_t Intern(const View& view) {
    const uint64_t hash = Traits::Hash(view);
    if (slots_.empty() || (entries_.size() + 1) * 2 > slots_.size()) Grow();
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.entry == 0) {
        entries_.push_back(Traits::Make(view));
        slot = {tag, static_cast<uint32_t>(entries_.size())};
        return base_ + slot.entry;
      }
      if (slot.tag == tag && Traits::Equal(entries_[slot.entry - 1], view)) return base_ + slot.entry;
    }
  }

  const std::vector<Entry>& entries() const { return entries_; }
  uint32_t IidOf(size_t index) const { return base_ + static_cast<uint32_t>(index) + 1; }
  // Of an iid made since the last Restart.
  size_t IndexOf(uint32_t iid) const { return iid - base_ - 1; }
  const Entry& EntryOf(uint32_t iid) const { return entries_[IndexOf(iid)]; }

  size_t written() const { return written_; }
  void MarkWritten() { written_ = entries_.size(); }
  void MarkUnwritten() { written_ = 0; }

  void Restart() {
    base_ += static_cast<uint32_t>(entries_.size());
    entries_.clear();
    slots_.clear();
    written_ = 0;
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t entry = 0;  // index + 1; 0 = free
  };

  void Grow() {
    slots_.assign(slots_.empty() ? 256 : slots_.size() * 2, Slot{});
    for (size_t index = 0; index < entries_.size(); ++index) {
      const uint64_t hash = Traits::Hash(Traits::ViewOf(entries_[index]));
      size_t i = hash & (slots_.size() - 1);
      while (slots_[i].entry != 0) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(index) + 1};
    }
  }

  std::vector<Entry> entries_;
  std::vector<Slot> slots_;
  uint32_t base_ = 0;
  size_t written_ = 0;
};

struct StringTraits {
  static uint64_t Hash(std::string_view view) { return HashBytes(view); }
  static bool Equal(const std::string& entry, std::string_view view) { return entry == view; }
  static std::string Make(std::string_view view) { return std::string(view); }
  static std::string_view ViewOf(const std::string& entry) { return entry; }
};
using StringTable = Table<std::string, std::string_view, StringTraits>;

// For structs of 64-bit words without padding.
template <typename Struct>
struct WordsTraits {
  static_assert(std::has_unique_object_representations_v<Struct> && sizeof(Struct) % 8 == 0);
  static uint64_t Hash(const Struct& view) {
    uint64_t words[sizeof(Struct) / 8];
    std::memcpy(words, &view, sizeof view);
    return HashWords(words, sizeof(Struct) / 8);
  }
  static bool Equal(const Struct& entry, const Struct& view) { return std::memcmp(&entry, &view, sizeof view) == 0; }
  static const Struct& Make(const Struct& view) { return view; }
  static const Struct& ViewOf(const Struct& entry) { return entry; }
};

// Fields as in the schema's messages of the same names (proto/gpuperf/trace/v1/events.proto).
struct Kernel {
  uint32_t name_iid;
  uint32_t grid_x, grid_y, grid_z;
  uint32_t block_x, block_y, block_z;
  uint32_t cluster_x, cluster_y, cluster_z;
  uint32_t registers_per_thread;
  uint32_t static_shared_bytes;
  uint32_t dynamic_shared_bytes;
  uint32_t executed_shared_bytes;
  uint32_t local_bytes_per_thread;
  uint32_t launch_type;
  uint64_t local_bytes_total;
  uint32_t cache_config;
  uint32_t cluster_scheduling_policy;
  uint32_t max_potential_cluster_size;
  uint32_t max_active_clusters;
  uint32_t device_launched;
  uint32_t carveout;  // percent + 1; 0 = not requested
};
using KernelTable = Table<Kernel, Kernel, WordsTraits<Kernel>>;

struct Stream {
  static constexpr uint32_t kNoChannel = UINT32_MAX;
  static constexpr int32_t kNoPriority = INT32_MIN;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t channel;
  uint32_t channel_type;
  int32_t priority;
};
using StreamTable = Table<Stream, Stream, WordsTraits<Stream>>;

struct CallSite {
  uint64_t stream_handle;
  uint32_t function_name_iid;
  uint32_t context;
  uint32_t cbid;
  uint8_t domain;  // CUPTI's: 1 driver, 2 runtime
  uint8_t capture;
  uint16_t reserved;
};
using CallSiteTable = Table<CallSite, CallSite, WordsTraits<CallSite>>;

struct Thread {
  uint32_t tid;
  uint32_t name_iid;
};

struct Dictionaries {
  StringTable strings;
  KernelTable kernels;
  StreamTable streams;
  CallSiteTable call_sites;
  std::vector<Thread> threads;  // iid = index + 1; few, never forgotten
  size_t threads_written = 0;
  bool restarted = false;  // the next chunk must be a checkpoint
};

}  // namespace gpuperf::collector

#endif  // GPUPERF_COLLECTOR_DICTIONARY_H_
