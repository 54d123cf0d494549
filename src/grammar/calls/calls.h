/* Calls of tools in a family's own form: the grammar that they must have, and what a reply says of them. */
#ifndef PD_GRAMMAR_CALLS_CALLS_H
#define PD_GRAMMAR_CALLS_CALLS_H

#include "base/base.h"
#include "grammar/grammar.h"

#include <yyjson.h>

/* ---- calls ---- */

/* Tool calls: what a model writes to call a function. A format is a row of a table (formats.c); from it and the tools
 * of a request come the grammar of replies (compile.c), the parser of replies (parser.c), and the texts that tell a
 * model of tools, past calls and results where its chat template does not (write.c).
 *
 * Texts of calls, as grammar and parser see them, are bytes of UTF-8 and marks: bytes from PD_CALL_MARK on, which no
 * UTF-8 has, stand for control tokens of the formats. Where a vocabulary has such a token as ordinary text, or not at
 * all, it is its text: `marks` says which are control tokens (bit i), and in their order the bytes stand for them. */

#define PD_CALL_MARK 0xf6
#define PD_MAX_CALL_MARKS 10       /* of a vocabulary: there are no more bytes */
#define PD_N_CALL_MARKS 27
/* The text of control token i, i < PD_N_CALL_MARKS; NULL past the last. */
const char *pd_call_mark(size_t i);
/* The byte of control token i, one of `marks`; and the token that a byte stands for, SIZE_MAX: none. */
char pd_call_mark_byte(unsigned marks, size_t i);
size_t pd_call_mark_index(unsigned marks, char byte);

struct pd_call_format;
/* By its name; NULL: there is none. */
const struct pd_call_format *pd_call_format_find(const char *name);
/* Name i of the table, NULL past the last. */
const char *pd_call_format_name_at(size_t i);
const char *pd_call_format_name(const struct pd_call_format *f);
/* The format that a chat template writes calls in; NULL: it writes none, or in a format that is not known. */
const struct pd_call_format *pd_call_format_of_template(const char *jinja, size_t size);

/* Replies have headers, of text as of calls: grammar and parser begin with the first. */
bool pd_call_format_has_headers(const struct pd_call_format *f);

enum pd_call_choice {
    PD_CALL_AUTO,       /* text, and calls after it where the model wants some */
    PD_CALL_REQUIRED    /* calls, and no text: white space may come before the first, as after a thought */
};

/* What a reply may call. `tools`: a list of {"type": "function", "function": {"name": ..., "description": ...,
 * "parameters": ...}}, or of the functions themselves, with or without that type. */
struct pd_calls {
    const struct pd_call_format *format;
    unsigned marks;
    yyjson_val *tools;
    enum pd_call_choice choice;
    const char *name;   /* the only one that may be called; NULL: any of them */
    bool parallel;      /* more than one call in a reply */
    const char *answer; /* [answer_size] bytes of JSON Schema: what a reply is that calls nothing; NULL: any text */
    size_t answer_size;
    uint32_t effort;    /* of the budget (pd_work_of_effort) */
    /* Where it is, schemas that are not supported are made looser, unless their tools are strict, and the names of
     * these go there, ", " between them. NULL: they are refused. */
    struct pd_buffer *loosened;
};

/* Whether the list is well-formed: what compiling checks first. Sentences name the tool. */
peridot_status pd_calls_check(const struct pd_calls *c);
/* The grammar of replies. Arguments follow their tool's `parameters`, a JSON Schema; without any they are an object.
 * What a schema cannot have is refused as pd_schema_compile does. *out is to be freed even on failure. */
peridot_status pd_calls_compile(struct pd_rules *out, const struct pd_calls *c);
/* With a budget of its own (grammar.h). */
peridot_status pd_calls_compile_within(struct pd_rules *out, uint64_t max_work, const struct pd_calls *c);

/* ---- texts for the model ---- */

/* What tells a model of the tools and how to call them: for its system's message. */
peridot_status pd_calls_describe(struct pd_buffer *out, const struct pd_calls *c);
/* The tools as a list in JSON. */
peridot_status pd_calls_list(struct pd_buffer *out, const struct pd_calls *c);
/* Call number i of a message that the model wrote, and the result of one, of format and marks. `arguments` is an
 * object, NULL for an empty one. The calls of a message, one after another, are a text that the grammar allows. */
struct pd_call {
    const char *name;
    yyjson_val *arguments;
};
peridot_status pd_calls_write(struct pd_buffer *out, const struct pd_calls *c, const struct pd_call *calls,
                              size_t n);
peridot_status pd_calls_write_result(struct pd_buffer *out, const struct pd_calls *c, const char *name,
                                     const char *content, size_t size);

/* ---- format ---- */

/* A format of calls as data. A reply's calls are blocks; a block is calls between a begin and an end, of a shape.
 *
 * Literals are texts in which a space and a newline stand for white space that may be there or not, and a tab for such
 * that is not written: one space, or a newline and at most PD_INDENT (grammar.h) spaces. Texts of control tokens become
 * marks where they are control tokens. PD_CALL_SPACE is a space that is there. PD_CALL_NAME in `middle` stands for the
 * call's name again. PD_CALL_ID stands for the call's id, which may be there or not, and is neither written nor told.
 * What is between two PD_CALL_MAYBE may be there or not, and is written.
 */

#define PD_MAX_CALL_NAME 64
#define PD_CALL_LITERAL 64         /* bytes of a literal, with its NUL */
#define PD_CALL_ID "\3"
#define PD_CALL_NAME "\4"
#define PD_CALL_SPACE "\5"
#define PD_CALL_MAYBE "\6"
#define PD_CALL_ID_SIZE 9          /* letters and digits of an id, as Mistral's models have them */

#define PD_MAX_CALL_SHAPES 6
struct pd_call_shape {
    const char *begin, *end;       /* begin NULL: no more shapes */
    const char *between;           /* calls of a block; NULL: a block is one call */
    const char *before, *middle;   /* rather than the format's; NULL: those */
    bool only_first;               /* nothing comes before it but other blocks */
    bool commits;                  /* what begins so is a call; else only with the name of a tool */
};

struct pd_call_format {
    const char *name;
    const char *templates[2];      /* what chat templates of it contain, all of these; NULL: none do */
    struct pd_call_shape shapes[PD_MAX_CALL_SHAPES + 1];   /* the first is the one that is written */
    const char *before, *middle, *after;   /* a call: before NAME middle ARGUMENTS after */
    const char *id[2];             /* what is around the id, where there may be one */
    const char *delimiter;         /* arguments are of the dialect of grammar.h; NULL: JSON */
    bool keywords;                 /* arguments are (name=value, ...) of JSON's values */
    const struct pd_tags *tags;    /* arguments are of these; NULL: they are not */
    /* Where all of a reply has headers: those before its text, and what ends a message that others may follow. */
    const char *headers[5], *ends;
    const char *thoughts[2];       /* how the headers of thoughts begin, which are not told of while they may be that */
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
static inline const char *pd_call_middle(const struct pd_call_format *f, const struct pd_call_shape *shape)
{
    return shape->middle ? shape->middle : f->middle;
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

/* ---- arguments ---- */

#define PD_MAX_TAG_NAME 128        /* bytes of a parameter's name; one that is longer is taken for no known one */

/* Zero-initialise but for the first four. */
struct pd_call_arguments {
    const struct pd_tags *tags;    /* as in pd_call_format */
    yyjson_val *parameters;        /* of the tool, which say what is text in tags; NULL: all is */
    bool keywords;                 /* as in pd_call_format */
    const char *delimiter;         /* they are in the dialect of grammar.h; NULL: JSON, which stays as it is */
    uint8_t state;
    uint8_t depth;                 /* brackets that are open */
    uint8_t n;                     /* bytes of a delimiter, or digits of an escape, that have come */
    bool is_key;                   /* the present string is */
    bool is_pair;                  /* a surrogate has come, whose second must follow */
    uint16_t unit;                 /* of an escape */
    uint64_t objects;              /* bit i: bracket i is { */
    const char *word;              /* what is left of true, false or null, or of what is around a tag */
    uint8_t after_word;            /* state */
    bool more;                     /* tags than the first */
    char name[PD_MAX_TAG_NAME];    /* of the present tag */
};

/* What comes out is handed on in larger pieces. */
struct pd_call_bytes {
    peridot_status (*write)(void *user, const char *bytes, size_t size);
    void *user;
    peridot_status status;         /* of what has been handed on */
    size_t n;
    char held[256];
};
void pd_call_put(struct pd_call_bytes *out, const char *bytes, size_t size);
void pd_call_flush(struct pd_call_bytes *out);
/* Hands on whole characters, and holds the beginning of one; at the `end` that is U+FFFD. */
void pd_call_flush_characters(struct pd_call_bytes *out, bool end);

enum pd_call_taken { PD_CALL_GOES_ON, PD_CALL_COMPLETE, PD_CALL_BROKEN };
/* BROKEN: the byte cannot come here, and is not taken. */
enum pd_call_taken pd_call_arguments_take(struct pd_call_arguments *a, struct pd_call_bytes *out, char byte);

/* ---- parser ---- */

/* Replies taken apart while they stream: text for the user, and calls. However the bytes are split, what comes out is
 * the same. Text that may begin a call is held back until it is one, or none. */

/* What is told of a reply, each with `user`; none is NULL. A failure ends the parsing, and is given back. */
struct pd_call_sink {
    void *user;
    peridot_status (*text)(void *user, const char *bytes, size_t size);
    /* A call begins; its arguments come in pieces of whole characters, which together are a JSON object; it is
     * complete. Where a reply ends within a call, or goes on otherwise than a call can, `end` does not come, and a
     * character that was cut is U+FFFD. */
    peridot_status (*begin)(void *user, const char *name, size_t size);
    peridot_status (*arguments)(void *user, const char *json, size_t size);
    peridot_status (*end)(void *user);
};

#define PD_MAX_CALL_HEAD 512       /* bytes from the begin of a block to the arguments of its first call, at most */
struct pd_call_parser {
    const struct pd_call_format *format;
    unsigned marks;
    /* As in pd_calls: calls of other names are text, as they are to the grammar. NULL: there are no other names. */
    yyjson_val *tools;
    const char *name;
    /* The parser's own, zero at first: */
    enum { PD_CALL_FIRST, PD_CALL_TEXT, PD_CALL_ARGUMENTS, PD_CALL_NEXT, PD_CALL_AFTER } state;
    size_t shape;                  /* of the present block */
    struct pd_call_arguments arguments;
    char begun[4];                 /* [n_begun]: bytes of a character of the arguments that is not complete yet */
    size_t n_begun;
    char held[PD_MAX_CALL_HEAD];
    size_t n_held;
};

/* More bytes of a reply. `end`: they are the last. */
peridot_status pd_call_parser_next(struct pd_call_parser *p, const struct pd_call_sink *sink, const char *bytes,
                                   size_t size, bool end);

#endif
