/* peridot convert: a Hugging Face directory or a GGUF file to a GGUF file of another type. */
#include "../base/base.h"
#include "../cli/cli.h"
#include "../console/console.h"

#include <stdio.h>

struct convert_args {
    const char *source, *out, *type, *imatrix;
    struct cmd_texts adapters;
};

static const struct cmd_option options[] = {
    {.metavar = "SRC", .kind = CMD_TEXT, .offset = offsetof(struct convert_args, source), .required = true,
     .help = "A Hugging Face directory (config.json, *.safetensors, tokenizer), a .gguf file, or the name of a model "
             "on this machine: see peridot models."},
    {.letter = 'o', .name = "out", .metavar = "DST", .kind = CMD_TEXT, .offset = offsetof(struct convert_args, out),
     .required = true, .help = "The .gguf file to write. It appears only when it is complete."},
    {.name = "type", .metavar = "TYPE", .kind = CMD_TEXT, .offset = offsetof(struct convert_args, type),
     .fallback = "q8_0", .value = peridot_convert_type, .spelling = peridot_convert_type_find,
     .help = "Type of the matrices, or a mix by the name that files have, in whatever case: q4_k is that throughout, "
             "and Q4_K_M has better types where few bits hurt most."},
    {.name = "imatrix", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct convert_args, imatrix),
     .help = "How much each column of the matrices counts, from peridot imatrix or llama.cpp: for types of 1 to "
             "6 bits, of which the smallest are not written without."},
    {.name = "lora", .metavar = "FILE[:SCALE]", .kind = CMD_TEXTS, .offset = offsetof(struct convert_args, adapters),
     .help = "Merge a LoRA adapter into the matrices, before they get their type: a .gguf file or a PEFT directory, "
             "and by how much it is taken (1 where nothing is said). May be repeated."},
};

/* What the file is, and what a person would not expect of it. */
static void print_stats(const char *path, const peridot_convert_stats *s)
{
    fprintf(stderr, "%s: %u tensor%s, %.3f GB\n", cmd_shown(path), s->n_tensors, PD_S(s->n_tensors),
            (double)s->size * 1e-9);
    if (s->n_replaced)
        fprintf(stderr, "%u %s rows that are not whole blocks of the type; %s\n", s->n_replaced,
                s->n_replaced == 1 ? "matrix has" : "matrices have",
                s->n_replaced == 1 ? "it got one of smaller blocks" : "they got one of smaller blocks");
    if (s->n_weighted) fprintf(stderr, "%u matrices by the importance of their columns\n", s->n_weighted);
    if (s->n_unseen)
        fprintf(stderr, "%u %s of experts without: no token of the imatrix's text took them\n", s->n_unseen,
                s->n_unseen == 1 ? "matrix" : "matrices");
    if (s->n_ignored)
        fprintf(stderr, "%u tensor%s of vision %s left out\n", s->n_ignored, PD_S(s->n_ignored),
                s->n_ignored == 1 ? "was" : "were");
    if (!s->has_tokenizer) fprintf(stderr, "no tokenizer was found: the file can evaluate ids, but no text\n");
}

static int run_convert(const struct cmd_command *command, const void *arguments)
{
    const struct convert_args *args = arguments;
    struct cmd_progress progress = cmd_progress_begin("converting");
    peridot_convert_params params = {.type = args->type, .progress = cmd_progress_step, .user = &progress,
                                     .imatrix = args->imatrix};
    peridot_convert_stats stats;
    struct cmd_adapters adapters;
    const char *source;
    cmd_interrupt_watch();
    peridot_status status = cmd_adapters_read(&adapters, &args->adapters);
    params.adapters = adapters.at;
    params.n_adapters = adapters.n;
    if (status == PERIDOT_OK) status = cmd_model_path(&source, args->source);
    if (status == PERIDOT_OK) status = peridot_convert(args->out, source, &params, &stats);
    cmd_adapters_free(&adapters);
    cmd_progress_end(&progress);
    if (status == PERIDOT_ERROR_ARGUMENT) return cmd_usage(command, "%s", peridot_last_error());
    if (status == PERIDOT_OK) print_stats(args->out, &stats);
    return cmd_exit(status);
}

const struct cmd_command cmd_convert = {
    .name = "convert",
    .summary = "write a model as a GGUF file of another type",
    .description =
        "Writes a Hugging Face directory or a GGUF file as a GGUF file whose matrices have the type asked for. Types "
        "below 6 bits a weight leave embedding and output matrix at q6_k, where few bits hurt most; norms are always "
        "f32. Where rows are not whole blocks of the type, a matrix gets one of smaller blocks.\n\n"
        "Mixes give each matrix what llama-quantize gives it: Q4_K_M, Q4_K_S, Q5_K_M, Q5_K_S, Q3_K_L, Q3_K_M, Q3_K_S, "
        "Q2_K, the IQ types and MXFP4_MOE. Those of some three bits and fewer need --imatrix.\n\n"
        "Metadata and tokenizer go along. The model streams through some 50 MB of memory. Ctrl-C leaves nothing "
        "behind.",
    .examples = "peridot convert gemma-2-2b-it -o gemma-2-2b-it-Q4_K_M.gguf --type q4_k_m\n"
                "peridot convert model-f16.gguf -o model-q8_0.gguf\n"
                "peridot convert Llama-3.2-1B -o mine.gguf --lora my-adapter:0.8",
    CMD_ARGUMENTS(options, struct convert_args),
    .run = run_convert,
};

/* ---- make ---- */

/* peridot make: a model of a real shape with random weights. */

struct make_args {
    const char *shape, *type, *out;
    uint64_t seed;
};

static const struct cmd_option make_options[] = {
    {.name = "shape", .metavar = "SHAPE", .kind = CMD_TEXT, .offset = offsetof(struct make_args, shape),
     .required = true, .value = peridot_shape_name, .help = "The model whose sizes to take."},
    {.name = "type", .metavar = "TYPE", .kind = CMD_TEXT, .offset = offsetof(struct make_args, type),
     .fallback = "q8_0", .help = "Type of the matrices: f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k to q6_k, "
             "iq4_nl, iq4_xs, tq1_0, tq2_0, iq1_s, iq1_m, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, mxfp4, nvfp4, q1_0, "
             "q2_0, in whatever case; Q4_K_M and Q4_K_S stand for q4_k. Rows that are not whole blocks of it get a "
             "similar type of smaller blocks. Norms are always f32."},
    {.letter = 'o', .name = "out", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct make_args, out),
     .required = true, .help = "The .gguf file to write. It appears only when it is complete."},
    {.name = "seed", .metavar = "S", .kind = CMD_SEED, .offset = offsetof(struct make_args, seed), .fallback = "1",
     .help = "The same seed gives the same file; random draws one."},
};

static int run_make(const struct cmd_command *command, const void *arguments)
{
    const struct make_args *args = arguments;
    struct cmd_progress progress = cmd_progress_begin("writing");
    peridot_make_params params = {.shape = args->shape, .type = args->type, .seed = args->seed,
                                  .progress = cmd_progress_step, .user = &progress};
    cmd_interrupt_watch();
    peridot_status status = peridot_make(args->out, &params);
    cmd_progress_end(&progress);
    if (status == PERIDOT_ERROR_ARGUMENT) return cmd_usage(command, "%s", peridot_last_error());
    return cmd_exit(status);
}

const struct cmd_command cmd_make = {
    .name = "make",
    .summary = "write a model of a real shape with random weights",
    .description =
        "Writes a GGUF file with the sizes of a real model, random weights, and a made-up vocabulary of the right "
        "size: for benchmarks and tests, where the sizes of a model matter and its text does not. Ctrl-C leaves "
        "nothing behind.",
    .examples = "peridot make --shape gemma2-2b --type q4_0 -o gemma2-2b-random.gguf",
    CMD_ARGUMENTS(make_options, struct make_args),
    .run = run_make,
};
