// Names for people: C++ symbols as the compiler spelled them. Pure; any thread.
#ifndef GPUPERF_ANALYSIS_DEMANGLE_H_
#define GPUPERF_ANALYSIS_DEMANGLE_H_

#include <string>

namespace gpuperf::analysis {

// The source form of a mangled name; what is not one (extern "C", Triton kernels) comes back as it is.
std::string Demangle(const std::string& name);

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_DEMANGLE_H_
