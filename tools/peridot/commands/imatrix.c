/* peridot imatrix: how much each column of a model's matrices counts on a text, for peridot convert --imatrix. */
#include "../cli/cli.h"
#include "../console/console.h"
#include "../base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct imatrix_args {
    struct cmd_model_args model;
    const char *file, *out;
    uint32_t ctx, chunk;
};

static const struct cmd_option options[] = {
    CMD_MODEL_OPTION,
    CMD_DEVICE_OPTIONS,
    {.letter = 'f', .name = "file", .metavar = "TEXT", .kind = CMD_TEXT, .offset = offsetof(struct imatrix_args, file),
     .required = true, .help = "A text like those that the model will meet; - is standard input."},
    {.letter = 'o', .name = "out", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct imatrix_args, out),
     .required = true, .help = "The file to write. It appears only when it is complete."},
    {.name = "ctx", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct imatrix_args, ctx), .fallback = "512",
     .help = "Positions of a window; at most the model's own."},
    CMD_CHUNK_OPTION(struct imatrix_args),
};

enum { LITTLE = 10000 };   /* tokens */

struct reading {
    peridot_sequence *sequence;
    const int32_t *ids;          /* [n] of the text, without bos */
    size_t n, n_done, n_bytes;
    int32_t *window;             /* [text.ctx], which begins with bos where the model has one */
    size_t n_bos;
    peridot_imatrix_text text;
    uint64_t n_rows;             /* positions read */
    struct cmd_progress progress;
};

static bool imatrix_on_progress(void *user, uint64_t done, uint64_t total)
{
    struct reading *r = user;
    (void)total;
    uint64_t at = (uint64_t)((double)(r->n_done + done) / (double)r->n * (double)r->n_bytes);
    return cmd_progress_step(&r->progress, at < r->n_bytes ? at : r->n_bytes, r->n_bytes);
}

/* The windows follow each other; what fills no window at the end is left out, but for a text shorter than one. */
static peridot_status read_windows(struct reading *r)
{
    const peridot_eval_params params = {.progress = imatrix_on_progress, .user = r};
    size_t most = r->text.ctx - r->n_bos, size = pd_min(r->n, most);
    for (; r->n - r->n_done >= size; r->n_done += size) {
        memcpy(r->window + r->n_bos, r->ids + r->n_done, size * sizeof *r->window);
        PD_TRY(peridot_sequence_truncate(r->sequence, 0, NULL));
        PD_TRY(peridot_sequence_eval(r->sequence, r->window, r->n_bos + size, &params));
        r->text.n_windows++;
        r->n_rows += r->n_bos + size;
    }
    return PERIDOT_OK;
}

static peridot_status imatrix_read_ids(struct reading *r, const peridot_vocab *vocab)
{
    int32_t *bos;
    PD_TRY(peridot_encode(&bos, &r->n_bos, vocab, "", 0, PERIDOT_ENCODE_BOS));
    r->window = malloc(r->text.ctx * sizeof *r->window);
    if (r->window && r->n_bos) r->window[0] = bos[0];
    peridot_free(bos);
    if (!r->window) return pd_fail_alloc(r->text.ctx * sizeof *r->window, "a window");
    if (r->n == 0 || r->text.ctx <= r->n_bos)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s", r->n ? "--ctx leaves no position for the text" : "the text is "
                                                                                                     "empty");
    r->progress = cmd_progress_begin("reading");
    peridot_status status = read_windows(r);
    cmd_progress_end(&r->progress);
    free(r->window);
    return status;
}

static peridot_status imatrix_read_text(const struct imatrix_args *args, peridot_model *model, const char *text,
                                        size_t size)
{
    const peridot_vocab *vocab = peridot_model_vocab(model);
    uint32_t ctx_max = peridot_model_get_info(model)->ctx_max;
    struct reading r = {.n_bytes = size, .text = {.name = args->file, .ctx = (uint32_t)pd_min(args->ctx, ctx_max)}};
    peridot_session *session;
    int32_t *ids = NULL;
    PD_TRY(peridot_encode(&ids, &r.n, vocab, text, size, 0));
    r.ids = ids;
    peridot_status status = peridot_imatrix_begin(model);
    if (status == PERIDOT_OK)
        status = cmd_session_create(&session, model,
                                    &(peridot_session_params){.ctx = r.text.ctx, .chunk = args->chunk});
    if (status == PERIDOT_OK) {
        status = peridot_sequence_create(&r.sequence, session);
        if (status == PERIDOT_OK) status = imatrix_read_ids(&r, vocab);
        peridot_session_free(session);
    }
    peridot_free(ids);
    PD_TRY(status);
    PD_TRY(peridot_imatrix_write(model, args->out, &r.text));
    fprintf(stderr, "%s: %u window%s of %" PRIu64 " tokens\n", cmd_shown(args->out), r.text.n_windows,
            PD_S(r.text.n_windows), r.n_rows / r.text.n_windows);
    if (r.n_rows < LITTLE)
        fprintf(stderr, "that is little to go by: some 100,000 tokens make an imatrix that is worth it\n");
    return PERIDOT_OK;
}

static int run_imatrix(const struct cmd_command *command, const void *arguments)
{
    const struct imatrix_args *args = arguments;
    peridot_model *model = NULL;
    char *text = NULL;
    size_t size = 0;
    (void)command;
    cmd_interrupt_watch();
    peridot_status status = strcmp(args->file, "-") == 0 ? cmd_read_all(&text, &size, stdin, "standard input")
                                                         : cmd_read_file(&text, &size, args->file);
    if (status == PERIDOT_OK) status = cmd_model_open_text(&model, &args->model, NULL);
    if (status == PERIDOT_OK) status = imatrix_read_text(args, model, text, size);
    peridot_model_close(model);
    free(text);
    return cmd_exit(status);
}

const struct cmd_command cmd_imatrix = {
    .name = "imatrix",
    .summary = "measure how much each column of the matrices counts, for convert",
    .description =
        "Reads a text with the model and writes, for each matrix of its layers, the sums of squares of what its "
        "columns multiply: an importance matrix. peridot convert --imatrix then rounds weights so that errors in "
        "columns which count are smaller. The file has llama.cpp's form, and its tools take it, too.\n\n"
        "The model should be the one to be converted, in f16 or bf16 or in the best type that fits. Some 100,000 "
        "tokens are enough. The text goes through in windows of N positions (--ctx), each of which begins with bos "
        "where the model has one. Each expert counts the tokens that took it; one that none took is converted "
        "as without.",
    .examples = "peridot imatrix -m gemma-3-1b-it -f texts.txt -o gemma-3-1b-it.imatrix\n"
                "peridot convert gemma-3-1b-it -o gemma-3-1b-it-q4_k.gguf --type q4_k --imatrix gemma-3-1b-it.imatrix",
    CMD_ARGUMENTS(options, struct imatrix_args),
    .run = run_imatrix,
};
