/* Tuning is remembered per device, driver and kernel, and nothing else is taken from the file; the search changes no
 * answer. */
#define _XOPEN_SOURCE 700
#include "sequence_fixture.h"
#include "folder_fixture.h"
#include "api/api.h"
#include "gpu/gpu_.h"
#include "peridot_tools.h"
#include "probe/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "relative_error.h"

static peridot_device_info device;
static const int32_t tokens[] = {2, 5, 9, 100, 33, 7, 12};

static const char *tuning_file(void)
{
    char name[64];
    snprintf(name, sizeof name, "tune-%s.txt", device.cache_key);
    return in_folder(name);
}

static void write_file(const void *data, size_t size)
{
    FILE *file = fopen(tuning_file(), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static uint32_t n_remembered(void)
{
    struct pd_tunings t;
    uint32_t n = 0;
    pd_tunings_read(&t, &device, folder);
    for (int id = 0; id < PD_N_KERNELS; id++)
        for (int use = 0; use < PD_N_USES; use++) n += t.of[id][use].rows != 0;
    for (int id = 0; id < PD_N_KERNELS; id++)
        for (int few = 0; few < PD_N_FEWS; few++) n += t.few[id][few] != 0;
    return n;
}

/* ---- the table and the file ---- */

/* Few rows of a matrix are shared out among more subgroups, but not where something was measured. */
static void test_few_rows(void)
{
    static const struct {
        peridot_device_type type;
        uint32_t min_subgroup_size, n_rows, plain, normed;
    } cases[] = {{PERIDOT_DEVICE_DISCRETE, 32, 4096, 8, 4}, {PERIDOT_DEVICE_DISCRETE, 32, 4095, 4, 4},
        {PERIDOT_DEVICE_DISCRETE, 32, 1152, 2, 2}, {PERIDOT_DEVICE_DISCRETE, 8, 2304, 2, 2},
        {PERIDOT_DEVICE_DISCRETE, 8, 1, 2, 2}, {PERIDOT_DEVICE_DISCRETE, 64, 2304, 8, 4},
        {PERIDOT_DEVICE_INTEGRATED, 8, 2048, 8, 4}, {PERIDOT_DEVICE_INTEGRATED, 8, 1152, 4, 4},
        {PERIDOT_DEVICE_CPU, 8, 64, 4, 4}};
    struct pd_tunings measured = {0};
    peridot_device_info gpu;
    enum pd_kernel_id id = PD_KERNEL_matvec_dot_q8_0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpu = (peridot_device_info){.type = cases[i].type, .subgroup_size = 32,
            .min_subgroup_size = cases[i].min_subgroup_size};
        assert_int_equal(pd_tuning_get(&measured, &gpu, id, PD_USE_PLAIN, cases[i].n_rows).rows, cases[i].plain);
        assert_int_equal(pd_tuning_get(NULL, &gpu, id, PD_USE_NORMED, cases[i].n_rows).rows, cases[i].normed);
        assert_int_equal(pd_tuning_get(NULL, &gpu, id, PD_USE_GATED, cases[i].n_rows).rows, 4);
    }
    gpu.type = PERIDOT_DEVICE_DISCRETE;
    measured.of[id][PD_USE_PLAIN] = pd_tuning_default(&gpu, id, PD_USE_PLAIN);
    assert_int_equal(pd_tuning_get(&measured, &gpu, id, PD_USE_PLAIN, 1152).rows, 2);
    measured.of[id][PD_USE_PLAIN].width = 2;
    assert_int_equal(pd_tuning_get(&measured, &gpu, id, PD_USE_PLAIN, 1152).rows, 8);
}

static void test_default(void **state)
{
    (void)state;
    peridot_device_info gpu = {.type = PERIDOT_DEVICE_DISCRETE, .subgroup_size = 32, .min_subgroup_size = 32},
        cpu = gpu;
    cpu.type = PERIDOT_DEVICE_CPU;
    cpu.subgroup_size = 8;
    struct pd_tuning t = pd_tuning_get(NULL, &gpu, PD_KERNEL_matvec_q8_0, PD_USE_NORMED, 65536);
    assert_true(t.rows == 4 && t.workgroup == 256);
    t = pd_tuning_get(NULL, &gpu, PD_KERNEL_matvec_q8_0, PD_USE_PLAIN, 65536);
    assert_true(t.rows == 8 && t.workgroup == 64);
    assert_int_equal(t.subgroup, 0);
    test_few_rows();
    peridot_device_info wide = {.type = PERIDOT_DEVICE_INTEGRATED, .subgroup_size = 128, .min_subgroup_size = 64};
    t = pd_tuning_get(NULL, &wide, PD_KERNEL_matvec_q8_0, PD_USE_PLAIN, 65536);
    assert_true(t.subgroup == 64 && t.workgroup == 64);
    t = pd_tuning_get(NULL, &cpu, PD_KERNEL_matvec_rows_q8_0, PD_USE_GATED, 65536);
    assert_true(t.rows == 8 && t.workgroup == 32);
    assert_true(t.width == 1);
    assert_false(pd_tuning_fits((struct pd_tuning){1, 32, 0, 1}, PD_KERNEL_matvec_q8_0, PD_USE_GATED));
    assert_true(pd_tuning_fits((struct pd_tuning){1, 32, 0, 2}, PD_KERNEL_matvec_q8_0, PD_USE_NORMED));
    assert_false(pd_tuning_fits((struct pd_tuning){1, 32, 0, 2}, PD_KERNEL_matvec_rows_q8_0, PD_USE_NORMED));
}

/* What a search tries: of which how many ask for the size of subgroups. */
static uint32_t n_tunings(uint32_t *n_asking, uint32_t least, uint32_t usual, uint32_t most)
{
    peridot_device_info d = {.min_subgroup_size = least, .subgroup_size = usual, .max_subgroup_size = most};
    struct pd_tuning t;
    uint32_t n = 0;
    for (*n_asking = 0; pd_tuning_at(&t, &d, n); n++) {
        uint32_t size = t.subgroup ? t.subgroup : usual;
        assert_true(t.rows >= 1 && t.rows <= 8 && t.workgroup % size == 0 && t.workgroup <= 256);
        assert_true(!t.subgroup || (t.subgroup >= least && t.subgroup <= most));
        assert_true(t.width == 1 || t.width == 2);
        *n_asking += t.subgroup != 0;
    }
    assert_false(pd_tuning_at(&t, &d, n + 1));
    return n;
}

static void test_range(void **state)
{
    (void)state;
    uint32_t asking;
    assert_int_equal(n_tunings(&asking, 32, 32, 32), 32);   /* NVIDIA */
    assert_int_equal(asking, 0);
    assert_int_equal(n_tunings(&asking, 32, 64, 64), 40);   /* RADV */
    assert_int_equal(asking, 16);
    assert_int_equal(n_tunings(&asking, 8, 32, 32), 56);    /* ANV */
    assert_int_equal(asking, 24);
    assert_int_equal(n_tunings(&asking, 1, 1, 128), PD_MAX_TUNINGS);   /* none */
    assert_int_equal(asking, 32);
}

/* ---- what a driver is asked for ---- */

static PFN_vkCreateComputePipelines create_pipelines;
static uint32_t asked_size;      /* of the last pipeline's subgroups; 0: none */
static uint32_t refused_rows;    /* pipelines with so many at a time cannot be compiled */

static VKAPI_ATTR VkResult VKAPI_CALL watch_pipelines(VkDevice d, VkPipelineCache cache, uint32_t n,
                                                      const VkComputePipelineCreateInfo *create,
                                                      const VkAllocationCallbacks *allocator, VkPipeline *out)
{
    const VkSpecializationInfo *spec = create->stage.pSpecializationInfo;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo *size = create->stage.pNext;
    asked_size = size ? size->requiredSubgroupSize : 0;
    if (spec->mapEntryCount >= 7 && ((const uint32_t *)spec->pData)[1] == refused_rows)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return create_pipelines(d, cache, n, create, allocator, out);
}

static void watch(struct pd_gpu *gpu)
{
    create_pipelines = gpu->vk.vkCreateComputePipelines;
    gpu->vk.vkCreateComputePipelines = watch_pipelines;
}

/* A kernel is compiled for the size that it asks for, and is another than the one that asks for none. */
static void test_asked_size(void **state)
{
    (void)state;
    struct pd_gpu *gpu;
    const struct pd_kernel *usual, *asking;
    uint32_t spec[PD_MAX_SPEC] = {64, 4, 1, [PD_ROW_INTERLEAVE_ID] = 1};
    if (pd_gpu_open(&gpu, NULL, NULL) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    watch(gpu);
    assert_int_equal(pd_kernel_get(&usual, gpu, PD_KERNEL_matvec_q8_0, spec, PD_MAX_SPEC), PERIDOT_OK);
    assert_int_equal(asked_size, 0);
    spec[PD_SUBGROUP_ID] = device.max_subgroup_size;
    assert_int_equal(pd_kernel_get(&asking, gpu, PD_KERNEL_matvec_q8_0, spec, PD_MAX_SPEC), PERIDOT_OK);
    assert_int_equal(asked_size, device.subgroup_size_control ? device.max_subgroup_size : 0);
    assert_ptr_not_equal(usual, asking);
    pd_gpu_close(gpu);
}

static struct pd_tunings some_tunings(void)
{
    struct pd_tunings t = {0};
    assert_true(pd_tuning_at(&t.of[PD_KERNEL_matvec_q8_0][PD_USE_PLAIN], &device, 0));
    assert_true(pd_tuning_at(&t.of[PD_KERNEL_matvec_rows_iq4_xs][PD_USE_GATED], &device, 7));
    t.of[PD_KERNEL_matvec_f32][PD_USE_NORMED] = pd_tuning_default(&device, PD_KERNEL_matvec_f32, PD_USE_NORMED);
    t.few[PD_KERNEL_matmul_coop_q8_0][PD_FEW_OF_EXPERT] = 32;
    return t;
}

static void test_round_trip(void **state)
{
    (void)state;
    struct pd_tunings t = some_tunings(), got;
    assert_int_equal(pd_tunings_write(&t, &device, folder), PERIDOT_OK);
    pd_tunings_read(&got, &device, folder);
    assert_memory_equal(&got, &t, sizeof t);
    peridot_device_info other = device;
    other.cache_key[0] ^= 1;
    pd_tunings_read(&got, &other, folder);
    assert_int_equal(got.of[PD_KERNEL_matvec_q8_0][PD_USE_PLAIN].rows, 0);
    assert_int_equal(pd_tunings_write(&t, &device, "/dev/null/x"), PERIDOT_ERROR_IO);
}

/* Each prefix and each changed byte leave fewer lines, or those that there were. */
static void test_damaged(void **state)
{
    (void)state;
    char text[1024], changed[1024];
    struct pd_tunings t = some_tunings(), got;
    assert_int_equal(pd_tunings_write(&t, &device, folder), PERIDOT_OK);
    FILE *file = fopen(tuning_file(), "rb");
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_true(size > 100 && size < sizeof text);
    for (size_t n = 0; n < size; n++) {
        write_file(text, n);
        assert_true(n_remembered() <= 3);
    }
    for (size_t i = 0; i < size; i++) {
        memcpy(changed, text, size);
        changed[i] ^= 1;
        write_file(changed, size);
        pd_tunings_read(&got, &device, folder);
        for (int k = 0; k < PD_N_KERNELS; k++)
            for (int use = 0; use < PD_N_USES; use++)
                assert_true(got.of[k][use].rows <= 8 && got.of[k][use].workgroup <= 256);
        for (int k = 0; k < PD_N_KERNELS; k++) assert_true(got.few[k][PD_FEW_OF_EXPERT] <= PD_MAX_FEW);
    }
    static char large[200000];
    memset(large, 'x', sizeof large);
    memcpy(large, text, size);
    write_file(large, sizeof large);
    assert_int_equal(n_remembered(), 0);
    assert_int_equal(unlink(tuning_file()), 0);
    assert_int_equal(mkdir(tuning_file(), 0700), 0);
    assert_int_equal(n_remembered(), 0);
    assert_int_equal(rmdir(tuning_file()), 0);
}

/* A line in the right form that no search would write. */
static void try_line(uint32_t want, const char *use, unsigned rows, unsigned workgroup, unsigned subgroup,
                     unsigned width,
                     uint64_t hash)
{
    char text[512];
    int size = snprintf(text, sizeof text, "peridot: how matrices are multiplied, as measured\n"
                        "matvec_q8_0 %016llx %s %u %u %u %u\n",
                        (unsigned long long)(pd_kernel_hash(PD_KERNEL_matvec_q8_0) ^ hash), use, rows, workgroup,
                            subgroup, width);
    write_file(text, (size_t)size);
    assert_int_equal(n_remembered(), want);
}

static void test_hostile(void **state)
{
    (void)state;
    unsigned lanes = device.subgroup_size;
    try_line(1, "normed", 2, lanes, 0, 1, 0);
    try_line(0, "normed", 2, lanes, 0, 1, 1);
    try_line(0, "norm", 2, lanes, 0, 1, 0);
    try_line(0, "normed", 3, lanes, 0, 1, 0);
    try_line(0, "normed", 0, lanes, 0, 1, 0);
    try_line(0, "normed", 16, lanes, 0, 1, 0);
    try_line(0, "gated", 1, lanes, 0, 1, 0);
    try_line(0, "normed", 2, lanes + 1, 0, 1, 0);
    try_line(0, "normed", 2, 0, 0, 1, 0);
    try_line(0, "normed", 2, 512, 0, 1, 0);
    try_line(0, "normed", 2, 64, 2 * device.max_subgroup_size, 1, 0);
    try_line(1, "normed", 2, lanes, 0, 2, 0);
    try_line(0, "normed", 2, lanes, 0, 3, 0);
    try_line(0, "normed", 2, lanes, 0, 0, 0);
    try_line(0, "normed", 4000000000u, 4000000000u, 4000000000u, 1, 0);
    unlink(tuning_file());
}

static void try_few(uint32_t want, enum pd_kernel_id id, const char *text)
{
    char line[256];
    struct pd_tunings t;
    int size = snprintf(line, sizeof line, "peridot: how matrices are multiplied, as measured\n%s %016llx %s\n",
                        pd_kernel_name(id), (unsigned long long)pd_kernel_hash(id), text);
    write_file(line, (size_t)size);
    pd_tunings_read(&t, &device, folder);
    assert_int_equal(t.few[id][PD_FEW_TOKENS], want);
}

static void test_hostile_few(void **state)
{
    (void)state;
    try_few(8, PD_KERNEL_matmul_q8_0, "tokens 8");
    try_few(0, PD_KERNEL_matvec_q8_0, "tokens 8");
    static const char *const wrong[] = {"tokens 0", "tokens 3", "tokens 128", "tokens 08", "tokens 8 ", "experts 8",
                                        "token 8"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) try_few(0, PD_KERNEL_matmul_q8_0, wrong[i]);
    unlink(tuning_file());
}

/* ---- the search ---- */

static peridot_model *open_model(void)
{
    peridot_model *model = NULL;
    peridot_model_params params = {.cache_dir = folder};
    if (peridot_model_open(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", &params) != PERIDOT_OK)
        fail_msg("%s", peridot_last_error());
    return model;
}

static void take_logits(float *out, peridot_model *model)
{
    peridot_sequence *s;
    const float *logits;
    assert_int_equal(open_sequence(&s, model, &(peridot_session_params){.ctx = 16, .chunk = 1}), PERIDOT_OK);
    assert_int_equal(peridot_sequence_eval(s, tokens, 7, NULL), PERIDOT_OK);
    assert_int_equal(peridot_logits(&logits, s), PERIDOT_OK);
    memcpy(out, logits, peridot_model_get_info(model)->n_outputs * sizeof *out);
    close_sequence(s);
}

/* ---- a played device ---- */

/* Nothing is computed; timestamps say that a dispatch takes a microsecond, or as many more as `slow` says of its
 * kernel. So what a search finds follows from these alone, and nothing is compiled. */
enum { SLOW = 30 };
static struct {
    const struct pd_gpu *gpu;
    const struct pd_kernel *bound;
    bool (*slow)(const struct pd_kernel *k);
    uint64_t ticks[1 << 14];   /* of the dispatches so far */
    uint32_t n;
    PFN_vkCmdBindPipeline bind;
    PFN_vkCmdResetQueryPool reset;
} played;

static VKAPI_ATTR void VKAPI_CALL play_bind(VkCommandBuffer c, VkPipelineBindPoint point, VkPipeline pipeline)
{
    const struct pd_kernel *k = NULL;
    while ((k = pd_kernel_next(played.gpu, k)) && k->pipeline != pipeline) continue;
    played.bound = k;
    played.bind(c, point, pipeline);
}

static VKAPI_ATTR void VKAPI_CALL play_reset(VkCommandBuffer c, VkQueryPool pool, uint32_t first, uint32_t n)
{
    played.n = 0;
    played.reset(c, pool, first, n);
}

static void play_one(void)
{
    assert_true(played.n < sizeof played.ticks / sizeof *played.ticks);
    played.ticks[played.n++] = 1000 * (played.slow && played.slow(played.bound) ? SLOW : 1);
}

static VKAPI_ATTR void VKAPI_CALL play_dispatch(VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z)
{
    (void)c, (void)x, (void)y, (void)z;
    play_one();
}

static VKAPI_ATTR void VKAPI_CALL play_indirect(VkCommandBuffer c, VkBuffer buffer, VkDeviceSize offset)
{
    (void)c, (void)buffer, (void)offset;
    play_one();
}

static VKAPI_ATTR VkResult VKAPI_CALL play_results(VkDevice d, VkQueryPool pool, uint32_t first, uint32_t n,
                                                   size_t size, void *out, VkDeviceSize stride,
                                                   VkQueryResultFlags flags)
{
    uint64_t *ticks = out;
    (void)d, (void)pool, (void)stride, (void)flags;
    assert_true(first == 0 && size == n * sizeof *ticks && n <= played.n + 1);
    ticks[0] = 0;
    for (uint32_t i = 1; i < n; i++) ticks[i] = ticks[i - 1] + played.ticks[i - 1];
    return VK_SUCCESS;
}

static void play(struct pd_gpu *gpu, bool (*slow)(const struct pd_kernel *k))
{
    played.gpu = gpu;
    played.slow = slow;
    played.bind = gpu->vk.vkCmdBindPipeline, played.reset = gpu->vk.vkCmdResetQueryPool;
    gpu->vk.vkCmdBindPipeline = play_bind, gpu->vk.vkCmdResetQueryPool = play_reset;
    gpu->vk.vkCmdDispatch = play_dispatch, gpu->vk.vkCmdDispatchIndirect = play_indirect;
    gpu->vk.vkGetQueryPoolResults = play_results;
}

/* ---- matvec or tiles ---- */

static peridot_model *open_experts(void)
{
    const char *path = in_folder("experts.gguf");
    peridot_model *model = NULL;
    if (peridot_make(path, &(peridot_make_params){.shape = "tiny-gpt-oss", .type = "mxfp4", .seed = 3}) != PERIDOT_OK
        || peridot_model_open(&model, path, &(peridot_model_params){.cache_dir = folder}) != PERIDOT_OK)
        fail_msg("%s", peridot_last_error());
    model->m.variants.of[PD_VARIED_MATMUL] = PD_VARIANT_MATMUL_TILE;   /* as by default on many GPUs */
    assert_int_equal(unlink(path), 0);
    return model;
}

/* How many of the products of a chunk are by tiles. */
static size_t n_by_tiles(peridot_model *model, uint32_t n_tokens)
{
    peridot_sequence *s;
    peridot_kernel_time *times;
    size_t n, n_tiles = 0;
    assert_int_equal(open_sequence(&s, model, &(peridot_session_params){.ctx = 64, .chunk = 64}), PERIDOT_OK);
    assert_int_equal(peridot_profile(&times, &n, &s, 1, n_tokens), PERIDOT_OK);
    for (size_t i = 0; i < n; i++)
        if (strncmp(times[i].kernel, "matmul_mxfp4", 12) == 0) n_tiles += times[i].n;
    peridot_free(times);
    close_sequence(s);
    return n_tiles;
}

/* Of 2 layers with 8 experts, of which a token takes 2: their 4 products are by tiles where each has more tokens than
 * are few; and so are the 4 of q, k and v and of the output. */
static void test_few(void **state)
{
    (void)state;
    peridot_model *model = open_experts();
    uint32_t *few = model->m.tunings.few[PD_KERNEL_matmul_mxfp4];
    play(model->m.gpu, NULL);
    few[PD_FEW_TOKENS] = 16, few[PD_FEW_OF_EXPERT] = 4;
    assert_int_equal(n_by_tiles(model, 16), 0);
    assert_int_equal(n_by_tiles(model, 17), 8);
    few[PD_FEW_TOKENS] = 64;
    assert_int_equal(n_by_tiles(model, 17), 4);
    few[PD_FEW_OF_EXPERT] = 8;
    assert_int_equal(n_by_tiles(model, 32), 0);
    assert_int_equal(n_by_tiles(model, 33), 4);
    few[PD_FEW_TOKENS] = few[PD_FEW_OF_EXPERT] = 0;   /* as by default */
    assert_int_equal(n_by_tiles(model, 16), 0);
    assert_int_equal(n_by_tiles(model, 32), 4);
    assert_int_equal(n_by_tiles(model, 33), 8);
    peridot_model_close(model);
}

static bool is_tiles(const struct pd_kernel *k) { return pd_makes_tiles(pd_kernel_id_of(k)); }
static bool is_matvec_of_tokens(const struct pd_kernel *k) { return pd_is_tuned(pd_kernel_id_of(k)) && k->spec[2] > 1; }

static void take_few(void *user, const peridot_tuned *t)
{
    if (strcmp(t->kernel, "matmul_mxfp4") != 0) return;
    print_message("%s %s: %u, %u by default\n", t->kernel, t->use, t->rows, t->default_rows);
    *(uint32_t *)user += t->rows;
}

/* What is slow is found to be so: a chunk of 512 has 128 tokens of each expert. */
static void try_search_few(bool (*slow)(const struct pd_kernel *k), uint32_t want)
{
    peridot_model *model = open_experts();
    uint32_t found = 0, *few = model->m.tunings.few[PD_KERNEL_matmul_mxfp4];
    struct pd_tunings t;
    play(model->m.gpu, slow);
    peridot_tune_params params = {.cache_dir = folder, .tuned = take_few, .user = &found};
    if (peridot_tune(model, &params) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    assert_true(few[PD_FEW_TOKENS] == want && few[PD_FEW_OF_EXPERT] == want);
    assert_int_equal(found, 2 * want);
    pd_tunings_read(&t, &device, folder);
    assert_memory_equal(t.few[PD_KERNEL_matmul_mxfp4], few, sizeof t.few[0]);
    assert_int_equal(model->m.variants.of[PD_VARIED_MATMUL], PD_VARIANT_MATMUL_TILE);
    peridot_model_close(model);
    unlink(tuning_file());
}

static void test_search_few(void **state)
{
    (void)state;
    try_search_few(is_tiles, PD_MAX_FEW);
    try_search_few(is_matvec_of_tokens, 1);
}

static void count(void *user, const peridot_tuned *t)
{
    *(uint32_t *)user += 1;
    print_message("%s %s: %u x %u in %.0f us, %u x %u by default in %.0f us\n", t->kernel, t->use, t->rows,
                  t->workgroup,
                  1e6 * t->seconds, t->default_rows, t->default_workgroup, 1e6 * t->default_seconds);
    assert_true(t->seconds > 0 && t->seconds <= t->default_seconds);
    assert_true(t->changed || (t->rows == t->default_rows && t->workgroup == t->default_workgroup));
}

static void test_search(void **state)
{
    (void)state;
    peridot_model *model = open_model();
    size_t n_outputs = peridot_model_get_info(model)->n_outputs;
    float *before = malloc(n_outputs * sizeof *before), *after = malloc(n_outputs * sizeof *after);
    char tuning[512];
    uint32_t n = 0;
    assert_true(before && after);
    assert_string_equal(peridot_model_get_info(model)->tuning, "");
    take_logits(before, model);
    if (peridot_tune(model, &(peridot_tune_params){.cache_dir = folder, .tuned = count, .user = &n}) != PERIDOT_OK)
        fail_msg("%s", peridot_last_error());
    assert_true(n >= 3);
    assert_int_equal(n_remembered(), n);
    snprintf(tuning, sizeof tuning, "%s", peridot_model_get_info(model)->tuning);
    assert_true(tuning[0] != 0);
    take_logits(after, model);
    assert_true(relative_error(after, before, n_outputs) < 1e-4);
    peridot_model_close(model);
    model = open_model();
    assert_string_equal(peridot_model_get_info(model)->tuning, tuning);
    take_logits(before, model);
    assert_memory_equal(before, after, n_outputs * sizeof *after);
    peridot_model_close(model);
    free(before);
    free(after);
}

static void has_other_rows(void *user, const peridot_tuned *t)
{
    *(uint32_t *)user += 1;
    assert_true(t->rows != refused_rows);
}

/* What a driver cannot compile is passed over. */
static void test_refused(void **state)
{
    (void)state;
    unlink(tuning_file());
    peridot_model *model = open_model();
    uint32_t n = 0, usual = pd_tuning_default(&device, PD_KERNEL_matvec_rows_q8_0, PD_USE_PLAIN).rows;
    watch(model->m.gpu);
    refused_rows = usual == 2 ? 4 : 2;
    peridot_status status = peridot_tune(model, &(peridot_tune_params){.tuned = has_other_rows, .user = &n});
    refused_rows = 0;
    if (status != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    assert_true(n >= 3);
    peridot_model_close(model);
}

/* What there was no time for stays as it is, and is not looked for again. */
static void test_no_time(void **state)
{
    (void)state;
    unlink(tuning_file());
    peridot_model *model = open_model();
    if (peridot_tune(model, &(peridot_tune_params){.cache_dir = folder, .max_s = 1e-9}) != PERIDOT_OK)
        fail_msg("%s", peridot_last_error());
    assert_string_equal(peridot_model_get_info(model)->tuning, "as by default");
    assert_true(n_remembered() >= 3);
    peridot_model_close(model);
}

static bool stop_later(void *user, uint64_t done, uint64_t total)
{
    uint64_t *last = user;
    assert_true(done <= total && done >= *last);
    *last = done;
    return done < 5;
}

/* A search that was stopped leaves everything as it was. */
static void test_cancelled(void **state)
{
    uint64_t last = 0;
    peridot_tune_params params = {.cache_dir = folder, .progress = stop_later, .user = &last};
    (void)state;
    unlink(tuning_file());
    peridot_model *model = open_model();
    assert_int_equal(peridot_tune(model, &params), PERIDOT_CANCELLED);
    assert_int_equal(last, 5);
    assert_string_equal(peridot_model_get_info(model)->tuning, "");
    assert_int_equal(n_remembered(), 0);
    peridot_model_close(model);
}

static void remember(struct pd_model *m, enum pd_dtype dtype, enum pd_use use)
{
    enum pd_kernel_id k = pd_variant_kernel(m->variants.of[PD_VARIED_MATVEC], dtype);
    m->tunings.of[k][use] = pd_tuning_default(&device, k, use);
}

/* On a GPU (as it calls itself here), for each type of the model's matrices, until something is remembered. */
static void test_due(void **state)
{
    (void)state;
    struct pd_model m = {.weights.n_outputs = 1, .weights.type_counts = {[PD_Q8_0] = 3}};
    if (pd_gpu_open(&m.gpu, NULL, NULL) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    m.variants = pd_variants_default(pd_gpu_info(m.gpu));
    assert_int_equal(pd_tune_is_due(&m), pd_gpu_info(m.gpu)->type != PERIDOT_DEVICE_CPU);
    ((peridot_device_info *)pd_gpu_info(m.gpu))->type = PERIDOT_DEVICE_DISCRETE;
    assert_true(pd_tune_is_due(&m));
    for (int use = 0; use < PD_N_USES; use++) {
        assert_true(pd_tune_is_due(&m));
        remember(&m, PD_Q8_0, (enum pd_use)use);
    }
    assert_false(pd_tune_is_due(&m));
    m.weights.type_counts[PD_Q6_K] = 1;
    assert_true(pd_tune_is_due(&m));
    m.weights.n_outputs = 0;
    assert_false(pd_tune_is_due(&m));
    pd_gpu_close(m.gpu);
}

/* Whatever the file says within the search's range, answers are the same. */
static void test_tuned(void **state)
{
    (void)state;
    struct pd_tuning t;
    size_t n_outputs = 0;
    float *want = NULL, *got = NULL;
    for (uint32_t i = 0; pd_tuning_at(&t, &device, i); i += 5) {
        struct pd_tunings all = pd_tunings_of(t);
        assert_int_equal(pd_tunings_write(&all, &device, folder), PERIDOT_OK);
        peridot_model *model = open_model();
        n_outputs = peridot_model_get_info(model)->n_outputs;
        if (!got) got = malloc(n_outputs * sizeof *got);
        take_logits(got, model);
        if (!want) want = memcpy(malloc(n_outputs * sizeof *want), got, n_outputs * sizeof *want);
        assert_true(relative_error(got, want, n_outputs) < 1e-4);
        peridot_model_close(model);
    }
    free(want);
    free(got);
}

static void remove_file(const char *prefix, const char *suffix)
{
    char name[64];
    snprintf(name, sizeof name, "%s-%s.%s", prefix, device.cache_key, suffix);
    unlink(in_folder(name));
}

static int open_all(void **state)
{
    struct pd_gpu *gpu;
    if (pd_gpu_open(&gpu, NULL, NULL) != PERIDOT_OK) return -1;
    device = *pd_gpu_info(gpu);
    pd_gpu_close(gpu);
    return make_folder(state);
}

static int close_all(void **state)
{
    (void)state;
    remove_file("tune", "txt");
    remove_file("pipelines", "bin");
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default), cmocka_unit_test(test_range), cmocka_unit_test(test_asked_size),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_hostile_few), cmocka_unit_test(test_few),
        cmocka_unit_test(test_search_few), cmocka_unit_test(test_search), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_time),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_due), cmocka_unit_test(test_tuned),
    };
    return cmocka_run_group_tests_name("tuning", tests, open_all, close_all);
}
