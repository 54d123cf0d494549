/* peridot make: a model of a real shape with random weights. */
#include "command.h"
#include "terminal.h"

struct make_args {
    const char *shape, *type, *out;
    uint64_t seed;
};

static const struct cmd_option options[] = {
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
    CMD_ARGUMENTS(options, struct make_args),
    .run = run_make,
};
