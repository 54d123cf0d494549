/* A format of calls as data. A reply's calls are blocks; a block is calls between a begin and an end, of a shape.
 *
 * Literals are texts in which a space and a newline stand for white space that may be there or not, and a tab for such
 * that is not written: one space, or a newline and at most PD_INDENT (values.h) spaces. Texts of control tokens become
 * marks where they are control tokens. PD_CALL_SPACE is a space that is there. PD_CALL_NAME in `middle` stands for the
 * call's name again. PD_CALL_ID stands for the call's id, which may be there or not, and is neither written nor told.
 */
#ifndef PD_GRAMMAR_CALLS_FORMAT_H
#define PD_GRAMMAR_CALLS_FORMAT_H

#include "grammar/calls/calls.h"

#define PD_MAX_CALL_NAME 64
#define PD_CALL_LITERAL 64         /* bytes of a literal, with its NUL */
#define PD_CALL_ID "\3"
#define PD_CALL_NAME "\4"
#define PD_CALL_SPACE "\5"
#define PD_CALL_ID_SIZE 9          /* letters and digits of an id, as Mistral's models have them */

struct pd_call_shape {
    const char *begin, *end;       /* begin NULL: no more shapes */
    const char *between;           /* calls of a block; NULL: a block is one call */
    const char *before;            /* the name, rather than the format's; NULL: that */
    bool only_first;               /* nothing comes before it but other blocks */
    bool commits;                  /* what begins so is a call; else only with the name of a tool */
};

struct pd_call_format {
    const char *name;
    const char *templates[2];      /* what chat templates of it contain, all of these; NULL: none do */
    struct pd_call_shape shapes[5];   /* the first is the one that is written */
    const char *before, *middle, *after;   /* a call: before NAME middle ARGUMENTS after */
    const char *id[2];             /* what is around the id, where there may be one */
    const char *delimiter;         /* arguments are of the dialect of values.h; NULL: JSON */
    bool keywords;                 /* arguments are (name=value, ...) of JSON's values */
    const struct pd_tags *tags;    /* arguments are of these; NULL: they are not */
    /* Where all of a reply has headers: those before its text, and what ends a message that others may follow. */
    const char *headers[3], *ends;
    const char *separator;         /* between blocks, where they are written: a literal */
    const char *result;            /* "\1" stands for the name, "\2" for the content */
    bool in_system;                /* templates read the tools from the system's message, as text */
};

/* What a literal is where `marks` are control tokens; its size. */
size_t pd_call_literal(char out[PD_CALL_LITERAL], const char *literal, unsigned marks);
/* The format's delimiter where `marks` are control tokens. */
const char *pd_call_delimiter(const struct pd_call_format *f, unsigned marks);
static inline const char *pd_call_before(const struct pd_call_format *f, const struct pd_call_shape *shape)
{
    return shape->before ? shape->before : f->before;
}
static inline bool pd_call_is_space(char c) { return c == ' ' || c == '\n' || c == '\t'; }
static inline char pd_call_byte(char c) { return c == *PD_CALL_SPACE ? ' ' : c; }
bool pd_call_is_name_char(char c);

/* A tool of a list. */
struct pd_tool {
    const char *name;
    size_t name_size;
    yyjson_val *description;       /* a string, or NULL */
    yyjson_val *parameters;        /* NULL: none are given */
    bool strict;                   /* its schema is followed, or refused */
};

/* Member i of the list of tools. */
peridot_status pd_tool_read(struct pd_tool *out, yyjson_val *value, size_t i);

/* The text of a schema, to be freed: as it is (0), or looser (1 to PD_LOOSEST: loosen.c). NULL: memory is short. */
#define PD_LOOSEST 3
char *pd_tool_schema(size_t *size, yyjson_val *schema, int looseness);

#endif
