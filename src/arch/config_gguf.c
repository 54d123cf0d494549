/* A config from GGUF metadata. Keys are "ARCHITECTURE.NAME"; defaults are llama.cpp's where files may lack a key. */
#include "arch/config_readers.h"
#include "arch/layers.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct reader {
    const struct pd_checkpoint *checkpoint;
    const char *architecture;
    uint32_t n_layers;       /* 0: not known yet */
    peridot_status status;   /* of the last failure */
};

static const struct pd_meta *find(const struct reader *r, const char *name, char key[128])
{
    snprintf(key, 128, "%s.%s", r->architecture, name);
    return pd_checkpoint_find_meta(r->checkpoint, key);
}

/* Of an array with one value per layer, that of layer i; else the one value. */
static uint32_t read_layer_uint(struct reader *r, const char *name, uint32_t i, int64_t fallback)
{
    char key[128];
    const struct pd_meta *m = find(r, name, key);
    uint64_t value = 0;
    bool is_array = m && m->type == PD_META_ARRAY;
    if (!m && fallback >= 0) return (uint32_t)fallback;
    if (!m) r->status = pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is missing", key);
    else if (is_array && m->n != r->n_layers)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s has %llu entries for %u layers", key,
                            (unsigned long long)m->n, r->n_layers);
    else if (!pd_meta_uint(&value, m, is_array ? i : 0) || value > UINT32_MAX)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is not a count", key);
    return r->status == PERIDOT_OK ? (uint32_t)value : 0;
}

static uint32_t read_uint(struct reader *r, const char *name, int64_t fallback)
{
    return read_layer_uint(r, name, 0, fallback);
}

static double read_float(struct reader *r, const char *name, double fallback)
{
    char key[128];
    const struct pd_meta *m = find(r, name, key);
    double value = fallback;
    if (!m && isnan(fallback)) r->status = pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is missing", key);
    else if (m && !pd_meta_float(&value, m, 0))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is not a number", key);
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
            r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                                "metadata key %s is \"%.*s\": only \"linear\" is known for %s", key,
                                (int)pd_min(type.size, 64), type.data, r->architecture);
    }
    return read_float(r, "rope.scaling.factor", 1);
}

/* Which layers have a window: by an array, or all but every n-th. */
static peridot_status read_pattern(struct reader *r, struct pd_config *out)
{
    char key[128];
    const struct pd_meta *m = find(r, "attention.sliding_window_pattern", key);
    bool is_array = m && m->type == PD_META_ARRAY;
    uint64_t pattern = pd_families[out->family].window_pattern;
    if (m && !is_array && (!pd_meta_uint(&pattern, m, 0) || pattern > UINT32_MAX))
        return pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is not a count", key);
    if (is_array && m->n != out->n_layers)
        return pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s has %llu entries for %u layers", key,
                       (unsigned long long)m->n, out->n_layers);
    for (uint32_t i = 0; i < out->n_layers; i++) {
        bool local = pattern && (i + 1) % pattern != 0;
        if (is_array && !pd_meta_bool(&local, m, i))
            return pd_fail(PERIDOT_ERROR_FORMAT, "metadata key %s is not an array of booleans", key);
        if (!local) out->layers[i].window = 0;
    }
    return PERIDOT_OK;
}

static peridot_status read_layer(struct reader *r, struct pd_config *out, uint32_t i)
{
    const struct pd_family_traits *family = &pd_families[out->family];
    struct pd_layer *l = &out->layers[i];
    l->ffn_dim = read_layer_uint(r, "feed_forward_length", i, -1);
    l->n_heads = read_layer_uint(r, "attention.head_count", i, -1);
    l->n_kv_heads = read_layer_uint(r, "attention.head_count_kv", i, l->n_heads);
    l->head_dim = read_layer_uint(r, "attention.key_length", i, l->n_heads ? out->d_model / l->n_heads : 0);
    if (family->window_pattern)
        l->window = read_layer_uint(r, "attention.sliding_window", i, out->family == PD_GEMMA2 ? 4096 : -1);
    uint32_t v_dim = read_layer_uint(r, "attention.value_length", i, l->head_dim);
    uint32_t rotated = read_layer_uint(r, "rope.dimension_count", i, l->head_dim);
    PD_TRY(r->status);
    if (rotated != l->head_dim)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%u of %u columns per head are rotated: only all are supported",
                       rotated, l->head_dim);
    if (v_dim != l->head_dim)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "keys have %u columns per head and values %u", l->head_dim, v_dim);
    l->query_scale = (float)read_float(r, "attention.scale", (double)pd_layer_usual_scale(out, l));
    return r->status;
}

static peridot_status find_family(struct pd_config *out, const struct pd_checkpoint *c)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(c, "general.architecture");
    struct pd_string name;
    if (!m || !pd_meta_string(&name, m, 0))
        return pd_fail(PERIDOT_ERROR_FORMAT, "metadata key general.architecture is missing");
    for (int i = 0; i < PD_N_FAMILIES; i++) {
        if (strlen(pd_families[i].name) != name.size || memcmp(pd_families[i].name, name.data, name.size) != 0)
            continue;
        out->family = (enum pd_family)i;
        return PERIDOT_OK;
    }
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                   "architecture \"%.*s\" is not known (known: gemma, gemma2, gemma3, llama)",
                   (int)pd_min(name.size, 64), name.data);
}

static void read_ropes(struct reader *r, struct pd_config *out)
{
    const struct pd_family_traits *family = &pd_families[out->family];
    struct pd_rope *global = &out->ropes[PD_ROPE_GLOBAL], *local = &out->ropes[PD_ROPE_LOCAL];
    *global = (struct pd_rope){.base = read_float(r, "rope.freq_base", family->rope_base),
        .divisor = read_rope_divisor(r)};
    /* Gemma 2's local layers rotate like its global ones; Gemma 3's have a base of their own and no divisor. */
    *local = *global;
    if (family->local_rope)
        *local = (struct pd_rope){.base = read_float(r, "rope.freq_base_swa", family->rope_base_local), .divisor = 1};
}

peridot_status pd_config_read_gguf(struct pd_config *out, const struct pd_checkpoint *c)
{
    PD_TRY(find_family(out, c));
    const struct pd_family_traits *family = &pd_families[out->family];
    struct reader r = {.checkpoint = c, .architecture = family->name};
    struct pd_string name;
    const struct pd_meta *m = pd_checkpoint_find_meta(c, "general.name");
    if (m && pd_meta_string(&name, m, 0))
        snprintf(out->name, sizeof out->name, "%.*s", (int)pd_min(name.size, 127), name.data);

    out->n_layers = read_uint(&r, "block_count", -1);
    out->d_model = read_uint(&r, "embedding_length", -1);
    out->ctx_max = read_uint(&r, "context_length", -1);
    out->eps = (float)read_float(&r, "attention.layer_norm_rms_epsilon", NAN);
    out->attn_softcap = (float)read_float(&r, "attn_logit_softcapping", family->attn_softcap);
    out->final_softcap = (float)read_float(&r, "final_logit_softcapping", family->final_softcap);
    out->tied = pd_checkpoint_find(c, "output.weight") == NULL;
    out->n_shared_kv = read_uint(&r, "attention.shared_kv_layers", 0);
    uint32_t n_experts = read_uint(&r, "expert_count", 0);
    read_ropes(&r, out);
    PD_TRY(r.status);
    if (n_experts) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "a mixture of %u experts is not supported", n_experts);

    r.n_layers = out->n_layers;
    PD_TRY(pd_layers_create(out));
    for (uint32_t i = 0; i < out->n_layers; i++) PD_TRY(read_layer(&r, out, i));
    return read_pattern(&r, out);
}
