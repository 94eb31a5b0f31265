# Headers of the system that nearly all sources read, compiled once: that halves the time of a build. They are kept outside of the
# clone, by compiler, flags and versions of their packages, so that all clones share them and the compiler's cache knows them.
# For clang alone: g++ gains little.

# precompiled(NAME FLAG HEADERS...): sets FLAG to the options with which a source reads them, "" where there are none to be had.
function(precompiled NAME FLAG)
  set(${FLAG} "" PARENT_SCOPE)
  if(NOT PRECOMPILED OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    return()
  endif()
  get_property(OPTIONS DIRECTORY PROPERTY COMPILE_OPTIONS)
  get_property(DEFINITIONS DIRECTORY PROPERTY COMPILE_DEFINITIONS)
  list(TRANSFORM DEFINITIONS PREPEND "-D")
  separate_arguments(FLAGS UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${BUILD_TYPE}}")
  set(COMMAND ${CMAKE_CXX_COMPILER} ${FLAGS} ${OPTIONS} ${DEFINITIONS} ${CMAKE_CXX${CMAKE_CXX_STANDARD}_STANDARD_COMPILE_OPTION}
      -fpch-instantiate-templates -Xclang -fno-pch-timestamp -x c++-header)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include <\\1>" OUTPUT_VARIABLE LINES)
  list(JOIN LINES "\n" TEXT)
  execute_process(COMMAND dpkg-query -W -f "\${Package} \${Version}\n" OUTPUT_VARIABLE PACKAGES ERROR_QUIET)
  string(REGEX MATCHALL "[^\n]*-dev[^\n]*\n" PACKAGES "${PACKAGES}")
  string(SHA256 KEY "${CMAKE_CXX_COMPILER_VERSION} ${COMMAND} ${TEXT} ${PACKAGES}")
  string(SUBSTRING ${KEY} 0 16 KEY)
  set(FOLDER ${PRECOMPILED}/${NAME}-${KEY})
  if(NOT EXISTS ${FOLDER}/${NAME}.pch)
    message(STATUS "precompiling headers: ${NAME}")
    file(WRITE ${FOLDER}/${NAME}.hpp "${TEXT}\n")
    string(RANDOM LENGTH 8 MINE)
    execute_process(COMMAND ${COMMAND} ${FOLDER}/${NAME}.hpp -o ${FOLDER}/${NAME}.${MINE} COMMAND_ERROR_IS_FATAL ANY)
    file(RENAME ${FOLDER}/${NAME}.${MINE} ${FOLDER}/${NAME}.pch)
    # What no clone has used for two weeks goes: each is tens of megabytes.
    execute_process(COMMAND find ${PRECOMPILED} -mindepth 1 -maxdepth 1 -mtime +14 -exec rm -rf {} +)
  endif()
  file(TOUCH ${FOLDER})
  set(${FLAG} -include-pch ${FOLDER}/${NAME}.pch PARENT_SCOPE)
endfunction()
