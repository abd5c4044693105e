// calls, launches, syncs and allocations: what the host asked for, with the device work that came of it.
#include "analysis/demangle.h"
#include "analysis/names.h"
#include "tables/builders.h"

namespace gpuperf::tables {
namespace {

using ::gpuperf::reader::v1::CallSite;

template <class T>
std::optional<T> UnlessZero(T value) {
  return value == 0 ? std::nullopt : std::optional<T>(value);
}

template <class Enum, class ToName>
void AddSiteEnum(const char* column, const std::vector<CallWithWork>& rows, Enum (CallSite::*get)() const,
                 ToName to_name, TableBuilder* table) {
  table->AddText(
      column,
      [&](size_t i) {
        const reader::CallSiteEntry& site = *rows[i].site;
        return site.known ? std::optional<uint64_t>((site.definition.*get)()) : std::nullopt;
      },
      [&](uint64_t value) { return to_name(static_cast<Enum>(value)); });
}

void AddCallItself(const std::vector<CallWithWork>& rows, TableBuilder* table) {
  table->AddName("name", [&](size_t i) { return rows[i].site->known ? rows[i].site->name : nullptr; });
  AddSiteEnum("kind", rows, &CallSite::kind, &analysis::CallKindName, table);
  const auto exit = [&](size_t i) {
    return rows[i].exit_host_ns < 0 ? std::nullopt : std::optional<int64_t>(rows[i].exit_host_ns);
  };
  table->Add<int64_t>("enter_host_ns", [&](size_t i) { return rows[i].enter_host_ns; });
  table->AddOrNull<int64_t>("exit_host_ns", exit);
  table->AddOrNull<int64_t>("duration_ns", [&](size_t i) {
    const std::optional<int64_t> end = exit(i);
    return end ? std::optional<int64_t>(*end - rows[i].enter_host_ns) : std::nullopt;
  });
  table->AddOrNull<uint32_t>("tid", [&](size_t i) {
    return rows[i].thread->known ? std::optional<uint32_t>(rows[i].thread->definition.tid()) : std::nullopt;
  });
  table->AddName("thread", [&](size_t i) { return rows[i].thread->known ? rows[i].thread->name : nullptr; });
  table->Add<uint64_t>("correlation", [&](size_t i) { return rows[i].correlation; });
  table->AddOrNull<uint32_t>("result", [&](size_t i) {
    return rows[i].exit_host_ns < 0 ? std::nullopt : std::optional<uint32_t>(rows[i].result);
  });
}

// A value of a sparse group of columns: null where the call has no such group, or the group does not tell.
template <class T>
void AddDetail(const char* column, const std::vector<CallWithWork>& rows, const std::vector<reader::CallRow>& details,
               bool reader::CallRow::* has, T reader::CallRow::* member, bool zero_is_unknown, TableBuilder* table) {
  table->AddOrNull<T>(column, [&](size_t i) -> std::optional<T> {
    if (rows[i].detail < 0) return std::nullopt;
    const reader::CallRow& detail = details[static_cast<size_t>(rows[i].detail)];
    if (!(detail.*has) || (zero_is_unknown && detail.*member == 0)) return std::nullopt;
    return detail.*member;
  });
}

void AddWork(const std::vector<CallWithWork>& rows, const reader::ClockMap& clock, TableBuilder* table) {
  const auto if_any = [&](size_t i, int64_t time) {
    return rows[i].work_rows == 0 ? std::nullopt : std::optional<int64_t>(time);
  };
  size_t hint = 0;
  const auto on_host = [&](size_t i, int64_t time) {
    if (rows[i].work_rows == 0 || !clock.known()) return std::optional<int64_t>();
    return std::optional<int64_t>(clock.ToHost(time, &hint));
  };
  table->Add<uint32_t>("work_rows", [&](size_t i) { return rows[i].work_rows; });
  table->AddOrNull<int64_t>("work_begin_device_ns", [&](size_t i) { return if_any(i, rows[i].work_begin_device_ns); });
  table->AddOrNull<int64_t>("work_end_device_ns", [&](size_t i) { return if_any(i, rows[i].work_end_device_ns); });
  table->AddOrNull<int64_t>("work_begin_host_ns", [&](size_t i) { return on_host(i, rows[i].work_begin_device_ns); });
  table->AddOrNull<int64_t>("work_end_host_ns", [&](size_t i) { return on_host(i, rows[i].work_end_device_ns); });
  const auto place = [&](size_t i, uint32_t (reader::v1::Stream::*get)() const) -> std::optional<uint32_t> {
    const reader::StreamEntry* stream = rows[i].work_stream;
    if (stream == nullptr || !stream->known) return std::nullopt;
    return (stream->definition.*get)();
  };
  table->AddOrNull<uint32_t>("work_device", [&](size_t i) { return place(i, &reader::v1::Stream::device); });
  table->AddOrNull<uint32_t>("work_stream", [&](size_t i) { return place(i, &reader::v1::Stream::stream); });
}

}  // namespace

std::shared_ptr<const Table> BuildCalls(const char* name, const std::vector<CallWithWork>& rows,
                                        const std::vector<reader::CallRow>& details, const reader::ClockMap& clock) {
  using Row = reader::CallRow;
  TableBuilder table(name, rows.size());
  AddCallItself(rows, &table);
  AddWork(rows, clock, &table);
  table.AddName(
      "kernel_name", [&](size_t i) { return rows[i].site->known ? rows[i].site->function_name : nullptr; },
      &analysis::Demangle);
  AddSiteEnum("domain", rows, &CallSite::domain, &analysis::CallDomainName, &table);
  AddSiteEnum("capture", rows, &CallSite::capture, &analysis::CaptureStateName, &table);
  table.AddOrNull<uint64_t>("stream_handle", [&](size_t i) -> std::optional<uint64_t> {
    const reader::CallSiteEntry& site = *rows[i].site;
    if (!site.known || !site.definition.has_stream()) return std::nullopt;
    return site.definition.stream_handle();
  });
  table.AddOrNull<uint32_t>("context", [&](size_t i) { return UnlessZero(rows[i].site->definition.context()); });
  AddDetail("copy_bytes", rows, details, &Row::has_copy, &Row::copy_bytes, true, &table);
  AddDetail("copy_kind", rows, details, &Row::has_copy, &Row::copy_kind, false, &table);
  AddDetail("copy_destination", rows, details, &Row::has_copy, &Row::copy_destination, true, &table);
  AddDetail("copy_source", rows, details, &Row::has_copy, &Row::copy_source, true, &table);
  AddDetail("event_handle", rows, details, &Row::has_event, &Row::event_handle, false, &table);
  AddDetail("memory_address", rows, details, &Row::has_memory, &Row::memory_address, true, &table);
  AddDetail("memory_bytes", rows, details, &Row::has_memory, &Row::memory_bytes, true, &table);
  AddDetail("graph_handle", rows, details, &Row::has_graph, &Row::graph_handle, true, &table);
  return table.Finish();
}

std::shared_ptr<const Table> BuildAllocations(const std::vector<CallWithWork>& rows,
                                              const std::vector<reader::CallRow>& details) {
  using Row = reader::CallRow;
  TableBuilder table("allocations", rows.size());
  AddCallItself(rows, &table);
  AddDetail("address", rows, details, &Row::has_memory, &Row::memory_address, true, &table);
  AddDetail("bytes", rows, details, &Row::has_memory, &Row::memory_bytes, true, &table);
  return table.Finish();
}

}  // namespace gpuperf::tables
