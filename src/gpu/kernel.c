/* Pipelines: kernels specialised and compiled when first needed, and the cache of compiled pipelines on disk: one file
 * for each device and driver, with a checksum of our own, as drivers trust what they are given.
 *
 * Shapes are specialisation constants, so that loops over them are unrolled and a kernel of 64 heads has no code for
 * 128. A model takes some 30 of them, whose compilation a driver may need a second each for: a session first records
 * its passes with compilation deferred, which only lists what is needed, and then has all of it compiled on all
 * processors. The list is short and searched from the front; a kernel found in it is as good as one made. */
#include "gpu/gpu_.h"

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t pd_gpu_n_pipelines(const struct pd_gpu *gpu) { return gpu->n_pipelines; }

const struct pd_kernel *pd_kernel_next(const struct pd_gpu *gpu, const struct pd_kernel *kernel)
{
    return kernel ? kernel->next : gpu->kernels;
}

enum pd_kernel_id pd_kernel_id_of(const struct pd_kernel *kernel) { return kernel->id; }

const uint32_t *pd_kernel_spec(const struct pd_kernel *kernel, uint32_t *n)
{
    *n = kernel->n_spec;
    return kernel->spec;
}

/* ---- compiling ---- */

static peridot_status open_source(struct pd_gpu *gpu, enum pd_kernel_id id)
{
    const char *lacks = pd_kernel_lacks(&gpu->info, id);
    if (gpu->layouts[id]) return PERIDOT_OK;
    if (lacks)
        return pd_fail(PERIDOT_ERROR_DEVICE, "%s cannot run the kernel %s: it lacks %s", gpu->info.name,
                       pd_kernel_sources[id].name, lacks);
    VkShaderModuleCreateInfo module = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = pd_kernel_sources[id].code_size, .pCode = pd_kernel_sources[id].code};
    if (!gpu->modules[id]) PD_VK(gpu->vk.vkCreateShaderModule(gpu->device, &module, NULL, &gpu->modules[id]));
    VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = pd_kernel_sources[id].push_size};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .pushConstantRangeCount = 1, .pPushConstantRanges = &range};
    PD_VK(gpu->vk.vkCreatePipelineLayout(gpu->device, &layout, NULL, &gpu->layouts[id]));
    return PERIDOT_OK;
}

/* The subgroup size to require, with full subgroups: where a tuning says so, for cooperative matrices, and for kernels
 * whose subgroup operations count on it. 0: the driver chooses. */
static uint32_t subgroup_size(const struct pd_gpu *gpu, const struct pd_kernel *kernel)
{
    enum pd_needs needs = pd_kernel_sources[kernel->id].needs;
    if (kernel->n_spec > PD_SUBGROUP_ID && kernel->spec[PD_SUBGROUP_ID]) return kernel->spec[PD_SUBGROUP_ID];
    return needs == PD_NEEDS_coop ? gpu->info.matrix_subgroup_size : needs == PD_NEEDS_wide ? gpu->info.subgroup_size
        : 0;
}

static void kernel_compile(struct pd_gpu *gpu, struct pd_kernel *kernel)
{
    VkSpecializationMapEntry entries[PD_MAX_SPEC];
    for (uint32_t i = 0; i < kernel->n_spec; i++)
        entries[i] = (VkSpecializationMapEntry){.constantID = i, .offset = i * sizeof(uint32_t),
            .size = sizeof(uint32_t)};
    VkSpecializationInfo spec = {.mapEntryCount = kernel->n_spec, .pMapEntries = entries,
        .dataSize = sizeof(uint32_t) * kernel->n_spec, .pData = kernel->spec};
    /* Other kernels stride by gl_SubgroupSize, which must be the size that the driver compiles for. Unless it is
     * allowed to vary it is a constant of the device: Mesa's for Intel is 32, also where it compiles for 8 or 16. */
    uint32_t size = subgroup_size(gpu, kernel);
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = size};
    bool control = gpu->info.subgroup_size_control, whole = control && size;
    VkComputePipelineCreateInfo create = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = gpu->statistics ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR
            | VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR : 0,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .pNext = whole ? &subgroup : NULL,
            .flags = whole ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
                : control ? VK_PIPELINE_SHADER_STAGE_CREATE_ALLOW_VARYING_SUBGROUP_SIZE_BIT : 0,
            .module = gpu->modules[kernel->id], .pName = "main", .pSpecializationInfo = &spec},
        .layout = gpu->layouts[kernel->id]};
    kernel->result = gpu->vk.vkCreateComputePipelines(gpu->device, gpu->cache.handle, 1, &create, NULL,
        &kernel->pipeline);
}

/* Kernels that are compiled at once, the first ones of the list. */
struct compiling {
    struct pd_gpu *gpu;
    size_t n;
    peridot_progress progress;   /* NULL: none */
    void *user;
    pthread_t caller;            /* which progress is called from */
    atomic_size_t n_done;
    atomic_bool stop;
};

static void compile_number(void *user, size_t i)
{
    struct compiling *c = user;
    struct pd_kernel *kernel = c->gpu->kernels;
    while (i--) kernel = kernel->next;
    if (!atomic_load(&c->stop)) kernel_compile(c->gpu, kernel);
    size_t n_done = atomic_fetch_add(&c->n_done, 1) + 1;
    if (c->progress && pthread_equal(pthread_self(), c->caller) && !c->progress(c->user, n_done, c->n))
        atomic_store(&c->stop, true);
}

/* Removes those that fail, or that were not compiled after a cancellation. */
static peridot_status compile_first(struct pd_gpu *gpu, size_t n, peridot_progress progress, void *user)
{
    struct compiling c = {.gpu = gpu, .n = n, .progress = progress, .user = user, .caller = pthread_self()};
    peridot_status status = PERIDOT_OK;
    struct pd_kernel **at = &gpu->kernels;
    atomic_init(&c.n_done, 0);
    atomic_init(&c.stop, false);
    pd_parallel(n, compile_number, &c);
    for (size_t i = 0; i < n; i++) {
        struct pd_kernel *kernel = *at;
        if (kernel->pipeline) {
            at = &kernel->next;
            gpu->n_pipelines++;
            continue;
        }
        if (kernel->result != VK_SUCCESS) {
            pd_vk_fail(kernel->result, "vkCreateComputePipelines");
            status = pd_fail_prefix(PERIDOT_ERROR_DEVICE, pd_kernel_sources[kernel->id].name);
        } else if (status == PERIDOT_OK) status = pd_fail(PERIDOT_CANCELLED, "compiling was cancelled");
        *at = kernel->next;
        free(kernel);
    }
    return status;
}

void pd_kernels_defer(struct pd_gpu *gpu) { gpu->deferring = true; }

peridot_status pd_kernels_compile_deferred(struct pd_gpu *gpu, peridot_progress progress, void *user)
{
    size_t n = 0;
    gpu->deferring = false;
    for (const struct pd_kernel *k = gpu->kernels; k && !k->pipeline; k = k->next) n++;
    bool software = gpu->info.type == PERIDOT_DEVICE_CPU;
    return compile_first(gpu, n, software ? NULL : progress, user);
}

peridot_status pd_kernel_get(const struct pd_kernel **out, struct pd_gpu *gpu, enum pd_kernel_id id,
                             const uint32_t *spec, uint32_t n_spec)
{
    for (struct pd_kernel **at = &gpu->kernels, *k; (k = *at); at = &k->next) {
        if (k->id != id || k->n_spec != n_spec || (n_spec && memcmp(k->spec, spec, sizeof *spec * n_spec) != 0))
            continue;
        if (!k->pipeline) {   /* the next layer takes the same few, of hundreds where all models are recorded */
            *at = k->next;
            k->next = gpu->kernels;
            gpu->kernels = k;
        }
        *out = k;
        return PERIDOT_OK;
    }
    if (id == gpu->frozen) return PERIDOT_CANCELLED;
    PD_TRY(open_source(gpu, id));
    struct pd_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) return pd_fail_alloc(sizeof *kernel, "kernel");
    *kernel = (struct pd_kernel){.next = gpu->kernels, .id = id, .n_spec = n_spec, .layout = gpu->layouts[id],
        .push_size = pd_kernel_sources[id].push_size};
    if (n_spec) memcpy(kernel->spec, spec, sizeof *spec * n_spec);
    gpu->kernels = kernel;
    if (!gpu->deferring) PD_TRY(compile_first(gpu, 1, NULL, NULL));
    *out = kernel;
    return PERIDOT_OK;
}

void pd_kernel_freeze(struct pd_gpu *gpu, enum pd_kernel_id id) { gpu->frozen = id; }

void pd_kernel_release(struct pd_gpu *gpu, enum pd_kernel_id id)
{
    for (struct pd_kernel **at = &gpu->kernels; *at;) {
        struct pd_kernel *kernel = *at;
        if (id != PD_N_KERNELS && kernel->id != id) {
            at = &kernel->next;
            continue;
        }
        *at = kernel->next;
        gpu->vk.vkDestroyPipeline(gpu->device, kernel->pipeline, NULL);
        free(kernel);
    }
}

void pd_kernels_free(struct pd_gpu *gpu)
{
    pd_kernel_release(gpu, PD_N_KERNELS);
    for (int i = 0; i < PD_N_KERNELS; i++) {
        gpu->vk.vkDestroyPipelineLayout(gpu->device, gpu->layouts[i], NULL);
        gpu->vk.vkDestroyShaderModule(gpu->device, gpu->modules[i], NULL);
    }
}

/* ---- the cache on disk ---- */

struct cache_header {
    char magic[8];
    uint64_t size, checksum;
};

static const char cache_magic[] = {'P', 'D', 'C', 'A', 'C', 'H', 'E', '1'};

static const char *cache_name(char name[64], const struct pd_gpu *gpu)
{
    snprintf(name, 64, "pipelines-%s.bin", gpu->info.cache_key);
    return name;
}

/* The payload of a cache file that is whole, else NULL: a damaged file is ignored and replaced. */
static const uint8_t *cache_payload(const struct pd_map *map, size_t *size)
{
    struct cache_header header;
    if (map->size < sizeof header) return NULL;
    memcpy(&header, map->data, sizeof header);
    *size = (size_t)(map->size - sizeof header);
    const uint8_t *payload = map->data + sizeof header;
    bool whole = memcmp(header.magic, cache_magic, sizeof cache_magic) == 0 && header.size == *size
        && header.checksum == pd_hash(0, payload, *size);
    return whole ? payload : NULL;
}

peridot_status pd_pipeline_cache_open(struct pd_gpu *gpu, const char *directory)
{
    struct pd_map map = {0};
    size_t size = 0;
    const uint8_t *payload = NULL;
    char name[64];
    gpu->cache.folder = directory ? pd_string_copy(directory) : NULL;
    if (directory && pd_private_read(&map, directory, cache_name(name, gpu), PD_MAP_READ_MAX) == PERIDOT_OK)
        payload = cache_payload(&map, &size);
    VkPipelineCacheCreateInfo create = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = payload ? size : 0, .pInitialData = payload};
    VkResult result = gpu->vk.vkCreatePipelineCache(gpu->device, &create, NULL, &gpu->cache.handle);
    gpu->cache.loaded_size = payload ? size : 0;
    pd_map_close(&map);
    return result == VK_SUCCESS ? PERIDOT_OK : pd_vk_fail(result, "vkCreatePipelineCache");
}

static void cache_write(struct pd_gpu *gpu, const void *data, size_t size)
{
    struct cache_header header = {.size = size, .checksum = pd_hash(0, data, size)};
    memcpy(header.magic, cache_magic, sizeof cache_magic);
    struct pd_writer w;
    char name[64];
    if (pd_private_write(&w, gpu->cache.folder, cache_name(name, gpu)) != PERIDOT_OK) return;
    if (pd_writer_write(&w, &header, sizeof header) == PERIDOT_OK && pd_writer_write(&w, data, size) == PERIDOT_OK)
        pd_writer_commit(&w);
    else pd_writer_abort(&w);
}

/* A cache that cannot be written is no error: the next start compiles again. */
static void cache_save(struct pd_gpu *gpu)
{
    size_t size = 0;
    bool ok = gpu->vk.vkGetPipelineCacheData(gpu->device, gpu->cache.handle, &size, NULL) == VK_SUCCESS
        && size != gpu->cache.loaded_size;
    void *data = ok ? malloc(size ? size : 1) : NULL;
    if (data && gpu->vk.vkGetPipelineCacheData(gpu->device, gpu->cache.handle, &size, data) == VK_SUCCESS)
        cache_write(gpu, data, size);
    free(data);
}

void pd_pipeline_cache_close(struct pd_gpu *gpu)
{
    if (gpu->cache.handle && gpu->cache.folder && gpu->n_pipelines) cache_save(gpu);
    gpu->vk.vkDestroyPipelineCache(gpu->device, gpu->cache.handle, NULL);
    free(gpu->cache.folder);
    gpu->cache = (struct pd_pipeline_cache){0};
}
