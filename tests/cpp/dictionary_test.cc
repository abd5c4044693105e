#include "collector/dictionary.h"

#include <random>
#include <set>
#include <string>
#include <unordered_map>

#include "catch.h"

using gpuperf::collector::CallSite;
using gpuperf::collector::CallSiteTable;
using gpuperf::collector::HashBytes;
using gpuperf::collector::StringTable;

TEST_CASE("a table agrees with a map, whatever is interned and however it grows") {
  StringTable table;
  std::unordered_map<std::string, uint32_t> model;
  std::mt19937 random(3);
  for (int i = 0; i < 50'000; ++i) {
    std::string name(random() % 20, '\0');
    for (char& c : name) c = static_cast<char>("\0abz"[random() % 4]);
    const auto [known, added] = model.try_emplace(name, static_cast<uint32_t>(model.size()) + 1);
    REQUIRE(table.Intern(name) == known->second);
    REQUIRE(table.EntryOf(known->second) == name);
  }
  REQUIRE(table.entries().size() == model.size());
  for (size_t i = 0; i < table.entries().size(); ++i) REQUIRE(model.at(table.entries()[i]) == table.IidOf(i));
}

TEST_CASE("after a restart no number gets a second meaning") {
  StringTable table;
  CHECK(table.Intern("a") == 1);
  CHECK(table.Intern("b") == 2);
  table.MarkWritten();
  CHECK(table.written() == 2);
  table.Restart();
  CHECK(table.entries().empty());
  CHECK(table.written() == 0);
  CHECK(table.Intern("b") == 3);
  CHECK(table.Intern("a") == 4);
  CHECK(table.Intern("b") == 3);
  CHECK(table.EntryOf(4) == "a");
  CHECK(table.IidOf(0) == 3);
}

TEST_CASE("call sites are told apart by each of their fields") {
  CallSiteTable table;
  const CallSite plain{0x1234, 1, 2, 3, 2, 0, 0};
  std::set<uint32_t> iids = {table.Intern(plain)};
  CallSite other = plain;
  other.stream_handle = 0x1235;
  iids.insert(table.Intern(other));
  other = plain;
  other.function_name_iid = 9;
  iids.insert(table.Intern(other));
  other = plain;
  other.context = 9;
  iids.insert(table.Intern(other));
  other = plain;
  other.cbid = 9;
  iids.insert(table.Intern(other));
  other = plain;
  other.domain = 1;
  iids.insert(table.Intern(other));
  other = plain;
  other.capture = 1;
  iids.insert(table.Intern(other));
  CHECK(iids.size() == 7);
  CHECK(table.Intern(plain) == 1);
}

TEST_CASE("hashes spread names that differ by a number only") {
  // In a table of 2^16 places, 2^15 names: a good hash leaves about 1 - e^-0.5 = 39 % of the places taken.
  std::set<uint64_t> places;
  for (int i = 0; i < 1 << 15; ++i) places.insert(HashBytes("_Z12gemm_kernel_" + std::to_string(i)) & 0xFFFF);
  CHECK(places.size() > 20'000);
}
