# Flags and helpers shared by all targets.

add_library(cuvil_flags INTERFACE)
target_include_directories(cuvil_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
target_compile_options(cuvil_flags INTERFACE
  -Wall -Wextra -Werror -Wno-missing-field-initializers)
# Paths in the code are relative, so that equal sources give equal bytes. ccache does it itself, by CCACHE_BASEDIR; to
# it the flag would be a difference between two checkouts.
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  target_compile_options(cuvil_flags INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports std::string's own operator+ (GCC bug 105329).
  target_compile_options(cuvil_flags INTERFACE -Wno-restrict)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort and its like use a function that libstdc++ 12 itself marks deprecated.
  target_compile_options(cuvil_flags INTERFACE -Wno-deprecated-declarations)
endif()
# Data is in sections of its own so that what nobody calls does not end up in the runtime.
target_compile_options(cuvil_flags INTERFACE -ffunction-sections -fdata-sections)
target_link_options(cuvil_flags INTERFACE -Wl,--gc-sections)
if(CUVIL_SANITIZE)
  target_compile_options(cuvil_flags INTERFACE -fsanitize=${CUVIL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(cuvil_flags INTERFACE -fsanitize=${CUVIL_SANITIZE})
endif()

find_program(CUVIL_LLD NAMES ld.lld-19 ld.lld)
if(CUVIL_LLD)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_link_options(--ld-path=${CUVIL_LLD})
  else()
    # GCC looks for the plain name ld.lld, which Debian keeps in LLVM's own folder.
    file(REAL_PATH ${CUVIL_LLD} CUVIL_LLD_REAL)
    get_filename_component(CUVIL_LLD_DIR ${CUVIL_LLD_REAL} DIRECTORY)
    add_link_options(-fuse-ld=lld -B${CUVIL_LLD_DIR})
  endif()
endif()

# Whose own speed does not matter (declarations, import, one pass over a graph) compiles at -O1: half the build time.
function(cuvil_compile_quickly name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# cuvil_library(NAME DEPS...): a static library of every .cpp in the current folder (not below it).
function(cuvil_library name)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp *.h)
  file(GLOB compiled CONFIGURE_DEPENDS *.cpp)
  if(NOT compiled) # a library of headers still is a target that others link
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}_empty.cpp "")
    list(APPEND sources ${CMAKE_CURRENT_BINARY_DIR}/${name}_empty.cpp)
  endif()
  add_library(${name} STATIC ${sources})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PUBLIC cuvil_flags ${ARGN})
endfunction()

# cuvil_test(NAME DEPS...): a GoogleTest executable of every .cpp in the current folder.
function(cuvil_test name)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_compile_definitions(${name} PRIVATE CUVIL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE cuvil_flags ${ARGN} GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# cuvil_executables(DEPS...): one executable of every .cpp in the current folder, named like its file.
function(cuvil_executables)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE "_" "-" name ${name})
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${ARGN})
    target_compile_definitions(${name} PRIVATE CUVIL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  endforeach()
endfunction()

# cuvil_fuzzers(DEPS...): one libFuzzer executable of every fuzz_*.cpp in the current folder.
function(cuvil_fuzzers)
  file(GLOB sources CONFIGURE_DEPENDS fuzz_*.cpp)
  add_custom_target(fuzzers)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${ARGN})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name})
  endforeach()
endfunction()
