/* A turn of a conversation: the message's ids, the reply, and what both cost. */
#define _POSIX_C_SOURCE 200809L
#include "chat.h"
#include "chat_.h"
#include "../console/console.h"
#include "../cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLAIN_LENGTH = 256, NEXT_TURN = 64, MAX_ROUNDS = 25 };

/* ---- a reply ---- */

struct reply {
    struct cmd_progress progress;   /* of the prompt */
    struct cmd_conversation *conversation;
    struct pd_buffer text;
    struct cmd_thought *thought;
    struct cmd_calls calls;
    struct cmd_flow flow;    /* of standard output */
    int error;               /* errno of a write that failed; 0: none */
    peridot_status status;
};

static bool take_piece(void *user, int32_t token, const char *text, size_t size)
{
    struct reply *r = user;
    cmd_interrupt_cancels(NULL);   /* from here on the reply ends in order */
    cmd_progress_end(&r->progress);
    cmd_thought_end(r->thought, true, " (/thought shows it)");
    if (token >= 0) r->status = cmd_conversation_add_id(r->conversation, token);
    if (r->status == PERIDOT_OK) r->status = pd_buffer_add(&r->text, text, size);
    cmd_flow_text(&r->flow, text, size);
    if (fflush(stdout) != 0 || ferror(stdout)) r->error = errno;
    return r->status == PERIDOT_OK && !r->error && !cmd_interrupted();
}

/* Its ids are in the cache as others are. */
static bool take_thought(void *user, int32_t token, const char *text, size_t size)
{
    struct reply *r = user;
    cmd_interrupt_cancels(NULL);
    cmd_progress_end(&r->progress);
    if (token >= 0) r->status = cmd_conversation_add_id(r->conversation, token);
    if (r->status == PERIDOT_OK) r->status = cmd_thought_take(r->thought, token, text, size, r->text.size > 0);
    return r->status == PERIDOT_OK && !cmd_interrupted();
}

static bool take_call(void *user, const peridot_call_piece *piece)
{
    struct reply *r = user;
    r->status = cmd_calls_take(&r->calls, piece);
    return r->status == PERIDOT_OK && !cmd_interrupted();
}

/* A reply that only calls has no line of its own. */
static void end_reply(struct reply *r)
{
    cmd_thought_end(r->thought, false, " (/thought shows it)");
    cmd_flow_end(&r->flow);
    cmd_calls_end(&r->calls);
    if (cmd_interrupted()) cmd_calls_free(&r->calls);
    if (r->text.size == 0 ? r->calls.n == 0 : r->text.data[r->text.size - 1] != '\n') fputc('\n', stdout);
    if (fflush(stdout) != 0 && !r->error) r->error = errno;
}

static size_t common_prefix(const int32_t *a, size_t n, const int32_t *b, size_t m)
{
    size_t i = 0;
    while (i < n && i < m && a[i] == b[i]) i++;
    return i;
}

/* Keeps of the sequence what begins the conversation's ids, less the last, whose logits are wanted. */
static peridot_status reuse(struct cmd_chat *chat)
{
    const struct cmd_conversation *c = &chat->conversation;
    size_t n = common_prefix(peridot_sequence_tokens(chat->sequence), peridot_sequence_pos(chat->sequence), c->ids,
                             c->n_ids);
    return peridot_sequence_truncate(chat->sequence, (uint32_t)pd_min(n, c->n_ids - 1), &chat->n_reused);
}

/* *end is at most where the next turn goes on: an empty thought after it is no part of that. */
static peridot_status find_kept(size_t *end, const struct cmd_chat *chat)
{
    const struct cmd_conversation *c = &chat->conversation;
    int32_t *ids = malloc(c->n_ids * sizeof *ids);
    if (!ids) return pd_fail_alloc(c->n_ids * sizeof *ids, "tokens");
    memcpy(ids, c->ids, c->n_ids * sizeof *ids);
    *end = pd_min(*end, peridot_drop_thoughts(chat->encoding.vocab, ids, c->n_ids));
    free(ids);
    return PERIDOT_OK;
}

/* Layers with windows can go back to the end of what was read, but not to the token before it, whose logits a retry
 * wants: so all but the last token are read by themselves. *n is their number. */
static peridot_status read_ahead(uint32_t *n, struct cmd_chat *chat, struct reply *r)
{
    const peridot_eval_params params = {.size = sizeof params, .progress = cmd_progress_tokens, .user = r};
    const struct cmd_conversation *c = &chat->conversation;
    size_t end = c->n_ids - 1;
    *n = 0;
    if (!peridot_model_get_info(chat->model)->window) return PERIDOT_OK;
    PD_TRY(find_kept(&end, chat));
    if (end <= chat->n_reused) return PERIDOT_OK;
    *n = (uint32_t)end - chat->n_reused;
    return peridot_sequence_eval(chat->sequence, c->ids + chat->n_reused, *n, &params);
}

/* Tokens of the reply. Without a length it ends where the next turn still fits; or, where this is that turn, with the
 * context. */
static uint32_t reply_length(const struct cmd_chat *chat)
{
    size_t n = chat->conversation.n_ids, end = chat->encoding.ctx - chat->next;
    if (chat->args.n || n + chat->encoding.reserve > end) return chat->most;
    return (uint32_t)pd_min(chat->most, end - n);
}

/* Reads what is new and writes the reply. */
static peridot_status read_and_write(struct cmd_chat *chat, struct reply *r)
{
    const struct cmd_conversation *c = &chat->conversation;
    double begun = pd_now(), taken;
    uint32_t n_ahead;
    PD_TRY(reuse(chat));
    PD_TRY(read_ahead(&n_ahead, chat, r));
    taken = n_ahead ? pd_now() - begun : 0;
    const int32_t *ids = c->ids + chat->n_reused + n_ahead;
    peridot_request_params params = {.size = sizeof params, .prompt = ids,
                                     .n_prompt = (size_t)(c->ids + c->n_ids - ids), .n_max = chat->limit,
                                     .text = take_piece, .thought = take_thought, .think = chat->args.think,
                                     .progress = cmd_progress_tokens, .user = r,
                                     .n_draft = chat->draft.n, .draft = chat->drafts,
                                     .tools = chat->tools, .call = take_call};
    peridot_sampling sampling = chat->sampling;   /* goes with tools, and sets the generator anew */
    sampling.seed += chat->n_replies++;
    if (chat->tools) params.sampling = &sampling;
    peridot_status status = peridot_generate(chat->sequence, &params, &chat->stats);
    chat->stats.n_prompt += n_ahead;
    chat->stats.prompt_s += taken;
    chat->stats.first_token_s += taken;
    return status;
}

static peridot_status generate(struct cmd_chat *chat, struct reply *r)
{
    struct cmd_conversation *c = &chat->conversation;
    size_t n_prompt = c->n_ids;
    peridot_status status;
    chat->limit = reply_length(chat);
    do {
        cmd_interrupt_cancels(chat->session);
        status = read_and_write(chat, r);
        cmd_interrupt_cancels(NULL);
        cmd_progress_end(&r->progress);
        /* a Ctrl-C that came when the reply before had just ended is no reason to stop this one */
    } while (status == PERIDOT_CANCELLED && !cmd_interrupted());
    if (status != PERIDOT_OK && (status != PERIDOT_CANCELLED || c->n_ids == n_prompt)) return status;
    end_reply(r);
    if (r->error) return pd_fail(PERIDOT_ERROR_IO, "standard output: %s", strerror(r->error));
    PD_TRY(r->status);
    const char *text = r->text.data ? r->text.data : "";
    return r->calls.n ? cmd_chat_add_calls(chat, text, r->text.size, &r->calls)
                      : cmd_conversation_add(c, "assistant", text, r->text.size);
}

/* What a reply that ends early owes to the reader. */
static void print_cut(const struct cmd_chat *chat)
{
    if (chat->conversation.n_ids > chat->encoding.ctx)
        cmd_say("the reply was cut: it reached the end of the context of %" PRIu32 " position%s (--ctx)\n",
                chat->encoding.ctx, PD_S(chat->encoding.ctx));
    else if (chat->stats.n_generated == chat->limit && chat->limit < chat->most)
        cmd_say("the reply was cut at %zu of the context's %" PRIu32 " positions, so that another turn fits: "
                "type on (\"go on\"), or set a length (-n, /set length)\n", chat->conversation.n_ids,
                chat->encoding.ctx);
    else if (chat->stats.n_generated == chat->most)
        cmd_say("the reply was cut after %" PRIu32 " token%s (-n, /set length)\n", chat->most,
                PD_S(chat->most));
}

/* *calls is freed by the caller, also on failure. */
static peridot_status reply(struct cmd_calls *calls, struct cmd_chat *chat)
{
    cmd_thought_free(&chat->thought);
    struct reply r = {.conversation = &chat->conversation, .thought = &chat->thought, .flow = cmd_flow_begin(stdout),
                      .progress = cmd_progress_begin("reading the prompt")};
    if (chat->editor) cmd_editor_echo(chat->editor, false);
    peridot_status status = generate(chat, &r);
    if (chat->editor) cmd_editor_echo(chat->editor, true);
    pd_buffer_free(&r.text);
    *calls = r.calls;
    if (r.error) chat->leaves = true;
    if (status != PERIDOT_OK) return status;
    if (!cmd_interrupted()) print_cut(chat);
    if (chat->args.sampling.verbose) cmd_chat_print_stats(chat);
    if (r.flow.columns && !calls->n) puts("");
    return PERIDOT_OK;
}

/* ---- a turn ---- */

peridot_status cmd_chat_open_session(struct cmd_chat *chat)
{
    const struct cmd_chat_args *args = &chat->args;
    peridot_session_params params = {.size = sizeof params, .ctx = args->ctx, .chunk = args->chunk,
                                     .kv_type = (peridot_kv_type)args->kv};
    chat->drafts = NULL;
    PD_TRY(cmd_draft_open(&chat->draft, &args->draft, &args->model, chat->model));
    PD_TRY(cmd_draft_create_target(&chat->session, &chat->draft, chat->model, &params));
    PD_TRY(peridot_sequence_create(&chat->sequence, chat->session));
    PD_TRY(cmd_draft_create_session(&chat->draft, &params));
    if (chat->draft.session) PD_TRY(peridot_sequence_create(&chat->drafts, chat->draft.session));
    chat->encoding.vocab = peridot_model_vocab(chat->model);
    chat->encoding.model = chat->model;
    chat->encoding.pan_and_scan = args->model.pan_and_scan;
    chat->encoding.ctx = peridot_session_ctx(chat->session);
    return peridot_set_sampling(chat->sequence, &chat->sampling);
}

/* After the device was lost. */
static peridot_status open_again(struct cmd_chat *chat)
{
    cmd_say("peridot: %s; the model is opened again, and /retry sends the message again\n",
            peridot_last_error());
    cmd_draft_close(&chat->draft);
    peridot_session_free(chat->session);
    peridot_model_close(chat->model);
    chat->session = NULL;
    chat->model = NULL;
    peridot_status status = cmd_model_open(&chat->model, &chat->args.model);
    if (status == PERIDOT_OK) status = cmd_chat_open_session(chat);
    if (status == PERIDOT_OK) cmd_conversation_read_again(&chat->conversation, &chat->encoding);
    chat->leaves = status != PERIDOT_OK;
    return status;
}

static peridot_status encode_and_reply(struct cmd_calls *calls, struct cmd_chat *chat)
{
    size_t n_left_out;
    *calls = (struct cmd_calls){.n = 0};
    PD_TRY(cmd_conversation_encode(&chat->conversation, &n_left_out, &chat->encoding));
    if (n_left_out)
        cmd_say("the context of %" PRIu32 " positions is full: the oldest %zu turn%s left out\n",
                chat->encoding.ctx, n_left_out, n_left_out == 1 ? " is" : "s are");
    return reply(calls, chat);
}

/* A reply, and others while they call tools. Where a person stops that, what was said stays. */
static peridot_status reply_and_call(struct cmd_chat *chat)
{
    struct cmd_calls calls;
    peridot_status status = PERIDOT_OK;
    bool goes_on = true;
    for (int i = 0; goes_on && i < MAX_ROUNDS; i++) {
        status = encode_and_reply(&calls, chat);
        goes_on = status == PERIDOT_OK && calls.n > 0;
        if (goes_on) status = cmd_chat_answer_calls(chat, &calls);
        if (goes_on && status == PERIDOT_CANCELLED) {
            cmd_say("stopped at a call: type on\n");
            status = PERIDOT_OK, goes_on = false;
        }
        cmd_calls_free(&calls);
        goes_on = goes_on && status == PERIDOT_OK;
    }
    if (goes_on) cmd_say("stopped, as %d replies in a row called tools: type on (\"go on\")\n", MAX_ROUNDS);
    return status;
}

peridot_status cmd_chat_answer(struct cmd_chat *chat, const char *text)
{
    struct cmd_conversation *c = &chat->conversation;
    PD_TRY(cmd_chat_take_tools(chat));
    PD_TRY(cmd_conversation_add(c, "user", text, strlen(text)));
    peridot_status status = reply_and_call(chat);
    if (status != PERIDOT_OK) cmd_conversation_undo(c);
    else free(c->unsent), c->unsent = NULL;
    if (status == PERIDOT_ERROR_DEVICE_LOST) status = open_again(chat);
    if (!chat->editor || !cmd_interrupt_clear() || status != PERIDOT_CANCELLED) return status;
    cmd_say("stopped before the reply: /retry sends the message again\n");
    return PERIDOT_OK;
}

void cmd_chat_print_stats(const struct cmd_chat *chat)
{
    const struct cmd_conversation *c = &chat->conversation;
    size_t n = cmd_conversation_turns(c, 0, c->n), n_left_out = cmd_conversation_turns(c, 0, c->first);
    struct cmd_notice m;
    if (!cmd_notice_begin(&m)) return;
    cmd_stats_print(m.file, &chat->stats, &chat->sampling);
    fprintf(m.file, "context: %zu of %" PRIu32 " positions, %" PRIu32 " of them kept from before; %zu turn%s", c->n_ids,
            chat->encoding.ctx, chat->n_reused, n, PD_S(n));
    if (n_left_out) fprintf(m.file, ", %zu of them left out", n_left_out);
    fputc('\n', m.file);
    cmd_notice_end(&m);
}

/* ---- settings ---- */

const char *cmd_chat_full_name(size_t i)
{
    static const char *const names[] = {"drop", "refuse"};
    return i < PD_COUNT(names) ? names[i] : NULL;
}

void cmd_chat_take_length(struct cmd_chat *chat)
{
    const char *name = chat->encoding.template_name;
    bool ends = !name || strcmp(name, "plain") != 0;
    chat->most = chat->args.n ? chat->args.n : ends ? chat->encoding.ctx : PLAIN_LENGTH;
    uint32_t ctx = chat->encoding.ctx;
    chat->next = (uint32_t)pd_min(pd_max(NEXT_TURN, ctx / 8), ctx / 4);
    chat->encoding.reserve = chat->args.n ? (uint32_t)pd_min(chat->most, ctx / 4) : chat->next / 2;
    chat->encoding.refuses = chat->args.full != 0;
}

peridot_status cmd_chat_take_think(struct cmd_chat *chat)
{
    struct cmd_encoding *e = &chat->encoding;
    bool thinks = chat->args.think != PERIDOT_THINK_OFF;
    PD_TRY(cmd_template_check_think(e->vocab, e->template_name, chat->args.think));
    if (thinks != (e->think != PERIDOT_THINK_OFF)) cmd_conversation_forget_ids(&chat->conversation);
    e->think = chat->args.think;
    return PERIDOT_OK;
}
