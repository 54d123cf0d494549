/* peridot embed: one vector for each text, pooled from the final hidden states. Any model can be used. */
#include "../cli/cli.h"
#include "../console/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct embed_args {
    struct cmd_inputs_args inputs;
    const char *out, *task;
    uint32_t pool, dimensions;
    bool no_normalise;
};

static const char *pool_name(size_t i)
{
    static const char *const names[] = {[PERIDOT_POOL_MODEL] = "model", [PERIDOT_POOL_MEAN] = "mean",
                                        [PERIDOT_POOL_LAST] = "last", [PERIDOT_POOL_CLS] = "cls"};
    return i < PD_COUNT(names) ? names[i] : NULL;
}

static const struct cmd_option options[] = {
    CMD_INPUTS_OPTIONS(CMD_MODEL_OPTION),
    {.name = "task", .metavar = "NAME", .kind = CMD_TEXT, .offset = offsetof(struct embed_args, task),
     .help = "What the vectors are for, of the tasks that the model was trained for: query for what is searched with, "
             "document for what is found, Clustering, Classification and others. Each text is put behind what its task "
             "begins with."},
    {.name = "pool", .metavar = "HOW", .kind = CMD_CHOICE, .offset = offsetof(struct embed_args, pool),
     .fallback = "model",
     .value = pool_name, .help = "The vector is the mean of all states, the state of the last token, or that of the "
                                 "first (cls); model: as the model was trained, or the mean."},
    {.name = "dimensions", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct embed_args, dimensions),
     .fallback = "0",
     .help = "The first N numbers of each vector; 0: all. Models trained so that the first ones count most lose little "
             "(EmbeddingGemma: 512, 256 or 128 of 768)."},
    {.name = "no-normalise", .kind = CMD_FLAG, .offset = offsetof(struct embed_args, no_normalise),
     .help = "Leave the vector's length as it is. Without it, vectors have length 1."},
    {.letter = 'o', .name = "out", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct embed_args, out),
     .help = "Write raw little-endian 32-bit floats there instead, vector after vector. The file appears only when it "
             "is complete."},
};

struct embedding {
    const struct embed_args *args;
    struct pd_writer writer, *file;   /* the latter NULL without --out */
    peridot_pool pool;
    double *sum;               /* [d_model] of the present text */
    float *vector;             /* [width] */
    size_t width;
};

static peridot_status write_vector(struct embedding *e)
{
    if (e->file) return pd_writer_write(e->file, e->vector, e->width * sizeof *e->vector);
    if (e->args->out) {   /* the file is rank 0's, which gets this */
        fwrite(e->vector, sizeof *e->vector, e->width, stdout);
        return PERIDOT_OK;
    }
    for (size_t i = 0; i < e->width; i++) printf("%s%.9g", i ? ", " : "[", (double)e->vector[i]);
    fputs("]\n", stdout);
    return PERIDOT_OK;
}

/* How texts are pooled, and what they begin with. */
static peridot_status embed_begin(struct cmd_input_task *task, const peridot_model *model)
{
    static const enum cmd_rows rows[] = {[PERIDOT_POOL_MEAN] = CMD_ROWS_ALL, [PERIDOT_POOL_LAST] = CMD_ROWS_LAST,
                                         [PERIDOT_POOL_CLS] = CMD_ROWS_FIRST};
    const peridot_model_info *info = peridot_model_get_info(model);
    struct embedding *e = task->user;
    const struct embed_args *args = e->args;
    e->pool = args->pool == PERIDOT_POOL_MODEL ? info->pool : (peridot_pool)args->pool;
    task->rows = rows[e->pool];
    if (args->task) PD_TRY(peridot_model_find_task(&task->prefix, model, args->task));
    if (args->dimensions > info->embedding_size)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "--dimensions %u is more than the %u of this model's vectors",
                       (unsigned)args->dimensions, (unsigned)info->embedding_size);
    e->width = args->dimensions ? args->dimensions : info->embedding_size;
    e->sum = malloc(info->d_model * sizeof *e->sum);
    e->vector = malloc(e->width * sizeof *e->vector);
    return e->sum && e->vector ? PERIDOT_OK : pd_fail_alloc(info->d_model * sizeof *e->sum, "vector");
}

/* Only rows that count are asked for. */
static peridot_status embed(void *user, const struct cmd_input *input, const struct cmd_input_row *row)
{
    struct embedding *e = user;
    for (size_t i = 0; i < row->n; i++) e->sum[i] = (row->is_first ? 0 : e->sum[i]) + (double)row->at[i];
    if (!row->is_last) return PERIDOT_OK;
    for (size_t i = 0; i < row->n && e->pool == PERIDOT_POOL_MEAN; i++) e->sum[i] /= (double)input->n;
    PD_TRY(peridot_embedding(e->vector, input->model, e->sum, (uint32_t)e->width, !e->args->no_normalise));
    return write_vector(e);
}

static peridot_status embed_open_file(struct embedding *e, const struct embed_args *args)
{
    const char *model;
    PD_TRY(cmd_model_path(&model, args->inputs.model.path));
    PD_TRY(pd_writer_check(args->out, model));
    if (args->inputs.texts.n == 0) PD_TRY(pd_writer_check(args->out, "/dev/stdin"));
    PD_TRY(pd_writer_open(&e->writer, args->out));
    e->file = &e->writer;
    return PERIDOT_OK;
}

/* With the vectors of the other ranks' texts after those of rank 0's. */
static peridot_status complete_file(struct embedding *e)
{
    char *others;
    size_t size;
    PD_TRY(cmd_ranks_collect(&others, &size));
    peridot_status status = pd_writer_write(e->file, others, size);
    free(others);
    return status;
}

static int run_embed(const struct cmd_command *command, const void *arguments)
{
    const struct embed_args *args = arguments;
    struct embedding e = {.args = args};
    struct cmd_input_task task = {.hidden = true, .begin = embed_begin, .take = embed, .user = &e};
    (void)command;
    cmd_interrupt_watch();
    peridot_status status = args->out && cmd_ranks_part().i == 0 ? embed_open_file(&e, args) : PERIDOT_OK;
    if (status == PERIDOT_OK) status = cmd_inputs_run(&args->inputs, &task);
    if (e.file && status == PERIDOT_OK) status = complete_file(&e);
    if (e.file && status == PERIDOT_OK) status = pd_writer_commit(e.file);
    else if (e.file) pd_writer_abort(e.file);
    free(e.sum);
    free(e.vector);
    return cmd_exit(status);
}

const struct cmd_command cmd_embed = {
    .name = "embed",
    .summary = "turn texts into vectors",
    .description =
        "Writes a line for each text: a JSON array of numbers, pooled from the states after the final norm and sent "
        "through the dense layers that an embedding model has. Any model can be used; one that was trained for "
        "embeddings, like EmbeddingGemma, does better. The tokens that the tokenizer puts around a text (bos, eos) are "
        "pooled as well.",
    .examples = "peridot embed \"Once upon a time\" \"A long time ago\"\n"
                "peridot embed -m embeddinggemma-300m --task query --dimensions 256 \"Which volcano made this gem?\"\n"
                "peridot embed -m gemma-2-2b --pool last -o vectors.f32 < sentences.txt",
    CMD_ARGUMENTS(options, struct embed_args),
    .run = run_embed,
};
