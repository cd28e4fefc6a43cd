# SPDX-License-Identifier: Apache-2.0
#
# Finds GoogleTest: an installed one (apt: libgtest-dev), else its sources in /usr/src/googletest.
# Defines GTest::gtest_main, in the folder that includes this: an installed one is known where it was found only.
if(TARGET GTest::gtest_main)
  return()
endif()

find_package(GTest QUIET)
if(NOT TARGET GTest::gtest_main)
  if(NOT EXISTS /usr/src/googletest/CMakeLists.txt)
    message(FATAL_ERROR "GoogleTest was not found: install libgtest-dev, or configure without tests.")
  endif()
  add_subdirectory(/usr/src/googletest "${CMAKE_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
  if(NOT TARGET GTest::gtest_main)  # later versions define it themselves
    add_library(GTest::gtest_main ALIAS gtest_main)
  endif()
endif()
