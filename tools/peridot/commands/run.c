/* peridot run: writes what the model adds to a prompt, as it is made. One thread does all of it. Standard output has
 * the reply alone; what is told beside it goes to standard error. */
#define _POSIX_C_SOURCE 200809L
#include "../chat/chat.h"
#include "../cli/cli.h"
#include "../console/console.h"
#include "../base/base.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 256 };

struct run_args {
    struct cmd_model_args model;
    const char *prompt, *suffix, *template_name;
    uint32_t n, think, ctx, chunk, kv;
    bool raw, special, ids;
    struct cmd_texts images;
    struct cmd_sampling sampling;
    struct cmd_draft_args draft;
};

static const struct cmd_option options[] = {
    CMD_MODEL_OPTION,
    CMD_DEVICE_OPTIONS,
    CMD_LORA_OPTION,
    CMD_KERNEL_OPTION,
    {.letter = 'n', .name = "length", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct run_args, n),
     .fallback = "256", .help = "Add at most N tokens; the model may stop earlier, and stops at the end of the "
                                "context."},
    CMD_SAMPLING_OPTIONS(struct run_args, sampling),
    CMD_SCHEMA_OPTION(struct run_args, sampling),
    {.name = "raw", .kind = CMD_FLAG, .offset = offsetof(struct run_args, raw),
     .help = "Continue the prompt as it is, without the model's chat template."},
    {.name = "suffix", .metavar = "TEXT", .kind = CMD_TEXT, .offset = offsetof(struct run_args, suffix),
     .help = "Write what stands between the prompt and TEXT (fill-in-the-middle), with models that have tokens for it, "
             "as CodeGemma."},
    CMD_TEMPLATE_OPTION(struct run_args),
    CMD_THINK_OPTION(struct run_args),
    {.name = "special", .kind = CMD_FLAG, .offset = offsetof(struct run_args, special),
     .help = "With --raw: control tokens written in the prompt, as <start_of_turn>, are that token rather than plain "
             "text."},
    {.name = "ids", .kind = CMD_FLAG, .offset = offsetof(struct run_args, ids),
     .help = "Write token ids with commas between them instead of text."},
    CMD_CTX_OPTION(struct run_args),
    CMD_CHUNK_OPTION(struct run_args),
    CMD_KV_OPTION(struct run_args),
    CMD_DRAFT_OPTIONS(struct run_args, draft),
    CMD_IMAGE_OPTION(struct run_args, "A picture (JPEG, PNG, WebP, GIF) before the prompt, for a model that sees; - is "
                     "standard input. May be repeated."),
    CMD_VISION_OPTION,
    {.metavar = "PROMPT", .kind = CMD_TEXT, .offset = offsetof(struct run_args, prompt),
     .help = "The text to answer or to continue. - or nothing: standard input, less one newline at its end; nothing on "
             "a terminal: peridot chat."},
};

/* ---- what is written ---- */

struct output {
    struct cmd_progress progress;   /* of the prompt */
    bool ids;
    struct cmd_flow flow;           /* of standard output */
    struct cmd_thought thought;
    bool begun;          /* something was written */
    bool ends_line;      /* and it ended with a newline */
    int error;           /* errno of a write that failed; 0: none */
};

static bool run_write_piece(void *user, int32_t token, const char *text, size_t size)
{
    struct output *o = user;
    cmd_interrupt_cancels(NULL);   /* from here on the reply ends in order */
    cmd_progress_end(&o->progress);
    cmd_thought_end(&o->thought, true, "");
    if (o->ids && token >= 0) {
        if (o->begun) fputc(',', stdout);
        cmd_ids_print(stdout, &token, 1);
    } else if (!o->ids && size) {
        cmd_flow_text(&o->flow, text, size);
        o->ends_line = text[size - 1] == '\n';
    }
    o->begun = o->begun || size || o->ids;
    if (fflush(stdout) != 0 || ferror(stdout)) o->error = errno;
    return !o->error && !cmd_interrupted();
}

/* A thought is the reader's to see, and no part of the reply; but its ids are. */
static bool write_thought(void *user, int32_t token, const char *text, size_t size)
{
    struct output *o = user;
    cmd_interrupt_cancels(NULL);
    cmd_progress_end(&o->progress);
    if (o->ids) return run_write_piece(user, token, text, size);
    return cmd_thought_take(&o->thought, token, text, size, o->begun) == PERIDOT_OK && !cmd_interrupted();
}

/* What was written ends its line. */
static void end_output(struct output *o, bool verbose)
{
    cmd_thought_end(&o->thought, false, "");
    if (verbose) cmd_thought_show(&o->thought);
    cmd_thought_free(&o->thought);
    if (o->error) return;
    cmd_flow_end(&o->flow);
    if (o->ids || (o->begun && !o->ends_line)) fputc('\n', stdout);
    if (fflush(stdout) != 0 || ferror(stdout)) o->error = errno;
}

/* ---- the prompt ---- */

/* A reply that is to be written, and what it is made of. */
struct run {
    const struct run_args *args;
    peridot_model *model;
    peridot_sampling sampling;
    peridot_bias bias[CMD_TEXTS_MAX];
    peridot_grammar *grammar;
    struct cmd_images images;
    char *text;                     /* [size] bytes of the prompt, and a 0 */
    int32_t *ids;                   /* [n_ids] of it */
    size_t size, n_ids;
};

static peridot_status run_read_prompt(struct run *run)
{
    const char *given = run->args->prompt;
    if (given && strcmp(given, "-") != 0) {
        run->size = strlen(given);
        run->text = malloc(run->size + 1);
        if (!run->text) return pd_fail_alloc(run->size, "prompt");
        memcpy(run->text, given, run->size + 1);
        return PERIDOT_OK;
    }
    PD_TRY(cmd_read_all(&run->text, &run->size, stdin, "standard input"));
    if (run->size && run->text[run->size - 1] == '\n') run->text[--run->size] = 0;   /* the one that echo adds */
    return PERIDOT_OK;
}

static peridot_status encode_infill(struct run *run, const peridot_vocab *vocab)
{
    const char *suffix = run->args->suffix;
    const peridot_infill infill = {.size = sizeof infill, .prefix = run->text, .prefix_size = run->size,
                                   .suffix = suffix, .suffix_size = strlen(suffix)};
    if (peridot_vocab_has_infill(vocab)) return peridot_encode_infill(&run->ids, &run->n_ids, vocab, &infill);
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s's vocabulary has no tokens for fill-in-the-middle (--suffix)",
                   peridot_model_get_info(run->model)->name);
}

/* With images before it. */
static peridot_status encode_images(struct run *run, const peridot_vocab *vocab, peridot_chat chat)
{
    char *json;
    chat.messages = NULL;
    chat.n_messages = 0;
    chat.images = run->images.at;
    chat.n_images = run->images.n;
    PD_TRY(cmd_images_message(&json, &chat.json_size, run->images.n, run->text));
    chat.json = json;
    peridot_status status = peridot_encode_turns(&run->ids, &run->n_ids, vocab, &chat);
    free(json);
    return status;
}

static peridot_status encode_prompt(struct run *run)
{
    const struct run_args *args = run->args;
    const peridot_vocab *vocab = peridot_model_vocab(run->model);
    if (!vocab) return PERIDOT_ERROR_UNSUPPORTED;
    if (args->suffix) return encode_infill(run, vocab);
    const char *name = NULL;
    if (!args->raw) PD_TRY(cmd_template_choose(&name, run->model, &args->model, args->template_name, NULL));
    const peridot_message message = {"user", run->text};
    const peridot_chat chat = {.size = sizeof chat, .template_name = name, .messages = &message, .n_messages = 1,
                               .think = args->think};
    if (run->images.n) return encode_images(run, vocab, chat);
    if (!args->raw && (name || peridot_vocab_has_chat(vocab)))
        return peridot_encode_turns(&run->ids, &run->n_ids, vocab, &chat);
    return peridot_encode(&run->ids, &run->n_ids, vocab, run->text, run->size,
                          PERIDOT_ENCODE_BOS | (args->special ? PERIDOT_ENCODE_SPECIAL : 0u));
}

/* ---- the reply ---- */

static peridot_status generate(const struct run *run, peridot_sequence *sequence, peridot_sequence *drafts,
                               uint32_t n_draft)
{
    const struct run_args *args = run->args;
    peridot_session *session = peridot_sequence_session(sequence);
    struct output output = {.ids = args->ids, .flow = cmd_flow_begin(stdout)};
    struct cmd_notice message;
    peridot_stats stats = {0};
    uint32_t ctx = peridot_session_ctx(session);
    if (run->n_ids > ctx)
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "the prompt has %zu token%s and the context %" PRIu32 " position%s (--ctx)", run->n_ids,
                       PD_S(run->n_ids), ctx, PD_S(ctx));
    PD_TRY(peridot_set_sampling(sequence, &run->sampling));
    if (args->sampling.verbose && cmd_notice_begin(&message)) {
        cmd_sampling_print(message.file, &run->sampling);
        cmd_notice_end(&message);
    }
    cmd_interrupt_cancels(session);
    output.progress = cmd_progress_begin("reading the prompt");
    peridot_request_params params = {.size = sizeof params, .prompt = run->ids, .n_prompt = run->n_ids,
                                     .n_max = args->n, .text = run_write_piece,
                                     .thought = args->raw || args->suffix ? NULL : write_thought,
                                     .think = args->think, .progress = cmd_progress_tokens, .user = &output,
                                     .n_draft = n_draft, .draft = drafts};
    peridot_status status = peridot_generate(sequence, &params, &stats);
    cmd_interrupt_cancels(NULL);
    cmd_progress_end(&output.progress);
    end_output(&output, args->sampling.verbose);
    if (output.error) return pd_fail(PERIDOT_ERROR_IO, "standard output: %s", strerror(output.error));
    if (status == PERIDOT_OK && cmd_notice_begin(&message)) {
        cmd_stats_print(message.file, &stats, &run->sampling);
        cmd_notice_end(&message);
    }
    return status;
}

static peridot_status run_session(struct run *run)
{
    const struct run_args *args = run->args;
    peridot_session_params params = {.ctx = args->ctx, .chunk = args->chunk, .kv_type = (peridot_kv_type)args->kv};
    struct cmd_draft draft = {0};
    peridot_session *session = NULL;
    peridot_sequence *sequence = NULL, *drafts = NULL;
    peridot_status status = encode_prompt(run);
    if (status == PERIDOT_OK) status = cmd_draft_open(&draft, &args->draft, &args->model, run->model);
    if (status == PERIDOT_OK) status = cmd_draft_create_target(&session, &draft, run->model, &params);
    if (status == PERIDOT_OK) status = peridot_sequence_create(&sequence, session);
    if (status == PERIDOT_OK) status = cmd_draft_create_session(&draft, &params);
    if (status == PERIDOT_OK && draft.session) status = peridot_sequence_create(&drafts, draft.session);
    if (status == PERIDOT_OK) status = generate(run, sequence, drafts, draft.n);
    cmd_draft_close(&draft);
    peridot_session_free(session);
    return status;
}

/* ---- the command ---- */

/* What options say together that they must not; NULL: nothing. */
static const char *find_misuse(const struct run_args *a)
{
    const struct { bool is; const char *says; } cases[] = {
        {a->raw && a->think, "--think is said in a chat template, which --raw leaves out"},
        {a->suffix && (a->think || a->template_name), "--suffix is for plain text, which has no chat template"},
        {a->suffix && a->special,
         "--suffix puts the control tokens: what it is given, and the prompt, are plain text"},
        {a->images.n && (a->raw || a->suffix),
         "--image puts pictures into a chat template, which plain text does not have"},
    };
    for (size_t i = 0; i < PD_COUNT(cases); i++)
        if (cases[i].is) return cases[i].says;
    return NULL;
}

/* A chat has its own default for the length of replies. */
static int run_chat(const struct cmd_command *command, const struct run_args *args)
{
    struct cmd_chat_args chat = {.model = args->model, .template_name = args->template_name, .ctx = args->ctx,
        .n = args->n == LENGTH ? 0 : args->n, .think = args->think, .chunk = args->chunk, .kv = args->kv,
        .sampling = args->sampling, .draft = args->draft};
    if (args->raw || args->suffix || args->special || args->ids || args->images.n)
        return cmd_usage(command, "PROMPT is needed");
    return cmd_chat.run(&cmd_chat, &chat);
}

/* All that a reply is made of, but its ids. */
static peridot_status open_run(struct run *run, const struct cmd_command *command)
{
    const struct run_args *args = run->args;
    PD_TRY(cmd_model_need_head(&args->model, CMD_HEAD_LANGUAGE, command->name));
    PD_TRY(run_read_prompt(run));
    cmd_interrupt_watch();
    cmd_interrupt_hurry(1);
    PD_TRY(cmd_model_open(&run->model, &args->model));
    cmd_sampling_recommend(&run->sampling, run->model, args->sampling.given);
    PD_TRY(cmd_grammar_open(&run->grammar, &args->sampling, run->model));
    run->sampling.grammar = run->grammar;
    PD_TRY(cmd_images_read(&run->images, run->model, &args->images, args->model.pan_and_scan));
    return cmd_model_tune_once(run->model);
}

static void close_run(struct run *run)
{
    peridot_free(run->ids);
    cmd_images_free(&run->images);
    peridot_grammar_free(run->grammar);
    peridot_model_close(run->model);
    free(run->text);
}

static int run_prompt(const struct cmd_command *command, const void *arguments)
{
    const struct run_args *args = arguments;
    struct run run = {.args = args};
    int usage = cmd_sampling_make(&run.sampling, run.bias, command, &args->sampling);
    if (usage != CMD_OK) return usage;
    const char *misuse = find_misuse(args);
    if (misuse) return cmd_usage(command, "%s", misuse);
    if (!args->prompt && isatty(STDIN_FILENO)) return run_chat(command, args);
    peridot_status status = open_run(&run, command);
    bool misused = status == PERIDOT_OK && peridot_model_vocab(run.model)
        && cmd_template_check_think(peridot_model_vocab(run.model), args->template_name, args->think) != PERIDOT_OK;
    if (misused) usage = cmd_usage(command, "%s", peridot_last_error());
    else if (status == PERIDOT_OK) status = run_session(&run);
    close_run(&run);
    return misused ? usage : cmd_exit(status);
}

const struct cmd_command cmd_run = {
    .name = "run",
    .summary = "write what a model adds to a prompt",
    .description =
        "Writes the model's reply to standard output as it is made, with a newline at its end, and nothing else "
        "there. An instruction-tuned model gets the prompt as a user's turn in its chat template; a base model "
        "continues the prompt.\n\n"
        "Each token is chosen by these steps, in this order: what --json-schema allows, logit biases, repeat penalty, "
        "presence and frequency penalty, DRY, top-n-sigma, the K likeliest, temperature, the likeliest of probability "
        "P, those not too far below the likeliest, XTC, a draw. With temperature 0 the likeliest token after biases "
        "and penalties is taken. "
        "A reply also ends before a stop text; --ids shows the ids up to the one that completed it.\n\n"
        "What a model thinks before it answers (--think) is no part of the reply: standard error says how long it was, "
        "and with --verbose what.\n\n"
        "Standard error says which device is used and why, and at the end the speed: tokens per second of reading the "
        "prompt and of writing, bytes of weights and cache read per second, and the time to the first token.\n\n"
        "The first run on a GPU, and the first with another type of weights, spends a few seconds on tuning the "
        "layout of its kernels; the result is kept in the cache folder.\n\n"
        "Ctrl-C stops the reply and keeps what was written; a second Ctrl-C ends the program at once.",
    .examples = "peridot run \"Once upon a time\"\n"
                "peridot run -m gemma-2-2b-it.gguf -n 400 \"Why is the sky blue?\"\n"
                "peridot run -m gemma-2-2b-it.gguf --json-schema person.json \"Invent a person.\" > person\n"
                "peridot run --temp 0 --raw -m llama.gguf - < draft.txt > more.txt\n"
                "peridot run -m gemma-3-4b-it.gguf --image photo.jpg \"What is this?\"\n"
                "peridot run --temp 0 -m codegemma-2b.gguf --suffix \"    return total\" - < head.py",
    CMD_ARGUMENTS(options, struct run_args),
    .run = run_prompt,
};
