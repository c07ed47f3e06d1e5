# What `cmake --install --component sdk` lays out: include/, lib/libdatasystem.so, lib/cmake/Datasystem/.
# The worker and the Python package are put together by scripts/make_packages.py, which has to follow the
# closure of shared libraries and runs after the build.
include(CMakePackageConfigHelpers)

set(DS_CMAKE_DIR lib/cmake/Datasystem)
install(DIRECTORY include/datasystem DESTINATION include COMPONENT sdk FILES_MATCHING PATTERN "*.h")
if(TARGET datasystem)
  target_include_directories(datasystem INTERFACE $<INSTALL_INTERFACE:include>)
  install(TARGETS datasystem EXPORT DatasystemTargets LIBRARY DESTINATION lib COMPONENT sdk)
  install(EXPORT DatasystemTargets DESTINATION ${DS_CMAKE_DIR} COMPONENT sdk)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/DatasystemConfigVersion.cmake
    VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
  install(FILES cmake/DatasystemConfig.cmake ${CMAKE_BINARY_DIR}/DatasystemConfigVersion.cmake
    DESTINATION ${DS_CMAKE_DIR} COMPONENT sdk)
endif()
