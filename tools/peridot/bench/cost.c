/* What a token costs, whoever computes it, as the engine counts it. */
#include "bench.h"

double bench_flop_of(const peridot_session *session, const struct bench_test *t)
{
    uint32_t begin = t->depth + t->generation;
    double sum = 0;
    for (uint32_t i = 0; i < t->n_tokens; i++)   /* of a prompt only the last one's logits are computed */
        sum += peridot_session_token_flop(session, begin + i, t->generation || i + 1 == t->n_tokens);
    return sum;
}
