// Catch2, whichever of version 2 (catch2/catch.hpp) and 3 (catch2/catch_all.hpp) is installed. Use only what both have:
// TEST_CASE, SECTION, REQUIRE, CHECK, INFO.
#ifndef GPUPERF_TESTS_CPP_CATCH_H_
#define GPUPERF_TESTS_CPP_CATCH_H_

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#endif  // GPUPERF_TESTS_CPP_CATCH_H_
