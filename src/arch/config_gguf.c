/* A config from GGUF metadata. Keys are "ARCHITECTURE.NAME"; defaults are llama.cpp's where files may lack a key. */
#include "arch/config.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct reader {
    const struct pd_checkpoint *checkpoint;
    const char *architecture;
    peridot_status status;   /* of the first failure */
};

static const struct pd_meta *find(const struct reader *r, const char *name, char key[128])
{
    snprintf(key, 128, "%s.%s", r->architecture, name);
    return pd_checkpoint_find_meta(r->checkpoint, key);
}

static uint32_t read_uint(struct reader *r, const char *name, int64_t fallback)
{
    char key[128];
    const struct pd_meta *m = find(r, name, key);
    uint64_t value = 0;
    if (!m && fallback < 0) r->status = pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is missing", key);
    if (!m) return (uint32_t)fallback;
    /* Some keys may hold one value per layer; these families have the same in all. */
    for (uint64_t i = 0; i < m->n; i++) {
        uint64_t v;
        if (!pd_meta_uint(&v, m, i) || v > UINT32_MAX)
            r->status = pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is not a count", key);
        else if (i > 0 && v != value)
            r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "metadata key %s differs from layer to layer", key);
        else value = v;
        if (r->status != PERIDOT_OK) return 0;
    }
    return (uint32_t)value;
}

static double read_float(struct reader *r, const char *name, double fallback)
{
    char key[128];
    const struct pd_meta *m = find(r, name, key);
    double value = fallback;
    if (!m && isnan(fallback)) r->status = pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is missing", key);
    else if (m && !pd_meta_float(&value, m, 0)) r->status = pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is not a number", key);
    return value;
}

/* The divisor of positions in global layers: only linear scaling is known for these families. */
static double read_rope_divisor(struct reader *r)
{
    char key[128];
    const struct pd_meta *m = find(r, "rope.scaling.type", key);
    struct pd_string type;
    if (m && pd_meta_string(&type, m, 0)) {
        if (type.size == 4 && memcmp(type.data, "none", 4) == 0) return 1;
        if (type.size != 6 || memcmp(type.data, "linear", 6) != 0)
            r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "metadata key %s is \"%.*s\": only \"linear\" is known for %s", key,
                                (int)pd_min(type.size, 64), type.data, r->architecture);
    }
    return read_float(r, "rope.scaling.factor", 1);
}

static peridot_status read_pattern(struct reader *r, struct pd_config *out)
{
    char key[128];
    const struct pd_meta *m = find(r, "attention.sliding_window_pattern", key);
    uint64_t pattern = pd_families[out->family].window_pattern;
    if (m && m->type != PD_META_ARRAY && (!pd_meta_uint(&pattern, m, 0) || pattern > UINT32_MAX))
        return pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is not a count", key);
    PD_TRY(pd_config_set_pattern(out, (uint32_t)pattern));
    if (!m || m->type != PD_META_ARRAY) return PERIDOT_OK;
    if (m->n != out->n_layers)
        return pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s has %llu entries for %u layers", key, (unsigned long long)m->n, out->n_layers);
    for (uint32_t i = 0; i < out->n_layers; i++) {
        bool local;
        if (!pd_meta_bool(&local, m, i)) return pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is not an array of booleans", key);
        pd_config_set_local(out, i, local);
    }
    return PERIDOT_OK;
}

static peridot_status find_family(struct pd_config *out, const struct pd_checkpoint *c)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(c, "general.architecture");
    struct pd_string name;
    if (!m || !pd_meta_string(&name, m, 0)) return pd_fail(PERIDOT_ERROR_FORMAT, "metadata key general.architecture is missing");
    for (int i = 0; i < PD_N_FAMILIES; i++) {
        if (strlen(pd_families[i].name) != name.size || memcmp(pd_families[i].name, name.data, name.size) != 0) continue;
        out->family = (enum pd_family)i;
        return PERIDOT_OK;
    }
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "architecture \"%.*s\" is not known (known: gemma, gemma2, gemma3, llama)",
                   (int)pd_min(name.size, 64), name.data);
}

float pd_config_usual_scale(const struct pd_config *config)
{
    uint32_t depth = pd_families[config->family].n_layers_27b;
    bool is_27b = depth && config->n_layers == depth && config->n_heads;
    return (float)(1 / sqrt((double)(is_27b ? config->d_model / config->n_heads : config->head_dim)));
}

peridot_status pd_config_read_gguf(struct pd_config *out, const struct pd_checkpoint *c)
{
    PD_TRY(find_family(out, c));
    const struct pd_family_traits *family = &pd_families[out->family];
    struct reader r = {.checkpoint = c, .architecture = family->name};
    struct pd_string name;
    const struct pd_meta *m = pd_checkpoint_find_meta(c, "general.name");
    if (m && pd_meta_string(&name, m, 0)) snprintf(out->name, sizeof out->name, "%.*s", (int)pd_min(name.size, 127), name.data);

    out->n_layers = read_uint(&r, "block_count", -1);
    out->d_model = read_uint(&r, "embedding_length", -1);
    out->ffn_dim = read_uint(&r, "feed_forward_length", -1);
    out->n_heads = read_uint(&r, "attention.head_count", -1);
    out->n_kv_heads = read_uint(&r, "attention.head_count_kv", out->n_heads);
    out->head_dim = read_uint(&r, "attention.key_length", out->n_heads ? out->d_model / out->n_heads : 0);
    out->ctx_max = read_uint(&r, "context_length", -1);
    out->eps = (float)read_float(&r, "attention.layer_norm_rms_epsilon", NAN);
    uint32_t v_dim = read_uint(&r, "attention.value_length", out->head_dim);
    if (family->window_pattern) out->window = read_uint(&r, "attention.sliding_window", out->family == PD_GEMMA2 ? 4096 : -1);
    out->attn_softcap = (float)read_float(&r, "attn_logit_softcapping", family->attn_softcap);
    out->final_softcap = (float)read_float(&r, "final_logit_softcapping", family->final_softcap);
    double base = read_float(&r, "rope.freq_base", family->rope_base);
    out->ropes[PD_ROPE_GLOBAL] = (struct pd_rope){.base = base, .divisor = read_rope_divisor(&r)};
    /* Gemma 2's local layers rotate like its global ones; Gemma 3's have a base of their own and no divisor. */
    double local = out->family == PD_GEMMA3 ? read_float(&r, "rope.freq_base_swa", family->rope_base_local) : base;
    out->ropes[PD_ROPE_LOCAL] = (struct pd_rope){.base = local, .divisor = out->family == PD_GEMMA3 ? 1 : out->ropes[PD_ROPE_GLOBAL].divisor};
    uint32_t rotated = read_uint(&r, "rope.dimension_count", out->head_dim), n_experts = read_uint(&r, "expert_count", 0);
    PD_TRY(r.status);
    if (rotated != out->head_dim)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%u of %u columns per head are rotated: only all are supported", rotated, out->head_dim);
    if (n_experts) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "a mixture of %u experts is not supported", n_experts);
    if (v_dim != out->head_dim)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "keys have %u columns per head and values %u", out->head_dim, v_dim);

    out->query_scale = (float)read_float(&r, "attention.scale", (double)pd_config_usual_scale(out));
    PD_TRY(r.status);
    out->tied = pd_checkpoint_find(c, "output.weight") == NULL;
    return read_pattern(&r, out);
}
