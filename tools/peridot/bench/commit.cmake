# Writes the commit that is built into OUT, a C file that changes only with it: with "-dirty" where files differ from
# it, "unknown" where the source folder is not the top of a git checkout. Called at every build, in the source folder.
set(commit unknown)
find_package(Git QUIET)
if(GIT_EXECUTABLE)
  set(git ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0 ${GIT_EXECUTABLE})
  execute_process(COMMAND ${git} rev-parse --show-prefix OUTPUT_VARIABLE prefix ERROR_QUIET RESULT_VARIABLE outside
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT outside AND prefix STREQUAL "")
    execute_process(COMMAND ${git} describe --always --dirty --abbrev=12 --exclude=* OUTPUT_VARIABLE found ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(found MATCHES "^[0-9a-f]+(-dirty)?$")
      set(commit ${found})
    endif()
  endif()
endif()
set(text "extern const char bench_commit[];\nconst char bench_commit[] = \"${commit}\";\n")
file(CONFIGURE OUTPUT ${OUT} CONTENT "${text}" @ONLY)
