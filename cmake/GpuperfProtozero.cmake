# protozero (header-only Protobuf wire format): GPUPERF_PROTOZERO_SOURCE_DIR (a folder that holds include/protozero),
# else the installed headers (Debian: libprotozero-dev).
set(GPUPERF_PROTOZERO_SOURCE_DIR "" CACHE PATH "Folder that holds include/protozero")
find_path(GPUPERF_PROTOZERO_INCLUDE protozero/pbf_builder.hpp
          HINTS ${GPUPERF_PROTOZERO_SOURCE_DIR}/include ${GPUPERF_PROTOZERO_SOURCE_DIR} REQUIRED)
add_library(gpuperf_protozero INTERFACE)
target_include_directories(gpuperf_protozero SYSTEM INTERFACE ${GPUPERF_PROTOZERO_INCLUDE})
