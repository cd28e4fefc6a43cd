# SPDX-License-Identifier: Apache-2.0
#
# The installed C++ package. A library joins it with one line in its own folder:
#   etvk_guard_install(TARGET NAME HEADER...)    -> etvk_guard::NAME, and its headers in include/etvk_guard
# and a program with install(TARGETS ...) as usual. etvk_guard_install_package() comes last, in the top folder.
# What it installs is in the component "cpp"; nothing of it goes into the Python package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(ETVK_GUARD_PACKAGE_FOLDER "${CMAKE_CURRENT_LIST_DIR}")
set(ETVK_GUARD_PACKAGE_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/etvk_guard")

function(etvk_guard_install target name)
  if(NOT ETVK_GUARD_INSTALL)
    return()
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT etvk_guard-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT cpp
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(FILES ${ARGN} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/etvk_guard" COMPONENT cpp)
endfunction()

function(etvk_guard_install_package)
  if(NOT ETVK_GUARD_INSTALL)
    return()
  endif()
  install(EXPORT etvk_guard-targets NAMESPACE etvk_guard:: DESTINATION "${ETVK_GUARD_PACKAGE_DESTINATION}" COMPONENT cpp)
  set(config "${CMAKE_CURRENT_BINARY_DIR}/etvk_guard-config.cmake")
  set(version "${CMAKE_CURRENT_BINARY_DIR}/etvk_guard-config-version.cmake")
  configure_package_config_file("${ETVK_GUARD_PACKAGE_FOLDER}/etvk_guard-config.cmake.in" "${config}"
    INSTALL_DESTINATION "${ETVK_GUARD_PACKAGE_DESTINATION}" NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file("${version}" COMPATIBILITY SameMinorVersion)
  install(FILES "${config}" "${version}" DESTINATION "${ETVK_GUARD_PACKAGE_DESTINATION}" COMPONENT cpp)
  install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT cpp)
endfunction()
