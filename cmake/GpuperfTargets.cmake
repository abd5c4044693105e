# gpuperf_library(NAME SOURCES… [LINKS libraries…]): one folder of csrc/ as an object library gpuperf_<NAME>.
#
# An object library sees only what LINKS names, which keeps the dependency directions of docs/architecture.md real;
# tests/python/test_layering.py holds the includes against them too.
add_library(gpuperf_flags INTERFACE)
target_include_directories(gpuperf_flags INTERFACE ${PROJECT_SOURCE_DIR}/csrc ${PROJECT_SOURCE_DIR}/csrc/include)
target_compile_options(gpuperf_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                               -Wnon-virtual-dtor -Wold-style-cast)
target_compile_definitions(gpuperf_flags INTERFACE GPUPERF_VERSION="${PROJECT_VERSION}")
target_link_libraries(gpuperf_flags INTERFACE Threads::Threads)

function(gpuperf_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(gpuperf_${name} OBJECT ${arg_SOURCES})
  target_link_libraries(gpuperf_${name} PUBLIC gpuperf_flags ${arg_LINKS})
endfunction()
