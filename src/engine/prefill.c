#include "engine/prefill.h"

#include "base/num.h"
#include "base/os.h"
#include "engine/results.h"

#include <math.h>
#include <string.h>

#define PIECE_SECONDS 0.1    /* what a piece aims at */
#define FIRST_PIECE_CPU (1ull << 28)   /* multiplications: some 10 ms */
#define FIRST_PIECE_GPU (1ull << 32)

peridot_status pd_prefill_create(struct pd_prefill *p, struct pd_workspace *w, struct pd_stage *stage, uint32_t n_max)
{
    bool cpu = pd_gpu_info(w->model->gpu)->type == PERIDOT_DEVICE_CPU;
    const struct pd_recorder r = pd_workspace_recorder(w, NULL);
    *p = (struct pd_prefill){.w = w,
                             .stage = stage,
                             .n_max = n_max,
                             .pace = {.at_once = pd_op_matmul_tokens(&r)},
                             .cpu = cpu,
                             .piece_work = cpu ? FIRST_PIECE_CPU : FIRST_PIECE_GPU};
    p->mixes = !stage && w->n_sequences > 1 && w->model->config.head == PERIDOT_HEAD_LANGUAGE && pd_op_can_mix(&r);
    PD_TRY(pd_commands_create(&p->commands, w->model->gpu));
    for (int i = 0; i < 2; i++) {
        PD_TRY(pd_input_create(&p->chunks[i].input, w, n_max, (struct pd_span){0}));
        PD_TRY(pd_commands_create(&p->chunks[i].commands, w->model->gpu));
    }
    return PERIDOT_OK;
}

void pd_prefill_free(struct pd_prefill *p)
{
    pd_commands_free(p->commands);
    for (int i = 0; i < 2; i++) {
        pd_commands_free(p->chunks[i].commands);
        pd_input_free(&p->chunks[i].input);
    }
}

/* ---- sizes ---- */

uint64_t pd_next_piece(uint64_t most_work, double longest)
{
    return (uint64_t)fmin(fmax((double)most_work * PIECE_SECONDS / fmax(longest, 1e-6), 1), 1e18);
}

/* Of a token at the first position of the next chunk, of the prompt that has evaluated most. */
static double deepest_flop(const struct pd_prefill *p, const struct pd_prompt *prompts, uint32_t n)
{
    uint32_t pos = 0;
    for (uint32_t i = 0; i < n; i++)
        if (prompts[i].n_left) pos = (uint32_t)pd_max(pos, prompts[i].sequence->pos + prompts[i].n_in_flight);
    return pd_token_flop(p->w->model, pos, false);
}

uint32_t pd_prefill_next(const struct pd_prefill *p, const struct pd_prompt *prompts, uint32_t n,
                         enum pd_waiting waiting)
{
    double token = deepest_flop(p, prompts, n);
    uint32_t n_tokens = p->n_max;
    if (waiting == PD_OTHERS_WAIT) n_tokens = pd_next_shared_chunk(&p->pace, token);
    else if (!p->cpu || waiting == PD_OTHERS_MAY_COME) n_tokens = pd_next_chunk(&p->pace, token);
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

/* The next tokens of sequences that decode. */
static void fill_decode(struct pd_prefill *p, struct pd_chunk *chunk, const struct pd_batch *b)
{
    for (uint32_t i = 0; i < b->n_rows; i++) {
        const struct pd_sequence *q = b->rows[i].sequence;
        pd_input_write(&chunk->input, p->w, i, &q->pages, q->pos);
        ((int32_t *)chunk->input.tokens.host)[i] = b->rows[i].token;
    }
    if (b->n_rows) pd_input_write_grids(&chunk->input, p->w, b->n_rows);
    chunk->n_rows = chunk->n_decode = b->n_rows;
    chunk->flop = step_flop(p, b);
}

/* The next tokens of prompts, until the chunk is full. */
static peridot_status fill(struct pd_prefill *p, struct pd_chunk *chunk, struct pd_prompt *prompts, uint32_t n,
                           bool whole)
{
    chunk->n_parts = 0;
    for (uint32_t i = 0; i < n && chunk->n_rows < chunk->planned && chunk->n_parts < PD_MAX_SEQUENCES; i++) {
        struct pd_prompt *prompt = &prompts[i];
        struct pd_sequence *q = prompt->sequence;
        uint32_t n_part = (uint32_t)pd_min(chunk->planned - chunk->n_rows, prompt->n_left),
                 pos = q->pos + prompt->n_in_flight;
        if (prompt->n_left < (whole ? 1 : 2)) continue;
        peridot_status status = pd_sequence_extend(q, pos + n_part);
        if (status == PERIDOT_ERROR_MEMORY && chunk->n_parts) break;
        PD_TRY(status);
        for (uint32_t m = 0; m < n_part; m++)
            pd_input_write(&chunk->input, p->w, chunk->n_rows + m, &q->pages, pos + m);
        memcpy((int32_t *)chunk->input.tokens.host + chunk->n_rows, prompt->tokens, n_part * sizeof *prompt->tokens);
        chunk->parts[chunk->n_parts++] =
            (struct pd_chunk_part){prompt, chunk->n_rows, n_part, n_part == prompt->n_left};
        chunk->n_rows += n_part;
        chunk->flop += n_part * pd_token_flop(p->w->model, pos + n_part / 2, false);
    }
    return PERIDOT_OK;
}

/* The rows at the ends of prompts, and the last position of the chunk, and one. */
static void find_heads(struct pd_chunk *chunk, bool head)
{
    chunk->n_heads = chunk->n_keys = 0;
    for (uint32_t i = 0; i < chunk->n_parts; i++) {
        const struct pd_chunk_part *part = &chunk->parts[i];
        const struct pd_prompt *prompt = part->prompt;
        chunk->n_keys = (uint32_t)pd_max(chunk->n_keys, prompt->sequence->pos + prompt->n_in_flight + part->n);
        if (head && part->ends)
            chunk->heads[chunk->n_heads++] =
                (struct pd_head_row){part->row + part->n - 1, pd_own_row(prompt->sequence)};
    }
}

/* piece_work: see pd_recorder. */
static peridot_status record(struct pd_prefill *p, struct pd_commands *commands, struct pd_chunk *chunk,
                             uint64_t piece_work)
{
    struct pd_workspace *w = p->w;
    struct pd_recorder r = pd_workspace_recorder(w, commands);
    struct pd_forward_args pass = pd_workspace_forward_args(w, &chunk->input, &r, chunk->n_rows);
    r.piece_work = piece_work;
    pass.n_decode = chunk->n_decode;
    pass.n_keys = chunk->n_keys;
    PD_TRY(pd_commands_begin(commands));
    pd_forward(&pass, NULL);
    chunk->most_work = r.most_work;
    if (chunk->n_decode) {
        uint32_t decoded = pd_decoded_row(w, 0);
        pd_forward_head(&pass, pd_rows_at(w->logits, decoded, 0), 0, chunk->n_decode);
        pd_workspace_select(w, &r, decoded, chunk->n_decode, pd_best_address(w, decoded));
    }
    for (uint32_t i = 0; w->model->weights.has_output && i < chunk->n_heads; i++) {
        uint32_t own = chunk->heads[i].logits_row;
        pd_forward_head(&pass, pd_rows_at(w->logits, own, 0), chunk->heads[i].row, 1);
        pd_workspace_select(w, &r, own, 1, pd_best_address(w, own));
    }
    peridot_status status = pd_commands_end(commands);
    return r.status != PERIDOT_OK ? r.status : status;
}

static bool has_head(const struct pd_prefill *p, const struct pd_row_wishes *wishes)
{
    return p->w->model->weights.n_outputs && !wishes->no_head;
}

/* ---- pieces ---- */

static peridot_status submit_piece(struct pd_chunk *chunk)
{
    chunk->begun = pd_now();
    return pd_commands_submit_piece(chunk->commands, chunk->n_submitted++);
}

/* For the one that was submitted last. */
static peridot_status wait_for_piece(struct pd_prefill *p, struct pd_chunk *chunk)
{
    PD_TRY(pd_commands_wait(chunk->commands));
    double begun = fmax(chunk->begun, p->done);
    p->done = pd_now();
    chunk->seconds += p->done - begun;
    chunk->longest = fmax(chunk->longest, p->done - begun);
    return PERIDOT_OK;
}

/* n_more tokens are done of those that are left. */
static peridot_status report_progress(const struct pd_prompt *prompts, uint32_t n, const struct pd_row_wishes *wishes,
                                      uint64_t n_more)
{
    uint64_t n_left = 0;
    for (uint32_t i = 0; i < n; i++) n_left += prompts[i].n_left + prompts[i].n_in_flight;
    if (!wishes->progress || wishes->progress(wishes->user, wishes->n_total - n_left + n_more, wishes->n_total))
        return PERIDOT_OK;
    return pd_fail(PERIDOT_CANCELLED, "stopped by the caller within a prompt");
}

peridot_status pd_report_progress(const struct pd_prompt *prompts, uint32_t n, const struct pd_row_wishes *wishes)
{
    return report_progress(prompts, n, wishes, 0);
}

/* The first piece of the next chunk, which has n_tokens of prompts at most. */
static peridot_status begin_chunk(struct pd_chunk **out, struct pd_prefill *p, const struct pd_batch *b,
                                  const struct pd_row_wishes *wishes, uint32_t n_tokens)
{
    struct pd_chunk *chunk = *out = &p->chunks[p->next];
    chunk->planned = b->n_rows + n_tokens;
    chunk->n_submitted = 0;
    chunk->seconds = chunk->longest = 0;
    fill_decode(p, chunk, b);
    PD_TRY(fill(p, chunk, b->prompts, b->n_prompts, wishes->whole));
    find_heads(chunk, has_head(p, wishes));
    PD_TRY(record(p, chunk->commands, chunk, p->piece_work));
    return submit_piece(chunk);
}

/* The other pieces, each when the one before it is done. The last one is then at work. */
static peridot_status submit_chunk(struct pd_prefill *p, struct pd_chunk *chunk, struct pd_prompt *prompts, uint32_t n,
                                   const struct pd_row_wishes *wishes, const atomic_bool *stop)
{
    uint32_t n_pieces = pd_commands_n_pieces(chunk->commands);
    while (chunk->n_submitted < n_pieces) {
        PD_TRY(wait_for_piece(p, chunk));
        PD_TRY(report_progress(prompts, n, wishes, (uint64_t)chunk->n_rows * chunk->n_submitted / n_pieces));
        if (*stop) return pd_fail(PERIDOT_CANCELLED, "stopped within a prompt");
        PD_TRY(submit_piece(chunk));
    }
    p->next ^= 1;
    for (uint32_t i = 0; i < chunk->n_parts; i++) {
        struct pd_chunk_part *part = &chunk->parts[i];
        part->prompt->tokens += part->n;
        part->prompt->n_left -= part->n;
        part->prompt->n_in_flight += part->n;
    }
    return PERIDOT_OK;
}

/* ---- rows that callers want ---- */

/* Rows that were read to the host, of positions from pos on. */
struct host_rows {
    const char *what;    /* they are */
    pd_row_call call;
    uint32_t pos, n, width;
};

static peridot_status report(struct pd_workspace *w, const struct host_rows *r, struct pd_sequence *q, void *user)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const float *row = w->host_rows + (size_t)i * r->width;
        PD_TRY(pd_check_finite(w->model, r->what, r->pos + i, row, r->width));
        if (!r->call(user, q, r->pos + i, row, r->width))
            return pd_fail(PERIDOT_CANCELLED, "stopped by the caller at position %u", r->pos + i);
    }
    return PERIDOT_OK;
}

peridot_status pd_report_hidden(struct pd_workspace *w, const struct pd_row_wishes *wishes, struct pd_sequence *q,
                                uint32_t pos, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0, some; wishes->hidden && i < n; i += some) {
        some = (uint32_t)pd_min(PD_LOGITS_ROWS, n - i);
        PD_TRY(pd_workspace_read_hidden(w, first + i, some));
        const struct host_rows r = {"hidden states", wishes->hidden, pos + i, some, w->model->config.d_model};
        PD_TRY(report(w, &r, q, wishes->user));
    }
    return PERIDOT_OK;
}

peridot_status pd_report_logits(struct pd_workspace *w, const struct pd_row_wishes *wishes, struct pd_sequence *q,
                                uint32_t pos, uint32_t first, uint32_t n)
{
    if (!wishes->logits || n == 0) return PERIDOT_OK;
    PD_TRY(pd_workspace_read_logits(w, first, n));
    const struct host_rows r = {"logits", wishes->logits, pos, n, w->model->weights.n_outputs};
    return report(w, &r, q, wishes->user);
}

/* They are in the scratch still. */
peridot_status pd_prefill_logits(struct pd_prefill *p, const struct pd_input *in, uint32_t row, uint32_t n)
{
    if (!p->w->model->weights.has_output) return pd_link_tell(p->w->model->link, PD_OP_HEAD, row, n, 0);
    struct pd_recorder r = pd_workspace_recorder(p->w, p->commands);
    struct pd_forward_args pass = pd_workspace_forward_args(p->w, in, &r, n);
    PD_TRY(pd_commands_begin(p->commands));
    pd_forward_head(&pass, pd_rows_at(p->w->logits, pd_spare_row(p->w), 0), row, n);
    peridot_status status = pd_commands_end(p->commands);
    PD_TRY(r.status != PERIDOT_OK ? r.status : status);
    return pd_commands_run(p->commands);
}

/* The row of a prompt's last token is the result that is there already: callers see the very numbers that are sampled
 * from. */
static peridot_status report_part(struct pd_prefill *p, const struct pd_chunk *chunk, const struct pd_chunk_part *part,
                                  const struct pd_row_wishes *wishes)
{
    struct pd_sequence *q = part->prompt->sequence;
    uint32_t pos = q->pos - part->n, skip = wishes->first > pos ? wishes->first - pos : 0;
    if (wishes->last) skip = part->ends ? part->n - 1 : part->n;
    if (skip >= part->n) return PERIDOT_OK;
    PD_TRY(pd_report_hidden(p->w, wishes, q, pos + skip, part->row + skip, part->n - skip));
    uint32_t n_computed = part->n - (part->ends ? 1 : 0);
    for (uint32_t i = skip, some; wishes->logits && i < n_computed; i += some) {
        some = (uint32_t)pd_min(PD_LOGITS_ROWS, n_computed - i);
        PD_TRY(pd_prefill_logits(p, &chunk->input, part->row + i, some));
        PD_TRY(pd_report_logits(p->w, wishes, q, pos + i, pd_spare_row(p->w), some));
    }
    return part->ends ? pd_report_logits(p->w, wishes, q, q->pos - 1, pd_own_row(q), 1) : PERIDOT_OK;
}

/* ---- running ---- */

/* After the last piece of a chunk. */
static void adjust_pieces(struct pd_prefill *p, const struct pd_chunk *chunk)
{
    if (chunk->n_rows == chunk->planned || chunk->longest > PIECE_SECONDS)
        p->piece_work = pd_next_piece(chunk->most_work, chunk->longest);
}

/* The other ranks' part of a chunk, for which this one waits where it has results. */
static peridot_status run_elsewhere(struct pd_prefill *p, const struct pd_chunk *chunk)
{
    struct pd_candidate best[PD_MAX_SEQUENCES][PD_TOPK];
    struct pd_reply reply;
    const struct pd_stage_pass pass = {.in = &chunk->input,
                                       .heads = chunk->heads,
                                       .n_rows = chunk->n_rows,
                                       .n_heads = chunk->n_heads,
                                       .n_keys = chunk->n_keys};
    PD_TRY(pd_stage_send(p->stage, &pass, &reply, best));
    if (chunk->n_heads == 0) return PERIDOT_OK;
    PD_TRY(pd_link_wait(p->w->model->link, &reply));
    for (uint32_t i = 0; i < chunk->n_heads; i++)
        memcpy(pd_best_of(p->w, chunk->heads[i].logits_row), best[i], sizeof best[i]);
    return PERIDOT_OK;
}

peridot_status pd_prefill_replay(struct pd_prefill *p, struct pd_chunk *chunk)
{
    chunk->planned = chunk->n_rows;
    chunk->n_submitted = 0;
    chunk->seconds = chunk->longest = 0;
    PD_TRY(record(p, chunk->commands, chunk, p->piece_work));
    while (chunk->n_submitted < pd_commands_n_pieces(chunk->commands)) {
        PD_TRY(submit_piece(chunk));
        PD_TRY(wait_for_piece(p, chunk));
    }
    adjust_pieces(p, chunk);
    return PERIDOT_OK;
}

/* The chunk's tokens become their sequences'. */
static peridot_status finish(struct pd_prefill *p, struct pd_chunk *chunk, const struct pd_row_wishes *wishes)
{
    PD_TRY(wait_for_piece(p, chunk));
    pd_pace_took(&p->pace, chunk->n_rows, chunk->flop, chunk->seconds);
    adjust_pieces(p, chunk);
    if (p->stage) PD_TRY(run_elsewhere(p, chunk));
    for (uint32_t i = 0; i < chunk->n_parts; i++) {
        const struct pd_chunk_part *part = &chunk->parts[i];
        struct pd_sequence *q = part->prompt->sequence;
        pd_sequence_append(q, (const int32_t *)chunk->input.tokens.host + part->row, part->n);
        part->prompt->n_in_flight -= part->n;
        q->logits = part->ends && has_head(p, wishes) ? PD_LOGITS_OWN : PD_LOGITS_NONE;
        if (q->logits) memcpy(q->best, pd_best_of(p->w, pd_own_row(q)), sizeof q->best);
    }
    return PERIDOT_OK;
}

static peridot_status report_chunk(struct pd_prefill *p, const struct pd_chunk *chunk,
                                   const struct pd_row_wishes *wishes)
{
    for (uint32_t i = 0; i < chunk->n_parts; i++) PD_TRY(report_part(p, chunk, &chunk->parts[i], wishes));
    return PERIDOT_OK;
}

bool pd_prefill_pending(const struct pd_prompt *prompts, uint32_t n, bool whole)
{
    for (uint32_t i = 0; i < n; i++)
        if (prompts[i].n_left > (whole ? 0 : 1)) return true;
    return false;
}

peridot_status pd_prefill_run(struct pd_prefill *p, struct pd_prompt *prompts, uint32_t n,
                              const struct pd_row_wishes *wishes, const atomic_bool *stop)
{
    bool reports = wishes->logits || wishes->hidden;
    struct pd_chunk *flying = NULL;
    peridot_status status = PERIDOT_OK;
    const struct pd_batch all = {.prompts = prompts, .n_prompts = n};
    uint32_t n_tokens;
    while (status == PERIDOT_OK && (n_tokens = pd_prefill_next(p, prompts, n, PD_NOBODY_WAITS)) > 1
           && pd_prefill_pending(prompts, n, wishes->whole)) {
        struct pd_chunk *chunk;
        status = pd_report_progress(prompts, n, wishes);
        if (*stop) status = pd_fail(PERIDOT_CANCELLED, "stopped between the chunks of a prompt");
        if (status == PERIDOT_OK) status = begin_chunk(&chunk, p, &all, wishes, n_tokens);
        if (status != PERIDOT_OK) break;
        if (flying) status = finish(p, flying, wishes);
        flying = NULL;
        if (status == PERIDOT_OK) status = submit_chunk(p, chunk, prompts, n, wishes, stop);
        if (status != PERIDOT_OK) break;
        flying = chunk;
        if (!reports && !p->cpu) continue;
        flying = NULL;   /* its rows are in the scratch until the next one */
        status = finish(p, chunk, wishes);
        if (status == PERIDOT_OK) status = report_chunk(p, chunk, wishes);
    }
    if (!flying) return status;
    peridot_status last = finish(p, flying, wishes);   /* whatever went wrong after it: it stands */
    return status == PERIDOT_OK ? last : status;
}

peridot_status pd_prefill_step(struct pd_prefill *p, const struct pd_batch *b, uint32_t n_tokens,
                               const atomic_bool *stop)
{
    static const struct pd_row_wishes none = {.whole = true};
    struct pd_chunk *chunk;
    PD_TRY(begin_chunk(&chunk, p, b, &none, n_tokens));
    PD_TRY(submit_chunk(p, chunk, b->prompts, b->n_prompts, &none, stop));
    return finish(p, chunk, &none);
}

/* ---- measuring ---- */

peridot_status pd_prefill_measure(struct pd_prefill *p, struct pd_commands *commands, struct pd_sequence *q, uint32_t n)
{
    struct pd_chunk *chunk = &p->chunks[p->next];
    struct pd_prompt prompt = {.sequence = q};
    PD_TRY(pd_sequence_extend(q, q->pos + n));
    for (uint32_t m = 0; m < n; m++) {
        pd_input_write(&chunk->input, p->w, m, &q->pages, q->pos + m);
        ((int32_t *)chunk->input.tokens.host)[m] = 0;
    }
    *chunk = (struct pd_chunk){.commands = chunk->commands,
                               .input = chunk->input,
                               .parts = {{&prompt, 0, n, true}},
                               .n_parts = 1,
                               .n_rows = n};
    q->logits = PD_LOGITS_NONE;   /* its row is overwritten */
    find_heads(chunk, p->w->model->weights.n_outputs != 0);
    PD_TRY(record(p, commands, chunk, 0));
    PD_TRY(pd_commands_run(commands));
    return pd_commands_run(commands);
}
