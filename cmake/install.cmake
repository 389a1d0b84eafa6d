# What deployment needs: the runtime library, its headers, and a CMake package with the target cuvil::runtime.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(CUVIL_INCLUDE ${CMAKE_INSTALL_INCLUDEDIR}/cuvil-runtime) # a folder of its own: the headers include core/abi/...
set_target_properties(cuvil_runtime PROPERTIES EXPORT_NAME runtime)
target_include_directories(cuvil_runtime INTERFACE $<INSTALL_INTERFACE:${CUVIL_INCLUDE}>)

install(TARGETS cuvil_runtime EXPORT cuvilTargets COMPONENT runtime LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/ DESTINATION ${CUVIL_INCLUDE} COMPONENT runtime)
install(FILES ${PROJECT_SOURCE_DIR}/core/abi/abi.h ${PROJECT_SOURCE_DIR}/core/abi/dlpack.h
  DESTINATION ${CUVIL_INCLUDE}/core/abi COMPONENT runtime)

set(CUVIL_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/cuvil)
install(EXPORT cuvilTargets NAMESPACE cuvil:: DESTINATION ${CUVIL_PACKAGE} COMPONENT runtime)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/cuvilConfig.cmake.in ${PROJECT_BINARY_DIR}/cuvilConfig.cmake
  INSTALL_DESTINATION ${CUVIL_PACKAGE})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cuvilConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cuvilConfig.cmake ${PROJECT_BINARY_DIR}/cuvilConfigVersion.cmake
  DESTINATION ${CUVIL_PACKAGE} COMPONENT runtime)
