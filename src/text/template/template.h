/* Chat templates: programs in Jinja that models' files carry, rendered as Hugging Face's transformers renders them
 * (jinja2's immutable sandbox with trim_blocks, lstrip_blocks, break and continue, and tojson as json.dumps), byte for
 * byte. What is left out is refused by name when a program is parsed: inheritance, imports, arguments by * and **,
 * and three filters (filesizeformat, random, urlize). Where bytes would depend on what is not ours to give (the
 * address of an object, an integer beyond 64 bits), rendering fails with a sentence.
 *
 * What is a letter, a digit or printable, and the case of letters, are Python's, by the version of Unicode that
 * libutf8proc has; but isdigit and isnumeric know decimal digits only, and modifier letters (U+02B0) have no case.
 *
 * Programs and variables are untrusted. Steps, nesting and memory of a render are limited, and each byte of the result
 * says whether the program wrote it: text that a client sends can spell a control token, but never as the program's
 * own. The word that is a message's role counts as the program's: some make control tokens of it, as "<|" + role +
 * "|>". */
#ifndef PD_TEXT_TEMPLATE_TEMPLATE_H
#define PD_TEXT_TEMPLATE_TEMPLATE_H

#include "base/base.h"

#include <time.h>
#include <yyjson.h>

/* A parsed program: immutable, so that threads may share it. */
struct pd_template;

/* PERIDOT_ERROR_FORMAT, "line 3: ...", where it is not a program or has what is not supported. */
peridot_status pd_template_parse(struct pd_template **out, const char *source, size_t size);
void pd_template_free(struct pd_template *t);   /* NULL is allowed */
/* Whether the program reads a variable of this name that it did not set itself. */
bool pd_template_reads(const struct pd_template *t, const char *variable);

/* "bos_token": a variable whose text is the vocabulary's. */
struct pd_template_word {
    const char *name, *text;
};

struct pd_template_input {
    yyjson_val *variables;               /* an object: messages, tools, add_generation_prompt, ...; NULL: none */
    const struct pd_template_word *words;   /* [n_words]; they come before variables of the same name */
    size_t n_words;
    struct tm now;                       /* for strftime_now */
};

struct pd_template_output {
    char *text;                          /* [size], terminated */
    unsigned char *own;                  /* [size]: 1 where the byte is the program's own or a word's, 0 where it came
                                          * from a variable, or was computed from one */
    size_t size;
};

/* PERIDOT_ERROR_ARGUMENT: the program called raise_exception, and the sentence is its text. PERIDOT_ERROR_FORMAT:
 * "line N: ...", it cannot be rendered with these variables, or asks for too much. *out is to be freed in any case. */
peridot_status pd_template_render(struct pd_template_output *out, const struct pd_template *t,
                                  const struct pd_template_input *in);
void pd_template_output_free(struct pd_template_output *out);

#endif
