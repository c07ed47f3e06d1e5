# find_package(Datasystem): the target Datasystem::datasystem, also known as datasystem.
include("${CMAKE_CURRENT_LIST_DIR}/DatasystemTargets.cmake")
if(NOT TARGET datasystem)
  add_library(datasystem INTERFACE IMPORTED)
  target_link_libraries(datasystem INTERFACE Datasystem::datasystem)
endif()
set(Datasystem_LIBRARIES Datasystem::datasystem)
