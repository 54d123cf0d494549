/* Prompts: passes over chunks of one or several of them, and, where that leaves the same bits (pd_op_can_mix), the
 * decode step of others in the same pass, which reads the weights once for both. A chunk is recorded in pieces that
 * take about 0.1 s, and between them it can be stopped: its tokens then count as never evaluated. On a GPU, and where
 * others wait, chunks are sized in time, too (pace.c). A submit takes one piece, or one dispatch where that takes
 * longer: a part of a layer's share of a chunk, far less than what a driver resets the device for. While a GPU works on
 * a chunk, the host writes and records the next.
 *
 * Why pieces and not smaller chunks: on a CPU 256 tokens of a model with a billion weights take 7 s, but 8 at a time
 * are a third slower. Rows of prompts take the kernels of large chunks to the prompt's end, so that its keys and logits
 * do not depend on what else was read with it, or on what the cache had of it. */
#include "engine/rounds/rounds.h"

#include "base/base.h"
#include "engine/pass/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_SECONDS 0.2    /* of computing images in a pass where others wait */
#define FIRST_PIECE_CPU (1ull << 28)   /* multiplications: some 10 ms */
#define FIRST_PIECE_GPU (1ull << 32)

peridot_status pd_prefill_create(struct pd_prefill *p, struct pd_workspace *w, struct pd_stage *stage, uint32_t n_max,
                                 uint32_t n_room)
{
    bool cpu = pd_gpu_info(w->model->gpu)->type == PERIDOT_DEVICE_CPU;
    const struct pd_recorder r = pd_workspace_recorder(w, NULL);
    *p = (struct pd_prefill){.w = w,
                             .stage = stage,
                             .n_max = n_max,
                             .n_room = n_room,
                             .pace = {.at_once = pd_op_matmul_tokens(&r)},
                             .cpu = cpu,
                             .piece_work = cpu ? FIRST_PIECE_CPU : FIRST_PIECE_GPU};
    p->mixes = !stage && w->n_sequences > 1 && w->model->config.head == PERIDOT_HEAD_LANGUAGE && pd_op_can_mix(&r);
    for (int i = 0; i < 2; i++) PD_TRY(pd_pass_create(&p->chunks[i].pass, w, stage, n_room, (struct pd_span){0}));
    p->rows = malloc(n_room * sizeof *p->rows);
    return p->rows ? PERIDOT_OK : pd_fail_alloc(n_room * sizeof *p->rows, "rows");
}

void pd_prefill_free(struct pd_prefill *p)
{
    for (int i = 0; i < 2; i++) pd_pass_free(&p->chunks[i].pass);
    free(p->rows);
    p->rows = NULL;
}

/* ---- sizes ---- */

static uint32_t next_pos(const struct pd_prompt *prompt) { return prompt->sequence->pos + prompt->n_in_flight; }

static bool wants_logits(const struct pd_prompt *prompt, uint32_t pos)
{
    return prompt->outputs && prompt->outputs->logits && pos >= prompt->outputs->first;
}

/* Of a token at the first position of the next chunk, of the prompt that takes most. */
static double deepest_flop(const struct pd_prefill *p, const struct pd_prompt *prompts, uint32_t n)
{
    double most = pd_token_flop(p->w->model, 0, false);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t pos = next_pos(&prompts[i]);
        if (prompts[i].n_left) most = fmax(most, pd_token_flop(p->w->model, pos, wants_logits(&prompts[i], pos)));
    }
    return most;
}

uint32_t pd_prefill_next(const struct pd_prefill *p, const struct pd_prompt *prompts, uint32_t n,
                         enum pd_chunk_aim aim)
{
    double token = deepest_flop(p, prompts, n);
    uint32_t n_tokens = p->n_max;
    if (p->w->model->config.bidirectional) return n_tokens;   /* texts are not cut */
    if (aim == PD_CHUNK_SHARED) n_tokens = pd_next_shared_chunk(&p->pace, token);
    else if (!p->cpu || aim == PD_CHUNK_INTERACTIVE) n_tokens = pd_next_chunk(&p->pace, token);
    return (uint32_t)pd_min(n_tokens, p->n_max);
}

static double step_flop(const struct pd_prefill *p, const struct pd_batch *b)
{
    double flop = 0;
    for (uint32_t i = 0; i < b->n_rows; i++) flop += pd_token_flop(p->w->model, b->rows[i].sequence->pos, true);
    return flop;
}

uint32_t pd_prefill_next_mixed(const struct pd_prefill *p, const struct pd_batch *b)
{
    double token = deepest_flop(p, b->prompts, b->n_prompts);
    if (!p->mixes || b->n_rows >= p->n_max) return 0;
    uint32_t n = pd_next_mixed_chunk(&p->pace, token, b->n_rows, step_flop(p, b));
    return (uint32_t)pd_min(n, p->n_max - b->n_rows);
}

/* ---- a chunk ---- */

static bool has_head(const struct pd_prefill *p, const struct pd_prompt *prompt)
{
    return p->w->model->weights.n_outputs && !(prompt->outputs && prompt->outputs->no_head);
}

/* The next tokens of sequences that decode. */
static peridot_status add_steps(struct pd_prefill *p, struct pd_chunk *chunk, const struct pd_batch *b)
{
    for (uint32_t i = 0; i < b->n_rows; i++) {
        struct pd_sequence *q = b->rows[i].sequence;
        const struct pd_run run = {.kind = PD_RUN_STEP, .sequence = q, .pos = q->pos, .n = 1,
                                   .tokens = &b->rows[i].token};
        PD_TRY(pd_pass_add(&chunk->pass, &run));
        chunk->prompts[i] = NULL;
    }
    chunk->flop = step_flop(p, b);
    return PERIDOT_OK;
}

/* So many of a prompt's next tokens go into a chunk that has room for `room`, and for n_room at all events: an image is
 * not parted, and one that begins the chunk may exceed it. 0: there is no room. */
static uint32_t fitting(const struct pd_prompt *prompt, uint32_t room, uint32_t n_room)
{
    uint32_t most = (uint32_t)pd_min(room, pd_states_room(&prompt->sequence->set->cache, next_pos(prompt)));
    uint32_t n = (uint32_t)pd_min(most, prompt->n_left);
    uint32_t whole = pd_image_border(prompt->tokens, n, (uint32_t)prompt->n_left);
    if (whole > 0 || n == 0) return whole;
    while (n < prompt->n_left && pd_is_inner_row(prompt->tokens[n])) n++;
    return n <= n_room ? n : 0;
}

/* What the next chunk is to be. */
struct order {
    const struct pd_batch *batch;
    uint32_t n_tokens;         /* of prompts, at most */
    const struct pd_watch *watch;
    const atomic_bool *stop;
    double images_s;           /* see pd_tower_watch.most_s */
};

static bool goes_on(void *user)
{
    const struct order *o = user;
    return pd_report_progress(o->batch->prompts, o->batch->n_prompts, o->watch) == PERIDOT_OK;
}

enum images { NO_IMAGES, IMAGES, IMAGES_LATER };   /* of a run: LATER, others wait and its rows are not computed yet */

/* The rows of the images among a run's tokens, to p->rows; those of tokens are NULL. Computes those that are not there
 * yet. */
static peridot_status find_rows(enum images *images, struct pd_prefill *p, const struct pd_run *run,
                                const struct pd_tower_watch *watch)
{
    struct pd_tower *tower = p->w->model->tower;
    uint32_t d_model = p->w->model->config.d_model;
    *images = NO_IMAGES;
    for (uint32_t m = 0; m < run->n; m++) {
        p->rows[m] = NULL;
        if (!pd_is_image_row(run->tokens[m])) continue;
        struct pd_image *image = tower ? pd_images_find(p->w->model->images, run->tokens + m, run->n - m) : NULL;
        if (!image) return pd_fail(PERIDOT_ERROR_ARGUMENT, "an image of the prompt was freed before it was evaluated");
        peridot_status status = pd_image_encode(image, tower, watch);
        *images = image->rows ? IMAGES : IMAGES_LATER;
        for (uint32_t i = 0; image->rows && i < image->n; i++) p->rows[m + i] = image->rows + (size_t)i * d_model;
        m += image->n - 1;
        pd_image_free(image);   /* the prompt's owner has it still */
        PD_TRY(status);
        if (*images == IMAGES_LATER) return PERIDOT_OK;
    }
    return PERIDOT_OK;
}

/* A failure that is the prompt's alone is its owner's, and the others go on. */
static peridot_status find_rows_of(enum images *images, struct pd_prefill *p, struct pd_prompt *prompt,
                                   const struct pd_run *run, const struct pd_tower_watch *watch)
{
    const struct pd_prompt_calls *calls = prompt->calls;
    struct pd_tower_watch own = *watch;
    if (calls) {
        own.go_on = calls->go_on;
        own.user = calls->user;
    }
    peridot_status status = find_rows(images, p, run, &own);
    if (status == PERIDOT_OK || !calls || status == PERIDOT_ERROR_DEVICE_LOST || *watch->stop) return status;
    prompt->n_left = 0;
    calls->failed(calls->user, status);
    return PERIDOT_OK;
}

/* The next tokens of prompts, until the chunk is full. Where a chunk is one token it is a step, as in evaluations. */
static peridot_status add_prompts(struct pd_prefill *p, struct pd_chunk *chunk, const struct pd_batch *b,
                                  const struct pd_tower_watch *watch)
{
    struct pd_pass *pass = &chunk->pass;
    enum images images;
    for (uint32_t i = 0; i < b->n_prompts && pass->shape.n_rows < chunk->planned; i++) {
        struct pd_prompt *prompt = &b->prompts[i];
        struct pd_sequence *q = prompt->sequence;
        uint32_t n = fitting(prompt, chunk->planned - pass->shape.n_rows, p->n_room - pass->shape.n_rows);
        if (n < prompt->n_left && p->w->model->config.bidirectional) continue;
        struct pd_run run = {.kind = pass->input.n_rows == 1 ? PD_RUN_STEP : PD_RUN_PROMPT,
                                   .sequence = q, .pos = next_pos(prompt), .n = n,
                                   .tokens = prompt->tokens, .embeddings = prompt->embeddings,
                                   .all_rows = prompt->outputs && (prompt->outputs->logits || prompt->outputs->hidden),
                                   .ends = n == prompt->n_left && has_head(p, prompt)};
        if (n == 0) continue;
        peridot_status status = pd_sequence_extend(q, run.pos + n);
        if (status == PERIDOT_ERROR_MEMORY && pass->n_runs > b->n_rows) break;
        PD_TRY(status);
        PD_TRY(find_rows_of(&images, p, prompt, &run, watch));
        if (prompt->n_left == 0 || images == IMAGES_LATER) continue;
        if (images == IMAGES) run.embeddings = p->rows;
        chunk->prompts[pass->n_runs] = prompt;
        PD_TRY(pd_pass_add(pass, &run));
        chunk->flop += n * pd_token_flop(p->w->model, run.pos + n / 2, wants_logits(prompt, run.pos + n / 2));
    }
    return PERIDOT_OK;
}

/* ---- pieces ---- */

/* n_more tokens are done of those that are left. */
static peridot_status report_pieces(const struct pd_prompt *prompts, uint32_t n, const struct pd_watch *watch,
                                    uint64_t n_more)
{
    uint64_t n_left = 0;
    for (uint32_t i = 0; i < n; i++) n_left += prompts[i].n_left + prompts[i].n_in_flight;
    if (!watch || !watch->progress || watch->progress(watch->user, watch->n_total - n_left + n_more, watch->n_total))
        return PERIDOT_OK;
    return pd_fail(PERIDOT_CANCELLED, "stopped by the caller within a prompt");
}

peridot_status pd_report_progress(const struct pd_prompt *prompts, uint32_t n, const struct pd_watch *watch)
{
    return report_pieces(prompts, n, watch, 0);
}

/* The first piece of the next chunk. */
static peridot_status begin_chunk(struct pd_chunk **out, struct pd_prefill *p, struct order *o)
{
    const struct pd_tower_watch of_images = {.go_on = goes_on, .user = o, .stop = o->stop,
                                             .piece_work = p->piece_work, .most_s = o->images_s};
    struct pd_chunk *chunk = *out = &p->chunks[p->next];
    chunk->planned = o->batch->n_rows + o->n_tokens;
    PD_TRY(pd_pass_begin(&chunk->pass));
    chunk->pass.shape.piece_work = p->piece_work;
    PD_TRY(add_steps(p, chunk, o->batch));
    PD_TRY(add_prompts(p, chunk, o->batch, &of_images));
    if (chunk->pass.n_runs == 0) return PERIDOT_OK;   /* all that was to come has failed, or waits for images */
    PD_TRY(pd_pass_ready(&chunk->pass));
    return pd_pass_submit(&chunk->pass);
}

/* The other pieces, each when the one before it is done. The last one is then at work. */
static peridot_status submit_chunk(struct pd_prefill *p, struct pd_chunk *chunk, const struct order *o)
{
    struct pd_pass *pass = &chunk->pass;
    uint32_t n_pieces = pd_commands_n_pieces(pass->commands);
    while (!pd_pass_is_submitted(pass)) {
        PD_TRY(pd_pass_wait(pass));
        PD_TRY(report_pieces(o->batch->prompts, o->batch->n_prompts, o->watch,
                             (uint64_t)pass->shape.n_rows * pass->n_submitted / n_pieces));
        if (*o->stop) return pd_fail(PERIDOT_CANCELLED, "stopped within a prompt");
        PD_TRY(pd_pass_submit(pass));
    }
    p->next ^= 1;
    for (uint32_t i = 0; i < pass->n_runs; i++) {
        struct pd_prompt *prompt = chunk->prompts[i];
        if (!prompt) continue;
        prompt->tokens += pass->runs[i].n;
        if (prompt->embeddings) prompt->embeddings += pass->runs[i].n;
        prompt->n_left -= pass->runs[i].n;
        prompt->n_in_flight += pass->runs[i].n;
    }
    return PERIDOT_OK;
}

/* ---- running ---- */

void pd_prefill_adjust(struct pd_prefill *p, const struct pd_pass *pass, bool full)
{
    if (full || pass->longest > PD_PIECE_SECONDS) p->piece_work = pd_next_piece(pass->most_work, pass->longest);
}

/* After the last piece of a chunk: its tokens become their sequences'. */
static peridot_status finish_chunk(struct pd_prefill *p, struct pd_chunk *chunk)
{
    struct pd_pass *pass = &chunk->pass;
    PD_TRY(pd_pass_wait(pass));
    pd_prefill_adjust(p, pass, pass->shape.n_rows == chunk->planned);
    PD_TRY(pd_pass_send(pass));
    PD_TRY(pd_pass_await_reply(pass));
    for (uint32_t i = 0; i < pass->n_runs; i++) {
        pd_pass_take(pass, &pass->runs[i]);
        if (chunk->prompts[i]) chunk->prompts[i]->n_in_flight -= pass->runs[i].n;
    }
    return PERIDOT_OK;
}

/* What is wanted of its rows, which are in the scratch until the next pass. */
static peridot_status hand_out_chunk(const struct pd_chunk *chunk)
{
    for (uint32_t i = 0; i < chunk->pass.n_runs; i++) {
        const struct pd_prompt *prompt = chunk->prompts[i];
        if (!prompt || !prompt->outputs) continue;
        peridot_status status = pd_outputs_run(prompt->outputs, &chunk->pass, &chunk->pass.runs[i]);
        if (status == PERIDOT_ERROR_DEVICE_LOST || status == PERIDOT_ERROR_LINK || !prompt->calls) PD_TRY(status);
        if (status != PERIDOT_OK) prompt->calls->failed(prompt->calls->user, status);
    }
    return PERIDOT_OK;
}

static peridot_status complete_chunk(struct pd_prefill *p, struct pd_chunk *chunk)
{
    PD_TRY(finish_chunk(p, chunk));
    double begun = pd_now();
    peridot_status status = hand_out_chunk(chunk);
    pd_pace_took(&p->pace, chunk->pass.shape.n_rows, chunk->flop, chunk->pass.seconds + pd_now() - begun);
    return status;
}

bool pd_prefill_pending(const struct pd_prompt *prompts, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (prompts[i].n_left) return true;
    return false;
}

/* Whether the host can prepare the next chunk while one is at work. */
static bool overlaps(const struct pd_prefill *p, const struct pd_prompt *prompts, uint32_t n)
{
    bool none = true;
    for (uint32_t i = 0; i < n; i++) none = none && !prompts[i].outputs;
    return none && !p->cpu;
}

peridot_status pd_prefill_run(struct pd_prefill *p, struct pd_prompt *prompts, uint32_t n, const struct pd_watch *watch,
                              const atomic_bool *stop)
{
    const struct pd_batch all = {.prompts = prompts, .n_prompts = n};
    struct order order = {.batch = &all, .watch = watch, .stop = stop};
    struct pd_chunk *flying = NULL;
    peridot_status status = PERIDOT_OK;
    while (status == PERIDOT_OK && pd_prefill_pending(prompts, n)) {
        struct pd_chunk *chunk;
        order.n_tokens = pd_prefill_next(p, prompts, n, PD_CHUNK_FULL);
        status = pd_report_progress(prompts, n, watch);
        if (*stop) status = pd_fail(PERIDOT_CANCELLED, "stopped between the chunks of a prompt");
        if (status == PERIDOT_OK) status = begin_chunk(&chunk, p, &order);
        if (status != PERIDOT_OK || chunk->pass.n_runs == 0) break;
        if (flying) status = complete_chunk(p, flying);
        flying = NULL;
        if (status == PERIDOT_OK) status = submit_chunk(p, chunk, &order);
        if (status != PERIDOT_OK) break;
        if (overlaps(p, prompts, n)) flying = chunk;
        else status = complete_chunk(p, chunk);
    }
    if (!flying) return status;
    peridot_status last = complete_chunk(p, flying);   /* whatever went wrong after it: it stands */
    return status == PERIDOT_OK ? last : status;
}

peridot_status pd_prefill_step(struct pd_prefill *p, const struct pd_batch *batch, uint32_t n_tokens,
                               const atomic_bool *stop)
{
    struct order order = {.batch = batch, .n_tokens = n_tokens, .stop = stop, .images_s = IMAGE_SECONDS};
    struct pd_chunk *chunk;
    PD_TRY(begin_chunk(&chunk, p, &order));
    if (chunk->pass.n_runs == 0) return PERIDOT_OK;
    PD_TRY(submit_chunk(p, chunk, &order));
    return complete_chunk(p, chunk);
}

/* ---- measuring ---- */

peridot_status pd_prefill_fill(struct pd_pass **out, struct pd_prefill *p, struct pd_sequence *q, uint32_t n)
{
    struct pd_pass *pass = *out = &p->chunks[p->next].pass;
    PD_TRY(pd_sequence_extend(q, q->pos + n));
    PD_TRY(pd_pass_begin(pass));
    int32_t *tokens = pass->input.tokens.host;
    for (uint32_t i = 0; i < n; i++)   /* different ones, which take different experts */
        tokens[i] = (int32_t)(i * 7919 % p->w->model->weights.vocab_size);
    const struct pd_run run = {.kind = PD_RUN_PROMPT, .sequence = q, .pos = q->pos, .n = n,
                               .ends = p->w->model->weights.n_outputs != 0};
    return pd_pass_add(pass, &run);
}
