# What `cmake --install` puts where, all of it relative: the folder can be moved. Components: what runs, what runs under
# mpirun (mpi), and what is needed to build with the library (dev).
if(TARGET peridot)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR}
             OUTPUT_VARIABLE from_bin)
  if(BUILD_SHARED_LIBS OR PERIDOT_LIBRARIES)
    set_target_properties(peridot PROPERTIES INSTALL_RPATH $ORIGIN/${from_bin})
  endif()
  install(TARGETS peridot RUNTIME COMPONENT run)
  if(TARGET peridot-mpi)
    set_target_properties(peridot-mpi PROPERTIES INSTALL_RPATH $<$<BOOL:${BUILD_SHARED_LIBS}>:$ORIGIN/${from_bin}>)
    install(TARGETS peridot-mpi RUNTIME COMPONENT mpi)
  endif()
  install(FILES models/stories.gguf DESTINATION ${CMAKE_INSTALL_DATADIR}/peridot COMPONENT run)
endif()
install(TARGETS peridot_shared EXPORT peridot LIBRARY COMPONENT run NAMELINK_COMPONENT dev
        RUNTIME COMPONENT run ARCHIVE COMPONENT dev)
install(TARGETS peridot_static EXPORT peridot ARCHIVE COMPONENT dev)
install(FILES include/peridot.h include/peridot_tools.h TYPE INCLUDE COMPONENT dev)

# The targets need nothing of find_package: the names of the libraries that libperidot.a needs are in them.
include(CMakePackageConfigHelpers)
set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/peridot)
install(EXPORT peridot FILE peridotConfig.cmake NAMESPACE peridot:: DESTINATION ${cmake_dir} COMPONENT dev)
write_basic_package_version_file(peridotConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/peridotConfigVersion.cmake DESTINATION ${cmake_dir} COMPONENT dev)

set(private_libraries sentencepiece ${system_names})
if(GIF_FOUND)
  list(PREPEND private_libraries gif)
endif()
list(TRANSFORM private_libraries REPLACE "^(-l)?(.+)" "-l\\2")
list(JOIN private_libraries " " private_libraries)
string(JOIN " " private_requires ${YYJSON_MODULE_NAME} ${PCRE2_MODULE_NAME} ${UTF8PROC_MODULE_NAME}
       ${JPEG_MODULE_NAME} ${PNG_MODULE_NAME}
       ${WEBPDEMUX_MODULE_NAME} ${WEBP_MODULE_NAME} ${ABSL_MODULE_NAME})
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE to_prefix)
configure_file(tools/cmake/peridot.pc.in peridot.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/peridot.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

set(licences ${CMAKE_INSTALL_DOCDIR}/licences)
if(WIN32)
  set(licences licences)
endif()
if(PERIDOT_LIBRARIES)
  install(DIRECTORY ${PERIDOT_LIBRARIES}/licences/ DESTINATION ${licences} COMPONENT run)
  install(FILES tools/third_party/yyjson/LICENSE DESTINATION ${licences} RENAME yyjson.txt COMPONENT run)
endif()
if(WIN32 OR PERIDOT_LIBRARIES)
  install(FILES LICENSE DESTINATION ${licences} RENAME peridot.txt COMPONENT run)
endif()
if(PERIDOT_LIBRARIES AND NOT WIN32)
  set_target_properties(peridot_shared PROPERTIES INSTALL_RPATH $ORIGIN)
  file(GLOB libraries ${PERIDOT_LIBRARIES}/lib/*.so.*)
  install(FILES ${libraries} TYPE LIB COMPONENT run)
endif()
if(WIN32)
  install(FILES tools/cmake/windows.txt DESTINATION . RENAME README.txt COMPONENT run)
  if(PERIDOT_LIBRARIES)
    file(GLOB dlls ${PERIDOT_LIBRARIES}/bin/*.dll)
    install(FILES ${dlls} TYPE BIN COMPONENT run)
  endif()
elseif(TARGET peridot)
  install(FILES tools/completions/peridot.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          RENAME peridot COMPONENT run)
  foreach(zsh site-functions vendor-completions)   # the latter is Debian's
    install(FILES tools/completions/_peridot DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh} COMPONENT run)
  endforeach()
  install(FILES tools/completions/peridot.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          COMPONENT run)
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(STATUS
            "No man pages: the command, which prints them, does not run here (see CMAKE_CROSSCOMPILING_EMULATOR)")
  else()
    set(pages ${CMAKE_CURRENT_BINARY_DIR}/man)
    add_custom_command(OUTPUT ${pages}/man3/libperidot.3.gz
      COMMAND ${CMAKE_COMMAND} -D "PERIDOT=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:peridot>"
              -D HEADER=${CMAKE_CURRENT_SOURCE_DIR}/include/peridot.h
              -D OUT=${pages} -P ${CMAKE_CURRENT_SOURCE_DIR}/tools/cmake/pages.cmake
      DEPENDS peridot include/peridot.h tools/cmake/pages.cmake VERBATIM)
    add_custom_target(peridot_pages ALL DEPENDS ${pages}/man3/libperidot.3.gz)
    install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT run)
    install(DIRECTORY ${pages}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT dev)
  endif()
endif()

# ---- packages: cpack makes peridot.deb, libperidot-dev.deb, peridot-mpi.deb if it is built, a .tar.gz of all ----

set(CPACK_GENERATOR TGZ)
if(WIN32)
  set(CPACK_GENERATOR ZIP)
endif()
set(CPACK_PACKAGE_CONTACT "Peridot maintainers <maintainers@peridot.invalid>")
set(CPACK_STRIP_FILES ON)

find_program(DPKG_DEB dpkg-deb)
if(DPKG_DEB AND NOT WIN32)
  list(APPEND CPACK_GENERATOR DEB)
  string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)   # or SOURCE_DATE_EPOCH
  file(CONFIGURE OUTPUT changelog CONTENT "peridot (@PROJECT_VERSION@) unstable; urgency=medium

  * Version @PROJECT_VERSION@.

 -- @CPACK_PACKAGE_CONTACT@  @now@
")
  execute_process(COMMAND gzip -9nf ${CMAKE_CURRENT_BINARY_DIR}/changelog)
  set(packages run:peridot dev:libperidot-dev)
  if(TARGET peridot-mpi)
    list(APPEND packages mpi:peridot-mpi)
  endif()
  foreach(package IN LISTS packages)
    string(REPLACE ":" ";" package ${package})
    list(POP_FRONT package component)
    install(FILES tools/cmake/copyright ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
  endforeach()
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENT_RUN_DESCRIPTION "The command peridot writes, chats, serves OpenAI's interface and measures
GPUs; libperidot runs models within other programs. Kernels are Vulkan
compute shaders, for GPUs of every vendor.")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, static library, pkg-config file and CMake package of libperidot.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_RUN_PACKAGE_NAME peridot)
set(CPACK_DEBIAN_RUN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUN_PACKAGE_DEPENDS libvulkan1)   # opened at run time
set(CPACK_DEBIAN_RUN_PACKAGE_RECOMMENDS mesa-vulkan-drivers)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/triggers)
set(CPACK_COMPONENT_MPI_DESCRIPTION "The command peridot-mpi runs models whose layers are divided over several
GPUs or machines, under mpirun.")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME peridot-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "peridot (= ${PROJECT_VERSION}), openmpi-bin")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libperidot-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "peridot (= ${PROJECT_VERSION}), libyyjson-dev, libpcre2-dev, libutf8proc-dev, libjpeg-dev, libpng-dev, \
libwebp-dev, libgif-dev, libsentencepiece-dev")
include(CPack)
