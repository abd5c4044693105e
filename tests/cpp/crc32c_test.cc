#include "base/crc32c.h"

#include <string>

#include "catch.h"

namespace gpuperf::base {
namespace {

// Bit by bit, as the polynomial says it.
uint32_t Reference(const std::string& text) {
  uint32_t crc = ~0u;
  for (const char c : text) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 != 0 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

}  // namespace

TEST_CASE("the standard's check value") {
  CHECK(Crc32c("123456789", 9) == 0xE3069283u);
  CHECK(Crc32c("", 0) == 0);
}

TEST_CASE("every length and alignment gives what the polynomial says") {
  std::string text;
  for (int i = 0; i < 300; ++i) text.push_back(static_cast<char>(i * 37 + i / 7));
  for (size_t start = 0; start < 9; ++start) {
    for (size_t length = 0; start + length <= text.size(); length += length < 40 ? 1 : 13) {
      INFO("start " << start << " length " << length);
      REQUIRE(Crc32c(text.data() + start, length) == Reference(text.substr(start, length)));
    }
  }
}

}  // namespace gpuperf::base
