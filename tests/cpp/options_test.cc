#include "session/options.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "catch.h"

using gpuperf::session::DescribeOptions;
using gpuperf::session::DisabledByEnvironment;
using gpuperf::session::Options;
using gpuperf::session::OptionTableJson;
using gpuperf::session::ParseOptions;
using gpuperf::session::UnknownVariables;

namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

bool Parse(std::vector<gpuperf_option> given, Options* options, std::string* error) {
  return ParseOptions(given.data(), given.size(), options, error);
}

}  // namespace

TEST_CASE("what is given beats the environment, which beats the default") {
  Options options;
  std::string error;
  REQUIRE(Parse({}, &options, &error));
  CHECK(options.flush_ms == 200);
  CHECK(options.hooks);
  const Variable flush("GPUPERF_FLUSH_MS", "300");
  const Variable hooks("GPUPERF_HOOKS", "0");
  REQUIRE(Parse({}, &options, &error));
  CHECK(options.flush_ms == 300);
  CHECK_FALSE(options.hooks);
  REQUIRE(Parse({{"flush-ms", "400"}}, &options, &error));
  CHECK(options.flush_ms == 400);
}

TEST_CASE("an empty variable is none") {
  Options options;
  std::string error;
  REQUIRE(Parse({}, &options, &error));
  const auto defaults = DescribeOptions(options);
#define GPUPERF_OPTION(field, name, type, fallback, env, help) \
  {                                                            \
    INFO(env);                                                 \
    const Variable empty(env, "");                             \
    CHECK(Parse({}, &options, &error));                        \
    CHECK(DescribeOptions(options) == defaults);               \
  }
#include "session/options.def"
#undef GPUPERF_OPTION
}

TEST_CASE("/dev/null is no file") {
  Options options;
  std::string error;
  REQUIRE(Parse({{"output", "/dev/null"}}, &options, &error));
  CHECK(options.output.empty());
  const Variable output("GPUPERF_OUTPUT", "/dev/null");
  REQUIRE(Parse({}, &options, &error));
  CHECK(options.output.empty());
}

TEST_CASE("GPUPERF_DISABLE is read by itself") {
  CHECK_FALSE(DisabledByEnvironment());
  const Variable wrong("GPUPERF_FLUSH_MS", "soon");
  for (const char* text : {"0", "", "off", "maybe"}) {
    const Variable disable("GPUPERF_DISABLE", text);
    CHECK_FALSE(DisabledByEnvironment());
  }
  const Variable disable("GPUPERF_DISABLE", "1");
  CHECK(DisabledByEnvironment());
}

TEST_CASE("values are read as people write them") {
  Options options;
  std::string error;
  REQUIRE(Parse({{"pool-bytes", "32M"}, {"ring-bytes", "256K"}, {"quiet", "yes"}}, &options, &error));
  CHECK(options.pool_bytes == 32U << 20);
  CHECK(options.ring_bytes == 256U << 10);
  CHECK(options.quiet);
  REQUIRE(Parse({{"output", nullptr}}, &options, &error));  // live state only
  CHECK(options.output.empty());
}

TEST_CASE("what does not fit is refused with its name") {
  Options options;
  const std::vector<std::pair<gpuperf_option, std::string>> cases = {
      {{"no-such", "1"}, "no-such"},
      {{"quiet", "maybe"}, "quiet"},
      {{"quiet", ""}, "quiet"},
      {{"ring-bytes", "5000"}, "ring-bytes"},
      {{"ring-bytes", "-1"}, "ring-bytes"},
      {{"flush-ms", "1"}, "flush-ms"},
      {{"flush-ms", "99999999999999999999"}, "flush-ms"},
      {{"log", "loud"}, "log"},
      {{"pool-bytes", "1G1"}, "pool-bytes"},
      {{"max-part-bytes", "10"}, "max-part-bytes"},
  };
  for (const auto& [option, name] : cases) {
    std::string error;
    INFO(option.name << "=" << option.value);
    CHECK_FALSE(Parse({option}, &options, &error));
    CHECK(error.find(name) != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("unknown variables of ours are found, others left alone") {
  const Variable typo("GPUPERF_OUTPTU", "x");
  const Variable known("GPUPERF_QUIET", "1");
  const Variable test("GPUPERF_TEST_BUILD", "x");
  const auto unknown = UnknownVariables();
  CHECK(std::count(unknown.begin(), unknown.end(), "GPUPERF_OUTPTU") == 1);
  CHECK(std::count(unknown.begin(), unknown.end(), "GPUPERF_QUIET") == 0);
  CHECK(std::count(unknown.begin(), unknown.end(), "GPUPERF_TEST_BUILD") == 0);
}

TEST_CASE("the table names types as users do") {
  CHECK(OptionTableJson().find(R"("name": "quiet", "type": "bool")") != std::string::npos);
  CHECK(OptionTableJson().find("bool_") == std::string::npos);
}
