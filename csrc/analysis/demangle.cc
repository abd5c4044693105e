#include "analysis/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace gpuperf::analysis {

std::string Demangle(const std::string& name) {
  // Without the prefix the demangler would read "f" as the type float; and it recurses, so a name that no compiler
  // makes is left alone.
  constexpr size_t kLongest = 16 << 10;
  if (name.compare(0, 2, "_Z") != 0 || name.size() > kLongest) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                          &std::free);
  return status == 0 && plain != nullptr ? std::string(plain.get()) : name;
}

}  // namespace gpuperf::analysis
