// How the offline half's errors and Python's cross each other's borders.
#ifndef GPUPERF_BINDINGS_ERRORS_H_
#define GPUPERF_BINDINGS_ERRORS_H_

#include <pybind11/pybind11.h>

#include <exception>
#include <functional>

#include "absl/status/status.h"

namespace gpuperf::bindings {

// What a Python callback may raise has to pass through code that knows no exceptions of Python's: it is kept here, the
// reading stops, and it is raised again outside.
class Callback {
 public:
  // Calls `call` with the GIL; false if it raised (or Ctrl-C came), which Raise() raises.
  bool Call(const std::function<void()>& call);
  bool has_raised() const { return raised_ != nullptr; }
  void Raise() const {
    if (raised_ != nullptr) std::rethrow_exception(raised_);
  }

 private:
  std::exception_ptr raised_;
};

// Raises the module's exception for a status, with the GIL; returns if it is OK.
void RaiseIfBad(const absl::Status& status);

// Makes the module's exceptions.
void DefineErrors(pybind11::module_& module);

}  // namespace gpuperf::bindings

#endif  // GPUPERF_BINDINGS_ERRORS_H_
