#include "base/utf8.h"

#include "catch.h"

using gpuperf::base::ValidUtf8;

TEST_CASE("well-formed UTF-8 stays as it is") {
  for (const char* text :
       {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    CHECK(ValidUtf8(text) == text);
  }
}

TEST_CASE("each byte of anything else becomes U+FFFD") {
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(ValidUtf8("a\xFFz") == "a" + bad + "z");
  CHECK(ValidUtf8("\x80") == bad);
  CHECK(ValidUtf8("\xC3") == bad);  // cut short
  CHECK(ValidUtf8("\xC3(") == bad + "(");
  CHECK(ValidUtf8("\xC0\xAF") == bad + bad);                      // overlong
  CHECK(ValidUtf8("\xE0\x80\x80") == bad + bad + bad);            // overlong
  CHECK(ValidUtf8("\xED\xA0\x80") == bad + bad + bad);            // surrogate
  CHECK(ValidUtf8("\xF4\x90\x80\x80") == bad + bad + bad + bad);  // beyond U+10FFFF
  CHECK(ValidUtf8("\xE2\x82") == bad + bad);
}
