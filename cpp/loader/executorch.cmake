# SPDX-License-Identifier: Apache-2.0
#
# etvk_guard_executorch_headers: an interface target with the headers of an ExecuTorch, for what needs no more of it. In this order:
#   1. ETVK_GUARD_EXECUTORCH_INCLUDE  include folders (;-list), the first of which holds executorch/
#   2. find_package(executorch)       found by executorch_DIR, CMAKE_PREFIX_PATH or
#   3. the PyPI package `executorch`  in the Python that find_package(Python3) chose
include_guard(GLOBAL)
set(ETVK_GUARD_EXECUTORCH_INCLUDE "" CACHE STRING "Include folders of ExecuTorch, Vulkan, volk and VMA")

function(etvk_guard_find_executorch out)
  if(NOT executorch_DIR)
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" -c
        "import importlib.util as u; print(list(u.find_spec('executorch').submodule_search_locations)[0], end='')"
      OUTPUT_VARIABLE package ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      set(hints HINTS "${package}/share/cmake" NO_CMAKE_FIND_ROOT_PATH)
    endif()
  endif()
  find_package(executorch CONFIG QUIET ${hints})
  set(${out} "${EXECUTORCH_INCLUDE_DIRS}" PARENT_SCOPE)
endfunction()

set(found "${ETVK_GUARD_EXECUTORCH_INCLUDE}")
if(NOT found)
  etvk_guard_find_executorch(found)
endif()
if(NOT found)
  message(FATAL_ERROR "ExecuTorch's headers were not found: `pip install executorch`, or give executorch_DIR or ETVK_GUARD_EXECUTORCH_INCLUDE.")
endif()
# The headers include c10's, which are vendored among them.
foreach(folder IN LISTS found)
  if(EXISTS "${folder}/executorch/runtime/core/portable_type/c10")
    list(APPEND found "${folder}/executorch/runtime/core/portable_type/c10")
  endif()
endforeach()
list(REMOVE_DUPLICATES found)

add_library(etvk_guard_executorch_headers INTERFACE)
target_include_directories(etvk_guard_executorch_headers SYSTEM INTERFACE ${found})
target_compile_definitions(etvk_guard_executorch_headers INTERFACE C10_USING_CUSTOM_GENERATED_MACROS)
