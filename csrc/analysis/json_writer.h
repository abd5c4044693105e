// Writes one JSON text. One thread; the caller keeps the order of calls right (a key before each value in an object).
// Strings that are not UTF-8 get U+FFFD for each wrong byte. Numbers are exact integers; what is not known is Null(),
// never 0.
#ifndef GPUPERF_ANALYSIS_JSON_WRITER_H_
#define GPUPERF_ANALYSIS_JSON_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace gpuperf::analysis {

// `text` in double quotes, escaped as JSON has it.
std::string JsonQuoted(absl::string_view text);

class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(absl::string_view key);

  JsonWriter& Null() { return Raw("null"); }
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Int(int64_t value);
  JsonWriter& Uint(uint64_t value);
  JsonWriter& String(absl::string_view value);

  // "key": value
  JsonWriter& Int(absl::string_view key, int64_t value) { return Key(key).Int(value); }
  JsonWriter& Uint(absl::string_view key, uint64_t value) { return Key(key).Uint(value); }
  JsonWriter& Bool(absl::string_view key, bool value) { return Key(key).Bool(value); }
  JsonWriter& String(absl::string_view key, absl::string_view value) { return Key(key).String(value); }
  JsonWriter& Int(absl::string_view key, const std::optional<int64_t>& value) {
    return value ? Int(key, *value) : Key(key).Null();
  }
  JsonWriter& Uint(absl::string_view key, const std::optional<uint64_t>& value) {
    return value ? Uint(key, *value) : Key(key).Null();
  }

  std::string Take() { return std::move(text_); }

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  JsonWriter& Raw(absl::string_view text);

  std::string text_;
  bool comma_ = false;
};

}  // namespace gpuperf::analysis

#endif  // GPUPERF_ANALYSIS_JSON_WRITER_H_
