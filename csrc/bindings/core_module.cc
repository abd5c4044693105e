// gpuperf._core: the C interface (gpuperf.h) as a Python module, and nothing more.
//
// Calls that can wait (start, stop, yield, flush, the probe) release the GIL. The markers never wait, so they keep it;
// they are plain vectorcall functions, and annotate() a plain type, because pybind11's argument dispatch would cost
// several times what the marker itself costs. No decision is taken here: statuses go to Python as numbers, and
// gpuperf.api and gpuperf.errors say what they mean.
#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpuperf/gpuperf.h"

namespace py = pybind11;

namespace gpuperf::bindings {
namespace {

// --- Markers: called once a step or more often ---------------------------------------------------------------------

struct Text {
  const char* data = nullptr;  // owned by the str object, which keeps its UTF-8 form
  size_t length = 0;
};

// False with a Python error set if `object` is no str.
bool ReadText(PyObject* object, const char* what, Text* text) noexcept {
  if (!PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "%s must be a str, not %.100s", what, Py_TYPE(object)->tp_name);
    return false;
  }
  Py_ssize_t length = 0;
  text->data = PyUnicode_AsUTF8AndSize(object, &length);
  text->length = static_cast<size_t>(length);
  return text->data != nullptr;
}

bool CheckCount(const char* function, Py_ssize_t given, Py_ssize_t wanted) noexcept {
  if (given == wanted) return true;
  PyErr_Format(PyExc_TypeError, "%s() takes %zd argument%s (%zd given)", function, wanted, wanted == 1 ? "" : "s",
               given);
  return false;
}

// None is -1, "not given".
bool ReadAmount(PyObject* object, const char* what, int64_t* amount) noexcept {
  if (object == Py_None) return true;
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) return false;
  if (value < 0) {
    PyErr_Format(PyExc_ValueError, "%s must not be negative (%lld given)", what, value);
    return false;
  }
  *amount = value;
  return true;
}

PyObject* Step(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) noexcept {
  static constexpr const char* kNames[] = {"samples", "tokens"};
  PyObject* values[2] = {Py_None, Py_None};
  bool given[2] = {false, false};
  if (count > 2) {
    PyErr_Format(PyExc_TypeError, "step() takes at most 2 arguments (%zd given)", count);
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    values[i] = arguments[i];
    given[i] = true;
  }
  const Py_ssize_t keyword_count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t i = 0; i < keyword_count; ++i) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, i);
    int index = 0;
    while (index < 2 && PyUnicode_CompareWithASCIIString(keyword, kNames[index]) != 0) ++index;
    if (index == 2 || given[index]) {
      PyErr_Format(PyExc_TypeError, index == 2 ? "step() got an unexpected argument %R" : "step() got %R twice",
                   keyword);
      return nullptr;
    }
    values[index] = arguments[count + i];
    given[index] = true;
  }
  int64_t samples = -1;
  int64_t tokens = -1;
  if (!ReadAmount(values[0], kNames[0], &samples) || !ReadAmount(values[1], kNames[1], &tokens)) return nullptr;
  gpuperf_step(samples, tokens);
  Py_RETURN_NONE;
}

PyObject* Mark(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  Text name;
  if (!CheckCount("mark", count, 1) || !ReadText(arguments[0], "name", &name)) return nullptr;
  gpuperf_mark(name.data, name.length);
  Py_RETURN_NONE;
}

PyObject* Counter(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  Text name;
  if (!CheckCount("counter", count, 2) || !ReadText(arguments[0], "name", &name)) return nullptr;
  const double value = PyFloat_AsDouble(arguments[1]);
  if (value == -1.0 && PyErr_Occurred() != nullptr) return nullptr;
  gpuperf_counter(name.data, name.length, value);
  Py_RETURN_NONE;
}

template <typename Function>
PyCFunction AsMethod(Function function) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef kMarkers[] = {
    {"step", AsMethod(Step), METH_FASTCALL | METH_KEYWORDS,
     "step(samples=None, tokens=None)\n--\n\n"
     "Ends a training step and begins the next one.\n\n"
     "Args:\n"
     "  samples: how many samples the step that ends has worked on.\n"
     "  tokens: how many tokens it has worked on."},
    {"mark", AsMethod(Mark), METH_FASTCALL,
     "mark(name, /)\n--\n\n"
     "Writes an instant with a name into the trace."},
    {"counter", AsMethod(Counter), METH_FASTCALL,
     "counter(name, value, /)\n--\n\n"
     "Writes a value of the counter `name` into the trace. A CUDA tensor as value makes the GPU wait: pass a number."},
    {nullptr, nullptr, 0, nullptr}};

// --- Annotation: the base of gpuperf.annotate ----------------------------------------------------------------------
// Holds a name and no other state, so one object may be entered again while it is entered, and by several threads.

struct AnnotationObject {
  PyObject_HEAD PyObject* name;  // str, never null
};

PyObject* AnnotationNew(PyTypeObject* type, PyObject* arguments, PyObject* keywords) noexcept {
  static const char* kNames[] = {"name", nullptr};
  PyObject* name = nullptr;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "U:annotate", const_cast<char**>(kNames), &name)) {
    return nullptr;
  }
  Text text;  // a name that cannot be written as UTF-8 is refused here, once, and not at each enter
  if (!ReadText(name, "name", &text)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  Py_INCREF(name);
  reinterpret_cast<AnnotationObject*>(self)->name = name;
  return self;
}

void AnnotationDealloc(PyObject* self) noexcept {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<AnnotationObject*>(self)->name);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* AnnotationEnter(PyObject* self, PyObject*) noexcept {
  Text name;
  if (!ReadText(reinterpret_cast<AnnotationObject*>(self)->name, "name", &name)) return nullptr;
  gpuperf_annotation_begin(name.data, name.length);
  Py_INCREF(self);
  return self;
}

PyObject* AnnotationExit(PyObject*, PyObject* const*, Py_ssize_t) noexcept {
  gpuperf_annotation_end();
  Py_RETURN_FALSE;
}

PyObject* AnnotationName(PyObject* self, void*) noexcept {
  PyObject* name = reinterpret_cast<AnnotationObject*>(self)->name;
  Py_INCREF(name);
  return name;
}

PyMethodDef kAnnotationMethods[] = {{"__enter__", AnnotationEnter, METH_NOARGS, nullptr},
                                    {"__exit__", AsMethod(AnnotationExit), METH_FASTCALL, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kAnnotationAttributes[] = {{"name", AnnotationName, nullptr, "the annotation's name", nullptr},
                                       {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot kAnnotationSlots[] = {{Py_tp_new, reinterpret_cast<void*>(AnnotationNew)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(AnnotationDealloc)},
                                  {Py_tp_methods, kAnnotationMethods},
                                  {Py_tp_getset, kAnnotationAttributes},
                                  {0, nullptr}};
PyType_Spec kAnnotation = {"gpuperf._core.Annotation", sizeof(AnnotationObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, kAnnotationSlots};

// --- Session: called a few times a run -----------------------------------------------------------------------------

// A text of which any part may be a file name: bytes that are no text stay what they are.
std::string FileBytes(const py::handle& text) {
  PyObject* encoded = PyUnicode_EncodeFSDefault(text.ptr());
  if (encoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(encoded);
}

// `options` holds pairs of name and text, or None.
int Start(const py::list& options) {
  std::vector<std::pair<std::string, std::optional<std::string>>> texts;
  std::vector<gpuperf_option> table;
  texts.reserve(options.size());  // the table points into it
  table.reserve(options.size());
  for (const py::handle option : options) {
    const py::tuple pair = py::cast<py::tuple>(option);
    const py::object value = pair[1];
    auto& [name, text] = texts.emplace_back(py::cast<std::string>(pair[0]), std::nullopt);
    if (!value.is_none()) text = FileBytes(value);
    table.push_back({name.c_str(), text ? text->c_str() : nullptr});
  }
  const py::gil_scoped_release release;
  return gpuperf_start(table.data(), table.size());
}

int Stop() {
  const py::gil_scoped_release release;
  return gpuperf_stop();
}

void AtExit() {
  const py::gil_scoped_release release;
  gpuperf_at_exit();
}

int Yield(const std::string& why) {
  const py::gil_scoped_release release;
  return gpuperf_yield(why.c_str());
}

int Flush(uint32_t timeout_ms) {
  const py::gil_scoped_release release;
  return gpuperf_flush(timeout_ms);
}

py::dict Stats() {
  gpuperf_stats stats = {};
  stats.struct_size = sizeof(stats);
  gpuperf_get_stats(&stats);
  py::dict result;
  const std::pair<const char*, uint64_t> fields[] = {
      {"kernels", stats.kernels},
      {"copies", stats.copies},
      {"memsets", stats.memsets},
      {"calls", stats.calls},
      {"steps", stats.steps},
      {"lost", stats.lost},
      {"unjoined", stats.unjoined},
      {"written_bytes", stats.written_bytes},
      {"callback_ns", stats.callback_ns},
      {"collector_cpu_ns", stats.collector_cpu_ns},
      {"ring_bytes", stats.ring_bytes},
      {"buffer_bytes_peak", stats.buffer_bytes_peak},
      {"opened_calls", stats.opened_calls},
      {"finalize_ns", stats.finalize_ns},
  };
  for (const auto& [name, value] : fields) result[name] = value;
  return result;
}

// Text behind a "writes at most size bytes, returns the full length" function. The text may grow between two calls.
std::string ReadBuffer(size_t (*function)(char*, size_t)) {
  const py::gil_scoped_release release;
  std::string text;
  for (size_t length = function(nullptr, 0); length > text.size();) {
    text.resize(length);
    length = function(text.data(), text.size() + 1);
    if (length < text.size()) text.resize(length);
  }
  return text;
}

py::str FilePath(const std::string& path) {
  PyObject* decoded = PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

py::str Sentence(const std::string& text) {  // a message may quote a file name that is no UTF-8
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

void DefineModule(py::module_& module) {
  if (gpuperf_abi_version() != GPUPERF_ABI_VERSION) {
    throw py::import_error("the libgpuperf.so in this process speaks version " + std::to_string(gpuperf_abi_version()) +
                           " of the interface, this gpuperf needs version " + std::to_string(GPUPERF_ABI_VERSION) +
                           ": use the same gpuperf for the job and for `gpuperf run`");
  }
  if (PyModule_AddFunctions(module.ptr(), kMarkers) != 0) throw py::error_already_set();
  PyObject* annotation = PyType_FromSpec(&kAnnotation);
  if (annotation == nullptr) throw py::error_already_set();
  module.attr("Annotation") = py::reinterpret_steal<py::object>(annotation);

  module.def("start", Start, py::arg("options"));
  module.def("stop", Stop);
  module.def("at_exit", AtExit);
  module.def("yield_", Yield, py::arg("why"));
  module.def("flush", Flush, py::arg("timeout_ms"));
  module.def("state", [] { return static_cast<int>(gpuperf_get_state()); });
  module.def("stats", Stats);
  module.def("output_path", [] { return FilePath(ReadBuffer(gpuperf_output_path)); });
  module.def("last_error", [] { return Sentence(ReadBuffer(gpuperf_last_error)); });
  module.def("set_version",
             [](const std::string& key, const std::string& value) { gpuperf_set_version(key.c_str(), value.c_str()); });
  module.def("version", [] { return std::string(gpuperf_version()); });
  module.def("option_table_json", [] { return std::string(gpuperf_option_table_json()); });
  module.def("probe_json", [] { return Sentence(ReadBuffer(gpuperf_probe_json)); });

  for (const auto& [name, status] : {std::pair<const char*, int>{"OK", GPUPERF_OK},
                                     {"UNEXPECTED", GPUPERF_UNEXPECTED},
                                     {"INVALID_OPTION", GPUPERF_INVALID_OPTION},
                                     {"OUTPUT_EXISTS", GPUPERF_OUTPUT_EXISTS},
                                     {"OUTPUT_UNWRITABLE", GPUPERF_OUTPUT_UNWRITABLE},
                                     {"UNAVAILABLE", GPUPERF_UNAVAILABLE},
                                     {"BUSY", GPUPERF_BUSY},
                                     {"DISABLED", GPUPERF_DISABLED},
                                     {"NOT_RUNNING", GPUPERF_NOT_RUNNING},
                                     {"ALREADY_RUNNING", GPUPERF_ALREADY_RUNNING}}) {
    module.attr(name) = status;
  }
}

}  // namespace
}  // namespace gpuperf::bindings

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C interface of libgpuperf.so.";
  gpuperf::bindings::DefineModule(module);
}
