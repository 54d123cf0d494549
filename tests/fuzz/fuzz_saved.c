/* A saved sequence. */
#include "sequence.h"

#include "base/base.h"

/* The larger of two draws with the saved chain: the second sees what the first did to the candidates. */
static uint32_t draw(struct pd_sequence *q)
{
    int32_t token = pd_sampler_draw(&q->sampler, q->best, PD_TOPK);
    pd_sampler_accept(&q->sampler, token);
    return (uint32_t)pd_max(token, pd_sampler_draw(&q->sampler, q->best, PD_TOPK));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_session *s = fuzz_session();
    struct pd_sequence *q;
    uint32_t n_free = fuzz_n_free_pages(s);
    if (fuzz_ok(pd_sequence_load(&q, &s->set, &s->model, fuzz_file("x.seq", data, size)))) {
        for (uint32_t i = 0; i < q->pos; i++)
            FUZZ_CHECK(pd_is_image_row(q->tokens[i]) || (q->tokens[i] >= 0 && q->tokens[i] < FUZZ_N_PIECES));
        if (q->logits_pass) FUZZ_CHECK(draw(q) < FUZZ_N_PIECES);
        pd_sequence_free(q);
    }
    FUZZ_CHECK(fuzz_n_free_pages(s) == n_free);
    return 0;
}
