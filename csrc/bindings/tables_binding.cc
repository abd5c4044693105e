#include "bindings/tables_binding.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "bindings/errors.h"
#include "bindings/region_args.h"
#include "tables/arrow.h"
#include "tables/trace.h"

namespace gpuperf::bindings {
namespace {

namespace py = pybind11;
using tables::Column;
using tables::Table;
using tables::Trace;
using tables::Type;

// Constant memory with whoever keeps it alive, for the buffer protocol.
struct Buffer {
  std::shared_ptr<const void> owner;
  const void* data = nullptr;
  py::ssize_t count = 0;
  py::ssize_t width = 1;
  const char* format = "?";

  py::buffer_info Info() const {
    return py::buffer_info(const_cast<void*>(data), width, format, 1, {count}, {width}, /*readonly=*/true);
  }
};

// The codes of the struct module.
const char* FormatOf(Type type) {
  switch (type) {
    case Type::kInt64:
      return "q";
    case Type::kUint64:
      return "Q";
    case Type::kInt32:
    case Type::kText:
      return "i";
    case Type::kUint32:
      return "I";
    case Type::kDouble:
      return "d";
    case Type::kBool:
      break;
  }
  return "?";
}

const char* NameOf(Type type) {
  switch (type) {
    case Type::kInt64:
      return "int64";
    case Type::kUint64:
      return "uint64";
    case Type::kInt32:
      return "int32";
    case Type::kUint32:
      return "uint32";
    case Type::kDouble:
      return "float64";
    case Type::kText:
      return "text";
    case Type::kBool:
      break;
  }
  return "bool";
}

const Column& ColumnAt(const Table& table, size_t column) {
  if (column >= table.columns.size()) throw py::index_error("no such column");
  return table.columns[column];
}

Buffer Data(const std::shared_ptr<const Table>& table, size_t at) {
  const Column& column = ColumnAt(*table, at);
  return {table, column.data.get(), static_cast<py::ssize_t>(table->rows),
          static_cast<py::ssize_t>(tables::WidthOf(column.type)), FormatOf(column.type)};
}

// A byte a row, 1 where there is no value; None where all rows have one.
py::object Mask(const Table& table, size_t at) {
  const Column& column = ColumnAt(table, at);
  if (column.nulls == 0) return py::none();
  auto mask = std::make_shared<std::vector<uint8_t>>(table.rows);
  for (size_t row = 0; row < table.rows; ++row) (*mask)[row] = column.IsValid(row) ? 0 : 1;
  const void* data = mask->data();
  return py::cast(Buffer{std::move(mask), data, static_cast<py::ssize_t>(table.rows), 1, "?"});
}

py::list NamesOf(const Table& table, size_t at) {
  const Column& column = ColumnAt(table, at);
  py::list names;
  for (size_t code = 0; code < column.names.size(); ++code) {
    const absl::string_view name = column.names[code];
    names.append(py::str(name.data(), name.size()));
  }
  return names;
}

template <class T, class Make>
void AppendValues(const Column& column, size_t begin, size_t end, const Make& make, py::list* values) {
  for (size_t row = begin; row < end; ++row) {
    (*values)[row - begin] = column.IsValid(row) ? py::object(make(column.values<T>()[row])) : py::none();
  }
}

// Rows [begin, end) as Python objects, a list a column.
py::list Lists(const Table& table, size_t begin, size_t end) {
  if (begin > end || end > table.rows) throw py::index_error("no such rows");
  py::list lists;
  for (size_t at = 0; at < table.columns.size(); ++at) {
    const Column& column = table.columns[at];
    py::list values(end - begin);
    const auto integer = [](auto value) { return py::int_(value); };
    switch (column.type) {
      case Type::kInt64:
        AppendValues<int64_t>(column, begin, end, integer, &values);
        break;
      case Type::kUint64:
        AppendValues<uint64_t>(column, begin, end, integer, &values);
        break;
      case Type::kInt32:
        AppendValues<int32_t>(column, begin, end, integer, &values);
        break;
      case Type::kUint32:
        AppendValues<uint32_t>(column, begin, end, integer, &values);
        break;
      case Type::kDouble:
        AppendValues<double>(column, begin, end, [](double value) { return py::float_(value); }, &values);
        break;
      case Type::kBool:
        AppendValues<uint8_t>(column, begin, end, [](uint8_t value) { return py::bool_(value != 0); }, &values);
        break;
      case Type::kText: {
        const py::list names = NamesOf(table, at);
        AppendValues<int32_t>(column, begin, end, [&](int32_t code) { return py::object(names[code]); }, &values);
        break;
      }
    }
    lists.append(values);
  }
  return lists;
}

template <class Structure>
void ReleaseCapsule(PyObject* capsule) {
  auto* structure = static_cast<Structure*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
  if (structure == nullptr) return;
  if (structure->release != nullptr) structure->release(structure);
  delete structure;
}

template <class Structure, class Export>
py::object Capsule(const char* name, const Export& fill) {
  auto structure = std::make_unique<Structure>();
  fill(structure.get());
  PyObject* capsule = PyCapsule_New(structure.get(), name, &ReleaseCapsule<Structure>);
  if (capsule == nullptr) {
    structure->release(structure.get());
    throw py::error_already_set();
  }
  structure.release();
  return py::reinterpret_steal<py::object>(capsule);
}

// Consumers may ask for another schema and must cope with this one, so the protocol has it.
py::object ArrowStream(const std::shared_ptr<const Table>& table, const py::object& /*requested_schema*/) {
  return Capsule<ArrowArrayStream>("arrow_array_stream",
                                   [&](ArrowArrayStream* out) { tables::ExportStream(table, out); });
}

py::object ArrowSchemaOf(const Table& table) {
  return Capsule<ArrowSchema>("arrow_schema", [&](ArrowSchema* out) { tables::ExportSchema(table, out); });
}

py::str PathText(const std::string& path) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

py::object UnlessZero(uint64_t value) { return value == 0 ? py::object(py::none()) : py::object(py::int_(value)); }

py::dict Facts(const Trace& trace) {
  const tables::TraceFacts& facts = trace.facts();
  const auto& header = facts.header;
  py::dict dict;
  dict["parts"] = facts.parts;
  dict["bytes"] = facts.bytes;
  dict["cleanly_closed"] = facts.cleanly_closed;
  dict["chunks"] = facts.chunks;
  dict["events"] = facts.events;
  dict["uuid"] = absl::BytesToHexString(header.trace_uuid());
  dict["producer"] = header.producer();
  dict["pid"] = UnlessZero(header.process().pid());
  dict["host"] = header.process().host();
  dict["command_line"] =
      std::vector<std::string>(header.process().command_line().begin(), header.process().command_line().end());
  dict["start_host_ns"] = UnlessZero(header.start().monotonic_ns());
  dict["start_realtime_ns"] = UnlessZero(header.start().realtime_ns());
  return dict;
}

// Reads with the GIL released, hearing Ctrl-C once a chunk.
template <class Result, class Read>
Result WithoutGil(Callback* callback, const py::object& progress, const Read& read) {
  absl::StatusOr<Result> result;
  {
    const py::gil_scoped_release no_gil;
    result = read([&](uint64_t bytes) {
      return !callback->has_raised() && callback->Call([&] {
        if (!progress.is_none()) progress(bytes);
      });
    });
  }
  callback->Raise();
  RaiseIfBad(result.status());
  return *std::move(result);
}

py::dict Completeness(Trace& trace, const py::object& progress) {
  Callback callback;
  const auto told = WithoutGil<tables::TraceCompleteness>(
      &callback, progress, [&](const Trace::Progress& on) { return trace.Completeness(on); });
  py::dict dict;
  dict["complete"] = told.is_complete();
  dict["cleanly_closed"] = told.cleanly_closed;
  dict["lost"] = told.lost;
  dict["damage_count"] = told.damages.count();
  py::list damages;
  for (const auto& damage : told.damages.kept()) {
    damages.append(py::make_tuple(PathText(damage.file), damage.offset, damage.bytes, damage.what,
                                  UnlessZero(damage.after_host_ns), UnlessZero(damage.before_host_ns)));
  }
  dict["damages"] = damages;
  dict["begin_host_ns"] = told.span.begin;
  dict["end_host_ns"] = told.span.end;
  const auto& run = told.run_info;
  dict["rank"] = run && run->has_rank() ? py::object(py::int_(run->rank())) : py::none();
  dict["world_size"] = run && run->has_world_size() ? py::object(py::int_(run->world_size())) : py::none();
  return dict;
}

std::shared_ptr<const Table> Load(Trace& trace, const std::string& table, const py::object& region,
                                  std::optional<std::vector<uint32_t>> streams,
                                  std::optional<std::vector<uint32_t>> devices, const py::object& name,
                                  const py::object& progress) {
  Callback callback;
  tables::Filter filter;
  filter.region = ToRegionSpec(region);
  filter.streams = std::move(streams);
  filter.devices = std::move(devices);
  if (!name.is_none()) {
    filter.name = [&](const std::string& text) {
      bool wanted = false;
      if (callback.has_raised()) return false;
      callback.Call([&] {
        const auto decoded = py::reinterpret_steal<py::object>(
            PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
        wanted = name(decoded).cast<bool>();
      });
      return wanted;
    };
  }
  return WithoutGil<std::shared_ptr<const Table>>(
      &callback, progress, [&](const Trace::Progress& on) { return trace.Load(table, filter, on); });
}

std::unique_ptr<Trace> Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Trace>> trace;
  {
    const py::gil_scoped_release no_gil;
    trace = Trace::Open(path);
  }
  RaiseIfBad(trace.status());
  return *std::move(trace);
}

}  // namespace

void DefineTables(py::module_& module) {
  py::class_<Buffer>(module, "Buffer", py::buffer_protocol(), "Constant memory of a table.")
      .def_buffer([](Buffer& buffer) { return buffer.Info(); });

  py::class_<Table, std::shared_ptr<Table>>(module, "Table", "Rows of one kind.")
      .def_readonly("name", &Table::name)
      .def_readonly("rows", &Table::rows)
      .def_property_readonly("columns",
                             [](const Table& table) {
                               py::list columns;
                               for (const Column& column : table.columns) {
                                 columns.append(py::make_tuple(column.name, NameOf(column.type), column.nullable));
                               }
                               return columns;
                             })
      .def("data", [](const std::shared_ptr<Table>& table, size_t column) { return Data(table, column); })
      .def("mask", &Mask)
      .def("names", &NamesOf)
      .def("lists", &Lists)
      .def(
          "__arrow_c_stream__",
          [](const std::shared_ptr<Table>& table, const py::object& schema) { return ArrowStream(table, schema); },
          py::arg("requested_schema") = py::none())
      .def("__arrow_c_schema__", &ArrowSchemaOf);

  py::class_<Trace>(module, "Trace", "An open trace.")
      .def(py::init(&Open), py::arg("path"))
      .def_property_readonly("facts", &Facts)
      .def("completeness", &Completeness, py::arg("progress") = py::none())
      .def(
          "load",
          [](Trace& trace, const std::string& table, const py::object& region,
             std::optional<std::vector<uint32_t>> streams, std::optional<std::vector<uint32_t>> devices,
             const py::object& name, const py::object& progress) {
            return std::const_pointer_cast<Table>(
                Load(trace, table, region, std::move(streams), std::move(devices), name, progress));
          },
          py::arg("table"), py::kw_only(), py::arg("region") = py::none(), py::arg("streams") = py::none(),
          py::arg("devices") = py::none(), py::arg("name") = py::none(), py::arg("progress") = py::none());
}

}  // namespace gpuperf::bindings
