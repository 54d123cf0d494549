/* What every command has: its options, help and hints, the model that it opens, its inputs and its draws. */
#ifndef PERIDOT_COMMAND_CLI_CLI_H
#define PERIDOT_COMMAND_CLI_CLI_H

#include "../base/base.h"

#include <stdio.h>

/* ---- command ---- */

/* A command and its options as rows of tables, which drive the parser (options.c), the help pages (help.c) and the
 * dispatch (main.c); and how a command ends (exit.c). A new command is a file with one `const struct cmd_command`, and
 * a line in the table of commands.c. Nothing here knows more of the library than its public headers say. */

enum cmd_exit { CMD_OK = 0, CMD_FAILURE = 1, CMD_USAGE = 2 };

enum cmd_kind {
    CMD_FLAG,     /* bool; takes no value */
    CMD_TEXT,     /* const char *, borrowed from argv */
    CMD_TEXTS,    /* struct cmd_texts: may be given again and again */
    CMD_U32,
    CMD_F32,
    CMD_SIZE,     /* uint64_t: bytes, with k, M, G or T after a number */
    CMD_SEED,     /* uint64_t; the word "random" draws one */
    CMD_BUDGET,   /* uint32_t: off (0), on (UINT32_MAX), or a number */
    CMD_CHOICE    /* uint32_t: index into `value` */
};

enum { CMD_TEXTS_MAX = 64 };

struct cmd_texts {
    const char *at[CMD_TEXTS_MAX];  /* borrowed from argv */
    size_t n;
};

struct cmd_option {
    char letter;                    /* 'm' for -m; 0: none */
    const char *name;               /* "model" for --model; NULL: this row is the operand */
    const char *metavar;            /* what stands for the value in help; NULL for a flag */
    enum cmd_kind kind;
    size_t offset;                  /* of the value in the command's arguments */
    const char *fallback;           /* the default as one would type it; NULL: zero */
    const char *help;
    bool required;
    double min, max;                /* of a number; both 0: whatever the type holds */
    const char *(*value)(size_t i); /* the allowed values, NULL past the last; NULL: any */
    /* the value that another spelling stands for, NULL where it stands for none; NULL: there is only one */
    const char *(*spelling)(const char *text);
    size_t given;                   /* where `bit` is not 0: of a uint32_t, which has it once the option was given */
    uint32_t bit;
};

struct cmd_command {
    const char *name;
    const char *summary;            /* completes "peridot NAME - ", no full stop */
    const char *description;        /* paragraphs, with a blank line between them */
    const char *examples;           /* lines */
    const struct cmd_option *options;
    size_t n_options;
    size_t args_size;               /* of the struct that the offsets point into */
    int (*run)(const struct cmd_command *command, const void *args);   /* gives the exit status */
};

/* Of a cmd_command: what it takes, an array of options for a struct of arguments. */
#define CMD_ARGUMENTS(list, type) .options = list, .n_options = PD_COUNT(list), .args_size = sizeof(type)

/* "peridot: SENTENCE; see peridot COMMAND --help" on stderr; gives CMD_USAGE. `command` may be NULL. */
int cmd_usage(const struct cmd_command *command, const char *format, ...) PD_PRINTF(2, 3);
/* Turns a status into an exit status; a failure prints the library's sentence. */
int cmd_exit(peridot_status status);

/* ---- open ---- */

/* First member of the arguments of every command that takes the rows below. */
struct cmd_model_args {
    const char *path;     /* NULL: the demo model */
    const char *device;   /* NULL: PERIDOT_DEVICE, or else the library's choice */
    uint64_t gpu_memory;  /* 0: all weights must fit */
    uint32_t precision;   /* peridot_precision */
    struct cmd_texts kernels;
    struct cmd_texts adapters;   /* FILE[:SCALE] */
    const char *vision;   /* NULL: the one that is beside the model, if any; "none" */
    uint32_t image_rows;  /* 0: as the model says */
    bool pan_and_scan;    /* of pictures: see peridot_image_params */
    bool block;           /* see peridot_model_params */
};

/* Whoever has the demo model alone is told of this one, which is small and chats, */
#define CMD_CHAT_MODEL "ggml-org/gemma-3-1b-it-GGUF:Q4_K_M"
/* or of the largest that the device has memory for, as `peridot pull` takes it. */
const char *cmd_chat_model(const peridot_device_info *device);

/* otherwise: what is said of a command line without it. */
#define CMD_MODEL_OPTION_OR(otherwise) \
    {.letter = 'm', .name = "model", .metavar = "MODEL", .kind = CMD_TEXT, \
     .offset = offsetof(struct cmd_model_args, path), \
     .help = "A .gguf file or a folder with one, a Hugging Face directory, or the name of a model on this machine: " \
             "see peridot models. " otherwise}
#define CMD_MODEL_OPTION CMD_MODEL_OPTION_OR("Without it, the demo model.")
#define CMD_DEVICE_OPTIONS \
    {.name = "device", .metavar = "DEVICE", .kind = CMD_TEXT, .offset = offsetof(struct cmd_model_args, device), \
     .help = "An index from peridot devices, part of a name, a UUID or a PCI address. Without it, the environment " \
             "variable PERIDOT_DEVICE, or else the fastest real GPU."}, \
    {.name = "gpu-memory", .metavar = "SIZE", .kind = CMD_SIZE, .offset = offsetof(struct cmd_model_args, gpu_memory), \
     .help = "Weights take at most this much of the GPU's own memory (6G, 800M); layers that do not fit are left in " \
             "the host's, which the GPU reads across the bus."}, \
    {.name = "precision", .metavar = "PRECISION", .kind = CMD_CHOICE, \
     .offset = offsetof(struct cmd_model_args, precision), .fallback = "default", .value = cmd_precision_name, \
     .help = "exact: matrices and attention are computed in fp32 alone; default: as suits the device, whose fastest " \
             "kernels may round activations to fp16 or to integers with a scale."}

#define CMD_LORA_OPTION_HELP \
    "A LoRA adapter for the model: a .gguf file or a PEFT directory, and by how much it is taken (1 where nothing is " \
    "said). May be repeated."
#define CMD_LORA_OPTION \
    {.name = "lora", .metavar = "FILE[:SCALE]", .kind = CMD_TEXTS, \
     .offset = offsetof(struct cmd_model_args, adapters), .help = CMD_LORA_OPTION_HELP}

#define CMD_KERNEL_OPTION \
    {.name = "kernel", .metavar = "NAME=VARIANT", .kind = CMD_TEXTS, \
     .offset = offsetof(struct cmd_model_args, kernels), \
     .help = "Use this variant of a kernel wherever the device can; peridot devices lists them. May be repeated, for " \
             "several kernels."}

/* The numbers of a session that commands let people set, for commands with members `ctx`, `chunk` and `kv`. */
#define CMD_CTX_OPTION(type) \
    {.name = "ctx", .metavar = "N", .kind = CMD_U32, .offset = offsetof(type, ctx), .fallback = "0", \
     .help = "Positions of the context, which prompt and reply share; 0: the model's own, or what memory allows up " \
             "to 8192."}
#define CMD_CHUNK_OPTION(type) \
    {.name = "chunk", .metavar = "N", .kind = CMD_U32, .offset = offsetof(type, chunk), .min = 1, .max = 65536, \
     .fallback = "256", .help = "Read the prompt at most N tokens at a time; 1 reads it in decode steps."}
#define CMD_KV_OPTION(type) \
    {.name = "kv", .metavar = "TYPE", .kind = CMD_CHOICE, .offset = offsetof(type, kv), .fallback = "f16", \
     .value = cmd_kv_name, \
     .help = "Type of the numbers in the key-value cache. Of f16's memory q8_0 takes 53 %, q8_0/q4_1 (keys in q8_0, " \
             "values in q4_1) 42 %, q5_1 38 %, q4_1 31 %. What it costs depends on the model: of two small ones " \
             "q8_0/q4_1 raised the perplexity by up to 1 %, q4_1 by 2 to 8 %."}

/* For commands with a member `template_name`. */
#define CMD_TEMPLATE_OPTION(type) \
    {.name = "template", .metavar = "NAME", .kind = CMD_TEXT, .offset = offsetof(type, template_name), \
     .value = peridot_template_name, .help = "Take this chat template rather than the model's own."}

/* Names of peridot_kv_type, in its order. */
const char *cmd_kv_name(size_t i);
/* A model's type as people call it: "Q4_K_M" where the file says so, else that of most matrices, "q8_0". *size: its
 * bytes, "" where a file was not understood; borrowed from `info`. */
const char *cmd_type_name(size_t *size, const peridot_model_info *info);
/* Names of peridot_precision, in its order. */
const char *cmd_precision_name(size_t i);
/* "discrete GPU" */
const char *cmd_device_type_name(peridot_device_type type);

/* The folder for compiled pipelines; NULL when there is no home to keep one in. Borrowed for the life of the
 * process. */
const char *cmd_cache_dir(void);
/* The device that was given, or the environment's; NULL: neither. */
const char *cmd_device_name(const char *given);
/* For when no GPU was found: a line on stderr about the one that this machine has, if it has one. */
void cmd_device_advise(void);
/* What is said of a model with peridot_model_info.lacks_dense. */
extern const char cmd_lacks_dense[];

/* The path that was given or that the given name means, or the demo model's. `*path` is borrowed until another is asked
 * for. */
peridot_status cmd_model_path(const char **path, const char *given);
/* Opens the model with a progress bar, and says on stderr which device it is on and why, and which file beside it has
 * its vision tower. */
peridot_status cmd_model_open(peridot_model **out, const struct cmd_model_args *args);
/* The same for text alone, of a model that may be a drafter of `target` (NULL: none may). */
peridot_status cmd_model_open_text(peridot_model **out, const struct cmd_model_args *args, peridot_model *target);
/* The adapters of --lora options, [n]; their paths go with `at`. The file's name may have colons of its own: a scale is
 * a number after the last one. */
struct cmd_adapters {
    peridot_adapter_file at[CMD_TEXTS_MAX];
    size_t n;
};
peridot_status cmd_adapters_read(struct cmd_adapters *out, const struct cmd_texts *texts);
void cmd_adapters_free(struct cmd_adapters *adapters);
/* peridot_session_create, which says on a terminal how far the driver is where it has to compile for long. */
peridot_status cmd_session_create(peridot_session **out, peridot_model *model, const peridot_session_params *params);
/* Says on stderr with which precision and kernels it computes, for commands whose results are numbers. */
void cmd_model_print_precision(const peridot_model *model);

/* Searches, for about max_s seconds at most (0: to the end), for what suits the device; `call` may be NULL. */
peridot_status cmd_model_tune(peridot_model *model, double max_s, peridot_tuned_call call);
/* Does so where the device was never tuned. That it cannot be is no failure. */
peridot_status cmd_model_tune_once(peridot_model *model);

/* Before the model is opened: a failure that says what it is and what to use it with, when it has none of the heads
 * that `command` can do with. */
enum { CMD_HEAD_LANGUAGE = 1 << PERIDOT_HEAD_LANGUAGE, CMD_HEAD_SEQUENCE = 1 << PERIDOT_HEAD_SEQUENCE,
       CMD_HEAD_TOKEN = 1 << PERIDOT_HEAD_TOKEN, CMD_HEAD_NONE = 1 << PERIDOT_HEAD_NONE,
       CMD_HEAD_RERANKER = CMD_HEAD_NONE << 1   /* of sequence classification, with these labels alone */ };
peridot_status cmd_model_need_head(const struct cmd_model_args *args, unsigned heads, const char *command);

/* ---- inputs ---- */

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

/* ---- sampling ---- */

/* A member of such a command's arguments. */
struct cmd_sampling {
    peridot_sampling p;
    uint32_t given;            /* bits of peridot_recommended: of `p`, what was said */
    struct cmd_texts stop, bias, breakers;
    const char *schema;        /* a file; NULL: none */
    bool verbose;
};

#define CMD_GIVES(type, member, what) \
    .given = offsetof(type, member.given), .bit = PERIDOT_RECOMMENDED_##what

/* The numbers of a chain; the others' defaults are the same everywhere. */
#define CMD_CHAIN_OPTIONS(type, member, default_temp, default_top_p, default_min_p) \
    {.name = "temp", .metavar = "T", .kind = CMD_F32, .offset = offsetof(type, member.p.temperature), \
     CMD_GIVES(type, member, TEMPERATURE), .fallback = default_temp, .max = 100, \
     .help = "Temperature: 0 always takes the likeliest token; higher values give more varied text. Where the " \
             "model's files recommend other values for this, top-k, top-p, min-p, repeat-penalty or XTC, those are " \
             "the defaults, and standard error says so."}, \
    {.name = "top-k", .metavar = "K", .kind = CMD_U32, .offset = offsetof(type, member.p.top_k), .fallback = "40", \
     CMD_GIVES(type, member, TOP_K), .help = "Draw among the K likeliest tokens; 0: among all."}, \
    {.name = "top-p", .metavar = "P", .kind = CMD_F32, .offset = offsetof(type, member.p.top_p), .max = 1, \
     CMD_GIVES(type, member, TOP_P), .fallback = default_top_p, \
     .help = "Draw among the likeliest tokens that together have probability P; 1: among all."}, \
    {.name = "min-p", .metavar = "P", .kind = CMD_F32, .offset = offsetof(type, member.p.min_p), .max = 1, \
     CMD_GIVES(type, member, MIN_P), .fallback = default_min_p, \
     .help = "Draw among tokens at least P times as likely as the likeliest; 0: among all."}, \
    {.name = "top-n-sigma", .metavar = "N", .kind = CMD_F32, .offset = offsetof(type, member.p.top_n_sigma), \
     .fallback = "0", .max = 100, .help = "Draw among tokens whose logits are at most N standard deviations below " \
     "the highest; 0: among all."}, \
    {.name = "xtc-probability", .metavar = "P", .kind = CMD_F32, .offset = offsetof(type, member.p.xtc_probability), \
     CMD_GIVES(type, member, XTC_PROBABILITY), .fallback = "0", .max = 1, \
     .help = "XTC: with this probability a draw leaves out the top choices, which are all tokens of at least the " \
             "threshold's probability but the least likely of them; 0: never."}, \
    {.name = "xtc-threshold", .metavar = "P", .kind = CMD_F32, .offset = offsetof(type, member.p.xtc_threshold), \
     CMD_GIVES(type, member, XTC_THRESHOLD), .fallback = "0.1", .max = 1, \
     .help = "The probability that makes a top choice; over 0.5: there are none."}, \
    {.name = "repeat-penalty", .metavar = "R", .kind = CMD_F32, .offset = offsetof(type, member.p.repeat_penalty), \
     CMD_GIVES(type, member, REPEAT_PENALTY), .fallback = "1", .max = 100, \
     .help = "Makes the last 64 tokens less likely to come again: positive logits are divided by R, others " \
             "multiplied; 1: off."}, \
    {.name = "presence-penalty", .metavar = "X", .kind = CMD_F32, .offset = offsetof(type, member.p.presence_penalty), \
     .fallback = "0", .min = -100, .max = 100, .help = "Subtracted from the logits of the last 64 tokens."}, \
    {.name = "frequency-penalty", .metavar = "X", .kind = CMD_F32, \
     .offset = offsetof(type, member.p.frequency_penalty), .fallback = "0", .min = -100, .max = 100, \
     .help = "Subtracted from a token's logit once for each time that it is among the last 64."}, \
    {.name = "dry-multiplier", .metavar = "X", .kind = CMD_F32, .offset = offsetof(type, member.p.dry_multiplier), \
     .fallback = "0", .max = 100, .help = "DRY: where the last tokens were in the text before, X times the base to " \
     "the power of how many they are, beyond the allowed length, is subtracted from the logit of the token that " \
     "came next there; 0: off."}, \
    {.name = "dry-base", .metavar = "X", .kind = CMD_F32, .offset = offsetof(type, member.p.dry_base), \
     .fallback = "1.75", .min = 1, .max = 100, .help = "What a repetition costs more for each token."}, \
    {.name = "dry-allowed-length", .metavar = "N", .kind = CMD_U32, \
     .offset = offsetof(type, member.p.dry_allowed_length), .fallback = "2", .min = 1, .max = 1e9, \
     .help = "Repetitions of fewer tokens cost nothing."}, \
    {.name = "dry-penalty-last-n", .metavar = "N", .kind = CMD_U32, .offset = offsetof(type, member.p.dry_last_n), \
     .fallback = "0", .spelling = cmd_dry_all, .help = "Look for repetitions in the last N tokens; 0 or -1: in all."}, \
    {.name = "dry-sequence-breaker", .metavar = "TEXT", .kind = CMD_TEXTS, .offset = offsetof(type, member.breakers), \
     .help = "No repetition goes on over this text. May be repeated; none: there are no such texts. Without it, they " \
             "are a newline, a colon, a quote and an asterisk."}

#define CMD_SAMPLING_OPTIONS(type, member) \
    CMD_CHAIN_OPTIONS(type, member, "0.8", "0.95", "0.05"), \
    {.name = "logit-bias", .metavar = "ID=X", .kind = CMD_TEXTS, .offset = offsetof(type, member.bias), \
     .help = "Adds X to the logit of token ID; -inf bans it. May be repeated."}, \
    {.name = "stop", .metavar = "TEXT", .kind = CMD_TEXTS, .offset = offsetof(type, member.stop), \
     .help = "Ends the reply before this text. May be repeated: the first that occurs counts."}, \
    {.name = "seed", .metavar = "S", .kind = CMD_SEED, .offset = offsetof(type, member.p.seed), .fallback = "random", \
     .help = "The same seed, device and model give the same text. The statistics show the one used."}, \
    {.name = "verbose", .kind = CMD_FLAG, .offset = offsetof(type, member.verbose), \
     .help = "Show on standard error how tokens are chosen: every step of the chain, in its order."}

#define CMD_SCHEMA_OPTION(type, member) \
    {.name = "json-schema", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(type, member.schema), \
     .help = "The reply is JSON that this JSON Schema allows, whatever the model: other tokens are never drawn. A " \
             "reply that ends by its length is cut. Keywords that are not supported are named."}

/* -1, as other programs have it, is 0. */
const char *cmd_dry_all(const char *text);
/* The options' breakers put into a chain; borrows them. */
void cmd_sampling_break(peridot_sampling *out, const struct cmd_sampling *given);
/* Puts what the model's publisher recommends into a chain, but for what was given (bits of peridot_recommended), and
 * says so on standard error. */
void cmd_sampling_recommend(peridot_sampling *p, const peridot_model *model, uint32_t given);
/* Takes it back: what was not given is as in `plain` again. */
void cmd_sampling_forget(peridot_sampling *p, const peridot_sampling *plain, uint32_t given);
/* "temperature 0.6, top-k 20": of a chain, the numbers of these bits; as JSON "temperature": 0.6, "top_k": 20 */
void cmd_sampling_print_members(FILE *file, const peridot_sampling *p, uint32_t members, bool json);
/* The options with texts and biases put in their places; `bias` is where the latter go. Borrows from both. CMD_OK,
 * or CMD_USAGE after a sentence. */
int cmd_sampling_make(peridot_sampling *out, peridot_bias bias[CMD_TEXTS_MAX], const struct cmd_command *command,
                      const struct cmd_sampling *given);
/* The grammar of --json-schema for the model's vocabulary; NULL without the option. Failures name the file. */
peridot_status cmd_grammar_open(peridot_grammar **out, const struct cmd_sampling *given, const peridot_model *model);
/* "sampling: repeat penalty 1.1, top-k 40, ..." in the chain's order, without what is off. */
void cmd_sampling_print(FILE *file, const peridot_sampling *p);
/* A line on what a reply cost: "prompt: 4 tokens, 323.8 tokens/s; reply: 48 tokens, ...". */
void cmd_stats_print(FILE *file, const peridot_stats *s, const peridot_sampling *sampling);

/* ---- thought ---- */

#define CMD_THINK_OPTION(type) \
    {.name = "think", .metavar = "N", .kind = CMD_BUDGET, .offset = offsetof(type, think), .fallback = "off", \
     .help = "Whether the model thinks before it answers, if its family does (Gemma 4): on, off, or at most N tokens " \
             "of thought, after which the answer begins. They count as tokens of the reply."}

/* {0} is the beginning. */
struct cmd_thought {
    struct pd_buffer text;
    uint32_t n;                /* tokens after the mark that begins it */
    bool open, drawn;          /* it is being written; its line is on the terminal */
    double drawn_s;
};

/* Takes a token of a thought: see peridot_request_params. `quiet`: nothing is drawn, as an answer has begun. */
peridot_status cmd_thought_take(struct cmd_thought *t, int32_t token, const char *text, size_t size, bool quiet);
/* Says on standard error how long the thought was, if there was one. `closed`: the answer begins, after a mark; else
 * the reply ended within it. `hint` goes behind. */
void cmd_thought_end(struct cmd_thought *t, bool closed, const char *hint);
/* Writes the text of a thought, dimmed on a terminal, to standard error. */
void cmd_thought_show(const struct cmd_thought *t);
void cmd_thought_free(struct cmd_thought *t);

/* ---- images ---- */

#define CMD_VISION_OPTION \
    {.name = "vision", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct cmd_model_args, vision), \
     .help = "The file with the model's vision tower (mmproj, GGUF); none: the model is to see nothing. Without it, " \
             "the file with mmproj in its name beside the model that fits it, or the Hugging Face directory's own."}, \
    {.name = "image-rows", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct cmd_model_args, image_rows), \
     .fallback = "0", .max = 1120, \
     .help = "Rows of a picture at most, where the model leaves it open: Gemma 4's 70, 140, 280, 560 or 1120; more " \
             "for small print. 0: as the model's files say, or 280."}, \
    {.name = "pan-and-scan", .kind = CMD_FLAG, .offset = offsetof(struct cmd_model_args, pan_and_scan), \
     .help = "Show Gemma 3 a long picture whole, and then in two to four parts, for small print: where one side is " \
             "at least 1.2 times the other, and parts have 256 pixels a side. Each part takes as many rows as the " \
             "whole. Other families refuse it."}

/* For commands with a member `images`. */
#define CMD_IMAGE_OPTION(type, what) \
    {.name = "image", .metavar = "FILE", .kind = CMD_TEXTS, .offset = offsetof(type, images), .help = what}
#define CMD_IMAGES_PLACED_HELP \
    "A picture (JPEG, PNG, WebP, GIF) for a model that sees; may be repeated. In --tokens its rows are the model's " \
    "image tokens, as many as it has, as transformers' processors write them; images take them in order, with " \
    "--pan-and-scan each followed by its parts."

struct cmd_images {
    peridot_image *at[CMD_TEXTS_MAX];
    size_t n;
};

/* Reads a file for a model; "-" is standard input. pan_and_scan: see peridot_image_params. */
peridot_status cmd_image_read(peridot_image **out, const peridot_model *model, const char *file, bool pan_and_scan);
#define CMD_FILE_URL "file:"   /* before a path */
/* The same of "file:PATH" or "data:...;base64,...". */
peridot_status cmd_image_read_url(peridot_image **out, const peridot_model *model, const char *url, bool pan_and_scan);
/* Reads the files (JPEG, PNG, WebP, GIF; "-": standard input) for a model. */
peridot_status cmd_images_read(struct cmd_images *out, const peridot_model *model, const struct cmd_texts *files,
                               bool pan_and_scan);
void cmd_images_free(struct cmd_images *images);
/* A message of the user's with n images before its text, as JSON of *size bytes for peridot_chat, to be freed. */
peridot_status cmd_images_message(char **json, size_t *size, size_t n, const char *text);

/* ---- ids ---- */

/* Token ids as text: decimal, printed with commas and nothing else so that they paste into --tokens; read with any mix
 * of commas and white space between them. */

#define CMD_IDS_HELP \
    "Token ids with commas or spaces between them, as peridot tokenize prints them; @FILE reads them from a file, - " \
    "from standard input. Nothing is added: give the first token of a text (peridot tokenize --bos) yourself."

/* What an option like --tokens says: the text itself, @FILE, or - for standard input; *text is to be freed. *name is
 * what the sentence of a failure blames, borrowed from `given`. */
peridot_status cmd_ids_text(char **text, size_t *size, const char **name, const char *given);
/* n ids, allocated; freed by the caller. `name` is what the sentence of a failure blames. */
peridot_status cmd_ids_parse(int32_t **out, size_t *n, const char *text, size_t size, const char *name);
void cmd_ids_print(FILE *file, const int32_t *ids, size_t n);

/* ---- pipelines ---- */

/* device NULL: PERIDOT_DEVICE, or else the library's choice. */
peridot_status cmd_pipelines_print(const char *device, bool json, bool assembly);

/* ---- options ---- */

/* The option parser. */

/* Fills args (zeroed by the caller) from the defaults and argv[0..argc). CMD_OK; or CMD_USAGE after a sentence on
 * stderr; or one of these when help was asked for. */
enum { CMD_HELP = -1, CMD_HELP_ALL = -2 };
int cmd_options_parse(const struct cmd_command *command, void *args, int argc, char **argv);
/* Sets one option by its name without dashes, while a command runs. A flag takes on or off; a list gets one more entry,
 * or none at all without a value (NULL). Borrows the value. CMD_OK, or CMD_USAGE after a sentence. */
int cmd_option_set(const struct cmd_command *command, void *args, const char *name, const char *value);
/* Writes the value as one would type it; nothing for a list or a text that is not set. */
void cmd_option_print(FILE *file, const struct cmd_option *o, const void *args);

/* ---- commands ---- */

/* Command i of the table, NULL past the last. */
const struct cmd_command *cmd_command_at(size_t i);
/* Its name. */
const char *cmd_command_name(size_t i);
/* The command of that name; NULL, after a sentence on stderr, when there is none. */
const struct cmd_command *cmd_command_find(const char *name);

/* ---- hints ---- */

/* The row of the command that name[0..size), without its dashes, probably stands for, or NULL. `exact`: no near misses,
 * as among single letters all are near. */
const struct cmd_option *cmd_hint_option(const struct cmd_command *command, const char *name, size_t size, bool exact);
/* What to type instead of a command that there is not, "run" or a longer text, or NULL; `at` lists the names of those
 * that there are (NULL: only what other programs call them is looked for). `exact`: no near misses. */
const char *cmd_hint_command(const char *name, size_t size, bool exact, const char *(*at)(size_t i));
/* Why the command has no option of that name, which may have a value behind it, where other programs have one; or
 * NULL. */
const char *cmd_hint_no_option(const struct cmd_command *command, const char *name);
/* Why there is no command of that name, where other programs have one; or NULL. */
const char *cmd_hint_no_command(const char *name);

enum cmd_model_hint {
    CMD_HINT_NO_MODEL,
    CMD_HINT_MODEL_ELSEWHERE,   /* the name of a published model that is not on this machine, or a file that is not */
    CMD_HINT_MODEL_HERE
};
/* Whether a text names a model: a .gguf file, a folder with a config.json, a model that is on this machine, or what
 * published models are called ("gemma3"); where the text is `misplaced` as it stands, whatever looks like such a
 * name. */
enum cmd_model_hint cmd_hint_model(const char *text, bool misplaced);

/* ---- template ---- */

/* Which chat template a model's conversations get, and what the user is told of it. */

/* The name for peridot_encode_messages: `given`, unless it is NULL; NULL where the model has a template; else
 * `otherwise` (NULL: the caller does without a template). Says on stderr where that is not the template in the model's
 * files. Fails where the vocabulary, which there must be, lacks control tokens of the one named. */
peridot_status cmd_template_choose(const char **name, const peridot_model *model, const struct cmd_model_args *args,
                                   const char *given, const char *otherwise);
/* Fails where --think asks for what the template does not have. */
peridot_status cmd_template_check_think(const peridot_vocab *vocab, const char *name, uint32_t think);

/* ---- turns ---- */

struct cmd_turns {
    const peridot_vocab *vocab;
    const char *template_name;
    uint32_t think;                    /* see peridot_chat */
    uint32_t ctx, reserve;             /* reserve: positions that a reply should have */
    const peridot_message *messages;   /* [n]; what follows a message of the user's belongs to its turn */
    size_t n;
    bool json;                         /* contents are whole messages as JSON: see peridot_chat */
    struct peridot_image *const *images;   /* of all messages, in their order; */
    const size_t *n_images;            /* [n]: how many each message has. NULL: none has any */
    const char *tools, *variables, *effort;   /* see peridot_chat; NULL: none */
    const int32_t *ids;                /* [n_ids]: what cmd_turns_encode goes on from; see peridot_chat */
    size_t n_ids;
    peridot_encode_limit *limit;       /* of all that is encoded: see peridot.h; NULL: none */
    const char *reply;                 /* see peridot_chat; NULL: none */
};

/* The prompt of all messages but those of the n_left_out oldest turns, which peridot_free frees; *n_kept: messages. */
peridot_status cmd_turns_encode(int32_t **ids, size_t *n_ids, size_t *n_kept, const struct cmd_turns *t,
                                size_t n_left_out);
/* Turns to leave out where all do not fit, never the last. What was left out is not remembered where `stateless`, but
 * found again: the rule is followed from the first turn on. */
peridot_status cmd_turns_leave_out(size_t *n_left_out, const struct cmd_turns *t, bool stateless);

/* ---- ranking ---- */

struct cmd_ranking {
    const peridot_vocab *vocab;
    const char *instruct, *query;   /* borrowed; instruct NULL: the one that the model's card has */
    int32_t no, yes;                /* numbers of a row of logits or of label scores */
    bool scores_labels;
    peridot_encode_limit *limit;    /* of prompts; NULL: none */
};

/* Which of the model's labels are "no" and "yes", where it is_reranker; else -1. */
void cmd_ranking_labels(int32_t labels[2], const peridot_model *model);
/* Fails where the model is no reranker: its vocabulary lacks ChatML's tokens or, unless it has labels, "yes" or
 * "no". */
peridot_status cmd_ranking_begin(struct cmd_ranking *out, const peridot_vocab *vocab, const int32_t labels[2],
                                 const char *instruct, const char *query);
/* The prompt for a document, to be freed. Prompts of a query differ in nothing but the documents, up to
 * which they can be evaluated once. */
peridot_status cmd_ranking_encode(int32_t **ids, size_t *n, const struct cmd_ranking *r, const char *document);
/* What the request is for: the row of numbers after the prompt, which cmd_ranking_score reads. */
void cmd_ranking_want(peridot_request_params *params, const struct cmd_ranking *r, peridot_row take);
/* 0 to 1, of the row after the prompt. */
double cmd_ranking_score(const struct cmd_ranking *r, const float *row);

/* ---- ranks ---- */

/* The ranks that a command runs on: one (one_rank.c), or several under mpirun (mpi/), which is what peridot-mpi is.
 * Rank 0 runs the command, reads and prints; the others do what it asks of them. */

/* Runs the command on rank 0, and gives the exit status of the process. */
int cmd_ranks_run(int argc, char **argv, int (*command)(int argc, char **argv));
uint32_t cmd_ranks_count(void);
/* Divides the layers of a model that is about to be opened: *link and *device are this rank's, the link NULL where one
 * rank holds all. *device is what `args` says at first. */
peridot_status cmd_ranks_divide(const peridot_link **link, const char **device, const struct cmd_model_args *args);
/* The model is open. */
void cmd_ranks_opened(const peridot_model *model);

enum { CMD_RANKS_MAX = 256 };

/* What a rank had of a model, and its link to the next rank; the last one's is all 0. */
struct cmd_rank {
    char host[64], device[256];
    uint32_t first_layer, n_layers;
    uint64_t memory;           /* bytes on the device at most */
    double busy;               /* the share of the time in which it did not wait for another rank */
    double bandwidth, latency;   /* bytes/s; seconds one way */
};
/* Once the model is closed: out[CMD_RANKS_MAX], and a table of them on standard error. *n is 0 where one rank had all
 * layers. */
peridot_status cmd_ranks_report(struct cmd_rank *out, size_t *n);

/* A command that each rank runs by itself, for its part of the input (--split data). What ranks other than 0 write on
 * standard output goes to rank 0, which writes it after its own, in the order of the parts. */
struct cmd_part {
    uint32_t i, n;             /* part i of n; 0 of 1 where one rank does it all */
    size_t n_lines;            /* of standard input, in the parts before it */
};
struct cmd_part cmd_ranks_part(void);
/* Rank 0's bytes, on all ranks: NUL-terminated and allocated on those other than 0. */
peridot_status cmd_ranks_broadcast(char **data, size_t *size);
/* Rank 0 takes what the others wrote on standard output, and does not write it. *data is to be freed; NULL: nothing. */
peridot_status cmd_ranks_collect(char **data, size_t *size);

/* ---- draft ---- */

/* Speculative decoding as options: --draft and --draft-tokens, for every command that writes text. */

/* A member of such a command's arguments. */
struct cmd_draft_args {
    const char *name;          /* "none", "ngram", "assistant", "mtp", a model; NULL: the model's own block, if any */
    uint32_t n;                /* 0: automatic */
};

#define CMD_DRAFT_OPTIONS(type, member) \
    {.name = "draft", .metavar = "MODEL", .kind = CMD_TEXT, .offset = offsetof(type, member.name), \
     .help = "Write faster, and the same text: tokens that are likely to come are guessed by this smaller model with " \
             "the same vocabulary, or by the model's own drafter (gemma4-assistant), and evaluated several at a " \
             "time. assistant: the drafter that lies beside the model. mtp: the block that the model's own file has " \
             "for it (Qwen 3.5), which is taken anyhow where there is one and memory for it. ngram: needs no model, " \
             "guesses what followed the same words earlier in the text. none: no guesses."}, \
    {.name = "draft-tokens", .metavar = "N", .kind = CMD_U32, .offset = offsetof(type, member.n), .fallback = "0", \
     .max = 31, .help = "Guess N tokens each time; 0: as many as suit the device, and none while guessing does not " \
                        "pay."}

/* A draft model with a session of its own, or a drafter, which needs none. */
struct cmd_draft {
    peridot_model *model;      /* NULL: none */
    peridot_session *session;
    uint32_t n;                /* what sessions and requests take as n_draft */
    bool unasked;              /* nobody named it: where it does not fit there are no drafts */
};

/* Opens the draft model, if one is named, or the model's own block, on the device of `of`. */
peridot_status cmd_draft_open(struct cmd_draft *out, const struct cmd_draft_args *args,
                              const struct cmd_model_args *model, peridot_model *of);
/* cmd_session_create of a session with these drafts. */
peridot_status cmd_draft_create_target(peridot_session **out, struct cmd_draft *draft, peridot_model *model,
                                       peridot_session_params *params);
/* If it is a model that is no drafter: its session, with p's context and number of sequences. */
peridot_status cmd_draft_create_session(struct cmd_draft *draft, const peridot_session_params *p);
void cmd_draft_close(struct cmd_draft *draft);

/* ---- splits ---- */

enum { CMD_MAX_SPLITS = 4 };

/* A model with experts, of which those of some layers are in the host's memory: none, the fewest with which the rest
 * fits, half of the layers, all. With unified memory there is one. */
struct cmd_splits {
    const peridot_device_info *device;   /* the caller's */
    peridot_reads reads;                 /* measured */
    uint64_t room;                       /* bytes that weights may take on the device */
    uint32_t n_layers;                   /* that have experts */
    uint32_t n_host[CMD_MAX_SPLITS];     /* of these, with experts in the host's memory */
    peridot_split at[CMD_MAX_SPLITS];
    size_t n;                            /* 0: the model has no experts */
};

/* Measures the device, where the model has experts. */
peridot_status cmd_splits_find(struct cmd_splits *out, const peridot_file *file, const peridot_device_info *device,
                               uint64_t room);
void cmd_splits_print(const struct cmd_splits *s);
/* As a member of an object, after others. */
void cmd_splits_write(const struct cmd_splits *s);

#endif
