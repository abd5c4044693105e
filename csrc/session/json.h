// JSON text, as far as the C interface needs it. Any thread; plain strings.
#ifndef GPUPERF_SESSION_JSON_H_
#define GPUPERF_SESSION_JSON_H_

#include <cstdio>
#include <string>
#include <string_view>

namespace gpuperf::session {

inline std::string JsonString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      quoted += escaped;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// "{" name: value, … "}"; values are JSON already.
class JsonObject {
 public:
  JsonObject& Add(std::string_view name, std::string_view json) {
    body_ += (body_.empty() ? "" : ", ") + JsonString(name) + ": " + std::string(json);
    return *this;
  }
  JsonObject& AddString(std::string_view name, std::string_view text) { return Add(name, JsonString(text)); }
  JsonObject& AddBool(std::string_view name, bool value) { return Add(name, value ? "true" : "false"); }
  JsonObject& AddNumber(std::string_view name, unsigned long long value) { return Add(name, std::to_string(value)); }
  std::string Text() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

class JsonArray {
 public:
  void Add(std::string_view json) { body_ += (body_.empty() ? "" : ", ") + std::string(json); }
  std::string Text() const { return "[" + body_ + "]"; }

 private:
  std::string body_;
};

}  // namespace gpuperf::session

#endif  // GPUPERF_SESSION_JSON_H_
