// gpuperf._analysis: the offline half for Python. Loaded by reports only, never by `import gpuperf`.
//
// Functions release the GIL while they read and take it for a callback once a chunk, where Ctrl-C is heard, too. What a
// path cannot give becomes one of the module's exceptions, whose text is one line for people; damage inside a trace is
// no exception but part of the result.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "analysis/demangle.h"
#include "analysis/dump.h"
#include "analysis/summarizer.h"
#include "bindings/region_args.h"

namespace py = pybind11;

namespace gpuperf::bindings {
namespace {

// What a Python callback may raise has to pass through code that knows no exceptions of Python's: it is kept here, the
// reading stops, and it is raised again outside.
class Callback {
 public:
  // Calls `call` with the GIL; false if it raised (or Ctrl-C came), which Raise() raises.
  bool Call(const std::function<void()>& call) {
    const py::gil_scoped_acquire gil;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      call();
      return true;
    } catch (const py::error_already_set&) {
      raised_ = std::current_exception();
      return false;
    }
  }
  void Raise() const {
    if (raised_ != nullptr) std::rethrow_exception(raised_);
  }

 private:
  std::exception_ptr raised_;
};

// Messages hold paths, and paths are any bytes: decoded as Python decodes a file name.
[[noreturn]] void Raise(const char* exception, absl::string_view message) {
  const py::object type = py::module_::import("gpuperf._analysis").attr(exception);
  const auto text = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeFSDefaultAndSize(message.data(), static_cast<Py_ssize_t>(message.size())));
  if (text) PyErr_SetObject(type.ptr(), text.ptr());
  throw py::error_already_set();
}

void RaiseIfBad(const absl::Status& status) {
  if (status.ok()) return;
  if (absl::IsInvalidArgument(status)) Raise("NotATrace", status.message());
  if (absl::IsUnimplemented(status)) Raise("NewerFormat", status.message());
  if (absl::IsOutOfRange(status)) Raise("NoSuchRegion", status.message());
  Raise("TraceError", status.message());
}

py::object NewException(const char* name, PyObject* base) {
  auto type = py::reinterpret_steal<py::object>(PyErr_NewException(name, base, nullptr));
  if (!type) throw py::error_already_set();
  return type;
}

std::string SummaryJson(const std::string& path, const py::object& progress, const py::object& region) {
  const analysis::RegionSpec spec = ToRegionSpec(region);
  Callback callback;
  absl::StatusOr<analysis::Summary> summary;
  std::string json;
  {
    const py::gil_scoped_release no_gil;
    summary = analysis::Summarize(path, spec, [&](uint64_t bytes) {
      return callback.Call([&] {
        if (!progress.is_none()) progress(bytes);
      });
    });
    if (summary.ok()) json = analysis::ToJson(*summary);
  }
  callback.Raise();
  RaiseIfBad(summary.status());
  return json;
}

bool Dump(const std::string& path, const py::function& write, bool chunks_only) {
  Callback callback;
  analysis::DumpResult result;
  absl::Status status;
  {
    const py::gil_scoped_release no_gil;
    const auto sink = [&](absl::string_view lines) {
      return callback.Call([&] { write(py::str(lines.data(), lines.size())); });
    };
    status = analysis::Dump(path, chunks_only, sink, &result);
  }
  callback.Raise();
  RaiseIfBad(status);
  return !result.damaged;
}

}  // namespace
}  // namespace gpuperf::bindings

PYBIND11_MODULE(_analysis, module) {
  using namespace gpuperf::bindings;  // NOLINT: the module's own
  module.doc() = "Reads gpuperf traces.";

  const py::object error = NewException("gpuperf._analysis.TraceError", PyExc_Exception);
  module.attr("TraceError") = error;
  module.attr("NotATrace") = NewException("gpuperf._analysis.NotATrace", error.ptr());
  module.attr("NewerFormat") = NewException("gpuperf._analysis.NewerFormat", error.ptr());
  module.attr("NoSuchRegion") = NewException("gpuperf._analysis.NoSuchRegion", PyExc_Exception);

  module.def("summary_json", &SummaryJson, py::arg("path"), py::arg("progress") = py::none(),
             py::arg("region") = py::none(),
             "What docs/report.md says of one trace, as JSON text. `progress` is told the bytes read so far.");
  module.def("dump", &Dump, py::arg("path"), py::arg("write"), py::kw_only(), py::arg("chunks_only") = false,
             "Hands the lines of docs/dump.md to `write`, some at a time. False: damaged or not cleanly closed.");
  module.def("demangle", &gpuperf::analysis::Demangle, py::arg("name"), "The source form of a mangled C++ name.");
}
