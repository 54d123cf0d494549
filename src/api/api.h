/* The handles of include/peridot.h and what the files of this folder share. */
#ifndef PD_API_API_H
#define PD_API_API_H

#include "arch/arch.h"
#include "base/base.h"
#include "engine/rounds/rounds.h"
#include "grammar/calls/calls.h"
#include "grammar/grammar.h"
#include "text/text.h"

#include <stdatomic.h>

/* ---- vocab ---- */

/* struct peridot_vocab: a model is an owner of its vocabulary, and programs may be others. */

struct peridot_vocab {
    struct pd_refs refs;
    struct pd_tokenizer *tokenizer;
    struct pd_spellings *_Atomic spellings;   /* made with the first grammar; NULL before */
};

/* ---- handles ---- */

/* The handles of peridot.h: models, sessions, sequences and images. A request's is in request.c, a file's in
 * file.c. */

struct peridot_model {
    struct pd_model m;
    struct pd_refs refs;               /* the program's handle, sessions, and drafters */
    struct peridot_model *target;      /* a drafter's, whose device it uses */
    struct peridot_vocab *vocab;       /* NULL: the files hold none */
    char vocab_error[512];             /* why */
    struct pd_tower_config tower_config;   /* NONE: it sees no images, */
    char tower_error[512];                 /* and why */
    struct pd_recommended recommended;
    struct pd_observed *observed;      /* NULL: nothing is (peridot_imatrix_begin) */
    struct pd_logger log;
    peridot_model_info info;
    char types[128], kernels[128], tuning[512];
};

struct peridot_session {
    struct pd_session *s;
    peridot_model *model;
    struct pd_schedule schedule;
    struct peridot_request *requests;  /* a list of all, the latest first */
    peridot_model *drafter;            /* NULL: there is none */
    peridot_vocab *draft_vocab;        /* of a draft model: it was found to be the model's; NULL: none yet */
};

struct peridot_sequence {
    struct pd_sequence *q;             /* whose `owner` this is */
    peridot_session *session;
};

/* The ids of all parts follow each other: those of the whole picture, and then those of its crops. */
struct peridot_image {
    struct pd_refs refs;
    size_t n_parts, n_rows;
    struct pd_image *parts[1 + PD_TOWER_MOST_CROPS];
    int32_t *ids;                      /* [n_rows] */
};

/* ---- rows ---- */

/* A program's functions for rows of prompts. */
struct pd_row_calls {
    peridot_row logits, hidden;        /* NULL: none */
    void *user;
};

/* As the engine calls them; borrows them. */
struct pd_row_outputs pd_row_outputs_of(struct pd_row_calls *calls);

/* ---- sampling ---- */

/* Sampling chains of peridot.h. */

/* A program's as this library has it; NULL: greedy. Tokens that the model suppresses have biases of -INFINITY: the
 * biases are then in *bias, to be freed once they were used, which else is NULL. The grammar is that of the tools,
 * where there are any. Fails where it is for another vocabulary than the model's. */
peridot_status pd_sampling_read(peridot_sampling *out, peridot_bias **bias, const peridot_sampling *sampling,
                                const peridot_tools *tools, peridot_model *model);
/* Gives a sequence the chain. */
peridot_status pd_sampling_set(peridot_sequence *sequence, const peridot_sampling *sampling,
                               const peridot_tools *tools);

/* ---- tools ---- */

struct peridot_tools {
    struct pd_refs refs;
    yyjson_doc *doc;                   /* the list */
    struct pd_calls calls;             /* of it, with the format */
    int32_t marks[PD_N_CALL_MARKS];    /* the tokens of pd_call_mark; -1: the vocabulary has none */
    char *name;                        /* of the only one that may be called; NULL: any */
    peridot_grammar *grammar;
    struct pd_buffer loosened;    /* names of functions */
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

/* ---- reply ---- */

/* The calls in a reply. */
struct pd_calling {
    struct peridot_tools *tools;       /* NULL: there are none */
    peridot_call call;                 /* NULL: nobody asks for them */
    struct pd_call_parser parser;
    struct pd_buffer spelled;     /* the bytes of a token, and control tokens as marks */
    struct pd_buffer text;        /* what of them is no part of a call */
    uint32_t n;                        /* calls that have begun */
};

/* Becomes an owner of the tools; both may be NULL. */
void pd_calling_begin(struct pd_calling *c, const peridot_tools *tools, peridot_call call);
void pd_calling_end(struct pd_calling *c);

/* The marks of thoughts in replies; tokenizer NULL: there are none. Borrows from it. */
struct pd_thought_marks pd_reply_marks(const struct pd_tokenizer *tokenizer);
/* Hands on what a token of a peridot_request completes; -1 flushes. *go_on: the reply may go on. */
peridot_status pd_reply_write(bool *go_on, struct pd_request *request, enum pd_reply_part part, int32_t token);

/* ---- grammar ---- */

/* Grammars that are not of JSON alone, and the spellings that all are made of. */

/* The bytes of a vocabulary's pieces, made when they are asked for first. The vocabulary's. */
peridot_status pd_api_find_spellings(struct pd_spellings **out, const peridot_vocab *vocab);
/* Which control tokens of calls a vocabulary has: for pd_calls.marks. */
unsigned pd_api_call_marks(const peridot_vocab *vocab);
/* The grammar of replies that may call tools; calls->marks are those of the vocabulary. */
peridot_status pd_api_grammar_calls(peridot_grammar **out, const peridot_vocab *vocab, const struct pd_calls *calls);

/* ---- info ---- */

/* Sets all members: those that need weights or a device to 0 or NULL. Borrows from the configuration. */
void pd_model_info_begin(peridot_model_info *out, const struct pd_config *config);
/* "q8_0, f32": the types of matrices, those of most matrices first. */
void pd_model_info_types(char *out, size_t size, const uint32_t counts[PD_N_DTYPES]);

/* ---- params ---- */

/* A program's params as this library has them: what the program does not know is 0, and all of it where `from` is NULL.
 * Fails where the program sets what this library does not know; `name` is the struct's. */
peridot_status pd_params_read(void *to, size_t to_size, const void *from, const char *name);
/* The reverse, of results: writes what the program knows. `to` may be NULL. */
void pd_result_write(void *to, const void *from, size_t from_size);

#define PD_PARAMS_READ(to, from) pd_params_read(&(to), sizeof(to), from, #from)

/* ---- request ---- */

struct peridot_request {
    struct pd_request r;               /* the first member: the engine's callback gets it */
    peridot_session *session;
    struct peridot_request *next;      /* of the session's */
    struct pd_stream stream;
    struct pd_buffer buffer;
    struct pd_chain *chain;            /* whose stop texts these are */
    struct pd_stop stop;
    peridot_text text, thought;
    struct pd_row_calls rows;          /* for the prompt's */
    bool hides_name, named;            /* of a thought: its first line is left out, and has ended */
    struct pd_calling calling;
    struct pd_image **images;          /* [n_images] of the prompt, which stay with it */
    size_t n_images;
};

#endif
