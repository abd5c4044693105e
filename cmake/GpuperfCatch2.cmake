# Catch2, version 2 or 3 (distributions differ): GPUPERF_CATCH2_SOURCE_DIR (a source tree), else the installed one.
# Target gpuperf_catch2; tests include "catch.h", which hides the difference.
set(GPUPERF_CATCH2_SOURCE_DIR "" CACHE PATH "Catch2 source tree to use instead of the installed package")
if(GPUPERF_CATCH2_SOURCE_DIR)
  set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
  add_subdirectory(${GPUPERF_CATCH2_SOURCE_DIR} ${CMAKE_BINARY_DIR}/catch2 EXCLUDE_FROM_ALL SYSTEM)
else()
  find_package(Catch2 REQUIRED)
endif()
add_library(gpuperf_catch2 INTERFACE)
target_link_libraries(gpuperf_catch2 INTERFACE Catch2::Catch2)
