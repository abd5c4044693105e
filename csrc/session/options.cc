#include "session/options.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/log.h"
#include "session/json.h"

namespace gpuperf::session {
namespace {

// Variables of the project's own tests and tools.
constexpr std::string_view kOwnPrefixes[] = {"GPUPERF_TEST_", "GPUPERF_FAKE_", "GPUPERF_RECORD"};

// As an output: none. "" says the same where it can be told from "not set", which a variable cannot.
constexpr std::string_view kNoFile = "/dev/null";

bool ParseValue(std::string_view text, bool* value) {
  if (text == "1" || text == "true" || text == "yes" || text == "on") {
    *value = true;
  } else if (text == "0" || text == "false" || text == "no" || text == "off") {
    *value = false;
  } else {
    return false;
  }
  return true;
}

// Digits, with K, M or G (of 1024) behind them.
bool ParseValue(std::string_view text, uint64_t* value) {
  uint64_t number = 0;
  size_t digits = 0;
  for (; digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0; ++digits) {
    if (number > (UINT64_MAX - 9) / 10) return false;
    number = number * 10 + static_cast<uint64_t>(text[digits] - '0');
  }
  if (digits == 0) return false;
  unsigned shift = 0;
  if (digits + 1 == text.size()) {
    switch (text[digits]) {
      case 'K':
        shift = 10;
        break;
      case 'M':
        shift = 20;
        break;
      case 'G':
        shift = 30;
        break;
      default:
        return false;
    }
  } else if (digits != text.size()) {
    return false;
  }
  if (number > (UINT64_MAX >> shift)) return false;
  *value = number << shift;
  return true;
}

bool ParseValue(std::string_view text, std::string* value) {
  *value = text;
  return true;
}

std::string ToText(bool value) { return value ? "1" : "0"; }
std::string ToText(uint64_t value) { return std::to_string(value); }
std::string ToText(const std::string& value) { return value; }

// The last value of `name` among those given; false if it is not among them. A null value means: not given.
bool Given(const gpuperf_option* given, size_t count, const char* name, const char** value) {
  for (size_t i = count; i-- > 0;) {
    if (given[i].name != nullptr && std::strcmp(given[i].name, name) == 0) {
      *value = given[i].value;
      return true;
    }
  }
  return false;
}

// Set to nothing is not set, as shells have it.
const char* Variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

// The table's types are C++ names: bool_ and int_ for what users call bool and int.
const char* TypeName(std::string_view type) {
  if (type == "bool_") return "bool";
  if (type == "int_") return "int";
  return type.data();
}

bool Check(const Options& options, std::string* error) {
  const uint64_t ring = options.ring_bytes;
  if (ring < 4096 || ring > (uint64_t{1} << 30) || (ring & (ring - 1)) != 0) {
    *error = base::Format("ring-bytes must be a power of two from 4096 to 1 GiB, not %llu",
                          static_cast<unsigned long long>(ring));
    return false;
  }
  if (options.pool_bytes < 65536) {
    *error = "pool-bytes must be at least 65536";
    return false;
  }
  if (options.max_part_bytes < (uint64_t{1} << 20)) {
    *error = "max-part-bytes must be at least 1 MiB (1048576)";
    return false;
  }
  if (options.flush_ms < 10 || options.flush_ms > 60000) {
    *error = "flush-ms must be from 10 to 60000";
    return false;
  }
  if (options.graphs != "node" && options.graphs != "graph") {
    *error = base::Format("graphs must be node or graph, not '%s'", options.graphs.c_str());
    return false;
  }
  base::LogLevel level{};
  if (!base::ParseLogLevel(options.log, &level)) {
    *error = base::Format("log must be error, warning, info or debug, not '%s'", options.log.c_str());
    return false;
  }
  return true;
}

}  // namespace

bool DisabledByEnvironment() {
  const char* text = Variable("GPUPERF_DISABLE");
  bool disabled = false;
  return text != nullptr && ParseValue(text, &disabled) && disabled;
}

bool NvtxWanted() {
  const char* text = Variable("GPUPERF_NVTX");
  bool wanted = true;
  return !DisabledByEnvironment() && (text == nullptr || !ParseValue(text, &wanted) || wanted);
}

bool ParseOptions(const gpuperf_option* given, size_t count, Options* options, std::string* error) {
  for (size_t i = 0; i < count; ++i) {
    bool known = false;
#define GPUPERF_OPTION(field, option, type, fallback, env, help) \
  known = known || (given[i].name != nullptr && std::strcmp(given[i].name, option) == 0);
#include "session/options.def"
#undef GPUPERF_OPTION
    if (!known) {
      *error = base::Format("unknown option '%s'; the options are listed in docs/options.md",
                            given[i].name == nullptr ? "" : given[i].name);
      return false;
    }
  }
#define GPUPERF_OPTION(field, option, type, fallback, env, help)                                                   \
  {                                                                                                                \
    const char* value = nullptr;                                                                                   \
    const char* source = option;                                                                                   \
    if (!Given(given, count, option, &value)) {                                                                    \
      value = Variable(env);                                                                                       \
      source = env;                                                                                                \
    } else if (value == nullptr && std::strcmp(option, "output") == 0) {                                           \
      value = "";                                                                                                  \
    }                                                                                                              \
    if (!ParseValue(value == nullptr ? fallback : value, &options->field)) {                                       \
      *error = base::Format("'%s' is no value for %s, which is of type %s", value == nullptr ? "" : value, source, \
                            TypeName(#type));                                                                      \
      return false;                                                                                                \
    }                                                                                                              \
  }
#include "session/options.def"
#undef GPUPERF_OPTION
  if (options->output == kNoFile) options->output.clear();
  return Check(*options, error);
}

std::vector<std::pair<std::string, std::string>> DescribeOptions(const Options& options) {
  std::vector<std::pair<std::string, std::string>> described;
#define GPUPERF_OPTION(field, name, type, fallback, env, help) described.emplace_back(name, ToText(options.field));
#include "session/options.def"
#undef GPUPERF_OPTION
  return described;
}

std::vector<std::string> UnknownVariables() {
  std::vector<std::string> unknown;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view entry(*variable);
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.substr(0, 8) != "GPUPERF_") continue;
    bool known = false;
    for (const std::string_view prefix : kOwnPrefixes) known = known || name.substr(0, prefix.size()) == prefix;
#define GPUPERF_OPTION(field, option, type, fallback, env, help) known = known || name == env;
#include "session/options.def"
#undef GPUPERF_OPTION
    if (!known) unknown.emplace_back(name);
  }
  return unknown;
}

const std::string& OptionTableJson() {
  static const auto* table = [] {
    JsonArray array;
    const auto add = [&](const char* name, std::string_view type, const char* fallback, const char* env,
                         const char* help) {
      array.Add(JsonObject()
                    .AddString("name", name)
                    .AddString("type", TypeName(type))
                    .AddString("default", fallback)
                    .AddString("env", env)
                    .AddString("help", help)
                    .Text());
    };
#define GPUPERF_OPTION(field, name, type, fallback, env, help) add(name, #type, fallback, env, help);
#include "session/options.def"
#undef GPUPERF_OPTION
    return new std::string(array.Text());
  }();
  return *table;
}

}  // namespace gpuperf::session
