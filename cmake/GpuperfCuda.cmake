# Headers of CUDA, CUPTI and NVTX3, and the path of a real libcupti: only tests and tools use them. libgpuperf.so itself
# is built without them, because it knows CUPTI only through dlopen and its own record views.
#
# Looked for in GPUPERF_CUDA_ROOT, an installed toolkit (CUDA_HOME, CUDA_PATH, nvcc's), then the PyPI wheels
# nvidia-cuda-cupti, nvidia-cuda-runtime, nvidia-cuda-crt and nvidia-nvtx of the active Python environment.
# Makes targets gpuperf_cuda_headers, gpuperf_cupti_headers and gpuperf_nvtx_headers, each only if they are here, and
# GPUPERF_CUPTI_LIBRARY. What is missing is said, and what needs it is skipped.
include_guard(GLOBAL)
set(GPUPERF_CUDA_ROOT "" CACHE PATH "CUDA toolkit, or a folder with include/ and lib/, that tests and tools are built with")

find_package(CUDAToolkit QUIET)
find_package(Python3 QUIET COMPONENTS Interpreter)
set(gpuperf_cuda_wheels)
if(Python3_Interpreter_FOUND)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c
            "import importlib.util as u; s = u.find_spec('nvidia'); print(';'.join(s.submodule_search_locations) if s else '', end='')"
    OUTPUT_VARIABLE gpuperf_nvidia_packages ERROR_QUIET)
  foreach(package IN LISTS gpuperf_nvidia_packages)
    list(APPEND gpuperf_cuda_wheels ${package}/cu13 ${package}/cuda_cupti ${package}/cuda_runtime ${package}/nvtx)
  endforeach()
endif()
set(gpuperf_cuda_places ${GPUPERF_CUDA_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH} ${CUDAToolkit_INCLUDE_DIRS}
                        ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT} ${gpuperf_cuda_wheels})

# gpuperf_find_headers(NAME HEADER): target gpuperf_NAME_headers with the folder that holds HEADER.
function(gpuperf_find_headers name header)
  string(TOUPPER ${name} upper)
  find_path(GPUPERF_${upper}_INCLUDE ${header} HINTS ${gpuperf_cuda_places}
            PATH_SUFFIXES include extras/CUPTI/include NO_CACHE)
  if(NOT GPUPERF_${upper}_INCLUDE)
    message(STATUS "${header}: not found; tests and tools that need it are left out (install a CUDA toolkit, or the "
                   "PyPI wheels nvidia-cuda-cupti, nvidia-cuda-runtime, nvidia-cuda-crt and nvidia-nvtx)")
    return()
  endif()
  add_library(gpuperf_${name}_headers INTERFACE)
  target_include_directories(gpuperf_${name}_headers SYSTEM INTERFACE ${GPUPERF_${upper}_INCLUDE})
endfunction()

gpuperf_find_headers(cuda cuda.h)
if(TARGET gpuperf_cuda_headers)
  gpuperf_find_headers(cupti cupti.h)
endif()
if(TARGET gpuperf_cupti_headers)
  target_link_libraries(gpuperf_cupti_headers INTERFACE gpuperf_cuda_headers)
endif()
gpuperf_find_headers(nvtx nvtx3/nvToolsExt.h)

find_file(GPUPERF_CUPTI_LIBRARY NAMES libcupti.so.13 libcupti.so.12 HINTS ${gpuperf_cuda_places}
          PATH_SUFFIXES lib lib64 extras/CUPTI/lib64)
if(NOT GPUPERF_CUPTI_LIBRARY)
  message(STATUS "libcupti: not found; tests that walk records with the real one are left out")
endif()
