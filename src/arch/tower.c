/* Vision towers: what makes rows of a picture that stand in a prompt for it. One table says what their tensors are
 * called, in Hugging Face directories, where they are beside the text model's, in GGUF files of their own
 * ("mmproj"), and in those that have both. */
#include "arch/arch.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

uint32_t pd_tower_n_patches(const struct pd_tower_config *t) { return t->most_rows * t->pool * t->pool; }

uint32_t pd_tower_patch_dim(const struct pd_tower_config *t) { return 3 * t->patch * t->patch; }

/* ---- sizes ---- */

/* Qwen: whole squares of patches, not fewer pixels than the least and not more rows than the most, as smart_resize of
 * transformers has it; but what is very long and narrow is cut short where it would have more rows all the same. */
static peridot_status size_between(uint32_t *width, uint32_t *height, const struct pd_tower_config *t,
                                   uint32_t from_width, uint32_t from_height)
{
    const double unit = t->patch * t->pool, most = t->most_rows * unit * unit;
    const double pixels = (double)from_width * from_height;
    double w = rint(from_width / unit), h = rint(from_height / unit);   /* halves to even, as Python's round() */
    if (pd_max(from_width, from_height) > 200 * pd_min(from_width, from_height))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a picture of %u x %u pixels is too long and narrow", from_width,
                       from_height);
    if (w * h * unit * unit < t->least_pixels) {
        double factor = sqrt(t->least_pixels / pixels);
        w = ceil(from_width * factor / unit);
        h = ceil(from_height * factor / unit);
    }
    if (w * h > t->most_rows) {
        double divisor = sqrt(pixels / most);
        w = fmax(1, floor(from_width / divisor / unit));
        h = fmax(1, floor(from_height / divisor / unit));
    }
    w = fmin(fmax(w, 1), t->most_rows);
    h = fmin(fmax(h, 1), floor(t->most_rows / w));
    *width = (uint32_t)(w * unit);
    *height = (uint32_t)(h * unit);
    return PERIDOT_OK;
}

/* Gemma 4: as large as the rows allow, in whole squares of patches, of which each becomes a row. transformers'
 * Gemma4ImageProcessor. */
peridot_status pd_tower_size(uint32_t *width, uint32_t *height, const struct pd_tower_config *t, uint32_t from_width,
                             uint32_t from_height)
{
    uint32_t unit = t->patch * t->pool;
    *width = *height = t->image_size;
    if (t->image_size) return PERIDOT_OK;
    if (t->kind == PD_TOWER_QWEN) return size_between(width, height, t, from_width, from_height);
    double factor = sqrt((double)t->most_rows * unit * unit / ((double)from_width * from_height));
    uint32_t w = (uint32_t)floor(factor * from_width / unit), h = (uint32_t)floor(factor * from_height / unit);
    if (w == 0) h = (uint32_t)pd_min(from_height / from_width, t->most_rows);
    if (h == 0) w = (uint32_t)pd_min(from_width / from_height, t->most_rows);
    if (w == 0) w = 1;
    if (h == 0) h = 1;
    *width = w * unit;
    *height = h * unit;
    if (t->n_positions >= pd_max(w, h) * (t->kind == PD_TOWER_PATCHES ? 1 : t->pool)) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "a picture of %u x %u pixels is too long and narrow", from_width,
                   from_height);
}

/* ---- pan and scan ---- */

uint32_t pd_tower_most_crops(const struct pd_tower_config *t)
{
    return t->kind == PD_TOWER_SIGLIP ? PD_TOWER_MOST_CROPS : 0;
}

/* As transformers' Gemma3ImageProcessor with the numbers of Gemma3Processor. */
uint32_t pd_tower_crops(struct pd_crop out[PD_TOWER_MOST_CROPS], uint32_t width, uint32_t height)
{
    const double least_ratio = 1.2;
    const uint32_t least_side = 256;
    bool wide = width >= height;
    uint32_t length = wide ? width : height, breadth = wide ? height : width;
    double ratio = (double)length / breadth;
    if (ratio < least_ratio) return 0;
    uint32_t n = (uint32_t)pd_min(length / least_side, (uint64_t)floor(ratio + 0.5));
    n = (uint32_t)pd_max(2, pd_min(PD_TOWER_MOST_CROPS, n));
    uint32_t step = (uint32_t)pd_div_up(length, n);
    if (pd_min(step, breadth) < least_side) return 0;
    for (uint32_t i = 0, at = 0; i < n; i++, at += step) {
        uint32_t size = (uint32_t)pd_min(step, length - at);   /* the last may be shorter */
        out[i] = wide ? (struct pd_crop){at, 0, size, height} : (struct pd_crop){0, at, width, size};
    }
    return n;
}

/* ---- tensors ---- */

enum size { NONE, D_MODEL, FFN_DIM, HEADS, THREE_HEADS, HEAD_DIM, PATCH_DIM, MERGED, D_OUT, POSITIONS };

enum { SIGLIP = 1 << PD_TOWER_SIGLIP, GEMMA4 = 1 << PD_TOWER_GEMMA4, PATCHES = 1 << PD_TOWER_PATCHES,
    QWEN = 1 << PD_TOWER_QWEN };

/* Names of each kind without prefix and without ".weight"; %u is the layer. */
static const struct row {
    const char *hf[5], *gguf;      /* hf: by kind */
    enum size rows, cols;
    uint32_t kinds, biased;        /* that have the tensor, and that have a bias beside it */
    const char *ollama;            /* in files that Ollama's converter made; NULL: as gguf */
} rows[PD_N_TOWER_ROLES] = {
    [PD_TOWER_PATCH_NORM] = {{[PD_TOWER_PATCHES] = "patch_ln1"}, "v.patch_norm.1", NONE, PATCH_DIM, PATCHES, PATCHES},
    [PD_TOWER_PATCH] = {{[PD_TOWER_SIGLIP] = "embeddings.patch_embedding",
        [PD_TOWER_GEMMA4] = "patch_embedder.input_proj", [PD_TOWER_PATCHES] = "patch_dense",
        [PD_TOWER_QWEN] = "patch_embed.proj"}, "v.patch_embd", D_MODEL, PATCH_DIM, SIGLIP | GEMMA4 | PATCHES | QWEN,
        SIGLIP | PATCHES | QWEN, "v.patch_embedding"},
    [PD_TOWER_POSITIONS] = {{[PD_TOWER_SIGLIP] = "embeddings.position_embedding",
        [PD_TOWER_GEMMA4] = "patch_embedder.position_embedding_table", [PD_TOWER_PATCHES] = "pos_embedding",
        [PD_TOWER_QWEN] = "pos_embed"}, "v.position_embd", POSITIONS, D_MODEL, SIGLIP | GEMMA4 | PATCHES | QWEN, 0,
        "v.position_embedding"},
    [PD_TOWER_DENSE_NORM] = {{[PD_TOWER_PATCHES] = "patch_ln2"}, "v.patch_norm.2", NONE, D_MODEL, PATCHES, PATCHES},
    [PD_TOWER_POSITION_NORM] = {{[PD_TOWER_PATCHES] = "pos_norm"}, "v.patch_norm.3", NONE, D_MODEL, PATCHES, PATCHES},
    [PD_TOWER_POST_NORM] = {{[PD_TOWER_SIGLIP] = "post_layernorm", [PD_TOWER_QWEN] = "merger.norm"}, "v.post_ln",
        NONE, D_MODEL, SIGLIP | QWEN, SIGLIP | QWEN,
        "v.post_layernorm"},
    [PD_TOWER_STD_BIAS] = {{[PD_TOWER_GEMMA4] = "std_bias"}, "v.std_bias", NONE, D_MODEL, GEMMA4, 0},
    [PD_TOWER_STD_SCALE] = {{[PD_TOWER_GEMMA4] = "std_scale"}, "v.std_scale", NONE, D_MODEL, GEMMA4, 0},
    [PD_TOWER_ROW_NORM] = {{[PD_TOWER_SIGLIP] = "mm_soft_emb_norm"}, "mm.soft_emb_norm", NONE, D_MODEL, SIGLIP, 0,
        "mm.mm_soft_emb_norm"},
    [PD_TOWER_MERGE] = {{[PD_TOWER_QWEN] = "merger.linear_fc1"}, "mm.0", MERGED, MERGED, QWEN, QWEN},
    [PD_TOWER_PROJ] = {{[PD_TOWER_SIGLIP] = "mm_input_projection_weight",
        [PD_TOWER_GEMMA4] = "embedding_projection", [PD_TOWER_PATCHES] = "embedding_projection",
        [PD_TOWER_QWEN] = "merger.linear_fc2"}, "mm.input_projection", D_OUT, MERGED, SIGLIP | GEMMA4 | PATCHES | QWEN,
        QWEN, "mm.mm_input_projection"},
    [PD_TOWER_ATTN_NORM] = {{[PD_TOWER_SIGLIP] = "encoder.layers.%u.layer_norm1",
        [PD_TOWER_GEMMA4] = "encoder.layers.%u.input_layernorm", [PD_TOWER_QWEN] = "blocks.%u.norm1"}, "v.blk.%u.ln1",
        NONE, D_MODEL, SIGLIP | GEMMA4 | QWEN, SIGLIP | QWEN, "v.blk.%u.layer_norm1"},
    [PD_TOWER_QKV] = {{[PD_TOWER_QWEN] = "blocks.%u.attn.qkv"}, "v.blk.%u.attn_qkv", THREE_HEADS, D_MODEL, QWEN, QWEN},
    [PD_TOWER_Q] = {{[PD_TOWER_SIGLIP] = "encoder.layers.%u.self_attn.q_proj",
        [PD_TOWER_GEMMA4] = "encoder.layers.%u.self_attn.q_proj"}, "v.blk.%u.attn_q", HEADS, D_MODEL, SIGLIP | GEMMA4,
        SIGLIP},
    [PD_TOWER_K] = {{[PD_TOWER_SIGLIP] = "encoder.layers.%u.self_attn.k_proj",
        [PD_TOWER_GEMMA4] = "encoder.layers.%u.self_attn.k_proj"}, "v.blk.%u.attn_k", HEADS, D_MODEL, SIGLIP | GEMMA4,
        SIGLIP},
    [PD_TOWER_V] = {{[PD_TOWER_SIGLIP] = "encoder.layers.%u.self_attn.v_proj",
        [PD_TOWER_GEMMA4] = "encoder.layers.%u.self_attn.v_proj"}, "v.blk.%u.attn_v", HEADS, D_MODEL, SIGLIP | GEMMA4,
        SIGLIP},
    [PD_TOWER_O] = {{[PD_TOWER_SIGLIP] = "encoder.layers.%u.self_attn.out_proj",
        [PD_TOWER_GEMMA4] = "encoder.layers.%u.self_attn.o_proj", [PD_TOWER_QWEN] = "blocks.%u.attn.proj"},
        "v.blk.%u.attn_out", D_MODEL, HEADS, SIGLIP | GEMMA4 | QWEN, SIGLIP | QWEN, "v.blk.%u.attn_output"},
    [PD_TOWER_Q_NORM] = {{[PD_TOWER_GEMMA4] = "encoder.layers.%u.self_attn.q_norm"}, "v.blk.%u.attn_q_norm",
        NONE, HEAD_DIM, GEMMA4, 0},
    [PD_TOWER_K_NORM] = {{[PD_TOWER_GEMMA4] = "encoder.layers.%u.self_attn.k_norm"}, "v.blk.%u.attn_k_norm",
        NONE, HEAD_DIM, GEMMA4, 0},
    [PD_TOWER_POST_ATTN_NORM] = {{[PD_TOWER_GEMMA4] = "encoder.layers.%u.post_attention_layernorm"},
        "v.blk.%u.attn_post_norm", NONE, D_MODEL, GEMMA4, 0},
    [PD_TOWER_FFN_NORM] = {{[PD_TOWER_SIGLIP] = "encoder.layers.%u.layer_norm2",
        [PD_TOWER_GEMMA4] = "encoder.layers.%u.pre_feedforward_layernorm", [PD_TOWER_QWEN] = "blocks.%u.norm2"},
        "v.blk.%u.ln2", NONE, D_MODEL, SIGLIP | GEMMA4 | QWEN, SIGLIP | QWEN, "v.blk.%u.layer_norm2"},
    [PD_TOWER_GATE] = {{[PD_TOWER_GEMMA4] = "encoder.layers.%u.mlp.gate_proj"}, "v.blk.%u.ffn_gate", FFN_DIM, D_MODEL,
        GEMMA4, 0},
    [PD_TOWER_UP] = {{[PD_TOWER_SIGLIP] = "encoder.layers.%u.mlp.fc1",
        [PD_TOWER_GEMMA4] = "encoder.layers.%u.mlp.up_proj", [PD_TOWER_QWEN] = "blocks.%u.mlp.linear_fc1"},
        "v.blk.%u.ffn_up", FFN_DIM, D_MODEL, SIGLIP | GEMMA4 | QWEN, SIGLIP | QWEN, "v.blk.%u.mlp.fc1"},
    [PD_TOWER_DOWN] = {{[PD_TOWER_SIGLIP] = "encoder.layers.%u.mlp.fc2",
        [PD_TOWER_GEMMA4] = "encoder.layers.%u.mlp.down_proj", [PD_TOWER_QWEN] = "blocks.%u.mlp.linear_fc2"},
        "v.blk.%u.ffn_down", D_MODEL, FFN_DIM, SIGLIP | GEMMA4 | QWEN, SIGLIP | QWEN, "v.blk.%u.mlp.fc2"},
    [PD_TOWER_POST_FFN_NORM] = {{[PD_TOWER_GEMMA4] = "encoder.layers.%u.post_feedforward_layernorm"},
        "v.blk.%u.ffn_post_norm", NONE, D_MODEL, GEMMA4, 0},
};

static uint32_t size_of(const struct pd_tower_config *t, enum size size)
{
    switch (size) {
    case NONE: break;
    case D_MODEL: return t->d_model;
    case FFN_DIM: return t->ffn_dim;
    case HEADS: return t->n_heads * t->head_dim;
    case THREE_HEADS: return 3 * t->n_heads * t->head_dim;
    case HEAD_DIM: return t->head_dim;
    case PATCH_DIM: return pd_tower_patch_dim(t);
    case MERGED: return t->d_model * (t->kind == PD_TOWER_QWEN ? t->pool * t->pool : 1);
    case D_OUT: return t->d_out;
    case POSITIONS:
        return t->kind == PD_TOWER_SIGLIP || t->kind == PD_TOWER_QWEN ? t->n_positions : 2 * t->n_positions;
    }
    return 0;
}

bool pd_tower_plan_get(struct pd_tower_plan *out, const struct pd_tower_config *t, enum pd_tower_role role)
{
    const struct row *row = &rows[role];
    bool turns = role == PD_TOWER_Q || role == PD_TOWER_K || role == PD_TOWER_Q_NORM || role == PD_TOWER_K_NORM;
    *out = (struct pd_tower_plan){.role = role, .n_rows = size_of(t, row->rows), .n_cols = size_of(t, row->cols),
        .has_bias = row->biased >> t->kind & 1, .transposed = t->kind == PD_TOWER_SIGLIP && role == PD_TOWER_PROJ,
        .rotated = t->kind == PD_TOWER_GEMMA4 && turns,
        .of_frames = t->kind == PD_TOWER_QWEN && role == PD_TOWER_PATCH};
    if ((role == PD_TOWER_STD_BIAS || role == PD_TOWER_STD_SCALE) && !t->standardises) return false;
    return row->kinds >> t->kind & 1;
}

static const char *const parts[] = {[PD_TOWER_WEIGHT] = ".weight", [PD_TOWER_BIAS] = ".bias",
    [PD_TOWER_INPUT_MIN] = ".input_min", [PD_TOWER_INPUT_MAX] = ".input_max", [PD_TOWER_OUTPUT_MIN] = ".output_min",
    [PD_TOWER_OUTPUT_MAX] = ".output_max"};

/* Tensors that are named by themselves. */
static bool is_bare(const struct pd_tower_config *t, enum pd_tower_role role, bool hf)
{
    return role == PD_TOWER_STD_BIAS || role == PD_TOWER_STD_SCALE
        || (hf && role == PD_TOWER_POSITIONS && t->kind != PD_TOWER_SIGLIP && t->kind != PD_TOWER_QWEN)
        || (hf && role == PD_TOWER_PROJ && t->kind == PD_TOWER_SIGLIP);
}

/* As they are published, and as transformers 5 writes them. */
static const struct pd_tensor *find_hf(char name[256], const struct pd_tower_config *t, const struct pd_checkpoint *c,
                                       enum pd_tower_role role, const char *formatted, const char *part)
{
    static const char *const towers[] = {"vision_tower.vision_model.", "vision_tower.", "vision_embedder.",
        "embed_vision.", "visual."}, *const projectors[] = {"multi_modal_projector.", "embed_vision.",
        "embed_vision.multimodal_embedder.", "visual."};
    bool projects = role == PD_TOWER_PROJ || role == PD_TOWER_ROW_NORM;
    const char *const *prefixes = projects ? projectors : towers;
    size_t n = projects ? PD_COUNT(projectors) : PD_COUNT(towers);
    bool clamped = t->kind == PD_TOWER_GEMMA4 && role >= PD_FIRST_TOWER_LAYER_ROLE && !strcmp(part, ".weight");
    for (size_t i = 0; i < 4 * n; i++) {   /* in "model." or not; clamped matrices in an object of their own */
        bool linear = clamped && i % 2;
        snprintf(name, 256, "%s%s%s%s%s", i / 2 % 2 ? "model." : "", prefixes[i / 4], formatted,
                 linear ? ".linear" : "", part);
        const struct pd_tensor *found = pd_checkpoint_find(c, name);
        if (found) return found;
    }
    snprintf(name, 256, "%s%s%s", prefixes[0], formatted, part);
    return NULL;
}

/* Files of 2025 have the names of SigLIP's two ffn matrices exchanged. */
static enum pd_tower_role named_role(const struct pd_tower_config *t, const struct pd_checkpoint *c,
                                     enum pd_tower_role role, uint32_t layer)
{
    char name[64];
    if (t->kind != PD_TOWER_SIGLIP || (role != PD_TOWER_UP && role != PD_TOWER_DOWN)) return role;
    snprintf(name, sizeof name, "v.blk.%u.ffn_up.bias", layer);
    const struct pd_tensor *bias = pd_checkpoint_find(c, name);
    if (!bias || bias->shape[0] == t->ffn_dim) return role;
    return role == PD_TOWER_UP ? PD_TOWER_DOWN : PD_TOWER_UP;
}

static bool has_shape(const struct pd_tensor *tensor, const struct pd_tower_plan *plan, enum pd_tower_part part,
                      bool hf)
{
    uint64_t n, want = part > PD_TOWER_BIAS ? 1 : part == PD_TOWER_BIAS ? (plan->n_rows ? plan->n_rows : plan->n_cols)
        : plan->n_rows ? (uint64_t)plan->n_rows * plan->n_cols : plan->n_cols;
    uint32_t first = plan->transposed ? plan->n_cols : plan->n_rows;
    if (plan->of_frames && part == PD_TOWER_WEIGHT && hf) want *= 2;
    if (!pd_tensor_n_weights(&n, tensor) || n != want) return false;
    if (part != PD_TOWER_WEIGHT || !plan->n_rows) return true;
    if (plan->role == PD_TOWER_POSITIONS)
        return tensor->n_dims > 1 && tensor->shape[tensor->n_dims - 1] == plan->n_cols;
    return tensor->n_dims > 1 && tensor->shape[0] == first;
}

static const struct pd_tensor *find_gguf(char name[256], const struct pd_checkpoint *c, const char *formatted,
                                         const char *part)
{
    snprintf(name, 256, "%s%s", formatted, part);
    const struct pd_tensor *found = pd_checkpoint_find(c, name);
    if (found || *part) return found;
    snprintf(name, 256, "%s.weight", formatted);   /* as some converters have it */
    return pd_checkpoint_find(c, name);
}

static void format_layer(char out[128], const char *format, uint32_t layer)
{
    const char *percent = strstr(format, "%u");
    if (percent) snprintf(out, 128, "%.*s%u%s", (int)(percent - format), format, layer, percent + 2);
    else snprintf(out, 128, "%s", format);
}

peridot_status pd_tower_find(const struct pd_tensor **out, const struct pd_tower_config *t,
                             const struct pd_checkpoint *c, const struct pd_tower_plan *plan, enum pd_tower_part part,
                             uint32_t layer)
{
    char formatted[128], name[256];
    bool hf = pd_checkpoint_kind(c) == PD_CHECKPOINT_HF;
    enum pd_tower_role role = hf ? plan->role : named_role(t, c, plan->role, layer);
    const char *suffix = is_bare(t, role, hf) ? "" : parts[part];
    bool merges = t->kind == PD_TOWER_QWEN && role == PD_TOWER_PROJ;
    *out = NULL;
    if (!hf && rows[role].ollama) {
        format_layer(formatted, rows[role].ollama, layer);
        *out = find_gguf(name, c, formatted, suffix);
    }
    if (!*out) {
        format_layer(formatted, hf ? rows[role].hf[t->kind] : merges ? "mm.2" : rows[role].gguf, layer);
        *out = hf ? find_hf(name, t, c, role, formatted, suffix) : find_gguf(name, c, formatted, suffix);
    }
    if (!*out)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor %s is missing", pd_checkpoint_path(c), name);
    if ((*out)->dtype == PD_DTYPE_OTHER)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " has type %s, which is not supported",
                       (*out)->file, (*out)->name, (*out)->type);
    if (has_shape(*out, plan, part, hf)) return PERIDOT_OK;
    if (plan->role == PD_TOWER_PROJ)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " does not make the %u numbers of a row of the text "
                       "model of the tower's %u", (*out)->file, (*out)->name, plan->n_rows, plan->n_cols);
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " does not have the shape that the tower's numbers say",
                   (*out)->file, (*out)->name);
}

peridot_status pd_tower_find_frame(const struct pd_tensor **out, const struct pd_checkpoint *c,
                                   const struct pd_tensor *first)
{
    *out = pd_checkpoint_find(c, "v.patch_embd.weight.1");
    if (*out && (*out)->dtype == first->dtype && (*out)->size == first->size) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor v.patch_embd.weight.1 is missing, or not like v.patch_embd.weight",
                   pd_checkpoint_path(c));
}

/* A tensor, and what it adds to the totals. */
static peridot_status count_tensor(struct pd_tower_totals *out, const struct pd_tower_config *t,
                                   const struct pd_checkpoint *c, const struct pd_tower_plan *plan,
                                   enum pd_tower_part part, uint32_t layer)
{
    const struct pd_tensor *tensor;
    uint64_t n_weights = 0;
    PD_TRY(pd_tower_find(&tensor, t, c, plan, part, layer));
    pd_tensor_n_weights(&n_weights, tensor);
    if (part == PD_TOWER_WEIGHT && plan->n_rows) out->type_counts[tensor->dtype]++;
    out->n_tensors++;
    out->n_params += n_weights;
    out->size += tensor->size;
    if (!plan->of_frames || part != PD_TOWER_WEIGHT || pd_checkpoint_kind(c) == PD_CHECKPOINT_HF) return PERIDOT_OK;
    PD_TRY(pd_tower_find_frame(&tensor, c, tensor));
    out->type_counts[tensor->dtype]++;
    out->n_tensors++;
    out->n_params += n_weights;
    out->size += tensor->size;
    return PERIDOT_OK;
}

peridot_status pd_tower_check(struct pd_tower_totals *out, const struct pd_tower_config *t,
                              const struct pd_checkpoint *c)
{
    *out = (struct pd_tower_totals){0};
    for (enum pd_tower_role role = 0; role < PD_N_TOWER_ROLES; role++) {
        uint32_t n = role < PD_FIRST_TOWER_LAYER_ROLE ? 1 : t->n_layers;
        struct pd_tower_plan plan;
        if (!pd_tower_plan_get(&plan, t, role)) continue;
        for (uint32_t i = 0; i < n; i++) {
            PD_TRY(count_tensor(out, t, c, &plan, PD_TOWER_WEIGHT, i));
            if (plan.has_bias) PD_TRY(count_tensor(out, t, c, &plan, PD_TOWER_BIAS, i));
            bool clamped = t->clamps && role >= PD_FIRST_TOWER_LAYER_ROLE && plan.n_rows;
            for (enum pd_tower_part part = PD_TOWER_INPUT_MIN; clamped && part <= PD_TOWER_OUTPUT_MAX; part++)
                PD_TRY(count_tensor(out, t, c, &plan, part, i));
        }
    }
    return PERIDOT_OK;
}
