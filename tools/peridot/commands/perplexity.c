/* peridot perplexity: how well a model predicts a text.
 *
 * The text's tokens t[0] .. t[n - 1] are read in windows. Window w holds the token that begins texts (when the model
 * has one) and t[w S] .. , `ctx` positions in all, S = ctx / 2; it scores those of its tokens that no window before it
 * scored. So every token is scored once, after at least S - 1 tokens of the text wherever there are so many before
 * it.
 *
 * Images (--tokens with --image) are rows among the tokens. They are not words and not scored, and no window parts
 * them: one that would end in an image ends before it, and the next one scores from after it; one that would begin in
 * an image begins with it, or after it where there would be no room for a token to score.
 *
 * llama.cpp's tool (tools/perplexity) does otherwise: its windows do not overlap, and only the second half of each is
 * scored. Window w holds positions w ctx .. of bos and t, bos in place of the first; what fills no window is left
 * out. */
#include "../cli/cli.h"
#include "../console/console.h"
#include "../base/base.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer windows cost more than they tell; --ctx may ask for them. */
enum { CTX_MAX = 2048, CTX_LLAMA_CPP = 512 };

struct perplexity_args {
    struct cmd_model_args model;
    const char *file, *tokens;   /* one of them */
    uint32_t ctx, chunk, kv, method;
    struct cmd_texts images;
};

enum method { METHOD_SLIDING, METHOD_LLAMA_CPP };

static const char *method_name(size_t i)
{
    static const char *const names[] = {[METHOD_SLIDING] = "sliding", [METHOD_LLAMA_CPP] = "llama.cpp"};
    return i < PD_COUNT(names) ? names[i] : NULL;
}

static const struct cmd_option options[] = {
    CMD_MODEL_OPTION,
    CMD_DEVICE_OPTIONS,
    CMD_LORA_OPTION,
    CMD_KERNEL_OPTION,
    {.letter = 'f', .name = "file", .metavar = "TEXT", .kind = CMD_TEXT,
     .offset = offsetof(struct perplexity_args, file), .help = "The text; - is standard input."},
    {.name = "tokens", .metavar = "IDS", .kind = CMD_TEXT, .offset = offsetof(struct perplexity_args, tokens),
     .help = "In place of a text, its tokens. " CMD_IDS_HELP},
    {.name = "ctx", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct perplexity_args, ctx), .fallback = "0",
     .help = "Positions of a window, 2 at least; 0: the model's own, at most 2048, or 512 as llama.cpp's."},
    {.name = "method", .metavar = "METHOD", .kind = CMD_CHOICE, .offset = offsetof(struct perplexity_args, method),
     .fallback = "sliding", .value = method_name, .help = "How the text is cut into windows; llama.cpp: as that "
                                                          "program does, so that its figures compare."},
    CMD_CHUNK_OPTION(struct perplexity_args),
    CMD_KV_OPTION(struct perplexity_args),
    CMD_VISION_OPTION,
    CMD_IMAGE_OPTION(struct perplexity_args, CMD_IMAGES_PLACED_HELP),
};

/* Begins with t[at] and ends before t[to]; scores those of t[from] .. that are tokens. */
struct window {
    size_t at, from, to;
};

struct scoring {
    const peridot_model *model;
    peridot_session *session;
    peridot_sequence *sequence;
    const int32_t *ids;          /* [n] of the text, without bos; negative: a row of an image */
    size_t n, n_bytes;           /* n_bytes is 0 where the text is given as tokens */
    int32_t bos;                 /* -1: none */
    int32_t *window;             /* [ctx] */
    uint32_t ctx;
    enum method method;
    struct window *windows;      /* [n_windows] */
    size_t n_windows;
    size_t at;                   /* of the window that is scored */
    double *losses;              /* [n_wanted] of the tokens that this rank scores, n_scored so far */
    size_t n_scored, n_wanted;
    struct cmd_progress progress;
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
    int32_t next = s->ids[s->at + pos + (s->bos < 0)];
    (void)sequence;
    if (next >= 0) s->losses[s->n_scored++] = loss(row, n, next);
    if (!s->n_bytes) return cmd_progress_tokens(&s->progress, s->n_scored, s->n_wanted);
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
    PD_TRY(peridot_sequence_truncate(s->sequence, 0, NULL));
    return peridot_sequence_eval(s->sequence, s->window, n, &params);
}

static size_t image_begin(const struct scoring *s, size_t i)
{
    while (i && s->ids[i] < 0 && s->ids[i - 1] < 0) i--;
    return i;
}

static size_t image_end(const struct scoring *s, size_t i)
{
    while (i < s->n && s->ids[i] < 0) i++;
    return i;
}

/* The window after `w`, of which only `to` is read; false: there is none. */
static bool sliding_window(struct window *w, const struct scoring *s)
{
    size_t has_bos = s->bos >= 0, length = s->ctx - has_bos, before = length - s->ctx / 2;
    w->from = image_end(s, w->to);
    if (w->from >= s->n) return false;
    w->at = image_begin(s, w->from > before ? w->from - before : 0);
    if (w->at + length <= w->from) w->at = image_end(s, w->at);
    w->to = pd_min(w->at + length, s->n);
    if (s->ids[w->to - 1] < 0) w->to = image_begin(s, w->to - 1);   /* the last one is not evaluated */
    return true;
}

/* The first position to predict from is ctx / 2, the last one ctx - 2; w->to is the next window's first position. */
static bool llama_cpp_window(struct window *w, const struct scoring *s)
{
    size_t has_bos = s->bos >= 0, at = w->to ? w->to + has_bos : 0, to = at + s->ctx - has_bos;
    *w = (struct window){at, to - (s->ctx - s->ctx / 2 - 1), to};
    return to <= s->n;
}

/* Counts them where there is no room for them yet. Without bos nothing comes before the first token, which then is not
 * scored. */
static void list_windows(struct scoring *s)
{
    bool sliding = s->method == METHOD_SLIDING;
    struct window w = {.to = sliding && s->bos < 0};
    for (s->n_windows = 0; (sliding ? sliding_window : llama_cpp_window)(&w, s); s->n_windows++)
        if (s->windows) s->windows[s->n_windows] = w;
}

static peridot_status check_images(const struct scoring *s)
{
    size_t has_bos = s->bos >= 0;
    for (size_t i = 0, end; i < s->n; i = end + 1) {
        end = image_end(s, i);
        if (has_bos + end - i + 1 > s->ctx)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "a window of %" PRIu32 " positions has no room for the %zu rows of "
                           "the image at position %zu and a token after them (--ctx)", s->ctx, end - i, has_bos + i);
    }
    return PERIDOT_OK;
}

static peridot_status plan_windows(struct scoring *s)
{
    size_t n = s->n + (s->bos >= 0);
    PD_TRY(check_images(s));
    list_windows(s);
    if (s->method == METHOD_LLAMA_CPP && s->n_windows < 2)
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "the text has %zu token%s, and --method llama.cpp needs two windows of %" PRIu32 " (--ctx)", n,
                       PD_S(n), s->ctx);
    if (!s->n_windows) return pd_fail(PERIDOT_ERROR_ARGUMENT, "the text has no tokens to score");
    s->windows = malloc(s->n_windows * sizeof *s->windows);
    if (!s->windows) return pd_fail_alloc(s->n_windows * sizeof *s->windows, "windows");
    list_windows(s);
    return PERIDOT_OK;
}

static size_t count_scored(const struct scoring *s, size_t first, size_t end)
{
    size_t n = 0;
    for (size_t i = first; i < end; i++)
        for (size_t k = s->windows[i].from; k < s->windows[i].to; k++) n += s->ids[k] >= 0;
    return n;
}

/* This rank's windows. */
static peridot_status score_windows(struct scoring *s)
{
    const struct cmd_part part = cmd_ranks_part();
    PD_TRY(plan_windows(s));
    size_t first = s->n_windows * part.i / part.n, end = s->n_windows * (part.i + 1) / part.n;
    cmd_model_print_precision(s->model);   /* no sooner: a failure is one sentence */
    if (first == end) return PERIDOT_OK;
    s->n_wanted = count_scored(s, first, end);
    s->losses = malloc(s->n_wanted * sizeof *s->losses);
    s->window = malloc(s->ctx * sizeof *s->window);
    if (!s->losses || !s->window) return pd_fail_alloc(s->n_wanted * sizeof *s->losses, "losses");
    s->progress = cmd_progress_begin("scoring");
    peridot_status status = PERIDOT_OK;
    for (size_t i = first; i < end && status == PERIDOT_OK; i++) status = score_window(s, s->windows[i]);
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
    if (s->method == METHOD_SLIDING && s->n_bytes)
        printf("bits per byte: %.4f\n", l->mean * n / log(2) / (double)s->n_bytes);
    printf("perplexity: %.4f +- %.4f\n", exp(l->mean), exp(l->mean) * error);
}

/* Rank 0 prints; it gets the others' losses from what they write, in the order of the windows. */
static peridot_status take_ids(struct scoring *s)
{
    struct losses losses = {0};
    char *others;
    size_t size;
    PD_TRY(score_windows(s));
    if (cmd_ranks_part().i > 0) {
        if (s->n_scored) fwrite(s->losses, sizeof *s->losses, s->n_scored, stdout);
        return PERIDOT_OK;
    }
    PD_TRY(cmd_ranks_collect(&others, &size));
    add_losses(&losses, s->losses, s->n_scored);
    add_losses(&losses, (const double *)(const void *)others, size / sizeof *s->losses);
    free(others);
    print_result(s, &losses);
    return PERIDOT_OK;
}

/* What is to be scored: bytes of a text, or of the numbers of its tokens. */
struct text {
    char *bytes;
    size_t size;
    const char *name;
    bool is_ids;
    const struct cmd_images *images;
};

/* Nothing is added to ids: every window begins with bos where they do. */
static peridot_status perplexity_read_ids(struct scoring *s, int32_t **ids, const struct text *text)
{
    const peridot_model_info *info = peridot_model_get_info(s->model);
    size_t n;
    PD_TRY(cmd_ids_parse(ids, &n, text->bytes, text->size, text->name));
    for (size_t i = 0; i < n; i++)
        if ((uint32_t)(*ids)[i] >= info->n_outputs)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: %" PRId32 " is not a token of %s, which has %" PRIu32,
                           text->name, (*ids)[i], info->name, info->n_outputs);
    if (text->images->n) PD_TRY(peridot_images_place(*ids, n, s->model, text->images->at, text->images->n));
    size_t has_bos = n && s->bos >= 0 && (*ids)[0] == s->bos;
    if (!has_bos) s->bos = -1;
    s->ids = *ids + has_bos;
    s->n = n - has_bos;
    return PERIDOT_OK;
}

static peridot_status perplexity_read_text(struct scoring *s, int32_t **ids, const peridot_vocab *vocab,
                                           const struct text *text)
{
    s->n_bytes = text->size;
    /* as its -f does */
    if (s->method == METHOD_LLAMA_CPP && s->n_bytes && text->bytes[s->n_bytes - 1] == '\n') s->n_bytes--;
    PD_TRY(peridot_encode(ids, &s->n, vocab, text->bytes, s->n_bytes, 0));
    s->ids = *ids;
    return PERIDOT_OK;
}

static peridot_status perplexity_take_text(struct scoring *s, const peridot_vocab *vocab, const struct text *text)
{
    int32_t *ids = NULL, *bos;
    size_t n_bos;
    PD_TRY(peridot_encode(&bos, &n_bos, vocab, "", 0, PERIDOT_ENCODE_BOS));
    s->bos = n_bos ? bos[0] : -1;
    peridot_free(bos);
    peridot_status status = text->is_ids ? perplexity_read_ids(s, &ids, text)
        : perplexity_read_text(s, &ids, vocab, text);
    if (status == PERIDOT_OK) status = take_ids(s);
    free(s->windows);
    free(s->losses);
    free(s->window);
    if (text->is_ids) free(ids);
    else peridot_free(ids);
    return status;
}

static peridot_status score(const struct perplexity_args *args, peridot_model *model, const struct text *text)
{
    const peridot_vocab *vocab = peridot_model_vocab(model);
    uint32_t ctx_max = peridot_model_get_info(model)->ctx_max;
    struct scoring s = {.model = model, .method = args->method, .ctx = args->ctx};
    if (!s.ctx) s.ctx = (uint32_t)pd_min(ctx_max, s.method == METHOD_LLAMA_CPP ? CTX_LLAMA_CPP : CTX_MAX);
    peridot_session_params params = {.ctx = s.ctx, .chunk = args->chunk, .kv_type = (peridot_kv_type)args->kv};
    if (!vocab) return PERIDOT_ERROR_UNSUPPORTED;
    PD_TRY(cmd_session_create(&s.session, model, &params));
    peridot_status status = peridot_sequence_create(&s.sequence, s.session);
    if (status == PERIDOT_OK) status = perplexity_take_text(&s, vocab, text);
    peridot_session_free(s.session);
    return status;
}

/* On rank 0, for all. */
static peridot_status read_input(struct text *text, const struct perplexity_args *args)
{
    *text = (struct text){.name = args->file, .is_ids = args->tokens};
    peridot_status status = PERIDOT_OK;
    if (cmd_ranks_part().i == 0) {
        if (text->is_ids) status = cmd_ids_text(&text->bytes, &text->size, &text->name, args->tokens);
        else if (strcmp(args->file, "-") == 0)
            status = cmd_read_all(&text->bytes, &text->size, stdin, "standard input");
        else status = cmd_read_file(&text->bytes, &text->size, args->file);
    }
    return status == PERIDOT_OK ? cmd_ranks_broadcast(&text->bytes, &text->size) : status;
}

static int check_usage(const struct cmd_command *command, const struct perplexity_args *args)
{
    bool llama_cpp = args->method == METHOD_LLAMA_CPP;
    if (!args->file == !args->tokens) return cmd_usage(command, "one of --file and --tokens is needed");
    if (args->images.n && !args->tokens) return cmd_usage(command, "--image goes with --tokens, not with --file");
    if (args->images.n && llama_cpp) return cmd_usage(command, "--method llama.cpp is for texts without images");
    if (llama_cpp && args->ctx == 2) return cmd_usage(command, "--ctx 2 leaves no second half to score");
    return args->ctx == 1 ? cmd_usage(command, "--ctx 1 leaves no position to predict from") : CMD_OK;
}

static int run_perplexity(const struct cmd_command *command, const void *arguments)
{
    const struct perplexity_args *args = arguments;
    struct cmd_images images = {.n = 0};
    peridot_model *model = NULL;
    struct text text;
    int usage = check_usage(command, args);
    if (usage != CMD_OK) return usage;
    cmd_interrupt_watch();
    peridot_status status = read_input(&text, args);
    if (status == PERIDOT_OK) status = cmd_model_need_head(&args->model, CMD_HEAD_LANGUAGE, command->name);
    if (status == PERIDOT_OK)
        status = args->images.n ? cmd_model_open(&model, &args->model)
                                : cmd_model_open_text(&model, &args->model, NULL);
    if (status == PERIDOT_OK) status = cmd_images_read(&images, model, &args->images, args->model.pan_and_scan);
    text.images = &images;
    if (status == PERIDOT_OK) status = score(args, model, &text);
    cmd_images_free(&images);
    peridot_model_close(model);
    free(text.bytes);
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
        "--tokens gives the tokens themselves; bos begins every window where it begins them. With --image, rows of "
        "images among them are not scored, as they are not words; what follows is, with the image in its context. No "
        "window parts an image: one that would end in an image ends before it, and the next one scores from after it; "
        "one that would begin in an image begins with it, or after it where no room would be left for a token to "
        "score. Bits per byte are then not written.\n\n"
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
                "peridot perplexity -m gemma-3-4b-it.gguf --tokens @ids.txt --image cat.jpg\n"
                "peridot perplexity -m gemma-2-2b-q4_0.gguf -f wiki.test.raw --ctx 512",
    CMD_ARGUMENTS(options, struct perplexity_args),
    .run = run_perplexity,
};
