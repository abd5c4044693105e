# What is installed. With GPUPERF_PYTHON the component "python" is the content of the wheel beside the Python sources:
# the destinations are relative to site-packages. Without it, `cmake --install` lays out a C++ installation.
if(GPUPERF_PYTHON)
  set(gpuperf_install_library gpuperf)
  set(gpuperf_install_include gpuperf/include)
  foreach(module _core _analysis)
    if(TARGET ${module})
      install(TARGETS ${module} LIBRARY DESTINATION gpuperf COMPONENT python)
    endif()
  endforeach()
  # The start-up file has to lie in the root of site-packages, where Python looks for *.pth.
  install(FILES ${PROJECT_SOURCE_DIR}/python/gpuperf.pth DESTINATION . COMPONENT python)
else()
  set(gpuperf_install_library ${CMAKE_INSTALL_LIBDIR})
  set(gpuperf_install_include ${CMAKE_INSTALL_INCLUDEDIR})
endif()

if(TARGET gpuperf)
  install(TARGETS gpuperf LIBRARY DESTINATION ${gpuperf_install_library} COMPONENT python)
  install(FILES ${PROJECT_SOURCE_DIR}/csrc/include/gpuperf/gpuperf.h
          DESTINATION ${gpuperf_install_include}/gpuperf COMPONENT python)
endif()
