/* A saved sequence. */
#include "sequence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_session *s = fuzz_session();
    struct pd_sequence *q;
    uint32_t n_free = fuzz_n_free_pages(s);
    if (fuzz_ok(pd_sequence_load(&q, &s->set, &s->model, fuzz_file("x.seq", data, size)))) {
        for (uint32_t i = 0; i < q->pos; i++) FUZZ_CHECK(q->tokens[i] >= 0 && q->tokens[i] < FUZZ_N_PIECES);
        for (uint32_t i = 0; q->logits != PD_LOGITS_NONE && i < PD_TOPK; i++) FUZZ_CHECK(q->best[i].id < FUZZ_N_PIECES);
        pd_sequence_free(q);
    }
    FUZZ_CHECK(fuzz_n_free_pages(s) == n_free);
    return 0;
}
