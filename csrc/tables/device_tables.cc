// kernels, copies and memsets: what the device did, with the call that put it there.
#include "analysis/demangle.h"
#include "analysis/names.h"
#include "tables/builders.h"

namespace gpuperf::tables {
namespace {

using ::gpuperf::reader::ClockMap;

// A dictionary entry of every row as its number, side by side: a column that needs no more then passes over a small
// part of the memory, and asks each entry once.
template <class Entry>
class Coded {
 public:
  explicit Coded(size_t rows) { codes_.reserve(rows); }
  // nullptr, and what is not known: the code 0.
  void Append(const Entry* entry) {
    const uint32_t code = entry == nullptr || !entry->known ? 0 : entry->index;
    codes_.push_back(code);
    if (code == 0) return;
    if (code >= entries_.size()) entries_.resize(code + 1);
    entries_[code] = entry;
  }

  // get(const Entry&) -> std::optional<T>; unknown: null.
  template <class T, class Get>
  void AddTo(TableBuilder* table, const char* column, const Get& get) const {
    table->AddCoded<T>(column, codes_, entries_.size(), [&](uint32_t code) {
      return entries_[code] == nullptr ? std::optional<T>() : std::optional<T>(get(*entries_[code]));
    });
  }
  template <class... Text>
  void AddNameTo(TableBuilder* table, const char* column, const Text&... text) const {
    const auto name = [&](uint32_t code) { return entries_[code] == nullptr ? nullptr : entries_[code]->name; };
    table->AddCodedName(column, codes_, entries_.size(), name, text...);
  }

 private:
  std::vector<uint32_t> codes_;
  std::vector<const Entry*> entries_ = {nullptr};  // by code
};

// The columns that all device work begins with.
template <class Row>
void AddTimes(const Rows<Row>& rows, const ClockMap& clock, TableBuilder* table) {
  table->Add<int64_t>("begin_device_ns", [&](size_t i) { return rows[i].begin_device_ns; });
  table->Add<int64_t>("end_device_ns", [&](size_t i) { return rows[i].end_device_ns; });
  table->Add<int64_t>("duration_ns", [&](size_t i) { return rows[i].duration_ns(); });
  size_t hint = 0;
  const auto on_host = [&](int64_t device_ns) {
    return clock.known() ? std::optional<int64_t>(clock.ToHost(device_ns, &hint)) : std::nullopt;
  };
  table->AddOrNull<int64_t>("begin_host_ns", [&](size_t i) { return on_host(rows[i].begin_device_ns); });
  table->AddOrNull<int64_t>("end_host_ns", [&](size_t i) { return on_host(rows[i].end_device_ns); });
}

template <class Row>
void AddPlace(const Rows<Row>& rows, TableBuilder* table) {
  Coded<reader::StreamEntry> streams(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) streams.Append(rows[i].stream);
  const auto add = [&](const char* name, auto get) {
    streams.template AddTo<uint32_t>(table, name,
                                     [&](const reader::StreamEntry& stream) { return (stream.definition.*get)(); });
  };
  add("device", &reader::v1::Stream::device);
  add("context", &reader::v1::Stream::context);
  add("stream", &reader::v1::Stream::stream);
  table->Add<uint64_t>("correlation", [&](size_t i) { return rows[i].correlation; });
}

template <class Row>
void AddCall(const Rows<Row>& rows, CallIndex* calls, TableBuilder* table) {
  std::vector<const CallFacts*> call(rows.size());
  Coded<reader::CallSiteEntry> sites(rows.size());
  Coded<reader::ThreadEntry> threads(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    call[i] = calls->Find(rows[i].correlation);
    sites.Append(call[i] == nullptr ? nullptr : call[i]->site);
    threads.Append(call[i] == nullptr ? nullptr : call[i]->thread);
  }
  sites.AddNameTo(table, "call_name");
  threads.AddTo<uint32_t>(table, "call_tid", [](const reader::ThreadEntry& thread) { return thread.definition.tid(); });
  threads.AddNameTo(table, "call_thread");
  table->AddOrNull<int64_t>("call_enter_host_ns", [&](size_t i) {
    return call[i] == nullptr ? std::nullopt : std::optional<int64_t>(call[i]->enter_host_ns);
  });
  table->AddOrNull<int64_t>("call_exit_host_ns", [&](size_t i) {
    return call[i] == nullptr || call[i]->exit_host_ns < 0 ? std::nullopt
                                                           : std::optional<int64_t>(call[i]->exit_host_ns);
  });
}

template <class Row>
void AddGraph(const Rows<Row>& rows, TableBuilder* table) {
  table->AddOrNull<uint32_t>("graph_id", [&](size_t i) {
    return rows[i].graph_id == 0 ? std::nullopt : std::optional<uint32_t>(rows[i].graph_id);
  });
  table->AddOrNull<uint64_t>("graph_node_id", [&](size_t i) {
    return rows[i].graph_id == 0 ? std::nullopt : std::optional<uint64_t>(rows[i].graph_node_id);
  });
}

template <class Row, class Get>
void AddMemoryKind(const char* name, const Rows<Row>& rows, const Get& get, TableBuilder* table) {
  table->AddText(
      name, [&](size_t i) { return uint64_t{get(rows[i])}; },
      [](uint64_t kind) { return analysis::MemoryKindName(static_cast<uint32_t>(kind)); });
}

std::optional<int64_t> UnlessZero(uint64_t time) {
  return time == 0 ? std::nullopt : std::optional<int64_t>(static_cast<int64_t>(time));
}

}  // namespace

std::shared_ptr<const Table> BuildKernels(const Rows<reader::KernelRow>& rows, CallIndex* calls,
                                          const ClockMap& clock) {
  TableBuilder table("kernels", rows.size());
  Coded<reader::KernelEntry> kernels(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) kernels.Append(rows[i].kernel);
  kernels.AddNameTo(&table, "name", analysis::Demangle);
  AddTimes(rows, clock, &table);
  AddPlace(rows, &table);
  AddCall(rows, calls, &table);
  using reader::v1::Kernel;
  const auto add = [&](const char* column, auto get) {
    kernels.AddTo<uint32_t>(&table, column,
                            [&](const reader::KernelEntry& kernel) { return (kernel.definition.*get)(); });
  };
  add("grid_x", &Kernel::grid_x);
  add("grid_y", &Kernel::grid_y);
  add("grid_z", &Kernel::grid_z);
  add("block_x", &Kernel::block_x);
  add("block_y", &Kernel::block_y);
  add("block_z", &Kernel::block_z);
  // 0: no cluster, or not known to the CUPTI that recorded it.
  const auto add_cluster = [&](const char* column, auto get) {
    kernels.AddTo<uint32_t>(&table, column, [&](const reader::KernelEntry& kernel) {
      const uint32_t blocks = (kernel.definition.*get)();
      return blocks == 0 ? std::nullopt : std::optional<uint32_t>(blocks);
    });
  };
  add_cluster("cluster_x", &Kernel::cluster_x);
  add_cluster("cluster_y", &Kernel::cluster_y);
  add_cluster("cluster_z", &Kernel::cluster_z);
  add("registers_per_thread", &Kernel::registers_per_thread);
  add("static_shared_bytes", &Kernel::static_shared_bytes);
  add("dynamic_shared_bytes", &Kernel::dynamic_shared_bytes);
  add("local_bytes_per_thread", &Kernel::local_bytes_per_thread);
  AddGraph(rows, &table);
  table.AddOrNull<int64_t>("queued_device_ns", [&](size_t i) { return UnlessZero(rows[i].queued_device_ns); });
  table.AddOrNull<int64_t>("submitted_device_ns", [&](size_t i) { return UnlessZero(rows[i].submitted_device_ns); });
  kernels.AddNameTo(&table, "symbol");
  return table.Finish();
}

std::shared_ptr<const Table> BuildCopies(const Rows<reader::CopyRow>& rows, CallIndex* calls, const ClockMap& clock) {
  TableBuilder table("copies", rows.size());
  table.AddText(
      "direction", [&](size_t i) { return uint64_t{rows[i].copy_kind}; },
      [](uint64_t kind) { return analysis::CopyKindName(static_cast<uint32_t>(kind)); });
  table.Add<uint64_t>("bytes", [&](size_t i) { return rows[i].bytes; });
  AddTimes(rows, clock, &table);
  AddPlace(rows, &table);
  AddCall(rows, calls, &table);
  AddMemoryKind("source", rows, [](const reader::CopyRow& row) { return row.source_kind; }, &table);
  AddMemoryKind("destination", rows, [](const reader::CopyRow& row) { return row.destination_kind; }, &table);
  table.Add<bool>("asynchronous", [&](size_t i) { return (rows[i].flags & 1) != 0; });
  table.Add<uint64_t>("copies", [&](size_t i) { return rows[i].copy_count; });
  const auto add_peer = [&](const char* column, uint32_t reader::CopyRow::* member) {
    table.AddOrNull<uint32_t>(column, [&rows, member](size_t i) {
      return rows[i].peer ? std::optional<uint32_t>(rows[i].*member) : std::nullopt;
    });
  };
  add_peer("source_device", &reader::CopyRow::source_device);
  add_peer("source_context", &reader::CopyRow::source_context);
  add_peer("destination_device", &reader::CopyRow::destination_device);
  add_peer("destination_context", &reader::CopyRow::destination_context);
  AddGraph(rows, &table);
  return table.Finish();
}

std::shared_ptr<const Table> BuildMemsets(const Rows<reader::MemsetRow>& rows, CallIndex* calls,
                                          const ClockMap& clock) {
  TableBuilder table("memsets", rows.size());
  AddMemoryKind("memory", rows, [](const reader::MemsetRow& row) { return row.memory_kind; }, &table);
  table.Add<uint64_t>("bytes", [&](size_t i) { return rows[i].bytes; });
  table.Add<uint32_t>("value", [&](size_t i) { return rows[i].value; });
  AddTimes(rows, clock, &table);
  AddPlace(rows, &table);
  AddCall(rows, calls, &table);
  table.Add<bool>("asynchronous", [&](size_t i) { return (rows[i].flags & 1) != 0; });
  AddGraph(rows, &table);
  return table.Finish();
}

}  // namespace gpuperf::tables
