/* peridot embed: one vector for each text, pooled from the final hidden states. Any model can be used. */
#include "inputs.h"
#include "open.h"
#include "ranks.h"
#include "terminal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum pool { POOL_MEAN, POOL_LAST, POOL_CLS };

struct embed_args {
    struct cmd_inputs_args inputs;
    const char *out;
    uint32_t pool;
    bool no_normalise;
};

static const char *pool_name(size_t i)
{
    static const char *const names[] = {[POOL_MEAN] = "mean", [POOL_LAST] = "last", [POOL_CLS] = "cls"};
    return i < CMD_COUNT(names) ? names[i] : NULL;
}

static const struct cmd_option options[] = {
    CMD_INPUTS_OPTIONS,
    {.name = "pool", .metavar = "HOW", .kind = CMD_CHOICE, .offset = offsetof(struct embed_args, pool),
     .fallback = "mean",
     .value = pool_name, .help = "The vector is the mean of all states, the state of the last token, or that of the "
                                 "first (cls)."},
    {.name = "no-normalise", .kind = CMD_FLAG, .offset = offsetof(struct embed_args, no_normalise),
     .help = "Leave the vector's length as it is. Without it, vectors have length 1."},
    {.letter = 'o', .name = "out", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct embed_args, out),
     .help = "Write raw little-endian 32-bit floats there instead, vector after vector. The file appears only when it "
             "is complete."},
};

struct embedding {
    const struct embed_args *args;
    peridot_output *file;      /* with --out */
    double *sum;               /* [d_model] of the present text */
    float *vector;
    size_t width;
};

/* The mean's divisor falls away where the length is made 1. */
static void pool(struct embedding *e, size_t n)
{
    double scale = e->args->pool == POOL_MEAN ? 1 / (double)n : 1, norm = 0;
    for (size_t i = 0; i < e->width; i++) norm += e->sum[i] * e->sum[i];
    if (!e->args->no_normalise) scale = norm > 0 ? 1 / sqrt(norm) : 0;
    for (size_t i = 0; i < e->width; i++) e->vector[i] = (float)(e->sum[i] * scale);
}

static peridot_status write_vector(struct embedding *e)
{
    if (e->file) return peridot_output_write(e->file, e->vector, e->width * sizeof *e->vector);
    if (e->args->out) {   /* the file is rank 0's, which gets this */
        fwrite(e->vector, sizeof *e->vector, e->width, stdout);
        return PERIDOT_OK;
    }
    for (size_t i = 0; i < e->width; i++) printf("%s%.9g", i ? ", " : "[", (double)e->vector[i]);
    fputs("]\n", stdout);
    return PERIDOT_OK;
}

static peridot_status allocate(struct embedding *e, size_t width)
{
    e->width = width;
    e->sum = malloc(width * sizeof *e->sum);
    e->vector = malloc(width * sizeof *e->vector);
    return e->sum && e->vector ? PERIDOT_OK : cmd_fail_alloc(width * (sizeof *e->sum + sizeof *e->vector), "vector");
}

/* Only rows that count are asked for. */
static peridot_status embed(void *user, const struct cmd_input *input, const struct cmd_input_row *row)
{
    struct embedding *e = user;
    if (!e->sum) CMD_TRY(allocate(e, row->n));
    for (size_t i = 0; i < row->n; i++) e->sum[i] = (row->is_first ? 0 : e->sum[i]) + (double)row->at[i];
    if (!row->is_last) return PERIDOT_OK;
    pool(e, input->n);
    return write_vector(e);
}

static peridot_status open_file(struct embedding *e, const struct embed_args *args)
{
    const char *model;
    CMD_TRY(cmd_model_path(&model, args->inputs.model.path));
    CMD_TRY(peridot_output_check(args->out, model));
    if (args->inputs.texts.n == 0) CMD_TRY(peridot_output_check(args->out, "/dev/stdin"));
    return peridot_output_open(&e->file, args->out);
}

/* With the vectors of the other ranks' texts after those of rank 0's. */
static peridot_status complete_file(struct embedding *e)
{
    char *others;
    size_t size;
    CMD_TRY(cmd_ranks_collect(&others, &size));
    peridot_status status = peridot_output_write(e->file, others, size);
    free(others);
    return status;
}

static int run_embed(const struct cmd_command *command, const void *arguments)
{
    static const enum cmd_rows rows[] = {[POOL_MEAN] = CMD_ROWS_ALL, [POOL_LAST] = CMD_ROWS_LAST,
                                         [POOL_CLS] = CMD_ROWS_FIRST};
    const struct embed_args *args = arguments;
    struct embedding e = {.args = args};
    struct cmd_input_task task = {.rows = rows[args->pool], .hidden = true, .take = embed, .user = &e};
    (void)command;
    cmd_interrupt_watch();
    peridot_status status = args->out && cmd_ranks_part().i == 0 ? open_file(&e, args) : PERIDOT_OK;
    if (status == PERIDOT_OK) status = cmd_inputs_run(&args->inputs, &task);
    if (e.file && status == PERIDOT_OK) status = complete_file(&e);
    if (e.file && status == PERIDOT_OK) status = peridot_output_commit(e.file);
    else peridot_output_abort(e.file);
    free(e.sum);
    free(e.vector);
    return cmd_exit(status);
}

const struct cmd_command cmd_embed = {
    .name = "embed",
    .summary = "turn texts into vectors",
    .description =
        "Writes a line for each text: a JSON array of d_model numbers, pooled from the states after the final norm. "
        "Any model can be used; one that was trained for embeddings does better. The token that begins a text (bos), "
        "where the tokenizer adds one, is pooled as well, and is the first.",
    .examples = "peridot embed \"Once upon a time\" \"A long time ago\"\n"
                "peridot embed -m gemma-2-2b --pool last -o vectors.f32 < sentences.txt",
    CMD_ARGUMENTS(options, struct embed_args),
    .run = run_embed,
};
