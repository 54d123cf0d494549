# What `cmake --install` puts where, all of it relative: the folder can be moved. Two components: what runs, and what is needed to
# build with the library (dev).
if(TARGET peridot)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR} OUTPUT_VARIABLE from_bin)
  set_target_properties(peridot PROPERTIES INSTALL_RPATH $<$<BOOL:${BUILD_SHARED_LIBS}>:$ORIGIN/${from_bin}>)
  install(TARGETS peridot RUNTIME COMPONENT run)
  install(FILES models/stories.gguf DESTINATION ${CMAKE_INSTALL_DATADIR}/peridot COMPONENT run)
endif()
install(TARGETS peridot_shared EXPORT peridot LIBRARY COMPONENT run NAMELINK_COMPONENT dev)
install(TARGETS peridot_static EXPORT peridot ARCHIVE COMPONENT dev)
install(FILES include/peridot.h include/peridot_tools.h TYPE INCLUDE COMPONENT dev)

# The targets need nothing of find_package: the names of the libraries that libperidot.a needs are in them.
include(CMakePackageConfigHelpers)
set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/peridot)
install(EXPORT peridot FILE peridotConfig.cmake NAMESPACE peridot:: DESTINATION ${cmake_dir} COMPONENT dev)
write_basic_package_version_file(peridotConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/peridotConfigVersion.cmake DESTINATION ${cmake_dir} COMPONENT dev)

set(private_libraries sentencepiece ${system_names})
list(TRANSFORM private_libraries REPLACE "^(-l)?(.+)" "-l\\2")
list(JOIN private_libraries " " private_libraries)
string(JOIN " " private_requires ${YYJSON_MODULE_NAME} ${PCRE2_MODULE_NAME} ${ABSL_MODULE_NAME})
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE to_prefix)
configure_file(tools/cmake/peridot.pc.in peridot.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/peridot.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

if(TARGET peridot)
  install(FILES tools/completions/peridot.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME peridot COMPONENT run)
  foreach(zsh site-functions vendor-completions)   # the latter is Debian's
    install(FILES tools/completions/_peridot DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh} COMPONENT run)
  endforeach()
  install(FILES tools/completions/peridot.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT run)
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(STATUS "No man pages: the command, which prints them, does not run here (see CMAKE_CROSSCOMPILING_EMULATOR)")
  else()
    set(pages ${CMAKE_CURRENT_BINARY_DIR}/man)
    add_custom_command(OUTPUT ${pages}/man3/libperidot.3.gz
      COMMAND ${CMAKE_COMMAND} -D "PERIDOT=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:peridot>" -D HEADER=${CMAKE_CURRENT_SOURCE_DIR}/include/peridot.h
              -D OUT=${pages} -P ${CMAKE_CURRENT_SOURCE_DIR}/tools/cmake/pages.cmake
      DEPENDS peridot include/peridot.h tools/cmake/pages.cmake VERBATIM)
    add_custom_target(peridot_pages ALL DEPENDS ${pages}/man3/libperidot.3.gz)
    install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT run)
    install(DIRECTORY ${pages}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT dev)
  endif()
endif()
