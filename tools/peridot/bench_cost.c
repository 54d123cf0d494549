/* What a token costs: arithmetic, and what has to be read. */
#include "bench.h"

#include <string.h>

/* Layers that see only the window: every other one of Gemma 2, five of six of Gemma 3. */
static uint32_t n_local_layers(const peridot_model_info *m)
{
    if (m->window == 0) return 0;
    return strcmp(m->family, "gemma3") == 0 ? m->n_layers - m->n_layers / 6 : (m->n_layers + 1) / 2;
}

/* Multiplications and additions of attention for a token at `pos`: scores and weighted values, 2 each for every key. */
static double attention_flop(const peridot_model_info *m, uint32_t pos)
{
    uint32_t n_local = n_local_layers(m);
    double keys = (double)pos + 1, near = m->window ? (double)cmd_min((uint64_t)pos + 1, m->window) : keys;
    return 4.0 * m->n_heads * m->head_dim * (n_local * near + (m->n_layers - n_local) * keys);
}

/* Of the layers' matrices for one token: the embedding is only looked up. */
static double matrix_flop(const peridot_model_info *m)
{
    double heads = 2.0 * m->n_heads + 2.0 * m->n_kv_heads, d = m->d_model;
    return 2 * (double)m->n_layers * d * (heads * m->head_dim + 3.0 * m->ffn_dim);
}

double bench_flop_of(const peridot_model_info *m, const struct bench_test *t)
{
    uint32_t begin = t->depth + t->generation;
    double sum = (t->generation ? t->n_tokens : 1.0) * 2 * m->n_outputs * m->d_model;
    for (uint32_t i = 0; i < t->n_tokens; i++) sum += matrix_flop(m) + attention_flop(m, begin + i);
    return sum;
}

double bench_bytes_of_step(const peridot_model_info *m, uint32_t n_sequences, uint32_t pos, uint32_t kv)
{
    uint32_t n_local = n_local_layers(m);
    double keys = (double)pos + 1, near = m->window ? (double)cmd_min((uint64_t)pos + 1, m->window) : keys;
    double row = 2.0 * m->n_kv_heads * m->head_dim * (kv == PERIDOT_KV_F16 ? 2 : 4);
    return (double)m->decode_read_size + n_sequences * row * (n_local * near + (m->n_layers - n_local) * keys);
}
