/* The tools of peridot.h, and what of them goes into prompts: chat templates that have a format of calls get the list
 * and the calls of messages as they are; for others both become text of messages. */
#ifndef PD_API_TOOLS_H
#define PD_API_TOOLS_H

#include "api/vocab.h"
#include "grammar/calls/calls.h"
#include "grammar/grammar.h"
#include "text/tokenizer.h"

struct peridot_tools {
    struct pd_refs refs;
    yyjson_doc *doc;                   /* the list */
    struct pd_calls calls;             /* of it, with the format */
    int32_t marks[PD_N_CALL_MARKS];    /* the tokens of pd_call_mark; -1: the vocabulary has none */
    char *name;                        /* of the only one that may be called; NULL: any */
    peridot_grammar *grammar;
    struct pd_text_buffer loosened;    /* names of functions */
};

/* The index of the mark that the token is; -1: it is none. */
int pd_tools_find_mark(const struct peridot_tools *t, int32_t token);
/* The format of calls where conversations have this template (NULL: the vocabulary's own), and the control tokens of it
 * that there are. False: the template has no format of calls, and gets them as text. */
bool pd_tools_find_format(struct pd_calls *out, const peridot_vocab *vocab, const char *template_name);
/* The list of tools, checked; *doc is to be freed. */
peridot_status pd_tools_read(yyjson_doc **doc, struct pd_calls *calls, const char *json, size_t size);
/* What a template of the calls' format wants of messages: calls as text where the program does not read them; and tools
 * in the system's message where it reads them from there, or not at all. */
peridot_status pd_tools_suit_template(struct pd_messages *m, const struct pd_calls *calls,
                                      const struct pd_tokenizer *t, const char *program);
/* Makes text of all calls and results in messages, and puts what tells the model of the tools, if there are any, into
 * the system's message, or the user's first where there can be none (no_system). */
peridot_status pd_tools_write_messages(struct pd_messages *m, const struct pd_calls *calls);

#endif
