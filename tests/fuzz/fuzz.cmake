# The harnesses of tests/fuzz. With PERIDOT_FUZZ (clang; tools/fuzz) each is a program of libFuzzer's; else they are all
# in test_fuzz_corpus, which feeds them with seeds and past findings.
file(GLOB harnesses CONFIGURE_DEPENDS fuzz/fuzz_*.c)
set(fuzz_seed_folder ${CMAKE_CURRENT_BINARY_DIR}/seeds)

function(fuzz_program name)
  add_executable(${name} ${ARGN} $<FILTER:$<TARGET_OBJECTS:peridot_command>,EXCLUDE,/main\.c\.>
                 $<TARGET_OBJECTS:peridot_one_rank>)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/shaders
                             ${PROJECT_SOURCE_DIR}/tools/peridot ${CMAKE_CURRENT_BINARY_DIR} ${VULKAN_INCLUDE})
  target_compile_definitions(${name} PRIVATE PERIDOT_GOLDEN="${golden}")
  target_link_libraries(${name} PRIVATE peridot_internal PkgConfig::CMOCKA ${PERIDOT_COMMAND_LIBRARIES})
  target_compile_options(${name} PRIVATE -Wno-deprecated-declarations)
endfunction()

set(fuzz_shared fuzz/harness.c fuzz/vocabulary.c fuzz/sequence.c null_device.c)
fuzz_program(fuzz_seeds fuzz/seeds.c fuzz/harness.c fuzz/sequence.c)
add_custom_command(OUTPUT fuzz_seeds.stamp COMMAND ${CMAKE_COMMAND} -E rm -rf ${fuzz_seed_folder}
                   COMMAND fuzz_seeds ${fuzz_seed_folder} COMMAND ${CMAKE_COMMAND} -E touch fuzz_seeds.stamp
                   DEPENDS fuzz_seeds golden.stamp)
add_custom_target(fuzz ALL DEPENDS fuzz_seeds.stamp)
add_dependencies(fuzz golden)

set(table "")
foreach(path IN LISTS harnesses)
  cmake_path(GET path STEM name)
  string(APPEND table "HARNESS(${name})\n")
  if(PERIDOT_FUZZ)
    fuzz_program(${name} ${path} ${fuzz_shared})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz ${name})
  else()
    set_property(SOURCE ${path} APPEND PROPERTY COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=${name})
  endif()
endforeach()
if(NOT PERIDOT_FUZZ)
  file(CONFIGURE OUTPUT harnesses.def CONTENT "${table}")
  fuzz_program(test_fuzz_corpus fuzz/corpus.c ${harnesses} ${fuzz_shared})
  add_test(NAME test_fuzz_corpus COMMAND test_fuzz_corpus ${fuzz_seed_folder} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/findings)
endif()
