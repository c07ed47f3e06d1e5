# Installs the SDK into an empty folder, builds the example against it as a user would, and runs it where
# no worker is: it must start, and say so.
# cmake -DBUILD=<tree> -DEXAMPLE=<source> -DWORK=<scratch> -DGENERATOR=<g> -DFLAGS=<c++ flags> -P check_install.cmake
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --component sdk --prefix ${WORK}/sdk
                COMMAND_ERROR_IS_FATAL ANY)
file(COPY ${EXAMPLE}/ DESTINATION ${WORK}/example)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK}/example -B ${WORK}/build -G ${GENERATOR}
                        -DCMAKE_PREFIX_PATH=${WORK}/sdk "-DCMAKE_CXX_FLAGS=${FLAGS}"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build COMMAND_ERROR_IS_FATAL ANY)
# Port 1 of this machine: nobody listens there.
execute_process(COMMAND ${WORK}/build/kv_example 127.0.0.1 1 RESULT_VARIABLE result ERROR_VARIABLE text)
if(NOT result EQUAL 1 OR NOT text MATCHES "code: \\[RPC unavailable\\], msg: .*127\\.0\\.0\\.1:1.*traceId: ")
  message(FATAL_ERROR "the example ended with ${result}: ${text}")
endif()
