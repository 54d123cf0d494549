/* What a decode step costs, and models on devices that are made small: allocations so limited that every matrix is in
 * many slices, too little memory, and pipeline caches that were damaged on disk. */
#define _DEFAULT_SOURCE   /* madvise, syscall */
#include "format_fixture.h"

#include "engine/load/load.h"
#include "engine/rounds/rounds.h"
#include "engine/memory/memory.h"
#include "gpu/gpu_.h"
#include "peridot_tools.h"

#include <math.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t gpu_memory;   /* of the models that are opened */
static bool discrete;         /* they are to think that the device has memory of its own */

/* A model whose device may be changed before its weights are loaded. max_block, heap_size 0: the device's own. */
struct small {
    struct pd_model m;
    struct pd_checkpoint *checkpoint;
};

static peridot_status open_parts(struct small *s, const char *path, uint64_t max_block, uint64_t heap_size)
{
    PD_TRY(pd_checkpoint_open(&s->checkpoint, path, true));
    PD_TRY(pd_config_read(&s->m.config, s->checkpoint));
    PD_TRY(pd_gpu_open(&s->m.gpu, NULL, NULL));
    s->m.variants = pd_variants_default(pd_gpu_info(s->m.gpu));
    uint64_t block = s->m.gpu->max_block;
    if (max_block) s->m.gpu->max_block = max_block;
    if (heap_size) s->m.gpu->info.heap_size = heap_size;
    if (discrete) s->m.gpu->info.unified_memory = false, s->m.gpu->import_alignment = 0;
    PD_TRY(pd_weights_load(&s->m.weights, s->m.gpu, &s->m.config, s->checkpoint,
                           &(struct pd_load_params){.gpu_memory = gpu_memory}));
    s->m.gpu->max_block = block;
    s->m.n_pieces = s->m.weights.vocab_size;
    return PERIDOT_OK;
}

static void close_small(struct small *s)
{
    if (s->m.gpu) pd_weights_free(&s->m.weights, &s->m.config);
    pd_gpu_close(s->m.gpu);
    pd_config_free(&s->m.config);
    pd_checkpoint_close(s->checkpoint);
}

/* In place, as weights point into themselves. */
static void open_small(struct small *s, const char *path, uint64_t max_block)
{
    *s = (struct small){0};
    EXPECT_OK(open_parts(s, path, max_block, 0));
}

static const int32_t some_tokens[] = {2, 17, 99, 5, 201, 33, 64, 150, 7, 8, 9, 240, 12, 100, 111, 222, 3, 3, 77, 180};
enum { N_TOKENS = PD_COUNT(some_tokens) };

/* A session of one sequence. */
static peridot_status open_one(struct pd_session **s, struct pd_sequence **q, struct pd_model *model,
                               const peridot_session_params *params)
{
    PD_TRY(pd_session_create(s, model, params));
    return pd_session_add(q, *s);
}

static peridot_status eval(struct pd_session *s, struct pd_sequence *q, const int32_t *tokens, size_t n,
                           const struct pd_eval_params *params)
{
    return pd_session_eval(s, &(struct pd_prompt){.sequence = q, .tokens = tokens, .n_left = n}, 1, params);
}

/* ---- a step ---- */

/* Also the first step of a session, and selecting from all candidates or the best few. */
static void test_step_allocates_nothing(void **state)
{
    (void)state;
    struct small model;
    open_small(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 0);
    struct pd_session *s;
    struct pd_sequence *q;
    const float *logits;
    int32_t token = 2;
    EXPECT_OK(open_one(&s, &q, &model.m, &(peridot_session_params){.ctx = 64, .chunk = 16}));
    EXPECT_OK(eval(s, q, &token, 1, NULL));
    EXPECT_OK(pd_session_logits(&logits, s, q));
    uint64_t allocated = pd_gpu_allocated(model.m.gpu);
    uint32_t n_pipelines = pd_gpu_n_pipelines(model.m.gpu);
    assert_true(allocated > 100000 && n_pipelines >= 8);
    EXPECT_OK(eval(s, q, some_tokens, 5, NULL));
    for (int i = 0; i < 30; i++) {
        EXPECT_OK(eval(s, q, &token, 1, NULL));
        pd_session_set_sampling(s, q, i % 2 ? &(peridot_sampling){.temperature = 1, .seed = (uint64_t)i} : NULL);
        EXPECT_OK(pd_session_sample(&token, s, q));
    }
    assert_int_equal(pd_gpu_allocated(model.m.gpu), allocated);
    assert_int_equal(pd_gpu_n_pipelines(model.m.gpu), n_pipelines);
    pd_session_free(s);
    close_small(&model);
}

/* Steps of several sequences neither, whichever of them take part. */
static void test_steps_of_several_allocate_nothing(void **state)
{
    (void)state;
    struct small model;
    open_small(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 0);
    struct pd_session *s;
    struct pd_sequence *q[3];
    EXPECT_OK(pd_session_create(&s, &model.m, &(peridot_session_params){.ctx = 64, .chunk = 16, .n_sequences = 3}));
    for (int i = 0; i < 3; i++) EXPECT_OK(pd_session_add(&q[i], s));
    EXPECT_OK(eval(s, q[0], some_tokens, 5, NULL));
    uint64_t allocated = pd_gpu_allocated(model.m.gpu);
    uint32_t n_pipelines = pd_gpu_n_pipelines(model.m.gpu);
    for (int i = 1; i < 32; i++) {
        struct pd_prompt prompts[3];
        uint32_t n = 0;
        int32_t token = i;
        for (int k = 0; k < 3; k++)
            if (i & 1 << k) prompts[n++] = (struct pd_prompt){.sequence = q[k], .tokens = &token, .n_left = 1};
        EXPECT_OK(pd_session_eval(s, prompts, n, NULL));
        int32_t drawn;
        if (q[i % 3]->logits_pass) EXPECT_OK(pd_session_sample(&drawn, s, q[i % 3]));
    }
    assert_int_equal(pd_gpu_allocated(model.m.gpu), allocated);
    assert_int_equal(pd_gpu_n_pipelines(model.m.gpu), n_pipelines);
    pd_session_free(s);
    close_small(&model);
}

/* With as many splits of keys as a GPU takes, a deep sequence beside one that begins comes to what it is alone. */
static void test_steps_split_keys(void **state)
{
    (void)state;
    enum { DEEP = 200, MAX_WIDTH = 512 };
    static float want[2][MAX_WIDTH];
    const int32_t next[] = {7, 9};
    struct small model;
    struct pd_session *s;
    struct pd_sequence *q[2];
    const float *logits;
    open_small(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 0);
    model.m.gpu->info.type = PERIDOT_DEVICE_DISCRETE;
    uint32_t width = model.m.weights.n_outputs;
    for (int together = 0; together < 2; together++) {
        peridot_session_params params = {.ctx = 256, .chunk = 64, .kv_type = PERIDOT_KV_F32, .n_sequences = 2};
        EXPECT_OK(pd_session_create(&s, &model.m, &params));
        for (int i = 0; i < 2; i++) EXPECT_OK(pd_session_add(&q[i], s));
        for (uint32_t done = 0; done < DEEP; done += N_TOKENS) EXPECT_OK(eval(s, q[0], some_tokens, N_TOKENS, NULL));
        struct pd_prompt prompts[] = {{.sequence = q[0], .tokens = &next[0], .n_left = 1},
                                      {.sequence = q[1], .tokens = &next[1], .n_left = 1}};
        if (together) EXPECT_OK(pd_session_eval(s, prompts, 2, NULL));
        for (int i = 0; i < 2; i++) {
            if (!together) EXPECT_OK(pd_session_eval(s, &prompts[i], 1, NULL));
            EXPECT_OK(pd_session_logits(&logits, s, q[i]));
            if (!together) memcpy(want[i], logits, sizeof *logits * width);
            else assert_memory_equal(logits, want[i], sizeof *logits * width);
        }
        if (together) {
            const struct pd_step *step =
                s->decoder.passes[(s->decoder.next + PD_N_STEPS - 1) % PD_N_STEPS].input.step.host;
            assert_int_equal(model.m.config.layers[1].window, 0);
            assert_int_equal(step->dispatch[model.m.config.layers[1].kind][1], 4);
        }
        pd_session_free(s);
    }
    close_small(&model);
}

/* A session gives back what it took. */
static void test_session_frees(void **state)
{
    (void)state;
    struct small model;
    open_small(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 0);
    uint64_t before = 0;
    for (int i = 0; i < 3; i++) {
        struct pd_session *s;
        struct pd_sequence *q;
        const float *logits;
        EXPECT_OK(open_one(&s, &q, &model.m, &(peridot_session_params){.ctx = 64, .chunk = 16, .n_sequences = 2}));
        EXPECT_OK(eval(s, q, some_tokens, N_TOKENS, NULL));
        EXPECT_OK(pd_session_logits(&logits, s, q));
        pd_session_free(s);
        if (i) assert_int_equal(pd_gpu_allocated(model.m.gpu), before);
        before = pd_gpu_allocated(model.m.gpu);
    }
    close_small(&model);
}

/* ---- small allocations ---- */

struct sum {
    float *rows;
    size_t n;
};

static bool add_row(void *user, struct pd_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct sum *sum = user;
    (void)q, (void)pos;
    sum->rows = realloc(sum->rows, sizeof *row * (sum->n + n));
    memcpy(sum->rows + sum->n, row, sizeof *row * n);
    sum->n += n;
    return true;
}

/* Logits of a prompt in a chunk, then of steps. */
static struct sum eval_all(struct small *model)
{
    struct sum sum = {0};
    struct pd_session *s;
    struct pd_sequence *q;
    const struct pd_eval_params rows = {.outputs = {.logits = add_row, .user = &sum}};
    EXPECT_OK(open_one(&s, &q, &model->m, &(peridot_session_params){.ctx = 64, .chunk = 16}));
    EXPECT_OK(eval(s, q, some_tokens, 13, &rows));
    for (uint32_t i = 13; i < N_TOKENS; i++) EXPECT_OK(eval(s, q, some_tokens + i, 1, &rows));
    pd_session_free(s);
    return sum;
}

static void expect_close(struct sum a, struct sum b)
{
    double error = 0, norm = 0;
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++) {
        error += ((double)a.rows[i] - (double)b.rows[i]) * ((double)a.rows[i] - (double)b.rows[i]);
        norm += (double)b.rows[i] * (double)b.rows[i];
    }
    if (!(sqrt(error / norm) < 1e-6)) fail_msg("split matrices change logits by %g", sqrt(error / norm));
}

/* The sums of a row do not depend on where the row lies. */
static void test_small_blocks(void **state)
{
    (void)state;
    static const char *const paths[] = {PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf",
                                        PERIDOT_GOLDEN "/gemma2-q4_0/model.gguf",
                                        PERIDOT_GOLDEN "/gemma3-mixed/model.gguf",
                                        PERIDOT_GOLDEN "/gemma4-small"};
    static const uint64_t blocks[] = {1024, 4096};
    for (size_t p = 0; p < PD_COUNT(paths); p++) {
        struct small whole;
        open_small(&whole, paths[p], 0);
        struct sum want = eval_all(&whole);
        close_small(&whole);
        /* the last has so many rows of its table in one block that their addresses fit, too */
        for (size_t b = p == PD_COUNT(paths) - 1; b < PD_COUNT(blocks); b++) {
            struct small split;
            open_small(&split, paths[p], blocks[b]);
            if (p < 2)
                assert_true(split.m.weights.embedding.n_slices >= 6 / (b + 1)); /* others may be read in place */
            struct sum got = eval_all(&split);
            expect_close(got, want);
            free(got.rows);
            close_small(&split);
        }
        free(want.rows);
    }
}

/* A group of rows does not fit into a piece of an upload: they lie one by one. Where one does not, it is refused. */
static void test_long_rows(void **state)
{
    (void)state;
    enum { N_COLS = 17 << 17, N_ROWS = 9, BLOCK = 34 };
    struct small s;
    open_small(&s, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 0);
    uint64_t size = (uint64_t)N_COLS / 32 * BLOCK * N_ROWS;
    uint8_t *data = calloc(1, size);
    assert_non_null(data);
    struct pd_tensor t = {.name = "long", .dtype = PD_Q8_0, .n_dims = 2, .shape = {N_ROWS, N_COLS, 1, 1}, .data = data,
        .size = size};
    const struct pd_load_rows rows = {.at = {&t}, .n = 1, .copied = true};
    struct pd_loader l = {.w = &s.m.weights, .gpu = s.m.gpu, .config = &s.m.config,
        .source.checkpoint = s.checkpoint, .params = &(struct pd_load_params){0}};
    struct pd_matrix m = {0};
    EXPECT_OK(pd_load_matrix(&l, &m, &rows, N_COLS));
    assert_int_equal(m.n_slices, 1);
    assert_int_equal(m.slices[0].row_interleave, 1);
    assert_int_equal(l.done, size);
    free(m.slices);
    t.shape[1] = (16 << 20) + 32;
    t.size = t.shape[1] / 32 * BLOCK * N_ROWS;
    m = (struct pd_matrix){0};
    EXPECT_FAILURE(pd_load_matrix(&l, &m, &rows, (uint32_t)t.shape[1]), PERIDOT_ERROR_UNSUPPORTED, "long has rows");
    close_small(&s);
    free(data);
}

/* ---- small memory ---- */

/* Where the process may have no more addresses (ulimit -v), whatever the driver says of that. */
static void test_no_addresses(void **state)
{
    (void)state;
    enum { SIZE = 64 << 20, ROOM = 16 << 20 };
    struct rlimit most, little;
    struct pd_gpu *gpu;
    struct pd_heap *heap;
    struct pd_span span;
    unsigned long n_pages = 0;
    EXPECT_OK(pd_gpu_open(&gpu, NULL, NULL));
    EXPECT_OK(pd_heap_create(&heap, gpu, PD_HEAP_HOST, SIZE));
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &n_pages), 1);
    fclose(file);
    assert_int_equal(getrlimit(RLIMIT_AS, &most), 0);
    little = (struct rlimit){n_pages * (rlim_t)sysconf(_SC_PAGESIZE) + ROOM, most.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    peridot_status status = pd_heap_alloc(&span, heap, SIZE, "a test");
    assert_int_equal(setrlimit(RLIMIT_AS, &most), 0);
    assert_int_equal(status, PERIDOT_ERROR_MEMORY);
    EXPECT_OK(pd_heap_alloc(&span, heap, SIZE, "a test"));
    memset(span.host, 1, SIZE);
    pd_heap_free(heap);
    pd_gpu_close(gpu);
}

/* Every failure leaves the device as it was. */
static void test_small_memory(void **state)
{
    (void)state;
    struct small model = {0};
    struct pd_session *s;
    EXPECT_FAILURE(open_parts(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 0, 50000), PERIDOT_ERROR_MEMORY,
                   "model needs", "0.1 MB");
    assert_int_equal(pd_gpu_allocated(model.m.gpu), 0);
    close_small(&model);
    open_small(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 0);
    uint64_t heap_size = model.m.gpu->info.heap_size, allocated = pd_gpu_allocated(model.m.gpu);
    model.m.gpu->info.heap_size = allocated + 10000;
    EXPECT_FAILURE(pd_session_create(&s, &model.m, &(peridot_session_params){.ctx = 512}), PERIDOT_ERROR_MEMORY,
                   "KV cache needs", "MB free of");
    assert_null(s);
    assert_int_equal(pd_gpu_allocated(model.m.gpu), allocated);
    model.m.gpu->info.heap_size =
        allocated +
        pd_cache_size(&model.m.config, &(struct pd_cache_shape){5, 512, 5 * 512, 32, 0, PD_N_DEVICE_SNAPSHOTS,
            PERIDOT_KV_F32, 0, 0, 0, NULL});
    peridot_session_params many = {
        .ctx = 512, .chunk = 16, .kv_type = PERIDOT_KV_F32, .n_sequences = 6}; /* one too many */
    EXPECT_FAILURE(pd_session_create(&s, &model.m, &many), PERIDOT_ERROR_MEMORY, "KV cache needs", "MB free of");
    many.n_sequences = 5;
    EXPECT_OK(pd_session_create(&s, &model.m, &many));
    pd_session_free(s);
    model.m.gpu->info.heap_size = heap_size;
    EXPECT_OK(pd_session_create(&s, &model.m, &(peridot_session_params){.ctx = 512}));
    pd_session_free(s);
    model.m.gpu->max_block = 4096;   /* and one allocation too large for the device */
    EXPECT_FAILURE(pd_session_create(&s, &model.m, &(peridot_session_params){.ctx = 512}), PERIDOT_ERROR_MEMORY,
                   "in one piece");
    assert_int_equal(pd_gpu_allocated(model.m.gpu), allocated);
    close_small(&model);
}

/* ---- weights in the host's memory ---- */

static void open_placed(struct small *s, const char *path, uint64_t memory)
{
    gpu_memory = memory;
    open_small(s, path, 0);
}

/* From all on the device to all but the norms on the host: logits are what they are. */
static void test_placement(void **state)
{
    (void)state;
    static const struct { const char *path; bool tied, has_table; uint32_t part_of_experts; } models[] = {
        {PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", true, false, 0}, {PERIDOT_GOLDEN "/gemma4-moe", false, false, 4},
        {PERIDOT_GOLDEN "/llama-quants/model.gguf", false, false, 0}, {PERIDOT_GOLDEN "/gemma4", true, false, 0},
        {PERIDOT_GOLDEN "/gemma4-small/model.gguf", true, true, 0}, {PERIDOT_GOLDEN "/dense/qwen35", true, false, 0}};
    for (size_t p = 0; p < PD_COUNT(models); p++) {
        struct small model;
        discrete = true;
        open_placed(&model, models[p].path, 0);
        struct sum want = eval_all(&model);
        uint64_t size = model.m.weights.size, read = model.m.weights.decode_read_size, before = UINT64_MAX;
        /* what gives layers their inputs is always on the host */
        uint64_t table = model.m.weights.host_resident_size;
        uint32_t n_layers = model.m.config.n_layers;
        assert_int_equal(table != 0, models[p].has_table);
        close_small(&model);
        for (uint64_t percent = 100; percent <= 100; percent -= 30) {
            uint64_t memory = size * percent / 100;
            open_placed(&model, models[p].path, memory);
            const struct pd_weights *w = &model.m.weights;
            assert_true(w->size <= memory && w->size <= before && w->size + w->host_resident_size == size + table);
            assert_int_equal(w->decode_read_size, read);
            assert_true(w->decode_host_resident_size <= w->host_resident_size - table);
            assert_int_equal(w->host_resident_size == table, memory == size);
            if (w->host_resident_size > table &&
                w->n_host_resident_layers < n_layers) /* an embedding that is also the output stays longest */
                assert_true(models[p].tied ? w->decode_host_resident_size == w->host_resident_size - table
                                           : w->decode_host_resident_size < w->host_resident_size);
            /* experts go first, of which a step reads a part */
            if (models[p].part_of_experts && percent > 30)
                assert_true(w->decode_host_resident_size * models[p].part_of_experts <= w->host_resident_size);
            assert_true(pd_gpu_allocated(model.m.gpu) <= w->size + (1 << 16));
            struct sum got = eval_all(&model);
            assert_int_equal(got.n, want.n);
            assert_memory_equal(got.rows, want.rows, want.n * sizeof *want.rows);
            free(got.rows);
            before = w->size;
            close_small(&model);
        }
        assert_true(before < size / 4);
        free(want.rows);
    }
    struct small model = {0};
    gpu_memory = 1000;
    EXPECT_FAILURE(open_parts(&model, models[0].path, 0, 0), PERIDOT_ERROR_MEMORY,
                   "0.001 MB of GPU memory is too little", "the norms alone");
    close_small(&model);
    model = (struct small){0};
    gpu_memory = 0;
    EXPECT_FAILURE(open_parts(&model, models[0].path, 0, 50000), PERIDOT_ERROR_MEMORY, "model needs", "--gpu-memory");
    close_small(&model);
    discrete = false;
    open_placed(&model, models[0].path, 1000);
    assert_int_equal(model.m.weights.host_resident_size, 0);   /* one memory: nothing to place */
    close_small(&model);
    gpu_memory = 0;
}

/* ---- compiling kernels together ---- */

static PFN_vkCreateComputePipelines create_pipelines;

/* Refuses workgroups of 128. */
static VkResult VKAPI_CALL refuse_some(VkDevice device, VkPipelineCache cache, uint32_t n,
                                       const VkComputePipelineCreateInfo *create,
                                       const VkAllocationCallbacks *allocator, VkPipeline *out)
{
    uint32_t workgroup;
    memcpy(&workgroup, create->stage.pSpecializationInfo->pData, sizeof workgroup);
    if (workgroup == 128) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return create_pipelines(device, cache, n, create, allocator, out);
}

static void test_gather(void **state)
{
    (void)state;
    struct pd_gpu *gpu;
    const struct pd_kernel *kernels[3], *again;
    const uint32_t specs[3][2] = {{64, 0}, {128, 0}, {64, 1}};
    EXPECT_OK(pd_gpu_open(&gpu, NULL, NULL));
    create_pipelines = gpu->vk.vkCreateComputePipelines;
    gpu->vk.vkCreateComputePipelines = refuse_some;
    pd_kernels_defer(gpu);
    for (int i = 0; i < 3; i++) EXPECT_OK(pd_kernel_get(&kernels[i], gpu, PD_KERNEL_glu, specs[i], 2));
    EXPECT_OK(pd_kernel_get(&again, gpu, PD_KERNEL_glu, specs[0], 2));
    assert_ptr_equal(again, kernels[0]);
    assert_int_equal(pd_gpu_n_pipelines(gpu), 0);
    EXPECT_FAILURE(pd_kernels_compile_deferred(gpu, NULL, NULL), PERIDOT_ERROR_DEVICE, "glu");
    assert_int_equal(pd_gpu_n_pipelines(gpu), 2);
    for (int i = 0; i < 3; i += 2) {
        EXPECT_OK(pd_kernel_get(&again, gpu, PD_KERNEL_glu, specs[i], 2));
        assert_ptr_equal(again, kernels[i]);
        assert_true(again->pipeline != VK_NULL_HANDLE);
    }
    EXPECT_FAILURE(pd_kernel_get(&again, gpu, PD_KERNEL_glu, specs[1], 2), PERIDOT_ERROR_DEVICE, "glu");
    gpu->vk.vkCreateComputePipelines = create_pipelines;
    EXPECT_OK(pd_kernel_get(&again, gpu, PD_KERNEL_glu, specs[1], 2));
    assert_int_equal(pd_gpu_n_pipelines(gpu), 3);
    EXPECT_OK(pd_kernels_compile_deferred(gpu, NULL, NULL));   /* nothing */
    pd_gpu_close(gpu);
}

/* ---- the window to a device's memory ---- */

enum { MAPPED = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT };

static PFN_vkAllocateMemory allocate_memory;
static uint32_t n_allocations;

/* The window is type 0; the CPU has no other. */
static VKAPI_ATTR VkResult VKAPI_CALL refuse_window(VkDevice device, const VkMemoryAllocateInfo *info,
                                                    const VkAllocationCallbacks *allocator, VkDeviceMemory *memory)
{
    VkMemoryAllocateInfo real = *info;
    real.memoryTypeIndex = 0;
    n_allocations++;
    return info->memoryTypeIndex ? allocate_memory(device, &real, allocator, memory) : VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

/* Where it is full, what the host writes for kernels is in the host's memory. */
static void test_input_memory(void **state)
{
    (void)state;
    struct pd_gpu *gpu;
    struct pd_heap *input, *results;
    struct pd_span span;
    EXPECT_OK(pd_gpu_open(&gpu, NULL, NULL));
    EXPECT_OK(pd_heap_create(&input, gpu, PD_HEAP_INPUT, 4096));
    EXPECT_OK(pd_heap_create(&results, gpu, PD_HEAP_HOST, 4096));
    allocate_memory = gpu->vk.vkAllocateMemory;
    gpu->vk.vkAllocateMemory = refuse_window;
    gpu->info.unified_memory = false;
    gpu->buffer_types = 3;
    gpu->memory = (VkPhysicalDeviceMemoryProperties){.memoryHeapCount = 2, .memoryTypeCount = 2,
        .memoryTypes = {{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | MAPPED, 0}, {MAPPED, 1}}};
    EXPECT_OK(pd_heap_alloc(&span, input, 100, "a step"));
    assert_int_equal(n_allocations, 2);
    assert_true(span.host && span.address);
    gpu->memory.memoryTypes[1].heapIndex = 0;   /* all is one heap, and full */
    EXPECT_FAILURE(pd_heap_alloc(&span, results, 100, "a result"), PERIDOT_ERROR_MEMORY, "a result did not fit");
    gpu->vk.vkAllocateMemory = allocate_memory;
    pd_heap_free(input);
    pd_heap_free(results);
    pd_gpu_close(gpu);
}

/* ---- the pipeline cache on disk ---- */

static char cache_path[512];

/* Opens a device with the cache, compiles a kernel and runs it (some drivers compile as late as that), closes. Returns
 * the bytes that the device found in the cache. */
static size_t use_cache(const char *directory)
{
    struct pd_gpu *gpu;
    const struct pd_kernel *kernel;
    uint32_t spec[] = {64, 0};
    EXPECT_OK(pd_gpu_open(&gpu, NULL, directory));
    size_t loaded = gpu->cache.loaded_size;
    snprintf(cache_path, sizeof cache_path, "%s/pipelines-%s.bin", gpu->cache.folder, gpu->info.cache_key);
    EXPECT_OK(pd_kernel_get(&kernel, gpu, PD_KERNEL_glu, spec, 2));
    pd_gpu_close(gpu);
    return loaded;
}

static uint8_t *read_cache(size_t *size)
{
    struct pd_map map;
    EXPECT_OK(pd_map_open(&map, cache_path));
    uint8_t *copy = malloc((size_t)map.size);
    memcpy(copy, map.data, (size_t)map.size);
    *size = (size_t)map.size;
    pd_map_close(&map);
    return copy;
}

static void write_cache(const uint8_t *data, size_t size)
{
    FILE *f = fopen(cache_path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void test_cache(void **state)
{
    (void)state;
    size_t size;
    assert_int_equal(use_cache(in_folder("deep/cache")), 0);
    assert_true(strncmp(cache_path, folder, strlen(folder)) == 0 && strstr(cache_path, "/deep/cache/pipelines-"));
    uint8_t *whole = read_cache(&size);
    size_t used = use_cache(in_folder("deep/cache"));
    assert_true(used >= 1 && used <= size);
    const size_t cuts[] = {0, 1, 8, 23, 24, size / 2, size - 1}, flips[] = {0, 9, 16, 24, size / 2, size - 1};
    for (size_t i = 0; i < PD_COUNT(cuts); i++) {
        write_cache(whole, cuts[i]);
        assert_int_equal(use_cache(in_folder("deep/cache")), 0);
        assert_true(use_cache(in_folder("deep/cache")) > 0);
    }
    for (size_t i = 0; i < PD_COUNT(flips); i++) {
        whole[flips[i]] ^= 0x10;
        write_cache(whole, size);
        whole[flips[i]] ^= 0x10;
        assert_int_equal(use_cache(in_folder("deep/cache")), 0);
        assert_true(use_cache(in_folder("deep/cache")) > 0);
    }
    free(whole);
    remove(cache_path);
}

/* A folder that cannot be: the cache is only not kept. */
static void test_cache_nowhere(void **state)
{
    (void)state;
    write_text("file", "x");
    assert_int_equal(use_cache(in_folder("file/cache")), 0);
    assert_int_equal(use_cache(in_folder("file/cache")), 0);
    assert_true(pd_is_file(in_folder("file")));
    remove(in_folder("file"));
}

static int remove_folder(void **state)
{
    (void)state;
    rmdir(in_folder("deep/cache"));
    rmdir(in_folder("deep"));
    return rmdir(folder);
}

/* ---- the file ---- */

/* What the system is told: what it makes of that (it maps whole huge pages at times) is not the same in each run. */
static uint64_t n_forgotten;

int madvise(void *at, size_t size, int advice)
{
    if (advice == MADV_DONTNEED) n_forgotten += size;
    return (int)syscall(SYS_madvise, at, size, advice);
}

/* Bytes read that are not forgotten: at most so many. */
static bool keep_most(void *user, uint64_t done, uint64_t total)
{
    uint64_t *most = user;
    *most = pd_max(*most, done - pd_min(done, n_forgotten));
    return done <= total;
}

/* parts: of the file, none of whose matrices is more than one. */
static void try_forgotten(const char *path, uint64_t parts)
{
    peridot_model *model;
    uint64_t most = 0;
    const peridot_model_params params = {.progress = keep_most, .user = &most};
    n_forgotten = 0;
    EXPECT_OK(peridot_model_open(&model, path, &params));
    uint64_t forgotten = n_forgotten, size = peridot_model_get_info(model)->weights_size;
    assert_int_equal(peridot_model_get_info(model)->in_place_size, 0);
    print_message("%llu of %llu bytes, at most %llu were there twice\n", (unsigned long long)forgotten,
                  (unsigned long long)size, (unsigned long long)most);
    assert_true(forgotten > size / 4 * 3);
    assert_true(most < size / parts);
    peridot_model_close(model);
}

/* Of weights that the device has a copy of the file's need not be in memory, too; pages at the ends of tensors may. No
 * more than a matrix is twice there at any time, that of a layer's experts being the largest. */
static void test_file_forgotten(void **state)
{
    (void)state;
    const peridot_make_params experts = {.shape = "tiny-gpt-oss", .type = "mxfp4"};
    try_forgotten(PERIDOT_MODELS "/stories.gguf", 3);
    EXPECT_OK(peridot_make(in_folder("experts.gguf"), &experts));
    try_forgotten(in_folder("experts.gguf"), 3);
    remove(in_folder("experts.gguf"));
}

/* ---- submits sized in time ---- */

/* A GPU begins with few tokens and goes on with as many as fit the time; the answer is the same. */
static void test_timed_chunks(void **state)
{
    (void)state;
    struct small model;
    int32_t tokens[200];
    float want[512], got[512];
    for (int i = 0; i < 200; i++) tokens[i] = some_tokens[i % N_TOKENS];
    for (int gpu = 0; gpu < 2; gpu++) {
        struct pd_session *s;
        struct pd_sequence *q;
        const float *logits;
        uint32_t kept;
        open_small(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 0);
        uint32_t n = model.m.weights.n_outputs;
        assert_true(n <= PD_COUNT(want));
        if (gpu) model.m.gpu->info.type = PERIDOT_DEVICE_INTEGRATED;
        EXPECT_OK(open_one(&s, &q, &model.m, &(peridot_session_params){.ctx = 256}));
        assert_int_equal(pd_prefill_next(&s->prefill, NULL, 0, PD_CHUNK_FULL), gpu ? 64 : s->chunk);
        EXPECT_OK(eval(s, q, tokens, 200, NULL));
        assert_in_range(pd_prefill_next(&s->prefill, NULL, 0, PD_CHUNK_FULL), 1, s->chunk);
        EXPECT_OK(pd_session_truncate(s, q, 0, &kept));
        /* It was slow for a while. */
        s->prefill.pace.last = (struct pd_timed_work){pd_token_flop(&model.m, 0, false), 1.5};
        EXPECT_OK(eval(s, q, tokens, 200, NULL));
        assert_true(pd_prefill_next(&s->prefill, NULL, 0, PD_CHUNK_FULL) >= 16);
        EXPECT_OK(pd_session_logits(&logits, s, q));
        memcpy(gpu ? got : want, logits, n * sizeof *logits);
        for (uint32_t i = 0; gpu && i < n; i++) assert_true(fabsf(got[i] - want[i]) <= 1e-3f);
        pd_session_free(s);
        close_small(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_allocates_nothing), cmocka_unit_test(test_steps_of_several_allocate_nothing),
        cmocka_unit_test(test_steps_split_keys),
        cmocka_unit_test(test_session_frees), cmocka_unit_test(test_small_blocks),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_no_addresses),
        cmocka_unit_test(test_small_memory), cmocka_unit_test(test_placement), cmocka_unit_test(test_gather),
        cmocka_unit_test(test_input_memory),
        cmocka_unit_test(test_cache), cmocka_unit_test(test_cache_nowhere),
        cmocka_unit_test(test_file_forgotten), cmocka_unit_test(test_timed_chunks),
    };
    return cmocka_run_group_tests_name("limits", tests, make_folder, remove_folder);
}
