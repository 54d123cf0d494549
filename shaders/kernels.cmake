# Compiles every line of kernels.def to SPIR-V in a C header, and writes kernels_spirv.h that includes them all.
find_program(GLSLANG NAMES glslangValidator glslang REQUIRED)
file(GLOB shader_includes CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/shaders/*.glsl ${CMAKE_CURRENT_SOURCE_DIR}/shaders/params.h)
set(spirv_dir ${CMAKE_CURRENT_BINARY_DIR}/spirv)
file(MAKE_DIRECTORY ${spirv_dir})
file(STRINGS shaders/kernels.def kernel_lines REGEX "^PD_KERNEL\\(")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/shaders/kernels.def)
set(spirv_headers)
set(spirv_index "/* Made from shaders/kernels.def. */\n")
foreach(line IN LISTS kernel_lines)
  if(NOT line MATCHES "^PD_KERNEL\\(([a-z0-9_]+), *([a-z0-9_]+), *\"([^\"]*)\", *([a-z0-9_]+)\\)$")
    message(FATAL_ERROR "shaders/kernels.def: cannot read: ${line}")
  endif()
  set(name ${CMAKE_MATCH_1})
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/shaders/${CMAKE_MATCH_2}.comp)
  separate_arguments(defines UNIX_COMMAND "${CMAKE_MATCH_3}")
  add_custom_command(
    OUTPUT ${spirv_dir}/${name}.h
    COMMAND ${GLSLANG} --quiet -V --target-env vulkan1.2 -I${CMAKE_CURRENT_SOURCE_DIR}/shaders ${defines}
            --vn pd_spirv_${name} -o ${spirv_dir}/${name}.h ${source}
    DEPENDS ${source} ${shader_includes}
    COMMENT "Kernel ${name}" VERBATIM)
  list(APPEND spirv_headers ${spirv_dir}/${name}.h)
  string(APPEND spirv_index "#include \"${name}.h\"\n")
endforeach()
file(GENERATE OUTPUT ${spirv_dir}/kernels_spirv.h CONTENT "${spirv_index}")
add_custom_target(peridot_kernels DEPENDS ${spirv_headers})
add_dependencies(peridot_lib peridot_kernels)
target_include_directories(peridot_lib PRIVATE ${spirv_dir})
