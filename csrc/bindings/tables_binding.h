// Traces as tables, for Python: gpuperf._analysis.Trace and Table. What gpuperf.tables is built on; not for users.
#ifndef GPUPERF_BINDINGS_TABLES_BINDING_H_
#define GPUPERF_BINDINGS_TABLES_BINDING_H_

#include <pybind11/pybind11.h>

namespace gpuperf::bindings {

void DefineTables(pybind11::module_& module);

}  // namespace gpuperf::bindings

#endif  // GPUPERF_BINDINGS_TABLES_BINDING_H_
