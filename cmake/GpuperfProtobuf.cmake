# Protobuf and the generated schema: GPUPERF_PROTOBUF_SOURCE_DIR (a source tree, built here) with GPUPERF_PROTOC, else
# the installed library and compiler. Target gpuperf_proto.
set(GPUPERF_PROTOBUF_SOURCE_DIR "" CACHE PATH "Protobuf source tree to build instead of the installed library")
set(GPUPERF_PROTOC "" CACHE FILEPATH "protoc of the same version as the library")
if(GPUPERF_PROTOBUF_SOURCE_DIR)
  set(protobuf_BUILD_TESTS OFF CACHE BOOL "" FORCE)
  set(protobuf_INSTALL OFF CACHE BOOL "" FORCE)
  set(protobuf_WITH_ZLIB OFF CACHE BOOL "" FORCE)
  set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
  add_subdirectory(${GPUPERF_PROTOBUF_SOURCE_DIR} ${CMAKE_BINARY_DIR}/protobuf EXCLUDE_FROM_ALL SYSTEM)
  set(gpuperf_protobuf_library protobuf::libprotobuf)
  if(NOT GPUPERF_PROTOC)
    set(GPUPERF_PROTOC $<TARGET_FILE:protobuf::protoc>)
  endif()
else()
  find_package(Protobuf REQUIRED)
  set(gpuperf_protobuf_library protobuf::libprotobuf)
  if(NOT GPUPERF_PROTOC)
    set(GPUPERF_PROTOC ${Protobuf_PROTOC_EXECUTABLE})
  endif()
endif()

set(gpuperf_proto_dir ${CMAKE_BINARY_DIR}/proto)
set(gpuperf_proto_files)
set(gpuperf_proto_generated)
foreach(name trace events metadata)
  list(APPEND gpuperf_proto_files ${PROJECT_SOURCE_DIR}/proto/gpuperf/trace/v1/${name}.proto)
  list(APPEND gpuperf_proto_generated ${gpuperf_proto_dir}/gpuperf/trace/v1/${name}.pb.cc)
endforeach()
file(MAKE_DIRECTORY ${gpuperf_proto_dir})
add_custom_command(
  OUTPUT ${gpuperf_proto_generated}
  COMMAND ${GPUPERF_PROTOC} -I${PROJECT_SOURCE_DIR}/proto --cpp_out=${gpuperf_proto_dir}
          --python_out=${gpuperf_proto_dir} ${gpuperf_proto_files}
  DEPENDS ${gpuperf_proto_files}
  COMMENT "Generating the trace schema"
  VERBATIM)
add_library(gpuperf_proto OBJECT ${gpuperf_proto_generated})
target_include_directories(gpuperf_proto SYSTEM PUBLIC ${gpuperf_proto_dir})
target_link_libraries(gpuperf_proto PUBLIC ${gpuperf_protobuf_library} Threads::Threads)
target_compile_options(gpuperf_proto PRIVATE -w)
