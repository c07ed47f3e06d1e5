# ds_library(NAME SRCS ... DEPS ...): one folder, one library. Includes are written from src/ and include/.
function(ds_library name)
  cmake_parse_arguments(A "" "" "SRCS;DEPS" ${ARGN})
  add_library(ds_${name} STATIC ${A_SRCS})
  target_include_directories(ds_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(ds_${name} PUBLIC ${A_DEPS})
endfunction()

# ds_test(NAME SRCS ... DEPS ...): one folder, one GoogleTest binary, known to ctest test by test.
function(ds_test name)
  if(NOT DS_BUILD_TESTS)
    return()
  endif()
  include(GoogleTest)
  cmake_parse_arguments(A "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name}_test ${A_SRCS})
  target_link_libraries(${name}_test PRIVATE ${A_DEPS} GTest::gmock GTest::gtest_main)
  # jemalloc takes more locks around a fork than the thread sanitizer's search for deadlocks can count. Under it a test
  # takes up to thirty times as long.
  gtest_discover_tests(${name}_test TEST_PREFIX "${name}/" DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT 300 ENVIRONMENT "TSAN_OPTIONS=detect_deadlocks=0")
endfunction()
