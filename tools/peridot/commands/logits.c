/* peridot logits and peridot hidden: rows of numbers out of the model for given tokens, to check it against another.
 * They differ in which row is asked for. */
#include "../cli/cli.h"
#include "../console/console.h"
#include "../base/base.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct rows_args {
    struct cmd_model_args model;
    const char *tokens, *out;
    uint32_t first, chunk, kv;
    struct cmd_texts images;
};

static const struct cmd_option options[] = {
    CMD_MODEL_OPTION,
    CMD_DEVICE_OPTIONS,
    CMD_LORA_OPTION,
    CMD_KERNEL_OPTION,
    {.name = "tokens", .metavar = "IDS", .kind = CMD_TEXT, .offset = offsetof(struct rows_args, tokens),
     .required = true,
     .help = CMD_IDS_HELP},
    {.name = "out", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct rows_args, out),
     .required = true, .help = "Where the rows go; - is standard output. A file appears only when it is complete."},
    {.name = "first", .metavar = "I", .kind = CMD_U32, .offset = offsetof(struct rows_args, first), .fallback = "0",
     .help = "Write rows from position I on; positions count from 0."},
    CMD_CHUNK_OPTION(struct rows_args),
    CMD_KV_OPTION(struct rows_args),
    CMD_VISION_OPTION,
    CMD_IMAGE_OPTION(struct rows_args, CMD_IMAGES_PLACED_HELP),
};

struct sink {
    struct pd_writer writer, *file;   /* the latter NULL: rows go to stdout */
    const peridot_model *untold;   /* whose precision is told once its work begins: a failure is one sentence */
    bool failed;
    char sentence[1024];       /* the failure's: what the library says of the cancelled call would hide it */
};

static bool logits_begin(void *user, uint64_t done, uint64_t total)
{
    struct sink *s = user;
    (void)done, (void)total;
    if (s->untold) cmd_model_print_precision(s->untold);
    s->untold = NULL;
    return !cmd_interrupted();
}

static bool write_row(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct sink *s = user;
    (void)sequence, (void)pos;
    peridot_status status = PERIDOT_OK;
    if (s->file) status = pd_writer_write(s->file, row, n * sizeof *row);
    else if (fwrite(row, sizeof *row, n, stdout) != n)
        status = pd_fail(PERIDOT_ERROR_IO, "standard output: %s", strerror(errno));
    if (status != PERIDOT_OK) {
        snprintf(s->sentence, sizeof s->sentence, "%s", peridot_last_error());
        s->failed = true;
    }
    return !s->failed && !cmd_interrupted();
}

static peridot_status open_sink(struct sink *s, const struct rows_args *args)
{
    const char *model;
    *s = (struct sink){0};
    if (strcmp(args->out, "-") == 0) return PERIDOT_OK;
    PD_TRY(cmd_model_path(&model, args->model.path));
    PD_TRY(pd_writer_check(args->out, model));
    if (args->tokens[0] == '@') PD_TRY(pd_writer_check(args->out, args->tokens + 1));
    if (strcmp(args->tokens, "-") == 0) PD_TRY(pd_writer_check(args->out, "/dev/stdin"));
    PD_TRY(pd_writer_open(&s->writer, args->out));
    s->file = &s->writer;
    return PERIDOT_OK;
}

static peridot_status close_sink(struct sink *s, peridot_status status)
{
    if (status == PERIDOT_OK && s->file) return pd_writer_commit(s->file);
    if (s->file) pd_writer_abort(s->file);
    return s->failed ? pd_fail(PERIDOT_ERROR_IO, "%s", s->sentence) : status;
}

static peridot_status read_tokens(int32_t **ids, size_t *n, const char *given)
{
    char *text = NULL;
    const char *name;
    size_t size = 0;
    PD_TRY(cmd_ids_text(&text, &size, &name, given));
    peridot_status status = cmd_ids_parse(ids, n, text, size, name);
    free(text);
    return status;
}

static peridot_status evaluate(const struct rows_args *args, int32_t *ids, size_t n, peridot_eval_params *eval,
                               const peridot_model **untold)
{
    peridot_session_params params = {.ctx = (uint32_t)n, .chunk = args->chunk, .kv_type = (peridot_kv_type)args->kv};
    peridot_model *model = NULL;
    peridot_session *session = NULL;
    peridot_sequence *sequence = NULL;
    struct cmd_images images = {.n = 0};
    peridot_status status = cmd_model_open(&model, &args->model);
    *untold = model;
    if (status == PERIDOT_OK) status = cmd_images_read(&images, model, &args->images, args->model.pan_and_scan);
    if (status == PERIDOT_OK && images.n) status = peridot_images_place(ids, n, model, images.at, images.n);
    if (status == PERIDOT_OK) status = cmd_session_create(&session, model, &params);
    if (status == PERIDOT_OK) status = peridot_sequence_create(&sequence, session);
    if (status == PERIDOT_OK) status = peridot_sequence_eval(sequence, ids, n, eval);
    peridot_session_free(session);
    cmd_images_free(&images);
    peridot_model_close(model);
    return status;
}

/* The file is opened before the model: a folder that cannot be written is known at once. */
static peridot_status write_rows(const struct rows_args *args, int32_t *ids, size_t n, bool hidden)
{
    struct sink sink;
    peridot_eval_params eval = {.first = args->first, .progress = logits_begin, .user = &sink};
    *(hidden ? &eval.hidden : &eval.logits) = write_row;
    cmd_interrupt_watch();
    PD_TRY(open_sink(&sink, args));
    return close_sink(&sink, evaluate(args, ids, n, &eval, &sink.untold));
}

static int run_rows(const struct cmd_command *command, const struct rows_args *args, bool hidden)
{
    int32_t *ids;
    size_t n;
    int result;
    peridot_status status = read_tokens(&ids, &n, args->tokens);
    if (status == PERIDOT_ERROR_ARGUMENT) return cmd_usage(command, "%s", peridot_last_error());
    if (status != PERIDOT_OK) return cmd_exit(status);
    if (n == 0) result = cmd_usage(command, "--tokens holds no token");
    else if (args->first >= n)
        result = cmd_usage(command, "--first %" PRIu32 " is past the last position, %zu", args->first, n - 1);
    else result = cmd_exit(write_rows(args, ids, n, hidden));
    free(ids);
    return result;
}

static int run_logits(const struct cmd_command *command, const void *args)
{
    return run_rows(command, args, false);
}

static int run_hidden(const struct cmd_command *command, const void *args)
{
    return run_rows(command, args, true);
}

const struct cmd_command cmd_logits = {
    .name = "logits",
    .summary = "write the model's logits for given tokens",
    .description =
        "Writes one row for every position: the logits of the token that follows it, after the final softcap, as raw "
        "little-endian 32-bit floats, as many as the output matrix has rows (the vocabulary, and padding where the "
        "model has some). Rows follow each other with nothing between them.",
    .examples = "peridot logits --tokens 1,403,407,261,378 --out logits.f32\n"
                "printf 'Once upon a time' | peridot tokenize --bos | peridot logits --tokens - --out -",
    CMD_ARGUMENTS(options, struct rows_args),
    .run = run_logits,
};

const struct cmd_command cmd_hidden = {
    .name = "hidden",
    .summary = "write the hidden states after the final norm",
    .description =
        "Writes one row for every position: the hidden state after the final norm, before the output matrix, as raw "
        "little-endian 32-bit floats, d_model of them. Rows follow each other with nothing between them.",
    .examples = "peridot hidden --tokens 1,403,407,261,378 --out hidden.f32",
    CMD_ARGUMENTS(options, struct rows_args),
    .run = run_hidden,
};
