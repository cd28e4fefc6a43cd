# SPDX-License-Identifier: Apache-2.0
#
# CMake toolchain: the C++ compiler in the PyPI package `ziglang`, which brings musl and libc++ for every target.
#   -DETVK_GUARD_TARGET=aarch64-linux-musl   or x86_64-linux-musl, arm-linux-musleabihf, ...
#   -DETVK_GUARD_ZIG=/path/to/zig            default: that of the Python which is on the path
# The first build for a target takes minutes: zig compiles its C++ library, and keeps it (ZIG_GLOBAL_CACHE_DIR).
set(ETVK_GUARD_TARGET "x86_64-linux-musl" CACHE STRING "Target triple, as zig names it")
if(NOT ETVK_GUARD_ZIG)
  find_program(python NAMES python3 python REQUIRED NO_CMAKE_FIND_ROOT_PATH)
  execute_process(
    COMMAND "${python}" -c "import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).with_name('zig'), end='')"
    OUTPUT_VARIABLE ETVK_GUARD_ZIG COMMAND_ERROR_IS_FATAL ANY)
endif()
set(ETVK_GUARD_ZIG "${ETVK_GUARD_ZIG}" CACHE FILEPATH "The zig program")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ETVK_GUARD_TARGET ETVK_GUARD_ZIG)

# Nothing is linked to find out about the compiler: that would build one more C++ library, for programs without optimization.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
execute_process(COMMAND "${ETVK_GUARD_ZIG}" c++ --version OUTPUT_VARIABLE zig_version COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE ".*clang version ([0-9.]+).*" "\\1" CMAKE_CXX_COMPILER_VERSION "${zig_version}")
set(CMAKE_CXX_COMPILER_ID_RUN TRUE)
set(CMAKE_CXX_COMPILER_ID Clang)
set(CMAKE_CXX_COMPILER_FRONTEND_VARIANT GNU)
set(CMAKE_CXX_STANDARD_COMPUTED_DEFAULT 17)
set(CMAKE_CXX_EXTENSIONS_COMPUTED_DEFAULT ON)

set(CMAKE_SYSTEM_NAME Linux)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${ETVK_GUARD_TARGET}")
set(CMAKE_CXX_COMPILER "${ETVK_GUARD_ZIG}" c++ -target ${ETVK_GUARD_TARGET})
set(CMAKE_SKIP_RPATH ON)
set(CMAKE_AR "${ETVK_GUARD_ZIG}")
set(CMAKE_RANLIB "${ETVK_GUARD_ZIG}")
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> ar qc <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> ar q <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "<CMAKE_RANLIB> ranlib <TARGET>")
