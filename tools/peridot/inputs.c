#define _POSIX_C_SOURCE 200809L
#include "inputs.h"
#include "terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const peridot_model *model;
    const peridot_vocab *vocab;
    peridot_session *session;
    cmd_input_fn each;
    void *user;
    size_t n_done;       /* texts so far */
};

static peridot_status take_ids(const struct reader *r, struct cmd_input *input)
{
    uint32_t ctx = peridot_session_ctx(r->session);
    if (input->n == 0) return pd_fail(PERIDOT_ERROR_ARGUMENT, "text %zu has no tokens", r->n_done + 1);
    if (input->n > ctx)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "text %zu has %zu tokens and the context %" PRIu32 " positions (--ctx)", r->n_done + 1,
                       input->n, ctx);
    peridot_session_reset(r->session);
    PD_TRY(r->each(r->user, input));
    if (fflush(stdout) != 0 || ferror(stdout)) return pd_fail(PERIDOT_ERROR_IO, "standard output: %s", strerror(errno));
    return PERIDOT_OK;
}

static peridot_status take_text(struct reader *r, const char *text, size_t size)
{
    struct cmd_input input = {.model = r->model, .session = r->session, .text = text, .size = size};
    int32_t *ids;
    if (cmd_interrupted()) return pd_fail(PERIDOT_CANCELLED, "stopped after %zu texts", r->n_done);
    PD_TRY(peridot_encode(&ids, &input.n, r->vocab, text, size, PERIDOT_ENCODE_BOS));
    input.ids = ids;
    peridot_status status = take_ids(r, &input);
    peridot_free(ids);
    r->n_done++;
    return status;
}

/* Lines end at \n alone: a \r before it is part of the text. */
static peridot_status take_lines(struct reader *r)
{
    char *line = NULL;
    size_t capacity = 0;
    peridot_status status = PERIDOT_OK;
    while (status == PERIDOT_OK) {
        ssize_t size = getline(&line, &capacity, stdin);
        if (size < 0) break;
        status = take_text(r, line, (size_t)size - (line[size - 1] == '\n'));
    }
    free(line);
    if (status == PERIDOT_OK && ferror(stdin)) return pd_fail(PERIDOT_ERROR_IO, "standard input: %s", strerror(errno));
    return status;
}

static peridot_status take_all(struct reader *r, const struct cmd_texts *texts)
{
    if (texts->n == 0) return take_lines(r);
    for (size_t i = 0; i < texts->n; i++) PD_TRY(take_text(r, texts->at[i], strlen(texts->at[i])));
    return PERIDOT_OK;
}

peridot_status cmd_inputs_run(const struct cmd_inputs_args *args, peridot_status (*ready)(const peridot_model *model),
                              cmd_input_fn each, void *user)
{
    peridot_session_params params = {.ctx = args->ctx, .chunk = args->chunk, .kv_type = (peridot_kv_type)args->kv};
    struct reader r = {.each = each, .user = user};
    peridot_model *model = NULL;
    cmd_interrupt_watch();
    peridot_status status = cmd_model_open(&model, &args->model);
    if (status == PERIDOT_OK && ready) status = ready(model);
    if (status == PERIDOT_OK && !(r.vocab = peridot_model_vocab(model))) status = PERIDOT_ERROR_UNSUPPORTED;
    if (status == PERIDOT_OK) status = peridot_session_create(&r.session, model, &params);
    r.model = model;
    if (status == PERIDOT_OK) status = take_all(&r, &args->texts);
    peridot_session_free(r.session);
    peridot_model_close(model);
    return status;
}

static int compare(const void *left, const void *right)
{
    const struct cmd_score *a = left, *b = right;
    if (a->p != b->p) return a->p > b->p ? -1 : 1;
    return a->label < b->label ? -1 : a->label > b->label;
}

void cmd_scores(struct cmd_score *out, const float *scores, size_t n)
{
    double top = -INFINITY, total = 0;
    for (size_t i = 0; i < n; i++) top = fmax(top, (double)scores[i]);
    for (size_t i = 0; i < n; i++) total += exp((double)scores[i] - top);
    for (size_t i = 0; i < n; i++) out[i] = (struct cmd_score){(uint32_t)i, exp((double)scores[i] - top) / total};
    qsort(out, n, sizeof *out, compare);
}

const char *cmd_label(const peridot_model *model, uint32_t i)
{
    static char number[24];
    const char *name = peridot_model_label(model, i);
    if (name) return name;
    snprintf(number, sizeof number, "LABEL_%" PRIu32, i);
    return number;
}
