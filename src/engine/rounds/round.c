/* What sequences are to evaluate next: a decode step of some, with drafts or without, and a chunk of the prompts of
 * others. There is one kind of round, whoever fills it: all that a server has at work, one reply, an evaluation. It is
 * one pass where that is quicker, as prompts then share the steps' reading of the weights; else the steps come first,
 * since somebody waits for each of their tokens. What these mean is request.c's business.
 *
 * Gemma 3 1B Q8_0 on llvmpipe, a prompt of 300 tokens beside a stream: read in 32 s by passes of both, and in 53 s by
 * steps and chunks in turn; 27 of the stream's 109 tokens then took over 0.3 s, before 94 of 156. */
#include "engine/rounds/rounds.h"

#include "base/base.h"

#define ALONE_SECONDS 2.0    /* after others had a part of the rounds, more of them are expected */

/* Tokens of the chunk that share the steps' pass; 0: there is none. Steps that are queued, and drafts, have the device
 * to themselves. */
static uint32_t tokens_beside(const struct pd_session *s, const struct pd_round *round, const struct pd_batch *batch)
{
    bool can = round->n_steps && !round->may_draft && s->decoder.n_queued == 0 && !s->text_ended
        && pd_prefill_pending(round->chunk, round->n_chunk);
    return can ? pd_prefill_next_mixed(&s->prefill, batch) : 0;
}

static peridot_status run_steps(struct pd_round *round, struct pd_session *s)
{
    if (round->n_steps == 0) return PERIDOT_OK;
    if (round->n_drafted) return pd_decode_drafts(&s->decoder, round->drafts, round->n_steps);
    round->begun = pd_now();   /* a draft model may have read a part of the prompt before */
    PD_TRY(pd_decode_next(&s->decoder, round->steps, round->n_steps));
    s->prefill.pace.step = s->decoder.step_s;
    return PERIDOT_OK;
}

static peridot_status run_both(struct pd_round *round, struct pd_session *s, const struct pd_batch *batch,
                               uint32_t n_tokens)
{
    PD_TRY(pd_decoder_yield(&s->decoder));
    PD_TRY(pd_prefill_step(&s->prefill, batch, n_tokens, &s->cancelled));
    for (uint32_t i = 0; i < round->n_steps; i++) round->steps[i].advanced = true;
    return PERIDOT_OK;
}

static peridot_status run_chunk(struct pd_round *round, struct pd_session *s)
{
    const struct pd_batch batch = {.prompts = round->chunk, .n_prompts = round->n_chunk};
    bool is_alone = pd_now() - s->shared_at > ALONE_SECONDS;
    if (!pd_prefill_pending(round->chunk, round->n_chunk)) return PERIDOT_OK;
    if (round->whole && round->n_steps == 0)
        return pd_prefill_run(&s->prefill, round->chunk, round->n_chunk, &round->watch, &s->cancelled);
    uint32_t n_tokens = pd_prefill_next(&s->prefill, round->chunk, round->n_chunk,
                                        is_alone ? PD_CHUNK_INTERACTIVE : PD_CHUNK_SHARED);
    return pd_prefill_step(&s->prefill, &batch, n_tokens, &s->cancelled);
}

peridot_status pd_round_run(struct pd_round *round, struct pd_session *s)
{
    const struct pd_batch batch = {round->steps, round->chunk, round->n_steps, round->n_chunk};
    peridot_status status;
    if (round->n_steps + round->n_chunk > 1) s->shared_at = pd_now();
    if (round->done & PD_ROUND_STEPS) {
        round->did = PD_ROUND_CHUNK;
        status = run_chunk(round, s);
    } else {
        uint32_t n_tokens = tokens_beside(s, round, &batch);
        round->did = n_tokens ? PD_ROUND_STEPS | PD_ROUND_CHUNK : PD_ROUND_STEPS;
        status = n_tokens ? run_both(round, s, &batch, n_tokens) : run_steps(round, s);
    }
    round->done |= round->did;
    round->seconds = pd_now() - round->begun;
    return status;
}
