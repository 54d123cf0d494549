/* Enumerates the pipelines by recording the passes of published shapes with a recorder that compiles kernels and
 * records nothing: weights have shapes and need no memory. */
#include "probe/probe.h"

#include "arch/arch.h"
#include "base/base.h"
#include "engine/pass/pass.h"
#include "engine/sequence/sequence.h"
#include "engine/vision/vision.h"
#include "format/format.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

#define SOMEWHERE 256        /* any address: some kernels are specialised by whether there is one */
#define ONE_TYPE PD_Q4_0     /* of the shapes that are not taken in every type */

/* A shape's parts that a pass points to. */
struct outline {
    struct pd_config config;
    struct pd_weights weights;
    struct pd_slice *slices;     /* [n_layers][PD_N_LAYER_MATRICES] */
    struct pd_cache cache;
    struct pd_scratch scratch;
};

/* One of each kind of decode step: with post norms and GELU, and without and with SiLU. */
static bool takes_every_type(const struct pd_shape *s)
{
    return !strcmp(s->name, "gemma2-2b") || !strcmp(s->name, "llama3.1-8b");
}

/* Experts are published in MXFP4: with biases, and made by others of those without. */
static bool takes_type(const struct pd_shape *s, enum pd_dtype dtype)
{
    bool mxfp4 = !strcmp(s->name, "gpt-oss-20b") || !strcmp(s->name, "qwen3-30b-a3b");
    return dtype == ONE_TYPE || (dtype == PD_MXFP4 && mxfp4)
        || (takes_every_type(s) && pd_device_dtype(dtype) == dtype);
}

/* ---- a model without weights ---- */

static struct pd_matrix matrix(struct pd_slice *slice, enum pd_dtype dtype, uint32_t n_rows, uint32_t n_cols)
{
    *slice = (struct pd_slice){.address = SOMEWHERE, .dtype = dtype, .n_rows = n_rows,
        .row_size = pd_device_row_size(dtype, n_cols), .row_interleave = 1};
    return (struct pd_matrix){.n_rows = n_rows, .n_cols = n_cols, .n_slices = 1, .slices = slice};
}

static struct pd_layer_weights layer_weights(struct pd_slice slices[PD_N_LAYER_MATRICES], const struct pd_config *c,
                                             uint32_t i, enum pd_dtype dtype)
{
    struct pd_layer_weights w = {.output_scale = 1};
    struct pd_plan plan;
    uint32_t n_rows[PD_N_LAYER_MATRICES] = {0}, n_cols[PD_N_LAYER_MATRICES] = {0};
    for (enum pd_role role = PD_FIRST_LAYER_ROLE; role < PD_N_ROLES; role++) {
        if (!pd_plan_get(&plan, c, role, i)) continue;
        if (plan.is_bias) w.linears[plan.matrix].bias = SOMEWHERE;
        else if (plan.n_dims == 1 || plan.is_vector) w.norms[role] = SOMEWHERE;
        else {
            n_rows[plan.matrix] += plan.n_rows * (uint32_t)pd_max(plan.n_experts, 1);
            n_cols[plan.matrix] = plan.n_cols;
            w.linears[plan.matrix].n_experts = plan.n_experts;
        }
    }
    for (int m = 0; m < PD_N_LAYER_MATRICES; m++)
        if (n_rows[m]) w.linears[m].w = matrix(&slices[m], dtype, n_rows[m], n_cols[m]);
    return w;
}

static struct pd_rows rows(uint32_t i, uint64_t width)
{
    return (struct pd_rows){.address = SOMEWHERE * (uint64_t)i, .stride = (uint32_t)pd_align(width, PD_PAD)};
}

static struct pd_scratch scratch(const struct pd_config *c)
{
    const struct pd_layer_sizes most = pd_layers_largest(c);
    return (struct pd_scratch){.delta = rows(20, most.q_dim), .conv = rows(21, most.conv_dim),
        .x = rows(1, c->d_model), .x_other = rows(2, c->d_model), .normed = rows(3, c->d_model),
        .branch = rows(4, c->d_model), .qkv = rows(5, most.qkv_dim), .att = rows(6, most.q_dim),
        .gate_up = rows(7, 2 * (uint64_t)most.ffn_dim), .act = rows(8, most.ffn_dim), .partial = SOMEWHERE,
        .per_layer = rows(10, (uint64_t)c->n_layers * c->per_layer_dim),
        .per_layer_model = rows(11, (uint64_t)c->n_layers * c->per_layer_dim),
        .per_layer_gate = rows(12, c->per_layer_dim), .per_layer_act = rows(13, c->per_layer_dim),
        .router = rows(14, most.n_experts), .expert_x = rows(15, c->d_model), .experts = rows(16, c->d_model),
        .expert_both = rows(17, 2 * (uint64_t)most.expert_dim), .expert_act = rows(18, most.expert_dim),
        .expert_out = rows(19, c->d_model), .routes = {.choices = SOMEWHERE, .slots = SOMEWHERE}};
}

static void outline_free(struct outline *o)
{
    free(o->weights.layers);
    free(o->cache.layers);
    free(o->slices);
    pd_config_free(&o->config);
}

static peridot_status outline_create(struct outline *o, const struct pd_shape *shape)
{
    *o = (struct outline){0};
    peridot_status status = pd_shape_config(&o->config, shape);
    o->weights.layers = calloc(shape->n_layers, sizeof *o->weights.layers);
    o->cache.layers = calloc(shape->n_layers, sizeof *o->cache.layers);
    o->slices = calloc((size_t)shape->n_layers * PD_N_LAYER_MATRICES, sizeof *o->slices);
    if (status == PERIDOT_OK && (!o->weights.layers || !o->cache.layers || !o->slices))
        status = pd_fail_alloc(shape->n_layers * sizeof *o->weights.layers, "layers");
    if (status != PERIDOT_OK) outline_free(o);
    o->weights.output_norm = SOMEWHERE;
    if (pd_families[shape->family].embed_norm) o->weights.embed_norm = SOMEWHERE;
    if (status == PERIDOT_OK) o->scratch = scratch(&o->config);
    return status;
}

/* ---- its passes ---- */

static void record_passes(struct pd_forward_args *pass)
{
    static const uint32_t n_tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 32, 48, 64, 128, 256, 1024};
    struct pd_rows logits = rows(9, pass->weights->vocab_size);
    for (size_t i = 0; i < PD_COUNT(n_tokens); i++) {
        pass->n_tokens = n_tokens[i];
        pd_forward(pass, &logits);
        pd_forward(pass, NULL);
        pd_forward_head(pass, logits, 0, n_tokens[i]);
        if (n_tokens[i] > PD_MAX_SEQUENCES) continue;
        pass->n_decode = n_tokens[i];
        pd_forward(pass, &logits);
        pd_forward(pass, NULL);
        pass->n_decode = 0;
    }
    pd_op_topk(pass->recorder, &(struct pd_topk){.logits = logits, .n = pass->weights->vocab_size, .n_rows = 1,
        .best = SOMEWHERE, .scratch = {SOMEWHERE, SOMEWHERE}});
    pd_op_sample(pass->recorder, &(struct pd_sample_push){0}, 1);
}

static peridot_status compile_shape(struct pd_gpu *gpu, const struct pd_shape *shape, enum pd_dtype dtype,
                                    peridot_kv_type kv_type, struct pd_variants variants)
{
    struct outline o;
    struct pd_slice embedding, per_layer[2];
    struct pd_recorder recorder = {.gpu = gpu, .variants = variants,
        .split_sums = pd_split_sums_size(&variants, pd_gpu_info(gpu)) ? SOMEWHERE : 0};
    PD_TRY(outline_create(&o, shape));
    for (uint32_t i = 0; i < shape->n_layers; i++) {
        o.weights.layers[i] = layer_weights(o.slices + i * PD_N_LAYER_MATRICES, &o.config, i, dtype);
        o.cache.layers[i] = (struct pd_kv){.k = SOMEWHERE, .v = SOMEWHERE, .type = kv_type};
    }
    o.weights.vocab_size = o.weights.n_outputs = shape->vocab_size;
    o.weights.end_layer = shape->n_layers;
    o.weights.has_output = true;
    o.weights.embedding = matrix(&embedding, dtype, shape->vocab_size, shape->d_model);
    o.weights.output = (struct pd_linear){.w = o.weights.embedding, .softcap = o.config.final_softcap};
    o.weights.lookup = (struct pd_table){.matrix = &o.weights.embedding, .rows_per_slice = shape->vocab_size};
    if (o.config.per_layer_dim) {
        uint32_t n = shape->n_layers * o.config.per_layer_dim;
        o.weights.per_layer_embedding = matrix(&per_layer[0], dtype, shape->vocab_size, n);
        o.weights.per_layer_lookup =
            (struct pd_table){.matrix = &o.weights.per_layer_embedding, .rows_per_slice = shape->vocab_size};
        o.weights.per_layer_model_proj.w =
            matrix(&per_layer[1], dtype == PD_F32 ? dtype : PD_BF16, n, shape->d_model);   /* never quantised */
        o.weights.per_layer_model_norm = SOMEWHERE;
    }
    struct pd_forward_args pass = {.recorder = &recorder, .config = &o.config, .weights = &o.weights,
        .cache = &o.cache,
        .scratch = &o.scratch, .runs = SOMEWHERE, .n_runs = 1, .tokens = SOMEWHERE, .places = {SOMEWHERE, SOMEWHERE},
        .angles = {SOMEWHERE, SOMEWHERE, SOMEWHERE, SOMEWHERE}};
    record_passes(&pass);
    outline_free(&o);
    return recorder.status;
}

/* ---- vision towers ---- */

/* Published ones: those of Gemma 3, of Gemma 4 E2B and E4B, 26B and 31B, and 12B, and of Qwen 3.5. */
static const struct pd_tower_config towers[] = {
    {.kind = PD_TOWER_SIGLIP, .n_layers = 1, .d_model = 1152, .ffn_dim = 4304, .n_heads = 16, .head_dim = 72,
     .d_out = 2560, .patch = 14, .pool = 4, .most_rows = 256},
    {.kind = PD_TOWER_GEMMA4, .n_layers = 1, .d_model = 768, .ffn_dim = 3072, .n_heads = 12, .head_dim = 64,
     .d_out = 1536, .patch = 16, .pool = 3, .most_rows = 280, .clamps = true},
    {.kind = PD_TOWER_GEMMA4, .n_layers = 1, .d_model = 1152, .ffn_dim = 4304, .n_heads = 16, .head_dim = 72,
     .d_out = 5376, .patch = 16, .pool = 3, .most_rows = 280, .standardises = true},
    {.kind = PD_TOWER_PATCHES, .d_model = 3840, .d_out = 3840, .patch = 48, .pool = 1, .most_rows = 280},
    {.kind = PD_TOWER_QWEN, .n_layers = 1, .d_model = 1152, .ffn_dim = 4304, .n_heads = 16, .head_dim = 72,
     .d_out = 4096, .patch = 16, .pool = 2, .most_rows = PD_TOWER_MOST_ROWS},
};

struct tower_outline {
    struct pd_slice slices[PD_N_TOWER_ROLES];
    struct pd_tower_block layer;   /* layers are alike */
    struct pd_tower_weights weights;
};

/* Files that are quantised have fp16 where rows are no whole blocks. */
static void outline_tower(struct tower_outline *o, const struct pd_tower_config *c, enum pd_dtype dtype)
{
    *o = (struct tower_outline){.weights = {.layers = &o->layer, .ones = SOMEWHERE}};
    for (enum pd_tower_role role = 0; role < PD_N_TOWER_ROLES; role++) {
        struct pd_tower_block *block = role < PD_FIRST_TOWER_LAYER_ROLE ? &o->weights.once : &o->layer;
        struct pd_tower_plan plan;
        if (!pd_tower_plan_get(&plan, c, role)) continue;
        uint64_t bias = plan.has_bias ? SOMEWHERE : 0;
        enum pd_dtype type = plan.n_cols % pd_dtypes[dtype].block_len ? PD_F16 : dtype;
        if (plan.n_rows)
            block->linears[role].linear =
                (struct pd_linear){.w = matrix(&o->slices[role], type, plan.n_rows, plan.n_cols), .bias = bias};
        else block->norms[role] = (struct pd_tower_norm){SOMEWHERE, bias};
    }
}

/* Of one row of patches that become one, and of as many as there may be. */
static peridot_status compile_tower(struct pd_gpu *gpu, const struct pd_tower_config *c, enum pd_dtype dtype,
                                    struct pd_variants variants)
{
    struct tower_outline o;
    struct pd_recorder recorder = {.gpu = gpu, .variants = variants, .chunk = true,
        .split_sums = pd_split_sums_size(&variants, pd_gpu_info(gpu)) ? SOMEWHERE : 0};
    uint64_t q_dim = (uint64_t)c->n_heads * c->head_dim;
    struct pd_tower_pass pass = {.recorder = &recorder, .config = c, .weights = &o.weights, .n_columns = c->pool,
        .scratch = {.patches = rows(1, pd_tower_patch_dim(c)), .x = rows(2, c->d_model),
            .positions = rows(3, c->d_model), .normed = rows(4, c->d_model), .branch = rows(5, c->d_model),
            .clamped = rows(6, c->d_model), .qkv = rows(7, 3 * q_dim), .att = rows(8, q_dim),
            .gate = rows(9, c->ffn_dim), .up = rows(10, c->ffn_dim), .out = rows(11, c->d_out), .places = SOMEWHERE,
            .angles = SOMEWHERE,
            .kv = {.k = SOMEWHERE, .v = SOMEWHERE, .pages = SOMEWHERE, .type = pd_tower_kv_type(&variants)}}};
    const uint32_t n_rows[] = {1, 16, c->most_rows};
    outline_tower(&o, c, dtype);
    for (size_t i = 0; i < PD_COUNT(n_rows); i++) {
        pass.n = n_rows[i] * c->pool * c->pool;
        for (uint32_t stage = 0; stage < pd_tower_n_stages(c); stage++) pd_tower_forward(&pass, stage);
    }
    return recorder.status;
}

/* In the types of published files. */
static peridot_status compile_towers(struct pd_gpu *gpu, struct pd_variants variants)
{
    static const enum pd_dtype types[] = {PD_F32, PD_F16, PD_BF16, PD_Q8_0, ONE_TYPE};
    for (size_t i = 0; i < PD_COUNT(towers); i++)
        for (size_t k = 0; k < PD_COUNT(types); k++) PD_TRY(compile_tower(gpu, &towers[i], types[k], variants));
    return PERIDOT_OK;
}

/* Of decode steps and chunks. */
static peridot_status compile_adapters(struct pd_gpu *gpu, struct pd_variants variants)
{
    static const uint32_t n_tokens[] = {1, 4, 32, 256};
    struct pd_slice slices[2];
    const struct pd_lora lora = {.a = {.w = matrix(&slices[0], PD_F32, 16, 2048), .exact = true}, .b = SOMEWHERE,
        .parts = SOMEWHERE, .n_parts = 1};
    const struct pd_linear linear = {.w = matrix(&slices[1], PD_F16, 2048, 2048), .lora = &lora};
    struct pd_recorder recorder = {.gpu = gpu, .variants = variants, .lora = rows(3, 16), .lora_scales = SOMEWHERE,
        .n_adapters = 1, .split_sums = pd_split_sums_size(&variants, pd_gpu_info(gpu)) ? SOMEWHERE : 0};
    for (size_t i = 0; i < PD_COUNT(n_tokens); i++)
        for (int decode = 0; decode < 2; decode++) {
            recorder.decode = decode;
            recorder.chunk = !decode;
            pd_op_linear(&recorder, rows(1, 2048), &linear, rows(2, 2048), n_tokens[i]);
        }
    return recorder.status;
}

peridot_status pd_pipelines_compile(struct pd_gpu *gpu)
{
    struct pd_variants variants = pd_variants_default(pd_gpu_info(gpu));
    for (size_t i = 0; pd_shape_get(i); i++) {
        const struct pd_shape *shape = pd_shape_get(i);
        if (strncmp(shape->name, "tiny", 4) == 0) continue;   /* for tests */
        for (enum pd_dtype dtype = 0; dtype < PD_N_DTYPES; dtype++)
            if (takes_type(shape, dtype)) PD_TRY(compile_shape(gpu, shape, dtype, PERIDOT_KV_F16, variants));
        for (int type = PERIDOT_KV_F32; type < PD_N_KV_TYPES; type++)
            if (type <= PERIDOT_KV_Q8_0 || takes_every_type(shape))
                PD_TRY(compile_shape(gpu, shape, ONE_TYPE, (peridot_kv_type)type, variants));
    }
    PD_TRY(compile_towers(gpu, variants));
    PD_TRY(compile_adapters(gpu, variants));
    return pd_measure_compile(gpu);
}

/* ---- reporting ---- */

struct reporter {
    struct pd_gpu *gpu;
    peridot_pipeline_call call;
    void *user;
    bool stopped;
};

static peridot_status report_kernel(struct reporter *r, const struct pd_kernel *kernel)
{
    struct pd_executable *executables;
    uint32_t n;
    peridot_pipeline p = {.kernel = pd_kernel_name(pd_kernel_id_of(kernel)), .used = true, .executable = ""};
    p.spec = pd_kernel_spec(kernel, &p.n_spec);
    PD_TRY(pd_kernel_executables(&executables, &n, r->gpu, kernel));
    if (n == 0) r->stopped = !r->call(r->user, &p);
    for (uint32_t i = 0; i < n && !r->stopped; i++) {
        const struct pd_executable *e = &executables[i];
        p.executable = e->name;
        p.subgroup_size = e->subgroup_size;
        p.statistics = e->statistics;
        p.n_statistics = e->n_statistics;
        p.assembly = e->assembly;
        r->stopped = !r->call(r->user, &p);
    }
    pd_executables_free(executables, n);
    return PERIDOT_OK;
}

peridot_status pd_pipelines_report(struct pd_gpu *gpu, peridot_pipeline_call call, void *user)
{
    struct reporter r = {.gpu = gpu, .call = call, .user = user};
    bool used[PD_N_KERNELS] = {false};
    for (int id = 0; id < PD_N_KERNELS; id++)
        for (const struct pd_kernel *k = pd_kernel_next(gpu, NULL); k && !r.stopped; k = pd_kernel_next(gpu, k)) {
            if ((int)pd_kernel_id_of(k) != id) continue;
            used[id] = true;
            PD_TRY(report_kernel(&r, k));
        }
    for (int id = 0; id < PD_N_KERNELS && !r.stopped; id++) {
        peridot_pipeline unused = {.kernel = pd_kernel_name((enum pd_kernel_id)id), .executable = ""};
        if (!used[id]) r.stopped = !call(user, &unused);
    }
    return PERIDOT_OK;
}
