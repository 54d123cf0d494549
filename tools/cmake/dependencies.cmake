# What Peridot is built with. Where something is missing, configuring ends with a sentence that says how to get it.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# need(PREFIX MODULE [OTHERWISE]): the target PkgConfig::PREFIX of a module of pkg-config
macro(need prefix module)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "${module} is missing: install its package, which tools/packages names${ARGN}.")
  endif()
endmacro()

pkg_check_modules(YYJSON QUIET IMPORTED_TARGET yyjson)
if(NOT YYJSON_FOUND)   # the copy becomes a part of what library and command stand on
  set(yyjson ${CMAKE_CURRENT_SOURCE_DIR}/tools/third_party/yyjson)
  set(yyjson_source ${yyjson}/yyjson.c)
  set_source_files_properties(${yyjson_source} PROPERTIES COMPILE_OPTIONS -w)
  add_library(peridot_yyjson INTERFACE)
  target_include_directories(peridot_yyjson SYSTEM INTERFACE $<BUILD_INTERFACE:${yyjson}>)
  add_library(PkgConfig::YYJSON ALIAS peridot_yyjson)
endif()
need(PCRE2 libpcre2-8)
need(UTF8PROC libutf8proc)

# Pictures: a build for Windows reads the formats whose libraries it finds.
macro(need_picture prefix module)
  if(WIN32)
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
  else()
    need(${prefix} ${module})
  endif()
endmacro()
need_picture(JPEG libjpeg)
need_picture(PNG libpng)
need_picture(WEBP libwebp)
need_picture(WEBPDEMUX libwebpdemux)
find_package(GIF QUIET)   # not by pkg-config: giflib itself brings no module
if(NOT GIF_FOUND AND NOT WIN32)
  message(FATAL_ERROR "giflib is missing: install its package, which tools/packages names.")
endif()
set(picture_sources_missing "^$")
foreach(format JPEG PNG WEBP GIF)
  if(${format}_FOUND)
    list(APPEND picture_definitions PD_WITH_${format})
  else()
    string(TOLOWER ${format} format)
    string(APPEND picture_sources_missing "|src/picture/${format}\\.c$")
  endif()
endforeach()
set(picture_libraries $<TARGET_NAME_IF_EXISTS:PkgConfig::JPEG> $<TARGET_NAME_IF_EXISTS:PkgConfig::PNG>
    $<TARGET_NAME_IF_EXISTS:PkgConfig::WEBPDEMUX> $<TARGET_NAME_IF_EXISTS:PkgConfig::WEBP>
    $<TARGET_NAME_IF_EXISTS:GIF::GIF>)

if(PERIDOT_COMMAND)
  if(NOT WIN32)
    need(LIBEDIT libedit)          # chat
    pkg_check_modules(GNUTLS QUIET IMPORTED_TARGET gnutls)   # the hashes of what pull fetches
    if(GNUTLS_FOUND)
      set(digest_library PkgConfig::GNUTLS)
      set(digest_source_missing digest_openssl)
    else()
      need(OPENSSL libcrypto ", or that of gnutls")
      set(digest_library PkgConfig::OPENSSL)
      set(digest_source_missing digest)
    endif()
  endif()
  if(NOT WIN32)
    find_package(MPI QUIET COMPONENTS C)   # peridot-mpi, which is not built without one
  endif()
  need(MICROHTTPD libmicrohttpd)   # serve
  need(CURL libcurl>=7.85)         # pull
endif()

# Not by pkg-config: Debian's sentencepiece.pc asks for protobuf-lite, which only its own build needs.
find_path(SENTENCEPIECE_INCLUDE sentencepiece_processor.h REQUIRED)
find_library(SENTENCEPIECE_LIBRARY sentencepiece REQUIRED)
# Newer ones (Debian after 13) speak in absl's types.
file(STRINGS ${SENTENCEPIECE_INCLUDE}/sentencepiece_processor.h SENTENCEPIECE_ABSL REGEX "#include .absl/")
if(SENTENCEPIECE_ABSL)
  need(ABSL absl_status)
  list(APPEND SENTENCEPIECE_LIBRARY PkgConfig::ABSL)
endif()

find_path(VULKAN_INCLUDE vulkan/vulkan.h REQUIRED)
file(STRINGS ${VULKAN_INCLUDE}/vulkan/vulkan_core.h vulkan_is_new LIMIT_COUNT 1 REGEX "define VK_API_VERSION_1_3 ")
if(NOT vulkan_is_new)
  message(FATAL_ERROR "The Vulkan headers in ${VULKAN_INCLUDE} are older than 1.3: download newer ones \
(https://github.com/KhronosGroup/Vulkan-Headers, Apache-2.0 licence) and configure with -D VULKAN_INCLUDE=FOLDER, \
their include.")
endif()
