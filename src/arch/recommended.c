/* How the publisher of a model would have it drawn from: general.sampling.* of a GGUF file, by llama.cpp's names, or
 * generation_config.json of a Hugging Face directory. Untrusted input: what is out of range recommends nothing. */
#include "arch/arch.h"

#include "base/base.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define GGUF_KEY "general.sampling."
#define HF_FILE "generation_config.json"

struct member {
    uint32_t bit;
    size_t offset;             /* in peridot_sampling: of a float, but for top_k */
    const char *gguf, *hf;     /* NULL: it has no such key */
    double min, max;
};

#define AT(name) offsetof(peridot_sampling, name)

/* A top_k of -1 is 0, which is all. */
static const struct member members[] = {
    {PERIDOT_RECOMMENDED_TEMPERATURE, AT(temperature), GGUF_KEY "temp", "temperature", 0, 100},
    {PERIDOT_RECOMMENDED_TOP_K, AT(top_k), GGUF_KEY "top_k", "top_k", -1, 1e9},
    {PERIDOT_RECOMMENDED_TOP_P, AT(top_p), GGUF_KEY "top_p", "top_p", 0, 1},
    {PERIDOT_RECOMMENDED_MIN_P, AT(min_p), GGUF_KEY "min_p", "min_p", 0, 1},
    {PERIDOT_RECOMMENDED_REPEAT_PENALTY, AT(repeat_penalty), GGUF_KEY "penalty_repeat", "repetition_penalty", 0, 100},
    {PERIDOT_RECOMMENDED_XTC_PROBABILITY, AT(xtc_probability), GGUF_KEY "xtc_probability", NULL, 0, 1},
    {PERIDOT_RECOMMENDED_XTC_THRESHOLD, AT(xtc_threshold), GGUF_KEY "xtc_threshold", NULL, 0, 1}};

/* Whose only value here is this one. */
static const struct { const char *key; double value; } fixed[] = {
    {GGUF_KEY "mirostat", 0}, {GGUF_KEY "penalty_last_n", 64}};

static void ignore(struct pd_recommended *r, const char *key, const char *why)
{
    if (!r->ignored[0]) snprintf(r->ignored, sizeof r->ignored, "%s %s, and is ignored", key, why);
}

/* The number at `key`. */
static void recommended_take(struct pd_recommended *r, const struct member *m, const char *key, const double *number)
{
    char why[80];
    bool whole = m->bit == PERIDOT_RECOMMENDED_TOP_K;
    double x = number ? *number : NAN;
    snprintf(why, sizeof why, "is not a %snumber from %g to %g", whole ? "whole " : "", m->min, m->max);
    if (!(x >= m->min && x <= m->max) || (whole && x != floor(x))) {
        ignore(r, key, why);
        return;
    }
    void *at = (char *)&r->p + m->offset;
    if (whole) *(uint32_t *)at = (uint32_t)fmax(x, 0);
    else if (m->bit == PERIDOT_RECOMMENDED_TOP_P) *(float *)at = (float)fmax(x, 1e-6);   /* 0 would be all */
    else *(float *)at = (float)x;
    r->members |= m->bit;
}

static void read_gguf(struct pd_recommended *r, const struct pd_checkpoint *c)
{
    double x;
    for (size_t i = 0; i < PD_COUNT(members); i++) {
        const struct pd_meta *m = pd_checkpoint_find_meta(c, members[i].gguf);
        bool number = m && m->type != PD_META_ARRAY && pd_meta_float(&x, m, 0);
        if (m) recommended_take(r, &members[i], members[i].gguf, number ? &x : NULL);
    }
    for (size_t i = 0; i < PD_COUNT(fixed); i++) {
        const struct pd_meta *m = pd_checkpoint_find_meta(c, fixed[i].key);
        if (m && !(m->type != PD_META_ARRAY && pd_meta_float(&x, m, 0) && x == fixed[i].value))
            ignore(r, fixed[i].key, "is something else than this sampler has");
    }
    if (pd_checkpoint_find_meta(c, GGUF_KEY "sequence"))
        ignore(r, GGUF_KEY "sequence", "is an order of samplers, which is always the same here");
}

/* A file that is not JSON recommends nothing; who opens the tokenizer learns why. */
static peridot_status read_hf(struct pd_recommended *r, const struct pd_checkpoint *c)
{
    yyjson_doc *doc;
    peridot_status status = pd_json_open_optional(&doc, pd_checkpoint_path(c), HF_FILE);
    if (status == PERIDOT_ERROR_MEMORY) return status;
    if (status != PERIDOT_OK || !doc) return PERIDOT_OK;
    yyjson_val *root = yyjson_doc_get_root(doc), *samples = yyjson_obj_get(root, "do_sample");
    for (size_t i = 0; i < PD_COUNT(members); i++) {
        yyjson_val *v = members[i].hf ? yyjson_obj_get(root, members[i].hf) : NULL;
        char key[64];
        double x = yyjson_get_num(v);
        if (!v || yyjson_is_null(v)) continue;
        snprintf(key, sizeof key, HF_FILE ": %s", members[i].hf);
        recommended_take(r, &members[i], key, yyjson_is_num(v) ? &x : NULL);
    }
    if (samples && !yyjson_is_bool(samples) && !yyjson_is_null(samples))
        ignore(r, HF_FILE ": do_sample", "is neither true nor false");
    if (yyjson_is_false(samples)) {   /* the likeliest token each time, whatever else is said */
        r->p.temperature = 0;
        r->members |= PERIDOT_RECOMMENDED_TEMPERATURE;
    }
    yyjson_doc_free(doc);
    return PERIDOT_OK;
}

peridot_status pd_recommended_read(struct pd_recommended *out, const struct pd_checkpoint *c)
{
    *out = (struct pd_recommended){.members = 0};
    if (pd_checkpoint_kind(c) != PD_CHECKPOINT_GGUF) return read_hf(out, c);
    read_gguf(out, c);
    return PERIDOT_OK;
}

void pd_recommended_write(struct pd_gguf_writer *w, const struct pd_recommended *r)
{
    for (size_t i = 0; i < PD_COUNT(members); i++) {
        const void *at = (const char *)&r->p + members[i].offset;
        if (!(r->members & members[i].bit)) continue;
        if (members[i].bit == PERIDOT_RECOMMENDED_TOP_K)
            pd_gguf_writer_add_u32(w, members[i].gguf, *(const uint32_t *)at);
        else pd_gguf_writer_add_f32(w, members[i].gguf, *(const float *)at);
    }
}

/* A program that was built with an older header has a smaller struct. */
uint32_t pd_recommended_take(const struct pd_recommended *r, peridot_sampling *sampling, uint32_t keep,
                             const char **ignored)
{
    uint32_t taken = 0;
    size_t size = sampling->size ? sampling->size : sizeof *sampling;
    for (size_t i = 0; i < PD_COUNT(members); i++) {
        const struct member *m = &members[i];
        if (!(r->members & ~keep & m->bit) || m->offset + sizeof(float) > size) continue;
        memcpy((char *)sampling + m->offset, (const char *)&r->p + m->offset, sizeof(float));
        taken |= m->bit;
    }
    if (ignored) *ignored = r->ignored[0] ? r->ignored : NULL;
    return taken;
}
