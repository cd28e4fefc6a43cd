# SPDX-License-Identifier: Apache-2.0
#
# CMake toolchain: Debian's cross-compiler for a machine, whose programs run here under qemu's user emulation.
#   -DETVK_GUARD_MACHINE=aarch64   or arm (armhf)
set(ETVK_GUARD_MACHINE "aarch64" CACHE STRING "aarch64 or arm")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ETVK_GUARD_MACHINE)
set(triplet "${ETVK_GUARD_MACHINE}-linux-gnu")
if(ETVK_GUARD_MACHINE STREQUAL "arm")
  set(triplet "arm-linux-gnueabihf")
endif()

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "${ETVK_GUARD_MACHINE}")
set(CMAKE_C_COMPILER "${triplet}-gcc")
set(CMAKE_CXX_COMPILER "${triplet}-g++")
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-${ETVK_GUARD_MACHINE}" -L "/usr/${triplet}")
# An installed GoogleTest is this machine's: take the sources in /usr/src/googletest.
set(CMAKE_DISABLE_FIND_PACKAGE_GTest ON)
