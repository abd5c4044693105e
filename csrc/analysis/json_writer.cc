#include "analysis/json_writer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gpuperf::analysis {
namespace {

// Bytes of the UTF-8 sequence that begins at `at`; 0 if none does (also for surrogates and overlong forms).
size_t Utf8Length(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const auto follows = [&](size_t i, unsigned least = 0x80, unsigned most = 0xBF) {
    return byte(i) >= least && byte(i) <= most;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    return follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    return follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string JsonQuoted(absl::string_view text) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    const char c = text[at];
    if (length == 0) {
      quoted += "\\ufffd";
    } else if (length > 1) {
      quoted.append(text.data() + at, length);
    } else if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      quoted += c;
    }
    at += length == 0 ? 1 : length;
  }
  quoted += '"';
  return quoted;
}

JsonWriter& JsonWriter::Raw(absl::string_view text) {
  if (comma_) text_ += ',';
  absl::StrAppend(&text_, text);
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Open(char bracket) {
  Raw(absl::string_view(&bracket, 1));
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  comma_ = false;
  return Raw(absl::string_view(&bracket, 1));
}

JsonWriter& JsonWriter::Key(absl::string_view key) {
  Raw(JsonQuoted(key));
  text_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) { return Raw(absl::StrCat(value)); }
JsonWriter& JsonWriter::Uint(uint64_t value) { return Raw(absl::StrCat(value)); }
JsonWriter& JsonWriter::String(absl::string_view value) { return Raw(JsonQuoted(value)); }

}  // namespace gpuperf::analysis
