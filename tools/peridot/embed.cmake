# cmake -D OUT=FILE.c -D "FILES=name=path;..." -P embed.cmake: C arrays of files' bytes: name[], name_size.
set(text "#include <stddef.h>\n")
foreach(file IN LISTS FILES)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" unused "${file}")
  set(name ${CMAKE_MATCH_1})
  file(READ ${CMAKE_MATCH_2} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND text "extern const unsigned char ${name}[];\nextern const size_t ${name}_size;\n"
                     "const unsigned char ${name}[] = {\n${bytes}0};\nconst size_t ${name}_size = sizeof ${name} - 1;\n")
endforeach()
file(WRITE ${OUT} "${text}")
