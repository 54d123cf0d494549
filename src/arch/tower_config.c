/* The numbers of a vision tower: from the vision_config of a config.json, whose defaults are those of the classes in
 * transformers, or from the metadata of a GGUF file: an mmproj file ("clip.vision."), or one with the text model in it,
 * as Ollama's converter writes them ("gemma3.vision."). */
#include "arch/arch.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum number {
    D_MODEL, FFN_DIM, N_LAYERS, N_HEADS, HEAD_DIM, PATCH, POOL, IMAGE_SIZE, N_POSITIONS, MOST_ROWS, N_NUMBERS
};

/* Keys of vision_config and of a GGUF file, what they are where a key is absent (0: it must be there), and bounds.
 * Of patches alone, and of Qwen, the names differ. */
static const struct number_row {
    const char *hf, *hf_patches, *hf_qwen, *gguf;
    uint32_t hf_default[5], gguf_default[5];   /* by kind */
    uint32_t least, most;
} numbers[N_NUMBERS] = {
    [D_MODEL] = {"hidden_size", "mm_embed_dim", "hidden_size", "embedding_length", {0, 768, 768, 3840, 1152}, {0}, 4,
        1 << 16},
    [FFN_DIM] = {"intermediate_size", NULL, "intermediate_size", "feed_forward_length", {0, 3072, 3072, 1, 4304}, {0},
        1, 1 << 18},
    [N_LAYERS] = {"num_hidden_layers", NULL, "depth", "block_count", {0, 12, 16, 1, 27}, {0}, 1, 1024},
    [N_HEADS] = {"num_attention_heads", NULL, "num_heads", "attention.head_count", {0, 12, 12, 1, 16}, {0}, 1, 1024},
    [HEAD_DIM] = {"head_dim", NULL, NULL, NULL, {0, 1, 64, 1, 1}, {0, 1, 1, 1, 1}, 1, 512},
    [PATCH] = {"patch_size", "model_patch_size", "patch_size", "patch_size", {0, 16, 16, 48, 16}, {0}, 1, 256},
    [POOL] = {"pooling_kernel_size", NULL, "spatial_merge_size", "projector.scale_factor", {0, 1, 3, 1, 2},
        {0, 4, 3, 3, 2}, 1, 64},
    [IMAGE_SIZE] = {"image_size", NULL, NULL, "image_size", {0, 224, 1, 1, 1}, {0, 0, 1, 1, 1}, 1, 1 << 14},
    [N_POSITIONS] = {"position_embedding_size", "mm_posemb_size", "num_position_embeddings", NULL,
        {0, 1, 10240, 1120, 2304}, {0, 1, 1, 1, 1}, 1, 1 << 20},
    [MOST_ROWS] = {"default_output_length", "num_soft_tokens", NULL, NULL, {0, 1, 280, 280, PD_TOWER_MOST_ROWS},
        {0, 1, 280, 280, PD_TOWER_MOST_ROWS}, 1, 1 << 14},
};

/* Of a picture in the tower's size; Gemma 4's largest has 2.6 million, and 10,080. Patches: as many workgroups as every
 * device can dispatch. */
enum { MOST_PIXELS = 1 << 25, MOST_PATCHES = 65535 };

struct reader {
    const struct pd_checkpoint *checkpoint;
    yyjson_val *root, *vision;     /* of its config.json; NULL in a GGUF file */
    const struct pd_checkpoint *text;
    yyjson_val *text_root;         /* of the text model's config.json; NULL: it is a GGUF file */
    const char *owner;             /* of the keys of a GGUF file: "clip", or the text model's family */
    enum pd_tower_kind kind;
    peridot_status status;         /* of the first failure */
};

static void tower_config_fail(struct reader *r, const char *key, const char *what)
{
    char before[64] = "config.json: vision_config.";
    if (!r->root) snprintf(before, sizeof before, "metadata key %s.vision.", r->owner);
    if (r->status == PERIDOT_OK)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s: %s%s %s", pd_checkpoint_path(r->checkpoint), before, key, what);
}

/* Of a JSON file beside the model; NULL: there is none. */
static yyjson_val *open_beside(struct reader *r, yyjson_doc **doc, const struct pd_checkpoint *c, const char *name)
{
    *doc = NULL;
    if (r->status == PERIDOT_OK) r->status = pd_json_open_optional(doc, pd_checkpoint_path(c), name);
    return yyjson_doc_get_root(*doc);
}

static const struct pd_meta *find_meta(const struct reader *r, const char *key)
{
    char full[96];
    snprintf(full, sizeof full, "%s.vision.%s", r->owner, key);
    return pd_checkpoint_find_meta(r->checkpoint, full);
}

/* NULL: such files do not say it. */
static const char *key_of(const struct reader *r, enum number number)
{
    const struct number_row *row = &numbers[number];
    if (!r->root) return r->kind == PD_TOWER_QWEN && number == POOL ? "spatial_merge_size" : row->gguf;
    return r->kind == PD_TOWER_PATCHES ? row->hf_patches : r->kind == PD_TOWER_QWEN ? row->hf_qwen : row->hf;
}

static uint32_t read_uint(struct reader *r, enum number number)
{
    const struct number_row *row = &numbers[number];
    const char *key = key_of(r, number);
    uint64_t value = r->root ? row->hf_default[r->kind] : row->gguf_default[r->kind];
    char what[64];
    if (!key) return (uint32_t)value;
    if (r->root) {
        yyjson_val *v = yyjson_obj_get(r->vision, key);
        if (v && !yyjson_is_null(v) && !yyjson_is_uint(v)) tower_config_fail(r, key, "is not a count");
        if (yyjson_is_uint(v)) value = yyjson_get_uint(v);
    } else {
        const struct pd_meta *m = find_meta(r, key);
        if (m && (m->type == PD_META_ARRAY || !pd_meta_uint(&value, m, 0))) tower_config_fail(r, key, "is not a count");
        if (!m && value == 0) tower_config_fail(r, key, "is missing");
    }
    snprintf(what, sizeof what, "is not between %u and %u", row->least, row->most);
    if (value < row->least || value > row->most) tower_config_fail(r, key, what);
    return r->status == PERIDOT_OK ? (uint32_t)value : 1;
}

static double read_float(struct reader *r, const char *hf, const char *gguf, double fallback)
{
    double value = fallback;
    if (r->root) {
        yyjson_val *v = yyjson_obj_get(r->vision, hf);
        if (v && !yyjson_is_num(v)) tower_config_fail(r, hf, "is not a number");
        if (yyjson_is_num(v)) value = yyjson_get_num(v);
    } else {
        const struct pd_meta *m = find_meta(r, gguf);
        if (m && (m->type == PD_META_ARRAY || !pd_meta_float(&value, m, 0)))
            tower_config_fail(r, gguf, "is not a number");
    }
    if (!(value > 0) || value > 1) tower_config_fail(r, r->root ? hf : gguf, "is not between 0 and 1");
    return value;
}

/* Three numbers; they stay as they are where there are none. */
static void read_channels(struct reader *r, float out[3], const char *key, yyjson_val *list)
{
    const struct pd_meta *m = r->root ? NULL : find_meta(r, key);
    for (uint32_t i = 0; i < 3; i++) {
        double value = (double)out[i];
        yyjson_val *v = yyjson_arr_get(list, i);
        if (yyjson_is_num(v)) value = yyjson_get_num(v);
        if (m && !pd_meta_float(&value, m, m->type == PD_META_ARRAY ? i : 0))
            tower_config_fail(r, key, "is not three numbers");
        out[i] = (float)value;
    }
}

/* ---- which tower ---- */

/* A text model's own file says by its family of what kind its tower is, and by the tensors whether it has one. */
static void find_own_kind(struct reader *r, const struct pd_config *config)
{
    const bool has_layers = pd_checkpoint_find(r->checkpoint, "v.blk.0.attn_q.weight") != NULL;
    const bool any = has_layers || pd_checkpoint_find(r->checkpoint, "v.patch_embd.weight");
    r->owner = pd_families[config->family].name;
    if (config->family == PD_GEMMA3 && any) r->kind = PD_TOWER_SIGLIP;
    if (config->family == PD_GEMMA4 && any) r->kind = has_layers ? PD_TOWER_GEMMA4 : PD_TOWER_PATCHES;
}

static peridot_status find_kind(struct reader *r)
{
    static const struct { const char *hf, *gguf; enum pd_tower_kind kind; } kinds[] = {
        {"siglip_vision_model", "gemma3", PD_TOWER_SIGLIP}, {"gemma4_vision", "gemma4v", PD_TOWER_GEMMA4},
        {"gemma4_unified_vision", "gemma4uv", PD_TOWER_PATCHES}, {"qwen3_5", "qwen3vl_merger", PD_TOWER_QWEN},
        {"qwen3_5_vision", "qwen3vl_merger", PD_TOWER_QWEN}, {"qwen3_5_moe", "qwen3vl_merger", PD_TOWER_QWEN},
        {"qwen3_5_moe_vision", "qwen3vl_merger", PD_TOWER_QWEN}};
    const struct pd_meta *m = pd_checkpoint_find_meta(r->checkpoint, "clip.vision.projector_type");
    struct pd_string type = {"", 0};
    if (!m) m = pd_checkpoint_find_meta(r->checkpoint, "clip.projector_type");
    if (r->root) {
        const char *name = yyjson_get_str(yyjson_obj_get(r->vision, "model_type"));
        type.data = name ? name : "siglip_vision_model";   /* Gemma 3's, which may leave it out */
        type.size = strlen(type.data);
    } else if (!m || !pd_meta_string(&type, m, 0))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: it has no clip.projector_type, so it is not the vision part of a "
                       "model", pd_checkpoint_path(r->checkpoint));
    for (size_t i = 0; i < PD_COUNT(kinds); i++) {
        const char *name = r->root ? kinds[i].hf : kinds[i].gguf;
        if (strlen(name) == type.size && memcmp(name, type.data, type.size) == 0) r->kind = kinds[i].kind;
    }
    if (r->kind) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: a vision tower of type \"%.*s\" is not known (known: those of Gemma "
                   "3, Gemma 4 and Qwen 3.5)", pd_checkpoint_path(r->checkpoint), (int)pd_min(type.size, 64),
                   type.data);
}

/* ---- tokens ---- */

static int32_t read_id(const struct reader *r, const char *index_key, const char *id_key, int32_t usual)
{
    yyjson_val *v = yyjson_obj_get(r->text_root, id_key);
    if (!v) v = yyjson_obj_get(r->text_root, index_key);
    return yyjson_is_uint(v) && yyjson_get_uint(v) <= INT32_MAX ? (int32_t)yyjson_get_uint(v) : usual;
}

/* The published ids, or config.json's. */
static void tower_config_read_ids(struct pd_tower_config *out, const struct reader *r)
{
    bool is_siglip = out->kind == PD_TOWER_SIGLIP;
    if (out->kind == PD_TOWER_QWEN) {
        out->begin_id = read_id(r, "vision_start_token_id", "vision_start_token_id", 248053);
        out->row_id = read_id(r, "image_token_id", "image_token_id", 248056);
        out->end_id = read_id(r, "vision_end_token_id", "vision_end_token_id", 248054);
        return;
    }
    out->begin_id = read_id(r, "boi_token_index", "boi_token_id", 255999);
    out->row_id = read_id(r, "image_token_index", "image_token_id", is_siglip ? 262144 : 258880);
    out->end_id = read_id(r, "eoi_token_index", "eoi_token_id", is_siglip ? 256000 : 258882);
}

/* ---- pixels ---- */

static double limit_of(const struct reader *r, yyjson_val *root, const char *key, const char *old_key, double usual)
{
    char gguf[32];
    snprintf(gguf, sizeof gguf, "image_%s", old_key);
    const struct pd_meta *m = r->root ? NULL : find_meta(r, gguf);
    yyjson_val *v = yyjson_obj_get(yyjson_obj_get(root, "size"), key);
    uint64_t n;
    if (m && m->type != PD_META_ARRAY && pd_meta_uint(&n, m, 0)) return (double)n;
    if (!yyjson_is_num(v)) v = yyjson_obj_get(root, old_key);
    return yyjson_is_num(v) && yyjson_get_num(v) >= 0 ? yyjson_get_num(v) : usual;
}

/* Of whole pictures: published ones may have 16,384 rows, of which more than PD_TOWER_MOST_ROWS are not taken. */
static void read_pixel_limits(struct pd_tower_config *out, const struct reader *r, yyjson_val *root)
{
    double unit = out->patch * out->pool, most = limit_of(r, root, "longest_edge", "max_pixels", 1 << 24);
    out->most_rows = (uint32_t)fmax(1, fmin(most / (unit * unit), PD_TOWER_MOST_ROWS));
    out->least_pixels = (uint32_t)fmin(limit_of(r, root, "shortest_edge", "min_pixels", 1 << 16), 1 << 24);
}

/* transformers' processors have the numbers in a file of their own. */
static void read_pixels(struct pd_tower_config *out, struct reader *r)
{
    float usual = out->kind == PD_TOWER_PATCHES ? 0 : 0.5f;
    yyjson_doc *doc = NULL;
    yyjson_val *root = NULL;
    for (uint32_t i = 0; i < 3; i++) {
        out->mean[i] = usual;
        out->std[i] = out->kind == PD_TOWER_PATCHES ? 1 : 0.5f;
    }
    if (out->kind != PD_TOWER_SIGLIP && out->kind != PD_TOWER_QWEN) return;   /* Gemma 4's are in its code */
    if (r->root) root = open_beside(r, &doc, r->checkpoint, "preprocessor_config.json");
    if (out->kind == PD_TOWER_QWEN) read_pixel_limits(out, r, root);
    read_channels(r, out->mean, "image_mean", yyjson_obj_get(root, "image_mean"));
    read_channels(r, out->std, "image_std", yyjson_obj_get(root, "image_std"));
    yyjson_doc_free(doc);
    for (uint32_t i = 0; i < 3; i++)
        if (!isfinite(out->mean[i]) || !(out->std[i] > 0))
            tower_config_fail(r, "image_std", "is not three positive numbers");
}

/* ---- all of it ---- */

/* A processor may allow another number of rows than the config says. */
static void read_budget(struct pd_tower_config *out, struct reader *r)
{
    yyjson_doc *doc;
    if (!r->text_root || out->kind == PD_TOWER_SIGLIP || out->kind == PD_TOWER_QWEN) return;
    yyjson_val *root = open_beside(r, &doc, r->text, "processor_config.json");
    yyjson_val *v = yyjson_obj_get(yyjson_obj_get(root, "image_processor"), "max_soft_tokens");
    if (yyjson_is_uint(v) && yyjson_get_uint(v) > 0 && yyjson_get_uint(v) <= numbers[MOST_ROWS].most)
        out->most_rows = (uint32_t)yyjson_get_uint(v);
    yyjson_doc_free(doc);
}

/* GGUF files have only the table. */
static void read_positions(struct pd_tower_config *out, struct reader *r)
{
    const struct pd_tensor *t = r->root ? NULL : pd_checkpoint_find(r->checkpoint, "v.position_embd.weight");
    if (!t || out->kind == PD_TOWER_SIGLIP) return;
    if (out->kind == PD_TOWER_QWEN && t->n_dims == 2 && t->shape[0] <= numbers[N_POSITIONS].most)
        out->n_positions = (uint32_t)t->shape[0];
    else if (t->n_dims == 3 && t->shape[0] == 2 && t->shape[1] <= numbers[N_POSITIONS].most)
        out->n_positions = (uint32_t)t->shape[1];
    else tower_config_fail(r, "position_embedding", "has no table of columns and rows");
}

static void read_sizes(struct pd_tower_config *out, struct reader *r)
{
    out->d_model = read_uint(r, D_MODEL);
    out->patch = read_uint(r, PATCH);
    out->pool = read_uint(r, POOL);
    out->n_positions = read_uint(r, N_POSITIONS);
    out->most_rows = read_uint(r, MOST_ROWS);
    read_budget(out, r);
    read_positions(out, r);
    if (out->kind == PD_TOWER_PATCHES) {
        if (!r->root) out->patch *= out->pool;   /* patches are what a tower would pool */
        out->pool = 1;
        return;
    }
    out->n_layers = read_uint(r, N_LAYERS);
    out->ffn_dim = read_uint(r, FFN_DIM);
    out->n_heads = read_uint(r, N_HEADS);
    bool own_head_dim = r->root && out->kind == PD_TOWER_GEMMA4;
    out->head_dim = own_head_dim ? read_uint(r, HEAD_DIM) : out->d_model / out->n_heads;
    if (r->status == PERIDOT_OK && (out->head_dim % 4 != 0 || (!own_head_dim && out->d_model % out->n_heads != 0)))
        tower_config_fail(r, key_of(r, N_HEADS), "does not give heads of a multiple of 4 numbers");
    if (out->head_dim > numbers[HEAD_DIM].most)
        tower_config_fail(r, key_of(r, N_HEADS), "gives heads that are too long");
    uint32_t multiple = out->kind == PD_TOWER_QWEN ? PD_PAD : 4;   /* rows that are merged lie close */
    if (out->d_model % multiple != 0)
        tower_config_fail(r, key_of(r, D_MODEL), multiple == 4 ? "is not a multiple of 4" : "is not a multiple of 32");
    uint32_t side = (uint32_t)(sqrt(out->n_positions) + 0.5);
    if (out->kind == PD_TOWER_QWEN && side * side != out->n_positions)
        tower_config_fail(r, "num_position_embeddings", "is not that of a square");
}

/* SigLIP's pictures have one size; the rows of each are a square, too. */
static void read_square(struct pd_tower_config *out, struct reader *r)
{
    yyjson_val *v = yyjson_obj_get(r->root, "mm_tokens_per_image");
    const struct pd_meta *m = r->root ? NULL : pd_checkpoint_find_meta(r->checkpoint, "gemma3.mm.tokens_per_image");
    uint64_t n_rows = yyjson_is_uint(v) ? yyjson_get_uint(v) : 256;
    out->image_size = read_uint(r, IMAGE_SIZE);
    if (m && !pd_meta_uint(&n_rows, m, 0))
        tower_config_fail(r, "image_size", "is beside mm.tokens_per_image, which is not a count");
    if (r->status != PERIDOT_OK) return;
    uint32_t side = out->image_size / out->patch;
    if (r->root || m) {
        n_rows = pd_min(n_rows, 1 << 24);
        uint32_t row_side = (uint32_t)(sqrt((double)n_rows) + 0.5);
        out->pool = row_side ? side / row_side : 0;
        if ((uint64_t)row_side * row_side != n_rows || out->pool * row_side != side)
            tower_config_fail(r, "image_size", "and mm_tokens_per_image do not divide the patches into squares");
    }
    if (out->image_size % out->patch != 0 || out->pool == 0 || side % out->pool != 0) {
        tower_config_fail(r, "image_size", "is not a whole number of patches, or they of rows");
        return;
    }
    out->n_positions = side * side;
    out->most_rows = side / out->pool * (side / out->pool);
}

/* What a picture may take of memory, whatever a file says. */
static void check_picture(const struct pd_tower_config *t, struct reader *r)
{
    uint64_t n_rows = t->image_size ? t->most_rows : pd_max(t->most_rows, PD_TOWER_MOST_ROWS);
    uint64_t n_patches = n_rows * t->pool * t->pool, n_pixels = n_patches * t->patch * t->patch;
    if (r->status == PERIDOT_OK && (n_pixels > MOST_PIXELS || n_patches > MOST_PATCHES))
        tower_config_fail(r, key_of(r, PATCH), "makes pictures too large");
}

static bool is_true(yyjson_val *object, const char *key) { return yyjson_is_true(yyjson_obj_get(object, key)); }

static void read_switches(struct pd_tower_config *out, const struct reader *r)
{
    out->channels_last = r->root && out->kind != PD_TOWER_SIGLIP && out->kind != PD_TOWER_QWEN;
    out->clamps = is_true(r->vision, "use_clipped_linears");
    out->standardises = is_true(r->vision, "standardize");
    if (r->root) return;
    out->clamps = pd_checkpoint_find(r->checkpoint, "v.blk.0.attn_q.input_min") != NULL;
    out->standardises = pd_checkpoint_find(r->checkpoint, "v.std_bias")
        || pd_checkpoint_find(r->checkpoint, "v.std_bias.weight");
}

/* By the rules of transformers 5 Gemma 4's models with inputs of each layer see no more of an image than of other text,
 * and the others' layers with windows all of it. Up to 5.23 the 12B's forward() has an older rule: see its PR 46850. */
static uint32_t sight_of(const struct pd_tower_config *t, const struct reader *r, const struct pd_config *config)
{
    yyjson_val *text_config = yyjson_obj_get(r->text_root, "text_config");
    const char *says = yyjson_get_str(yyjson_obj_get(text_config, "use_bidirectional_attention"));
    bool both_ways = r->text_root ? says && strcmp(says, "vision") == 0 : config->per_layer_dim == 0;
    if (t->kind == PD_TOWER_QWEN) return 0;
    if (t->kind == PD_TOWER_SIGLIP) return PD_SIGHT_LOCAL | PD_SIGHT_GLOBAL;
    return both_ways ? PD_SIGHT_LOCAL : 0;
}

/* What is as published in all of them, and changes the maths. */
static void check_qwen(struct reader *r)
{
    yyjson_val *act = yyjson_obj_get(r->vision, "hidden_act");
    yyjson_val *frames = yyjson_obj_get(r->vision, "temporal_patch_size");
    if (act && !yyjson_equals_str(act, "gelu_pytorch_tanh"))
        tower_config_fail(r, "hidden_act", "is not gelu_pytorch_tanh, which alone is supported");
    if (frames && yyjson_get_uint(frames) != 2)
        tower_config_fail(r, "temporal_patch_size", "is not 2, which alone is supported");
    if (yyjson_arr_size(yyjson_obj_get(r->vision, "deepstack_visual_indexes")))
        tower_config_fail(r, "deepstack_visual_indexes", "has layers, which is not supported");
}

peridot_status pd_tower_read(struct pd_tower_config *out, const struct pd_checkpoint *c,
                             const struct pd_checkpoint *text, const struct pd_config *config)
{
    struct reader r = {.checkpoint = c, .root = pd_checkpoint_config(c), .text = text,
        .text_root = pd_checkpoint_config(text), .owner = "clip"};
    *out = (struct pd_tower_config){0};
    r.vision = yyjson_obj_get(r.root, "vision_config");
    if (r.root && !yyjson_is_obj(r.vision)) return PERIDOT_OK;
    if (!r.root && c == text && config->n_layers) {
        find_own_kind(&r, config);
        if (!r.kind) return PERIDOT_OK;
    } else {
        PD_TRY(find_kind(&r));
    }
    enum pd_family family = r.kind == PD_TOWER_SIGLIP ? PD_GEMMA3 : r.kind == PD_TOWER_QWEN ? PD_QWEN35 : PD_GEMMA4;
    if (r.kind == PD_TOWER_QWEN && config->family == PD_QWEN35_MOE) family = config->family;   /* the same tower */
    if (config->family != family)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: the vision tower is one of %s, which does not fit %s (%s)",
                       pd_checkpoint_path(c), pd_families[family].name, config->name, pd_families[config->family].name);
    out->kind = r.kind;
    out->d_out = config->d_model;
    read_sizes(out, &r);
    if (out->kind == PD_TOWER_SIGLIP) read_square(out, &r);
    if (out->kind == PD_TOWER_QWEN) check_qwen(&r);
    check_picture(out, &r);
    out->eps = (float)read_float(&r, out->kind == PD_TOWER_SIGLIP ? "layer_norm_eps" : "rms_norm_eps",
                                 "attention.layer_norm_epsilon", 1e-6);
    read_pixels(out, &r);
    read_switches(out, &r);
    tower_config_read_ids(out, &r);
    out->sight = sight_of(out, &r, config);
    return r.status;
}

peridot_status pd_tower_fail_none(const struct pd_checkpoint *text, const struct pd_config *config)
{
    const bool may = config->family == PD_GEMMA3 || config->family == PD_GEMMA4 || config->family == PD_QWEN35
        || config->family == PD_QWEN35_MOE;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s does not see images%s", config->name,
                   may && pd_checkpoint_kind(text) == PD_CHECKPOINT_GGUF ? ": the vision tower of a model that does is "
                   "in a file of its own (mmproj), and none was given" : "");
}
