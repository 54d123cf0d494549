/* Opening the model that the command line names: the demo model, the device from the environment, the cache folder. */
#ifndef PERIDOT_COMMAND_OPEN_H
#define PERIDOT_COMMAND_OPEN_H

#include "command.h"

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
};

/* Whoever has the demo model alone is told of this one, which is small and chats. */
#define CMD_CHAT_MODEL "ggml-org/gemma-3-1b-it-GGUF:Q4_K_M"

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
     .value = cmd_kv_name, .help = "Type of the numbers in the key-value cache; q8_0 takes about half of f16's memory."}

/* For commands with a member `template_name`. */
#define CMD_TEMPLATE_OPTION(type) \
    {.name = "template", .metavar = "NAME", .kind = CMD_TEXT, .offset = offsetof(type, template_name), \
     .value = peridot_template_name, .help = "Take this chat template rather than the model's own."}

/* Names of peridot_kv_type, in its order. */
const char *cmd_kv_name(size_t i);
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

#endif
