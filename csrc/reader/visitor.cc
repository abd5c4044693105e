#include "reader/visitor.h"

namespace gpuperf::reader {

Visitor::~Visitor() = default;

}  // namespace gpuperf::reader
