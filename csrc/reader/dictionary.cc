#include "reader/dictionary.h"

namespace gpuperf::reader {

void Dictionary::BeginFile() {
  strings_.Clear();
  strings_in_file_ = 0;
  const auto begin = [](auto* table) {
    table->by_iid.Clear();
    table->in_file = 0;
  };
  begin(&threads_);
  begin(&streams_);
  begin(&kernels_);
  begin(&call_sites_);
}

bool Dictionary::Define(const v1::InternedString& definition, bool* redefined) {
  const uint32_t iid = definition.iid();
  if (iid == 0) return false;
  const std::string* old = strings_.Find(iid);
  if (old != nullptr && *old == definition.value()) return true;
  if (old == nullptr && strings_in_file_ == kMaxEntries) return false;
  if (old == nullptr) ++strings_in_file_;
  *redefined |= old != nullptr;
  const std::string& value = definition.value();
  // "" has one address too, whether it is told or not set.
  strings_.Set(iid, value.empty() ? &empty_ : &*names_.insert(value).first);
  return true;
}

template <class Definition>
Entry<Definition>* Dictionary::DefineIn(Table<Definition>* table, const Definition& definition, bool* redefined) {
  const uint32_t iid = definition.iid();
  if (iid == 0) return nullptr;
  Entry<Definition>* old = table->by_iid.Find(iid);
  if (old != nullptr && old->definition.SerializeAsString() == definition.SerializeAsString()) return old;
  if (table->in_file == kMaxEntries) return nullptr;
  ++table->in_file;
  *redefined |= old != nullptr;
  Entry<Definition>& entry = table->entries.emplace_back();
  entry.known = true;
  entry.index = static_cast<uint32_t>(table->entries.size());
  entry.definition = definition;
  table->by_iid.Set(iid, &entry);
  return &entry;
}

const ThreadEntry* Dictionary::Define(const v1::Thread& definition, bool* redefined) {
  ThreadEntry* entry = DefineIn(&threads_, definition, redefined);
  if (entry != nullptr) entry->name = name(definition.name_iid());
  return entry;
}

const StreamEntry* Dictionary::Define(const v1::Stream& definition, bool* redefined) {
  return DefineIn(&streams_, definition, redefined);
}

const KernelEntry* Dictionary::Define(const v1::Kernel& definition, bool* redefined) {
  KernelEntry* entry = DefineIn(&kernels_, definition, redefined);
  if (entry != nullptr) entry->name = name(definition.name_iid());
  return entry;
}

const CallSiteEntry* Dictionary::Define(const v1::CallSite& definition, bool* redefined) {
  CallSiteEntry* entry = DefineIn(&call_sites_, definition, redefined);
  if (entry != nullptr) {
    entry->name = name(definition.name_iid());
    entry->function_name = name(definition.function_name_iid());
  }
  return entry;
}

}  // namespace gpuperf::reader
