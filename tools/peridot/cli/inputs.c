/* Texts for the commands that only read (classify, tag, embed): their arguments, or the lines of standard input. Each
 * is evaluated from an empty context; as many as are there and fit the chunk go to the device together. */
#define _POSIX_C_SOURCE 200809L
#include "../base/base.h"
#include "../console/console.h"
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts are gathered until they fill a chunk or there are as many as sequences, or until there are no more for now. */
enum { N_SEQUENCES = 32 };

struct reader {
    struct cmd_input_task *task;
    const peridot_model *model;
    bool whole;                      /* texts are evaluated whole, whichever rows are asked for */
    const peridot_vocab *vocab;
    peridot_session *session;
    struct cmd_input inputs[N_SEQUENCES];   /* those gathered, with texts and ids of their own */
    peridot_prompt prompts[N_SEQUENCES];    /* what is evaluated of them, each on the sequence that has its place */
    size_t n, n_tokens;              /* of them */
    size_t n_done;                   /* texts that were evaluated before, or are another rank's */
    peridot_status status;           /* of the task */
    char sentence[512];              /* why it failed: the evaluation that it ends has a sentence of its own */
};

static void forget(struct reader *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free((char *)r->inputs[i].text);
        peridot_free((int32_t *)r->inputs[i].ids);
    }
    r->n = r->n_tokens = 0;
}

static bool take_row(void *user, peridot_sequence *sequence, uint32_t pos, const float *at, size_t n)
{
    struct reader *r = user;
    size_t i = 0;
    while (r->prompts[i].sequence != sequence) i++;
    bool all = r->task->rows == CMD_ROWS_ALL;
    if (r->task->rows == CMD_ROWS_FIRST && pos > 0) return true;
    struct cmd_input_row row = {.at = at, .n = n, .pos = pos, .is_first = !all || pos == 0,
                                .is_last = !all || pos + 1 == r->inputs[i].n};
    r->status = cmd_interrupted() ? pd_fail(PERIDOT_CANCELLED, "stopped")
                                  : r->task->take(r->task->user, &r->inputs[i], &row);
    if (r->status != PERIDOT_OK) snprintf(r->sentence, sizeof r->sentence, "%s", peridot_last_error());
    return r->status == PERIDOT_OK;
}

static peridot_status evaluate(struct reader *r)
{
    bool hidden = r->task->hidden, last = r->task->rows == CMD_ROWS_LAST;
    peridot_eval_params params = {.last = last, .hidden = hidden ? take_row : NULL,
        .logits = hidden ? NULL : take_row, .user = r};
    peridot_status status = peridot_eval(r->session, r->prompts, r->n, &params);
    for (size_t i = 0; i < r->n; i++) peridot_sequence_truncate(r->prompts[i].sequence, 0, NULL);
    return status;
}

static peridot_status evaluate_gathered(struct reader *r)
{
    if (r->n == 0) return PERIDOT_OK;
    peridot_status status = evaluate(r);
    r->n_done += r->n;
    forget(r);
    if (r->status != PERIDOT_OK) return pd_fail(r->status, "%s", r->sentence);
    PD_TRY(status);
    if (fflush(stdout) != 0 || ferror(stdout))
        return pd_fail(PERIDOT_ERROR_IO, "standard output: %s", strerror(errno));
    return PERIDOT_OK;
}

static peridot_status check_length(const struct reader *r, size_t n)
{
    uint32_t ctx = peridot_session_ctx(r->session);
    size_t number = r->n_done + r->n + 1;
    if (n == 0) return pd_fail(PERIDOT_ERROR_ARGUMENT, "text %zu has no tokens", number);
    if (n <= ctx) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "text %zu has %zu token%s and the context %" PRIu32 " position%s (--ctx)",
                   number, n, PD_S(n), ctx, PD_S(ctx));
}

/* Takes over the ids. */
static peridot_status gather(struct reader *r, const char *text, size_t size, int32_t *ids, size_t n, size_t n_read)
{
    char *copy = malloc(size + 1);
    r->inputs[r->n] = (struct cmd_input){.model = r->model, .text = copy, .size = size, .ids = ids, .n = n};
    r->prompts[r->n].tokens = ids;
    r->prompts[r->n++].n = n_read;
    if (!copy) return pd_fail_alloc(size + 1, "text");
    memcpy(copy, text, size);
    r->n_tokens += n_read;
    bool full = r->n == N_SEQUENCES || r->n_tokens >= peridot_session_chunk(r->session);
    return full ? evaluate_gathered(r) : PERIDOT_OK;
}

/* With the task's prefix. */
static peridot_status inputs_encode(int32_t **ids, size_t *n, const struct reader *r, const char *text, size_t size)
{
    const unsigned flags = PERIDOT_ENCODE_BOS | PERIDOT_ENCODE_EOS;
    const char *prefix = r->task->prefix ? r->task->prefix : "";
    size_t before = strlen(prefix);
    if (before == 0) return peridot_encode(ids, n, r->vocab, text, size, flags);
    char *both = malloc(before + size + 1);
    if (!both) return pd_fail_alloc(before + size + 1, "text");
    memcpy(both, prefix, before);
    memcpy(both + before, text, size);
    peridot_status status = peridot_encode(ids, n, r->vocab, both, before + size, flags);
    free(both);
    return status;
}

static peridot_status inputs_take_text(struct reader *r, const char *text, size_t size)
{
    int32_t *ids;
    size_t n;
    if (cmd_interrupted()) return pd_fail(PERIDOT_CANCELLED, "stopped after %zu text%s", r->n_done, PD_S(r->n_done));
    peridot_status status = inputs_encode(&ids, &n, r, text, size);
    if (status != PERIDOT_OK) return pd_fail(status, "text %zu: %s", r->n_done + r->n + 1, peridot_last_error());
    status = check_length(r, n);
    /* Later tokens cannot change the first one's row, but where it sees them. */
    size_t n_read = r->task->rows == CMD_ROWS_FIRST && !r->whole ? 1 : n;
    if (status == PERIDOT_OK && r->n_tokens + n_read > peridot_session_chunk(r->session)) status = evaluate_gathered(r);
    if (status == PERIDOT_OK) return gather(r, text, size, ids, n, n_read);
    peridot_free(ids);
    return status;
}

static peridot_status take_lines(struct reader *r, struct cmd_lines *lines)
{
    for (;;) {
        enum cmd_lines_state state;
        const char *text;
        size_t size;
        PD_TRY(cmd_lines_next(&state, &text, &size, lines, r->n == 0));
        if (state == CMD_LINES_END) return PERIDOT_OK;
        PD_TRY(state == CMD_LINES_ONE ? inputs_take_text(r, text, size) : evaluate_gathered(r));
    }
}

static peridot_status take_all(struct reader *r, const struct cmd_texts *texts)
{
    const struct cmd_part part = cmd_ranks_part();
    struct cmd_lines lines = {0};
    size_t first = texts->n * part.i / part.n, end = texts->n * (part.i + 1) / part.n;
    r->n_done = texts->n ? first : part.n_lines;
    for (size_t i = 0; i < N_SEQUENCES; i++) PD_TRY(peridot_sequence_create(&r->prompts[i].sequence, r->session));
    peridot_status status = PERIDOT_OK;
    for (size_t i = first; i < end && status == PERIDOT_OK; i++)
        status = inputs_take_text(r, texts->at[i], strlen(texts->at[i]));
    if (texts->n == 0) status = take_lines(r, &lines);
    free(lines.data);
    if (status == PERIDOT_CANCELLED) return status;
    /* what is wrong with a text is said after the results of those before it */
    peridot_status rest = evaluate_gathered(r);
    return status == PERIDOT_OK ? rest : status;
}

peridot_status cmd_inputs_run(const struct cmd_inputs_args *args, struct cmd_input_task *task)
{
    peridot_session_params params = {.ctx = args->ctx, .chunk = args->chunk, .kv_type = (peridot_kv_type)args->kv,
        .n_sequences = N_SEQUENCES};
    struct reader r = {.task = task};
    peridot_model *model = NULL;
    cmd_interrupt_watch();
    if (task->heads) PD_TRY(cmd_model_need_head(&args->model, task->heads, task->command));
    peridot_status status = cmd_model_open_text(&model, &args->model, NULL);
    if (status == PERIDOT_OK && !(r.vocab = peridot_model_vocab(model))) status = PERIDOT_ERROR_UNSUPPORTED;
    /* All texts together are no longer than a chunk, or there is one. */
    if (status == PERIDOT_OK)
        params.n_positions = args->ctx ? args->ctx : (uint32_t)pd_min(peridot_model_get_info(model)->ctx_max, 8192);
    if (status == PERIDOT_OK && task->begin) status = task->begin(task, model);
    if (status == PERIDOT_OK) r.whole = peridot_model_get_info(model)->whole_texts;
    if (status == PERIDOT_OK) status = cmd_session_create(&r.session, model, &params);
    r.model = model;
    if (status == PERIDOT_OK) status = take_all(&r, &args->texts);
    forget(&r);
    peridot_session_free(r.session);
    peridot_model_close(model);
    return status;
}

/* ---- scores ---- */

static int by_score(const void *left, const void *right)
{
    const struct cmd_score *a = left, *b = right;
    if (a->value != b->value) return a->value > b->value ? -1 : 1;
    return a->label < b->label ? -1 : a->label > b->label;
}

static bool are_scores(const peridot_model *model)
{
    return peridot_model_get_info(model)->problem == PERIDOT_PROBLEM_REGRESSION;
}

static void softmax(struct cmd_score *out, size_t n)
{
    double top = -INFINITY, total = 0;
    for (size_t i = 0; i < n; i++) top = fmax(top, out[i].value);
    for (size_t i = 0; i < n; i++) total += exp(out[i].value - top);
    for (size_t i = 0; i < n; i++) out[i].value = exp(out[i].value - top) / total;
}

void cmd_scores(struct cmd_score *out, const peridot_model *model, const float *scores, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = (struct cmd_score){(uint32_t)i, (double)scores[i]};
    if (are_scores(model)) return;
    if (peridot_model_get_info(model)->problem == PERIDOT_PROBLEM_SINGLE_LABEL) softmax(out, n);
    else
        for (size_t i = 0; i < n; i++) out[i].value = 1 / (1 + exp(-out[i].value));
    qsort(out, n, sizeof *out, by_score);
}

const char *cmd_score_name(const peridot_model *model) { return are_scores(model) ? "score" : "probability"; }

const char *cmd_score_text(const peridot_model *model, double value, bool json)
{
    static char text[40];
    snprintf(text, sizeof text, json || are_scores(model) ? "%.9g" : "%.6f", value);
    return text;
}

const char *cmd_label(const peridot_model *model, uint32_t i)
{
    static char number[24];
    const char *name = peridot_model_label(model, i);
    if (name) return name;
    snprintf(number, sizeof number, "LABEL_%" PRIu32, i);
    return number;
}

/* ---- ids ---- */

peridot_status cmd_ids_text(char **text, size_t *size, const char **name, const char *given)
{
    bool standard = strcmp(given, "-") == 0;
    *name = given[0] == '@' ? given + 1 : standard ? "standard input" : "--tokens";
    if (given[0] == '@') return cmd_read_file(text, size, *name);
    if (standard) return cmd_read_all(text, size, stdin, *name);
    *size = strlen(given);
    *text = strdup(given);
    return *text ? PERIDOT_OK : pd_fail_alloc(*size, *name);
}

static bool is_separator(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Reads the digits at text[*i] and steps over them. */
static bool parse_id(int32_t *out, const char *text, size_t size, size_t *i)
{
    size_t begin = *i;
    int64_t value = 0;
    for (; *i < size && text[*i] >= '0' && text[*i] <= '9'; ++*i) {
        value = 10 * value + (text[*i] - '0');
        if (value > INT32_MAX) return false;
    }
    *out = (int32_t)value;
    return *i > begin && (*i == size || is_separator(text[*i]));
}

static peridot_status refuse_word(const char *word, size_t size, size_t offset, const char *name)
{
    int n = 0;
    while ((size_t)n < size && n < 16 && !is_separator(word[n])) n++;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: %.*s at byte %zu is not a token id", name, n, word, offset);
}

peridot_status cmd_ids_parse(int32_t **out, size_t *n, const char *text, size_t size, const char *name)
{
    *out = NULL, *n = 0;
    int32_t *ids = malloc((size / 2 + 1) * sizeof *ids);   /* an id and its separator take two bytes at least */
    if (!ids) return pd_fail_alloc(size, name);
    for (size_t i = 0; i < size;) {
        size_t begin = i;
        if (is_separator(text[i])) {
            i++;
        } else if (!parse_id(&ids[(*n)++], text, size, &i)) {
            free(ids);
            *n = 0;
            return refuse_word(text + begin, size - begin, begin, name);
        }
    }
    *out = ids;
    return PERIDOT_OK;
}

void cmd_ids_print(FILE *file, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) fprintf(file, "%s%" PRId32, i ? "," : "", ids[i]);
}
