// The dictionaries of a trace: iid → entry. Iids belong to one file; entries and names live as long as the object.
//
// One thread. Defining an iid again with the same content (a checkpoint) keeps the entry and looks its names up again,
// because the first definition may have come when the chunk with the name was lost. Memory is bounded: by kMaxEntries a
// kind and file, and by the file for names.
#ifndef GPUPERF_READER_DICTIONARY_H_
#define GPUPERF_READER_DICTIONARY_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "reader/rows.h"

namespace gpuperf::reader {

// Iid → pointer. Dense for the iids that writers use (1, 2, 3 …), sparse for what a hostile file may hold.
template <class Value>
class IidMap {
 public:
  static constexpr uint32_t kDense = 1 << 16;

  Value* Find(uint32_t iid) const {
    if (iid < dense_.size()) return dense_[iid];
    if (iid < kDense || sparse_.empty()) return nullptr;
    const auto found = sparse_.find(iid);
    return found == sparse_.end() ? nullptr : found->second;
  }

  void Set(uint32_t iid, Value* value) {
    if (iid >= kDense) {
      sparse_[iid] = value;
      return;
    }
    if (iid >= dense_.size()) dense_.resize(iid + 1);
    dense_[iid] = value;
  }

  void Clear() {
    dense_.clear();
    sparse_.clear();
  }

 private:
  std::vector<Value*> dense_;
  absl::flat_hash_map<uint32_t, Value*> sparse_;
};

class Dictionary {
 public:
  static constexpr uint32_t kMaxEntries = 1 << 20;

  // Iids lose their meaning: another file begins.
  void BeginFile();

  // False: broken rule (iid 0, or more than kMaxEntries); nothing is defined then. `redefined` becomes true when an iid
  // was given a second meaning: the new one holds from here on.
  bool Define(const v1::InternedString& definition, bool* redefined);
  const ThreadEntry* Define(const v1::Thread& definition, bool* redefined);
  const StreamEntry* Define(const v1::Stream& definition, bool* redefined);
  const KernelEntry* Define(const v1::Kernel& definition, bool* redefined);
  const CallSiteEntry* Define(const v1::CallSite& definition, bool* redefined);

  Name name(uint32_t iid) const { return iid == 0 ? &empty_ : strings_.Find(iid); }
  const ThreadEntry& thread(uint32_t iid) const { return threads_.Find(iid); }
  const StreamEntry& stream(uint32_t iid) const { return streams_.Find(iid); }
  const KernelEntry& kernel(uint32_t iid) const { return kernels_.Find(iid); }
  const CallSiteEntry& call_site(uint32_t iid) const { return call_sites_.Find(iid); }

 private:
  template <class Definition>
  struct Table {
    const Entry<Definition>& Find(uint32_t iid) const {
      const Entry<Definition>* entry = by_iid.Find(iid);
      return entry != nullptr ? *entry : unknown;
    }

    std::deque<Entry<Definition>> entries;  // stable addresses
    IidMap<Entry<Definition>> by_iid;
    Entry<Definition> unknown;
    uint32_t in_file = 0;
  };
  template <class Definition>
  Entry<Definition>* DefineIn(Table<Definition>* table, const Definition& definition, bool* redefined);

  const std::string empty_;
  absl::node_hash_set<std::string> names_;  // stable addresses
  IidMap<const std::string> strings_;
  uint32_t strings_in_file_ = 0;
  Table<v1::Thread> threads_;
  Table<v1::Stream> streams_;
  Table<v1::Kernel> kernels_;
  Table<v1::CallSite> call_sites_;
};

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_DICTIONARY_H_
