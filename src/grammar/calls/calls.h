/* Tool calls: what a model writes to call a function. A format is a row of a table (formats.c); from it and the tools
 * of a request come the grammar of replies (compile.c), the parser of replies (parser.c), and the texts that tell a
 * model of tools, past calls and results where its chat template does not (write.c).
 *
 * Texts of calls, as grammar and parser see them, are bytes of UTF-8 and marks: bytes from PD_CALL_MARK on, which no
 * UTF-8 has, stand for control tokens of the formats. Where a vocabulary has such a token as ordinary text, or not at
 * all, it is its text: `marks` says which are control tokens (bit i), and in their order the bytes stand for them. */
#ifndef PD_GRAMMAR_CALLS_H
#define PD_GRAMMAR_CALLS_H

#include "base/bytes.h"
#include "grammar/rules.h"

#include <yyjson.h>

#define PD_CALL_MARK 0xf6
#define PD_MAX_CALL_MARKS 10       /* of a vocabulary: there are no more bytes */
#define PD_N_CALL_MARKS 24
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
    struct pd_text_buffer *loosened;
};

/* Whether the list is well-formed: what compiling checks first. Sentences name the tool. */
peridot_status pd_calls_check(const struct pd_calls *c);
/* The grammar of replies. Arguments follow their tool's `parameters`, a JSON Schema; without any they are an object.
 * What a schema cannot have is refused as pd_schema_compile does. *out is to be freed even on failure. */
peridot_status pd_calls_compile(struct pd_rules *out, const struct pd_calls *c);
/* With a budget of its own (work.h). */
peridot_status pd_calls_compile_within(struct pd_rules *out, uint64_t max_work, const struct pd_calls *c);

/* ---- texts for the model ---- */

/* What tells a model of the tools and how to call them: for its system's message. */
peridot_status pd_calls_describe(struct pd_text_buffer *out, const struct pd_calls *c);
/* The tools as a list in JSON. */
peridot_status pd_calls_list(struct pd_text_buffer *out, const struct pd_calls *c);
/* Call number i of a message that the model wrote, and the result of one, of format and marks. `arguments` is an
 * object, NULL for an empty one. The calls of a message, one after another, are a text that the grammar allows. */
struct pd_call {
    const char *name;
    yyjson_val *arguments;
};
peridot_status pd_calls_write(struct pd_text_buffer *out, const struct pd_calls *c, const struct pd_call *calls,
                              size_t n);
peridot_status pd_calls_write_result(struct pd_text_buffer *out, const struct pd_calls *c, const char *name,
                                     const char *content, size_t size);

#endif
