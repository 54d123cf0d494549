/* Texts for the commands that only read (classify, tag, embed): their arguments, or the lines of standard input. Each is
 * evaluated by itself, from an empty context. */
#ifndef PERIDOT_COMMAND_INPUTS_H
#define PERIDOT_COMMAND_INPUTS_H

#include "open.h"

/* First member of the arguments of these commands. */
struct cmd_inputs_args {
    struct cmd_model_args model;
    struct cmd_texts texts;
    uint32_t ctx, chunk, kv;
};

#define CMD_INPUTS_OPTIONS                                                                                              \
    CMD_MODEL_OPTION, CMD_DEVICE_OPTION,                                                                                \
    {.name = "ctx", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct cmd_inputs_args, ctx), .fallback = "0",  \
     .help = "The most tokens of a text; 0: the model's own, or what memory allows up to 8192."},                       \
    CMD_CHUNK_OPTION(struct cmd_inputs_args), CMD_KV_OPTION(struct cmd_inputs_args),                                    \
    {.metavar = "TEXT", .kind = CMD_TEXTS, .offset = offsetof(struct cmd_inputs_args, texts),                           \
     .help = "A text. Without any, each line of standard input is one, without its newline."}

struct cmd_input {
    const peridot_model *model;
    peridot_session *session;       /* empty */
    const char *text;
    size_t size;
    const int32_t *ids;             /* [n], bos first where the tokenizer adds it; they fit the session */
    size_t n;
};

/* Evaluates a text and prints what comes of it. */
typedef peridot_status (*cmd_input_fn)(void *user, const struct cmd_input *input);
/* Opens the model, asks `ready` (may be NULL) whether it will do, and calls `each` for all texts. */
peridot_status cmd_inputs_run(const struct cmd_inputs_args *args, peridot_status (*ready)(const peridot_model *model),
                              cmd_input_fn each, void *user);

/* Probabilities of labels, by softmax. */
struct cmd_score {
    uint32_t label;
    double p;
};
/* [n] of n label scores, best first. */
void cmd_scores(struct cmd_score *out, const float *scores, size_t n);
/* The label's name, or LABEL_i where the model has none. Borrowed until the next call. */
const char *cmd_label(const peridot_model *model, uint32_t i);

#endif
