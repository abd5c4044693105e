#include "bindings/errors.h"

namespace gpuperf::bindings {

namespace py = pybind11;

namespace {

// Messages hold paths, and paths are any bytes: decoded as Python decodes a file name.
[[noreturn]] void RaiseAs(const char* exception, absl::string_view message) {
  const py::object type = py::module_::import("gpuperf._analysis").attr(exception);
  const auto text = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeFSDefaultAndSize(message.data(), static_cast<Py_ssize_t>(message.size())));
  if (text) PyErr_SetObject(type.ptr(), text.ptr());
  throw py::error_already_set();
}

py::object NewException(const char* name, PyObject* base) {
  auto type = py::reinterpret_steal<py::object>(PyErr_NewException(name, base, nullptr));
  if (!type) throw py::error_already_set();
  return type;
}

}  // namespace

bool Callback::Call(const std::function<void()>& call) {
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

void RaiseIfBad(const absl::Status& status) {
  if (status.ok()) return;
  if (absl::IsInvalidArgument(status)) RaiseAs("NotATrace", status.message());
  if (absl::IsUnimplemented(status)) RaiseAs("NewerFormat", status.message());
  if (absl::IsOutOfRange(status)) RaiseAs("NoSuchRegion", status.message());
  RaiseAs("TraceError", status.message());
}

void DefineErrors(py::module_& module) {
  const py::object error = NewException("gpuperf._analysis.TraceError", PyExc_Exception);
  module.attr("TraceError") = error;
  module.attr("NotATrace") = NewException("gpuperf._analysis.NotATrace", error.ptr());
  module.attr("NewerFormat") = NewException("gpuperf._analysis.NewerFormat", error.ptr());
  module.attr("NoSuchRegion") = NewException("gpuperf._analysis.NoSuchRegion", PyExc_Exception);
}

}  // namespace gpuperf::bindings
