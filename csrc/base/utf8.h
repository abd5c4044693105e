// Protobuf's `string` must be UTF-8, and a message that holds anything else cannot be parsed at all. Command lines,
// paths and host names are bytes of any kind, so they pass through here on their way into such a field.
// Any thread; no state.
#ifndef GPUPERF_BASE_UTF8_H_
#define GPUPERF_BASE_UTF8_H_

#include <string>
#include <string_view>

namespace gpuperf::base {

// `text` with each byte that is not part of a well-formed character replaced by U+FFFD.
std::string ValidUtf8(std::string_view text);

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_UTF8_H_
