/* Finding, choosing and opening a Vulkan device. The baseline is Vulkan 1.2 with buffer device addresses, timeline
 * semaphores and subgroup basic + arithmetic operations in compute: what a driver of the last five years has on any
 * GPU. Anything else is an option found in describe.c, and asked for where it is there.
 *
 * One queue is opened, of the family that has graphics too: decoding is a chain of dispatches that wait for each other,
 * so a second queue would idle, and copies of weights are done before the first of them. A device is never reopened:
 * once lost it stays lost, and who wants to go on makes another pd_gpu. */
#include "gpu/gpu_.h"

#include "base/base.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the devices that there are ---- */

static peridot_status list_physical(VkPhysicalDevice **out, uint32_t *n, const struct pd_instance *instance)
{
    *n = 0;
    *out = NULL;
    VkResult result = instance->vkEnumeratePhysicalDevices(instance->handle, n, NULL);
    if (result != VK_SUCCESS || *n == 0)
        return pd_fail(PERIDOT_ERROR_DEVICE,
                       "no Vulkan device found: install a driver for your GPU, or mesa-vulkan-drivers for a "
                       "software device");
    *out = malloc(sizeof **out * *n);
    if (!*out) return pd_fail_alloc(sizeof **out * *n, "device list");
    result = instance->vkEnumeratePhysicalDevices(instance->handle, n, *out);
    return result == VK_SUCCESS || result == VK_INCOMPLETE ? PERIDOT_OK
        : pd_vk_fail(result, "vkEnumeratePhysicalDevices");
}

static peridot_status describe_all(peridot_device_info **out, VkPhysicalDevice **physical, uint32_t *n,
                                   const struct pd_instance *instance)
{
    *out = NULL;
    PD_TRY(list_physical(physical, n, instance));
    *out = malloc(sizeof **out * *n);
    if (!*out) return pd_fail_alloc(sizeof **out * *n, "device list");
    for (uint32_t i = 0; i < *n; i++) PD_TRY(pd_device_describe(&(*out)[i], instance, (*physical)[i], i));
    return PERIDOT_OK;
}

peridot_status pd_gpu_list(peridot_device_info **out, size_t *n)
{
    struct pd_instance instance;
    VkPhysicalDevice *physical = NULL;
    uint32_t count = 0;
    *out = NULL;
    *n = 0;
    PD_TRY(pd_instance_open(&instance));
    peridot_status status = describe_all(out, &physical, &count, &instance);
    free(physical);
    pd_instance_close(&instance);
    if (status != PERIDOT_OK) {
        free(*out);
        *out = NULL;
        return status;
    }
    *n = count;
    return PERIDOT_OK;
}

/* ---- choice ---- */

static int type_rank(peridot_device_type type)
{
    static const int rank[] = {[PERIDOT_DEVICE_DISCRETE] = 4, [PERIDOT_DEVICE_INTEGRATED] = 3,
        [PERIDOT_DEVICE_VIRTUAL] = 2, [PERIDOT_DEVICE_OTHER] = 1, [PERIDOT_DEVICE_CPU] = 0};
    return rank[type];
}

static bool contains_nocase(const char *text, const char *part)
{
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i])) i++;
        if (!part[i]) return true;
    }
    return false;
}

static bool selects(const char *selector, const peridot_device_info *info)
{
    char *end;
    unsigned long index = strtoul(selector, &end, 10);
    if (isdigit((unsigned char)selector[0]) && *end == 0) return index == info->index;
    if (contains_nocase(info->uuid, selector) && strlen(selector) == strlen(info->uuid)) return true;
    return strcmp(selector, info->pci) == 0 || contains_nocase(info->name, selector);
}

static peridot_status choose_named(uint32_t *out, char reason[256], const peridot_device_info *infos, uint32_t n,
                                   const char *selector)
{
    uint32_t found = n;
    for (uint32_t i = 0; i < n && found == n; i++)
        if (selects(selector, &infos[i])) found = i;
    if (!*selector || found == n)
        return pd_fail(PERIDOT_ERROR_DEVICE, "no device matches \"%s\" (%u found; `peridot devices` lists them)",
                       selector, n);
    if (infos[found].unusable[0])
        return pd_fail(PERIDOT_ERROR_DEVICE, "device %u (%s) cannot be used: it lacks %s", found, infos[found].name,
                       infos[found].unusable);
    snprintf(reason, 256, "asked for by \"%.200s\"", selector);
    *out = found;
    return PERIDOT_OK;
}

static void explain_cpu(char reason[256], const peridot_device_info *infos, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && infos[i].type == PERIDOT_DEVICE_CPU) i++;
    if (i == n) snprintf(reason, 256, "no GPU found, running on the CPU");
    else snprintf(reason, 256, "running on the CPU, as the GPU %.80s lacks %.120s", infos[i].name, infos[i].unusable);
}

peridot_status pd_gpu_choose(uint32_t *out, char reason[256], const peridot_device_info *infos, uint32_t n,
                             const char *selector)
{
    if (selector) return choose_named(out, reason, infos, n, selector);
    uint32_t best = n, usable = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (infos[i].unusable[0]) continue;
        usable++;
        bool better = best == n || type_rank(infos[i].type) > type_rank(infos[best].type)
            || (infos[i].type == infos[best].type && infos[i].heap_size > infos[best].heap_size);
        if (better) best = i;
    }
    if (best == n)
        return pd_fail(PERIDOT_ERROR_DEVICE, "no usable Vulkan device: %s lacks %s", infos[0].name, infos[0].unusable);
    if (infos[best].type == PERIDOT_DEVICE_CPU) explain_cpu(reason, infos, n);
    else if (usable == 1) snprintf(reason, 256, "the only usable device");
    else snprintf(reason, 256, "the fastest of %u by type and memory", usable);
    *out = best;
    return PERIDOT_OK;
}

/* ---- opening ---- */

static peridot_status find_queue(struct pd_gpu *gpu)
{
    uint32_t n = 0, best = UINT32_MAX;
    gpu->instance.vkGetPhysicalDeviceQueueFamilyProperties(gpu->physical, &n, NULL);
    VkQueueFamilyProperties *families = malloc(sizeof *families * (n ? n : 1));
    if (!families) return pd_fail_alloc(sizeof *families * n, "queue families");
    gpu->instance.vkGetPhysicalDeviceQueueFamilyProperties(gpu->physical, &n, families);
    for (uint32_t i = 0; i < n; i++) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        /* A family with graphics too is the one that drivers tune; an async compute family may have fewer units. */
        if (best == UINT32_MAX || (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)) best = i;
        if (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) break;
    }
    uint32_t bits = best == UINT32_MAX ? 0 : families[best].timestampValidBits;
    free(families);
    if (best == UINT32_MAX) return pd_fail(PERIDOT_ERROR_DEVICE, "%s has no compute queue", gpu->info.name);
    VkPhysicalDeviceProperties properties;
    gpu->instance.vkGetPhysicalDeviceProperties(gpu->physical, &properties);
    gpu->queue_family = best;
    gpu->timestamp_period = bits ? (double)properties.limits.timestampPeriod : 0;
    gpu->timestamp_mask = bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    return PERIDOT_OK;
}

/* 0: host memory cannot be read in place. SwiftShader has the extension, but not for buffers. */
static uint64_t import_alignment(const struct pd_instance *instance, VkPhysicalDevice physical)
{
    VkPhysicalDeviceExternalBufferInfo buffer = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
        .usage = PD_IMPORT_USAGE, .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT};
    VkExternalBufferProperties external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    instance->vkGetPhysicalDeviceExternalBufferProperties(physical, &buffer, &external);
    if (!(external.externalMemoryProperties.externalMemoryFeatures & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT))
        return 0;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host =
        {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &host};
    instance->vkGetPhysicalDeviceProperties2(physical, &properties);
    return host.minImportedHostPointerAlignment;
}

/* They depend on the buffer's usage alone. */
static peridot_status find_buffer_types(struct pd_gpu *gpu)
{
    VkBufferCreateInfo create = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 256, .usage = PD_BLOCK_USAGE};
    VkBuffer buffer;
    VkMemoryRequirements need;
    PD_VK(gpu->vk.vkCreateBuffer(gpu->device, &create, NULL, &buffer));
    gpu->vk.vkGetBufferMemoryRequirements(gpu->device, buffer, &need);
    gpu->vk.vkDestroyBuffer(gpu->device, buffer, NULL);
    gpu->buffer_types = need.memoryTypeBits;
    return PERIDOT_OK;
}

/* What is asked of a device: the baseline, and of the rest what describe.c found. */
struct request {
    VkPhysicalDeviceFeatures features;
    VkPhysicalDeviceVulkan12Features f12;   /* at the head of the chain of the others */
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size;
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative;
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable;
    const char *extensions[8];
    uint32_t n_extensions;
};

static void ask_features(struct request *r, const peridot_device_info *info)
{
    *r = (struct request){.features.shaderInt64 = info->int64_arithmetic,
        .f12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .bufferDeviceAddress = VK_TRUE,
            .timelineSemaphore = VK_TRUE, .shaderFloat16 = info->fp16_arithmetic,
            .storageBuffer8BitAccess = info->byte_storage},
        .subgroup_size = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
            .subgroupSizeControl = VK_TRUE, .computeFullSubgroups = VK_TRUE},
        .dot = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
            .shaderIntegerDotProduct = VK_TRUE},
        .cooperative = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
            .cooperativeMatrix = VK_TRUE}};
    /* Cooperative matrices require the memory model, and with it atomics of device scope require the second feature. */
    r->f12.vulkanMemoryModel = r->f12.vulkanMemoryModelDeviceScope = info->cooperative_matrix;
    if (info->subgroup_size_control) PD_LINK(r->f12, r->subgroup_size);
    if (info->integer_dot) PD_LINK(r->f12, r->dot);
    if (info->cooperative_matrix) {
        PD_LINK(r->f12, r->cooperative);
        r->extensions[r->n_extensions++] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
    }
}

/* Whether the device has the extension, which then is asked for. */
static bool ask_extension(struct request *r, const struct pd_extensions *have, const char *name)
{
    bool has = pd_extensions_has(have, name);
    if (has) r->extensions[r->n_extensions++] = name;
    return has;
}

static peridot_status ask_extensions(struct request *r, struct pd_gpu *gpu)
{
    struct pd_extensions have;
    PD_TRY(pd_extensions_list(&have, &gpu->instance, gpu->physical));
    gpu->has_budget = ask_extension(r, &have, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    /* Only where it saves a copy: a card would read the host's memory across the bus. */
    if (gpu->info.unified_memory && ask_extension(r, &have, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
        gpu->import_alignment = import_alignment(&gpu->instance, gpu->physical);
    ask_extension(r, &have, VK_KHR_PORTABILITY_SUBSET_EXTENSION_NAME);   /* a device that has it must be made with it */
    gpu->statistics = gpu->statistics
        && ask_extension(r, &have, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    if (gpu->statistics) {
        r->executable = (VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR){
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
            .pipelineExecutableInfo = VK_TRUE};
        PD_LINK(r->f12, r->executable);
    }
    free(have.at);
    return PERIDOT_OK;
}

static peridot_status open_device(struct pd_gpu *gpu)
{
    const float priority = 1;
    struct request r;
    PD_TRY(find_queue(gpu));
    ask_features(&r, &gpu->info);
    PD_TRY(ask_extensions(&r, gpu));
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = gpu->queue_family, .queueCount = 1, .pQueuePriorities = &priority};
    VkDeviceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &r.f12,
        .pEnabledFeatures = &r.features, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue,
        .enabledExtensionCount = r.n_extensions, .ppEnabledExtensionNames = r.extensions};
    PD_VK(gpu->instance.vkCreateDevice(gpu->physical, &create, NULL, &gpu->device));
    pd_device_functions_load(&gpu->vk, &gpu->instance, gpu->device);
    gpu->vk.vkGetDeviceQueue(gpu->device, gpu->queue_family, 0, &gpu->queue);
    gpu->instance.vkGetPhysicalDeviceMemoryProperties(gpu->physical, &gpu->memory);
    return find_buffer_types(gpu);
}

peridot_status pd_device_open(struct pd_gpu *gpu, const char *selector)
{
    VkPhysicalDevice *physical = NULL;
    peridot_device_info *infos = NULL;
    uint32_t n = 0, index = 0;
    PD_TRY(pd_instance_open(&gpu->instance));
    peridot_status status = describe_all(&infos, &physical, &n, &gpu->instance);
    if (status == PERIDOT_OK) status = pd_gpu_choose(&index, gpu->reason, infos, n, selector);
    if (status == PERIDOT_OK) {
        gpu->physical = physical[index];
        gpu->info = infos[index];
    }
    free(physical);
    free(infos);
    PD_TRY(status);
    /* 1 GiB blocks: large enough to be few, small enough for every known limit; a smaller limit wins. */
    gpu->max_block = pd_min(gpu->info.max_allocation_size, 1u << 30) & ~(uint64_t)255;
    /* A GPU that does not come back for so long is lost, whether or not its driver ever says so. A CPU may be slow. */
    gpu->patience = gpu->info.type == PERIDOT_DEVICE_CPU ? UINT64_MAX : 30000000000;
    return open_device(gpu);
}

/* A device that hangs is left to the end of the process: drivers may wait for it when it is destroyed. */
void pd_device_close(struct pd_gpu *gpu)
{
    if (gpu->hangs) return;
    if (gpu->device) {
        gpu->vk.vkDestroySemaphore(gpu->device, gpu->timeline, NULL);
        gpu->vk.vkDestroyDevice(gpu->device, NULL);
    }
    pd_instance_close(&gpu->instance);
}

peridot_status pd_gpu_check(const struct pd_gpu *gpu)
{
    if (!gpu->lost) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_DEVICE_LOST, "%s was lost (reset, removed, or no response for 30 s)", gpu->info.name);
}

const peridot_device_info *pd_gpu_info(const struct pd_gpu *gpu) { return &gpu->info; }
const char *pd_gpu_reason(const struct pd_gpu *gpu) { return gpu->reason; }
