# Installs into a fresh prefix, builds examples/c against it, and lets it refuse a file that is no artifact.
set(prefix ${BUILD}/tests/install/prefix)
set(example ${BUILD}/tests/install/example)
file(REMOVE_RECURSE ${prefix} ${example})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(status)
    message(FATAL_ERROR "${ARGN}\n${text}")
  endif()
endfunction()

set(flags -Wall -Wextra -Werror)
if(SANITIZE)
  list(APPEND flags -fsanitize=${SANITIZE})
endif()
list(JOIN flags " " flags)
run(${CMAKE_COMMAND} --install ${BUILD} --component runtime --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/c -B ${example} -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_C_COMPILER=${COMPILER}
  "-DCMAKE_C_FLAGS=${flags}")
run(${CMAKE_COMMAND} --build ${example})

execute_process(COMMAND ${example}/run_model ${SOURCE}/LICENSE RESULT_VARIABLE status ERROR_VARIABLE text)
if(NOT status EQUAL 1 OR NOT text MATCHES "^ArtifactError: ")
  message(FATAL_ERROR "expected an ArtifactError, got status ${status}: ${text}")
endif()
