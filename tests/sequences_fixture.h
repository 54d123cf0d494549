/* What tests of sequences share: texts by number, and sessions that evaluate them. */
#ifndef SEQUENCES_FIXTURE_H
#define SEQUENCES_FIXTURE_H

#include "format_fixture.h"
#include "peridot_tools.h"

#include "api/api.h"
#include "base/base.h"
#include "gpu/gpu_.h"

enum { MAX_WIDTH = 4096, N_MOST = 64, N_STEPS = 12, CTX = 320 };

static inline int32_t token_of(uint32_t sequence, uint32_t pos)
{
    return pos == 0 ? 2 : (int32_t)((17 * sequence + 31 * pos) % 250);
}

/* Prompts below and beyond windows (12 and 16) and pages (64). */
static inline uint32_t length_of(uint32_t sequence)
{
    static const uint32_t lengths[] = {40, 1, 7, 33, 2, 23, 15, 17, 63, 64, 65, 130};
    return lengths[sequence % PD_COUNT(lengths)];
}

#define MODEL PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf"   /* windows of 16 */
#define SHORT_CONVS PERIDOT_GOLDEN "/dense/lfm2"
#define RECURRENT PERIDOT_GOLDEN "/dense/qwen35"   /* layers with recurrences, whose states have no windows */
#define GRANITE "tiny-granite4-h-moe"   /* a shape: likewise, by another rule, and experts */
#define AS_GPU "as a GPU"   /* no kernel is named, and those are taken that a GPU would get */

static inline peridot_model *open_model(const char *path, const char *kernel)
{
    peridot_model *model;
    if (kernel && strcmp(kernel, AS_GPU) == 0) {
        model = open_model(path, NULL);
        struct pd_model *m = &model->m;
        m->gpu->info.type = PERIDOT_DEVICE_DISCRETE;
        m->variants = pd_variants_default(pd_gpu_info(m->gpu));
        return model;
    }
    path = path_of(path);
    EXPECT_OK(
        peridot_model_open(&model, path, &(peridot_model_params){.kernels = &kernel, .n_kernels = kernel != NULL}));
    assert_true(peridot_model_get_info(model)->n_outputs <= MAX_WIDTH);
    return model;
}

static inline peridot_session *open_session(peridot_model *model, uint32_t n, peridot_kv_type kv)
{
    peridot_session *s;
    peridot_session_params params = {.ctx = CTX, .chunk = 16, .kv_type = kv, .n_sequences = n};
    EXPECT_OK(peridot_session_create(&s, model, &params));
    return s;
}

static inline peridot_sequence *add(peridot_session *s)
{
    peridot_sequence *q;
    EXPECT_OK(peridot_sequence_create(&q, s));
    return q;
}

/* Tokens [from, to) of a text. */
static inline void eval(peridot_sequence *q, uint32_t text, uint32_t from, uint32_t to)
{
    int32_t tokens[CTX];
    for (uint32_t i = from; i < to; i++) tokens[i - from] = token_of(text, i);
    EXPECT_OK(peridot_sequence_eval(q, tokens, to - from, NULL));
}

static inline void eval_prompt(peridot_sequence *q, uint32_t text) { eval(q, text, 0, length_of(text)); }

static inline void copy_logits(float *out, peridot_sequence *q, size_t n)
{
    const float *logits;
    EXPECT_OK(peridot_logits(&logits, q));
    memcpy(out, logits, n * sizeof *out);
}

static inline struct pd_cache *cache_of(peridot_session *s) { return &s->s->set.cache; }

static inline int remove_folder(void **state)
{
    remove(in_folder("made.gguf"));
    (void)state;
    return rmdir(folder);
}

#endif
