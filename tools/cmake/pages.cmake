# Writes the man pages into the folder OUT: those of the command PERIDOT as it prints them itself, and libperidot.3 from
# the header. cmake -D PERIDOT=... -D HEADER=... -D OUT=... -P pages.cmake
file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT}/man1 ${OUT}/man3)

# write_page(NAME ARGUMENTS...)
function(write_page name)
  execute_process(COMMAND ${PERIDOT} help --man ${ARGN} OUTPUT_FILE ${OUT}/man1/${name}.1 COMMAND_ERROR_IS_FATAL ANY)
endfunction()
write_page(peridot)
file(STRINGS ${OUT}/man1/peridot.1 commands REGEX "^\\.BR peridot.-[a-z]+ ")
foreach(line IN LISTS commands)
  string(REGEX REPLACE ".*-([a-z]+) .*" "\\1" command "${line}")
  write_page(peridot-${command} ${command})
endforeach()

# The header's first comment is the description; its declarations follow as they are.
file(READ ${HEADER} text)
string(REGEX MATCH "PERIDOT_VERSION \"([^\"]+)\"" _ "${text}")
set(version ${CMAKE_MATCH_1})
string(REPLACE "\\" "\\e" text "${text}")
string(REPLACE "-" "\\-" text "${text}")
string(REGEX REPLACE "\n([.'])" "\n\\\\&\\1" text "${text}")
string(FIND "${text}" "*/" end)
string(SUBSTRING "${text}" 0 ${end} description)
string(REGEX REPLACE "\n \\*\n" "\n.PP\n" description "${description}")
string(REGEX REPLACE "\n \\*   ([a-z]+) +" "\n.TP\n.B \\1\n" description "${description}")
string(REGEX REPLACE "\n \\* +" "\n" description "${description}")
string(REGEX REPLACE "^/\\* " "" description "${description}")
string(FIND "${text}" "/* Of this header." begin)
string(FIND "${text}" "#ifdef __cplusplus" end REVERSE)
math(EXPR size "${end} - ${begin}")
string(SUBSTRING "${text}" ${begin} ${size} declarations)
string(REGEX REPLACE "PERIDOT_API " "" declarations "${declarations}")
string(REGEX REPLACE "\n/\\* (\\\\-)+ ([a-z ,]+) (\\\\-)+ \\*/\n" "\n.EE\n.SS \\2\n.EX\n" declarations "${declarations}")
file(WRITE ${OUT}/man3/libperidot.3 ".TH LIBPERIDOT 3 \"\" \"Peridot ${version}\"
.SH NAME
libperidot \\- run language models on any GPU, through Vulkan
.SH SYNOPSIS
.B #include <peridot.h>
.PP
.I cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs peridot)
.SH DESCRIPTION
${description}
.SH DECLARATIONS
.EX
${declarations}
.EE
.SH SEE ALSO
.BR peridot (1)
")
file(GLOB pages ${OUT}/man?/*)
execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
