/* peridot perplexity: how well a model predicts a text.
 *
 * The text's tokens t[0] .. t[n - 1] are read in windows. Window w holds the token that begins texts (when the model
 * has one) and t[w S] .. , `ctx` positions in all, S = ctx / 2; it scores those of its tokens that no window before it
 * scored. So every token is scored once, after at least S - 1 tokens of the text wherever there are so many before
 * it.
 *
 * llama.cpp's tool (tools/perplexity) does otherwise: its windows do not overlap, and only the second half of each is
 * scored. Window w holds positions w ctx .. of bos and t, bos in place of the first; what fills no window is left
 * out. */
#include "command.h"
#include "open.h"
#include "ranks.h"
#include "terminal.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer windows cost more than they tell; --ctx may ask for them. */
enum { CTX_MAX = 2048, CTX_LLAMA_CPP = 512 };

struct perplexity_args {
    struct cmd_model_args model;
    const char *file;
    uint32_t ctx, chunk, kv, method;
};

enum method { METHOD_SLIDING, METHOD_LLAMA_CPP };

static const char *method_name(size_t i)
{
    static const char *const names[] = {[METHOD_SLIDING] = "sliding", [METHOD_LLAMA_CPP] = "llama.cpp"};
    return i < CMD_COUNT(names) ? names[i] : NULL;
}

static const struct cmd_option options[] = {
    CMD_MODEL_OPTION,
    CMD_DEVICE_OPTIONS,
    CMD_KERNEL_OPTION,
    {.letter = 'f', .name = "file", .metavar = "TEXT", .kind = CMD_TEXT,
     .offset = offsetof(struct perplexity_args, file), .required = true, .help = "The text; - is standard input."},
    {.name = "ctx", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct perplexity_args, ctx), .fallback = "0",
     .help = "Positions of a window, 2 at least; 0: the model's own, at most 2048, or 512 as llama.cpp's."},
    {.name = "method", .metavar = "METHOD", .kind = CMD_CHOICE, .offset = offsetof(struct perplexity_args, method),
     .fallback = "sliding", .value = method_name, .help = "How the text is cut into windows; llama.cpp: as that "
                                                          "program does, so that its figures compare."},
    CMD_CHUNK_OPTION(struct perplexity_args),
    CMD_KV_OPTION(struct perplexity_args),
};

struct scoring {
    const peridot_model *model;
    peridot_session *session;
    peridot_sequence *sequence;
    const int32_t *ids;          /* [n] of the text, without bos */
    size_t n, n_bytes;
    int32_t bos;                 /* -1: none */
    int32_t *window;             /* [ctx] */
    uint32_t ctx;
    enum method method;
    size_t at;                   /* id in the window's position 0 after bos */
    double *losses;              /* [n_wanted] of the tokens that this rank scores, n_scored so far */
    size_t n_scored, n_wanted;
    struct cmd_progress progress;
};

/* Scores t[from] .. t[to - 1], and begins with t[at]. */
struct window {
    size_t at, from, to;
};

/* -log softmax(row)[id] in nats. */
static double loss(const float *row, size_t n, int32_t id)
{
    float top = row[0];
    double total = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > top) top = row[i];
    for (size_t i = 0; i < n; i++) total += exp((double)row[i] - (double)top);
    return log(total) + (double)top - (double)row[id];
}

/* The row of a position predicts the token at the next one. */
static bool score_row(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct scoring *s = user;
    (void)sequence;
    s->losses[s->n_scored++] = loss(row, n, s->ids[s->at + pos + (s->bos < 0)]);
    uint64_t done = (uint64_t)((double)s->n_scored / (double)s->n_wanted * (double)s->n_bytes);
    return cmd_progress_step(&s->progress, done, s->n_bytes);
}

/* Position p holds t[at + p - 1] after bos, t[at + p] without. */
static peridot_status score_window(struct scoring *s, struct window w)
{
    size_t has_bos = s->bos >= 0, n = w.to - w.at + has_bos - 1;   /* the last token predicts nothing here */
    peridot_eval_params params = {.first = (uint32_t)(w.from - w.at + has_bos - 1), .logits = score_row, .user = s};
    s->at = w.at;
    if (has_bos) s->window[0] = s->bos;
    memcpy(s->window + has_bos, s->ids + w.at, (n - has_bos) * sizeof *s->window);
    CMD_TRY(peridot_sequence_truncate(s->sequence, 0, NULL));
    return peridot_sequence_eval(s->sequence, s->window, n, &params);
}

/* Sliding: without bos nothing comes before the first token, which then is not scored. As llama.cpp: the first position
 * to predict from is ctx / 2, the last one ctx - 2. */
static struct window window_at(const struct scoring *s, size_t i)
{
    size_t has_bos = s->bos >= 0, length = s->ctx - has_bos, stride = s->ctx / 2;
    if (s->method == METHOD_LLAMA_CPP) {
        size_t at = i * s->ctx, to = at + length;
        return (struct window){at, to - (s->ctx - stride - 1), to};
    }
    return (struct window){i * stride, i ? (i - 1) * stride + length : !has_bos, cmd_min(i * stride + length, s->n)};
}

static peridot_status count_windows(size_t *out, const struct scoring *s)
{
    size_t has_bos = s->bos >= 0, n = s->n + has_bos, stride = s->ctx / 2;
    if (s->method == METHOD_SLIDING) {
        if (n < 2) return cmd_fail(PERIDOT_ERROR_ARGUMENT, "the text has no tokens to score");
        *out = n > s->ctx ? 1 + (n - s->ctx + stride - 1) / stride : 1;
        return PERIDOT_OK;
    }
    *out = n / s->ctx;
    if (*out >= 2) return PERIDOT_OK;
    return cmd_fail(PERIDOT_ERROR_ARGUMENT,
                    "the text has %zu token%s, and --method llama.cpp needs two windows of %" PRIu32 " (--ctx)", n,
                    CMD_S(n), s->ctx);
}

/* This rank's windows. */
static peridot_status score_windows(struct scoring *s)
{
    const struct cmd_part part = cmd_ranks_part();
    size_t n_windows = 0;
    CMD_TRY(count_windows(&n_windows, s));
    size_t first = n_windows * part.i / part.n, end = n_windows * (part.i + 1) / part.n;
    cmd_model_print_precision(s->model);   /* no sooner: a failure is one sentence */
    if (first == end) return PERIDOT_OK;
    const struct window a = window_at(s, first), z = window_at(s, end - 1);
    s->n_wanted = s->method == METHOD_SLIDING ? z.to - a.from : (end - first) * (a.to - a.from);
    s->losses = malloc(s->n_wanted * sizeof *s->losses);
    s->window = malloc(s->ctx * sizeof *s->window);
    if (!s->losses || !s->window) return cmd_fail_alloc(s->n_wanted * sizeof *s->losses, "losses");
    s->progress = cmd_progress_begin("scoring");
    peridot_status status = PERIDOT_OK;
    for (size_t i = first; i < end && status == PERIDOT_OK; i++) status = score_window(s, window_at(s, i));
    cmd_progress_end(&s->progress);
    return status;
}

/* Welford's mean and sum of squared deviations, token by token, whatever rank scored it. */
struct losses {
    size_t n;
    double mean, spread;
};

static void add_losses(struct losses *l, const double *losses, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double off = losses[i] - l->mean;
        l->mean += off / (double)++l->n;
        l->spread += off * (losses[i] - l->mean);
    }
}

/* The perplexity's error is that of the mean loss, carried through exp. */
static void print_result(const struct scoring *s, const struct losses *l)
{
    double n = (double)l->n, error = l->n > 1 ? sqrt(l->spread / (n - 1) / n) : 0;
    printf("tokens: %zu\n", l->n);
    if (s->method == METHOD_SLIDING) printf("bits per byte: %.4f\n", l->mean * n / log(2) / (double)s->n_bytes);
    printf("perplexity: %.4f +- %.4f\n", exp(l->mean), exp(l->mean) * error);
}

/* Rank 0 prints; it gets the others' losses from what they write, in the order of the windows. */
static peridot_status take_ids(struct scoring *s)
{
    struct losses losses = {0};
    char *others;
    size_t size;
    CMD_TRY(score_windows(s));
    if (cmd_ranks_part().i > 0) {
        if (s->n_scored) fwrite(s->losses, sizeof *s->losses, s->n_scored, stdout);
        return PERIDOT_OK;
    }
    CMD_TRY(cmd_ranks_collect(&others, &size));
    add_losses(&losses, s->losses, s->n_scored);
    add_losses(&losses, (const double *)(const void *)others, size / sizeof *s->losses);
    free(others);
    print_result(s, &losses);
    return PERIDOT_OK;
}

static peridot_status take_text(struct scoring *s, const peridot_vocab *vocab, const char *text)
{
    int32_t *ids, *bos;
    size_t n_bos;
    CMD_TRY(peridot_encode(&bos, &n_bos, vocab, "", 0, PERIDOT_ENCODE_BOS));
    s->bos = n_bos ? bos[0] : -1;
    peridot_free(bos);
    CMD_TRY(peridot_encode(&ids, &s->n, vocab, text, s->n_bytes, 0));
    s->ids = ids;
    peridot_status status = take_ids(s);
    free(s->losses);
    free(s->window);
    peridot_free(ids);
    return status;
}

static peridot_status score(const struct perplexity_args *args, peridot_model *model, const char *text, size_t size)
{
    const peridot_vocab *vocab = peridot_model_vocab(model);
    uint32_t ctx_max = peridot_model_get_info(model)->ctx_max;
    struct scoring s = {.model = model, .n_bytes = size, .method = args->method, .ctx = args->ctx};
    if (!s.ctx) s.ctx = (uint32_t)cmd_min(ctx_max, s.method == METHOD_LLAMA_CPP ? CTX_LLAMA_CPP : CTX_MAX);
    peridot_session_params params = {.ctx = s.ctx, .chunk = args->chunk, .kv_type = (peridot_kv_type)args->kv};
    if (!vocab) return PERIDOT_ERROR_UNSUPPORTED;
    CMD_TRY(peridot_session_create(&s.session, model, &params));
    peridot_status status = peridot_sequence_create(&s.sequence, s.session);
    if (status == PERIDOT_OK) status = take_text(&s, vocab, text);
    peridot_session_free(s.session);
    return status;
}

static int run_perplexity(const struct cmd_command *command, const void *arguments)
{
    const struct perplexity_args *args = arguments;
    peridot_model *model = NULL;
    char *text = NULL;
    size_t size = 0;
    bool from_stdin = strcmp(args->file, "-") == 0;
    if (args->method == METHOD_LLAMA_CPP && args->ctx == 2)
        return cmd_usage(command, "--ctx 2 leaves no second half to score");
    if (args->ctx == 1) return cmd_usage(command, "--ctx 1 leaves no position to predict from");
    cmd_interrupt_watch();
    peridot_status status = PERIDOT_OK;
    if (cmd_ranks_part().i == 0)
        status = from_stdin ? cmd_read_all(&text, &size, stdin, "standard input")
                            : cmd_read_file(&text, &size, args->file);
    if (status == PERIDOT_OK) status = cmd_ranks_broadcast(&text, &size);
    if (args->method == METHOD_LLAMA_CPP && size && text[size - 1] == '\n') size--;   /* as its -f does */
    if (status == PERIDOT_OK) status = cmd_model_need_head(&args->model, CMD_HEAD_LANGUAGE, command->name);
    if (status == PERIDOT_OK) status = cmd_model_open_text(&model, &args->model, NULL);
    if (status == PERIDOT_OK) status = score(args, model, text, size);
    peridot_model_close(model);
    free(text);
    return cmd_exit(status);
}

const struct cmd_command cmd_perplexity = {
    .name = "perplexity",
    .summary = "measure how well a model predicts a text",
    .description =
        "Writes the number of scored tokens, the bits per byte and, last, the perplexity with its standard error.\n\n"
        "The text is turned into tokens as a whole, plain, without the token that begins texts (bos). Windows of N "
        "positions (--ctx) begin N/2 tokens apart, rounded down; each holds bos, where the model has one, and the "
        "text's next tokens, and scores those that no window before it scored. So each token is scored once, and "
        "after the first window with at least N/2 - 1 tokens of the text before it. Without a bos the first token is "
        "not scored.\n\n"
        "With --method llama.cpp windows of N positions follow each other without overlapping, the first token of each "
        "replaced by bos where the model has one; the tokens after the first N/2 + 1 are scored, and what is left of "
        "the text after the last whole window is not, nor one newline at its end. This is what llama-perplexity -c N "
        "does. Bits per byte, which are of the whole text, are then not written.\n\n"
        "A token's loss is -ln of its probability: the softmax over all rows of the output, summed in double "
        "precision from 32-bit logits. Perplexity is exp of the mean loss; its standard error is the perplexity times "
        "the standard deviation of the losses over the square root of their number. Bits per byte are the sum of the "
        "losses, over ln 2, over the bytes of the text: unlike perplexity, they compare models with different "
        "tokenizers.\n\n"
        "Memory: the text, its ids, the loss of each token and one row of logits.",
    .examples = "peridot perplexity -f book.txt\n"
                "peridot perplexity -m gemma-2-2b-q4_0.gguf -f wiki.test.raw --ctx 512",
    CMD_ARGUMENTS(options, struct perplexity_args),
    .run = run_perplexity,
};
