# find_package(Datasystem) defines the target `datasystem`, also as Datasystem::datasystem.
include(${CMAKE_CURRENT_LIST_DIR}/DatasystemTargets.cmake)
if(NOT TARGET Datasystem::datasystem)
  add_library(Datasystem::datasystem ALIAS datasystem)
endif()
