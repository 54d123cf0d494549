/* Texts for the commands that only read (classify, tag, embed): their arguments, or the lines of standard input. Each
 * is evaluated from an empty context; as many as are there and fit the chunk go to the device together. */
#ifndef PERIDOT_COMMAND_INPUTS_H
#define PERIDOT_COMMAND_INPUTS_H

#include "open.h"

/* First member of the arguments of these commands. */
struct cmd_inputs_args {
    struct cmd_model_args model;
    struct cmd_texts texts;
    uint32_t ctx, chunk, kv;
};

/* model: the row of -m. */
#define CMD_INPUTS_OPTIONS(model) \
    model, CMD_DEVICE_OPTIONS, CMD_LORA_OPTION, \
    {.name = "ctx", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct cmd_inputs_args, ctx), .fallback = "0", \
     .help = "The most tokens of a text; 0: the model's own, or what memory allows up to 8192."}, \
    CMD_CHUNK_OPTION(struct cmd_inputs_args), CMD_KV_OPTION(struct cmd_inputs_args), \
    {.metavar = "TEXT", .kind = CMD_TEXTS, .offset = offsetof(struct cmd_inputs_args, texts), \
     .help = "A text. Without any, each line of standard input is one, without its newline."}

struct cmd_input {
    const peridot_model *model;
    const char *text;
    size_t size;
    const int32_t *ids;             /* [n], bos first and eos last where the tokenizer adds them, the prefix between */
    size_t n;
};

/* A row of what the model makes of a text. */
struct cmd_input_row {
    const float *at;                /* [n] */
    size_t n;
    uint32_t pos;
    bool is_first, is_last;         /* of the text's rows that are asked for */
};

enum cmd_rows { CMD_ROWS_ALL, CMD_ROWS_FIRST, CMD_ROWS_LAST };

/* What a command does with texts. */
struct cmd_input_task {
    unsigned heads;                 /* of models that can be used: CMD_HEAD_...; 0: all */
    const char *command;            /* which needs them */
    enum cmd_rows rows;             /* of each text */
    bool hidden;                    /* rows are final-norm states, else scores */
    /* Called with the model, before any text is read: may set what follows and `rows`; NULL: nothing depends on it. */
    peridot_status (*begin)(struct cmd_input_task *task, const peridot_model *model);
    const char *prefix;             /* of every text; NULL: none */
    /* Called for each row asked for, text by text in their order, position by position. */
    peridot_status (*take)(void *user, const struct cmd_input *input, const struct cmd_input_row *row);
    void *user;
};

/* Opens the model and does the task. */
peridot_status cmd_inputs_run(const struct cmd_inputs_args *args, struct cmd_input_task *task);

/* Labels with their probabilities or, of a regression, with their scores. */
struct cmd_score {
    uint32_t label;
    double value;
};
/* [n] of n label scores: the likeliest first, of a regression in the order of the labels. */
void cmd_scores(struct cmd_score *out, const peridot_model *model, const float *scores, size_t n);
/* What the values are: "probability", "score". */
const char *cmd_score_name(const peridot_model *model);
/* The value as text, in a row of columns and in JSON; the result is good until the next call. */
const char *cmd_score_text(const peridot_model *model, double value, bool json);
/* The label's name, or LABEL_i where the model has none. Borrowed until the next call. */
const char *cmd_label(const peridot_model *model, uint32_t i);

#endif
