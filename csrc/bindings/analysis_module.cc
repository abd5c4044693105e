// gpuperf._analysis: the offline half for Python. Loaded by reports only, never by `import gpuperf`.
//
// Functions release the GIL while they read and take it for a callback once a chunk, where Ctrl-C is heard, too. What a
// path cannot give becomes one of the module's exceptions, whose text is one line for people; damage inside a trace is
// no exception but part of the result.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <string>

#include "analysis/demangle.h"
#include "analysis/dump.h"
#include "analysis/summarizer.h"
#include "bindings/errors.h"
#include "bindings/region_args.h"
#include "bindings/tables_binding.h"

namespace py = pybind11;

namespace gpuperf::bindings {
namespace {

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

  DefineErrors(module);
  DefineTables(module);
  module.def("summary_json", &SummaryJson, py::arg("path"), py::arg("progress") = py::none(),
             py::arg("region") = py::none(),
             "What docs/report.md says of one trace, as JSON text. `progress` is told the bytes read so far.");
  module.def("dump", &Dump, py::arg("path"), py::arg("write"), py::kw_only(), py::arg("chunks_only") = false,
             "Hands the lines of docs/dump.md to `write`, some at a time. False: damaged or not cleanly closed.");
  module.def("demangle", &gpuperf::analysis::Demangle, py::arg("name"), "The source form of a mangled C++ name.");
}
