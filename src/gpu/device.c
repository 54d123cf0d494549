/* Finding, choosing and opening a Vulkan device. The baseline is Vulkan 1.2 with buffer device addresses, timeline
 * semaphores and subgroup basic + arithmetic operations in compute; anything else is an option found here. */
#include "gpu/vk.h"

#include "base/num.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- results ---- */

static const char *result_name(VkResult result)
{
    static const struct { VkResult result; const char *name; } names[] = {
        {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
        {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
        {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
        {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
        {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT"},
        {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
        {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
        {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER"},
        {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS"},
        {VK_TIMEOUT, "VK_TIMEOUT"},
    };
    for (size_t i = 0; i < PD_COUNT(names); i++)
        if (names[i].result == result) return names[i].name;
    return "an unnamed error";
}

peridot_status pd_vk_fail(VkResult result, const char *call)
{
    peridot_status status = result == VK_ERROR_DEVICE_LOST ? PERIDOT_ERROR_DEVICE_LOST
        : result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY ? PERIDOT_ERROR_MEMORY
        : PERIDOT_ERROR_DEVICE;
    const char *name = strncmp(call, "gpu->vk.", 8) == 0 ? call + 8 : call;
    int size = (int)strcspn(name, "(");
    return pd_fail(status, "the device failed in %.*s: %s (%d)", size, name, result_name(result), (int)result);
}

/* ---- what a device is ---- */

/* Properties and features asked together, as each is a chain. */
struct device_facts {
    VkPhysicalDeviceProperties2 properties;
    VkPhysicalDeviceVulkan11Properties v11;
    VkPhysicalDeviceVulkan12Properties v12;
    VkPhysicalDeviceMaintenance4Properties maintenance4;
    VkPhysicalDeviceSubgroupSizeControlProperties subgroup_sizes;
    VkPhysicalDeviceShaderIntegerDotProductProperties dots;
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci;
    VkPhysicalDeviceFeatures2 features;
    VkPhysicalDeviceVulkan12Features f12;
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot;
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative;
};

struct extension_list {
    VkExtensionProperties *at;
    uint32_t n;
};

static struct extension_list list_extensions(VkPhysicalDevice physical)
{
    struct extension_list list = {0};
    vkEnumerateDeviceExtensionProperties(physical, NULL, &list.n, NULL);
    list.at = malloc(sizeof *list.at * (list.n ? list.n : 1));
    if (!list.at || vkEnumerateDeviceExtensionProperties(physical, NULL, &list.n, list.at) != VK_SUCCESS) list.n = 0;
    return list;
}

static bool has_extension(const struct extension_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].extensionName, name) == 0) return true;
    return false;
}

#define LINK(head, link) ((link).pNext = (head).pNext, (head).pNext = &(link))
#define CHAIN(head, link, type) ((link).sType = (type), LINK(head, link))

static void ask_facts(struct device_facts *f, VkPhysicalDevice physical, const struct extension_list *extensions)
{
    memset(f, 0, sizeof *f);
    f->properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    f->features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    vkGetPhysicalDeviceProperties2(physical, &f->properties);
    uint32_t version = f->properties.properties.apiVersion;
    if (version < VK_API_VERSION_1_2) return;
    CHAIN(f->properties, f->v11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    CHAIN(f->properties, f->v12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
    CHAIN(f->features, f->f12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    if (version >= VK_API_VERSION_1_3) {
        CHAIN(f->properties, f->maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
        CHAIN(f->properties, f->subgroup_sizes, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
        CHAIN(f->properties, f->dots, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES);
        CHAIN(f->features, f->dot, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
        CHAIN(f->features, f->subgroup_size, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
    }
    if (has_extension(extensions, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME))
        CHAIN(f->properties, f->pci, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
    if (has_extension(extensions, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
        CHAIN(f->features, f->cooperative, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
    vkGetPhysicalDeviceProperties2(physical, &f->properties);
    vkGetPhysicalDeviceFeatures2(physical, &f->features);
}

/* Names what the baseline misses, or "". */
static const char *missing_feature(const struct device_facts *f)
{
    const VkPhysicalDeviceLimits *limits = &f->properties.properties.limits;
    VkSubgroupFeatureFlags subgroup = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    if (f->properties.properties.apiVersion < VK_API_VERSION_1_2) return "Vulkan 1.2";
    if (!f->f12.bufferDeviceAddress) return "bufferDeviceAddress";
    if (!f->f12.timelineSemaphore) return "timelineSemaphore";
    if ((f->v11.subgroupSupportedOperations & subgroup) != subgroup || !(f->v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT))
        return "subgroup arithmetic in compute shaders";
    if (f->v11.subgroupSize < 4) return "subgroups of at least 4 invocations";
    if (limits->maxComputeWorkGroupInvocations < 256) return "workgroups of 256 invocations";
    if (limits->maxComputeSharedMemorySize < 32768) return "32 KiB of shared memory";
    return "";
}

static peridot_device_type device_type(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return PERIDOT_DEVICE_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return PERIDOT_DEVICE_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return PERIDOT_DEVICE_VIRTUAL;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return PERIDOT_DEVICE_CPU;
    default: return PERIDOT_DEVICE_OTHER;
    }
}

static void describe_heap(peridot_device_info *info, VkPhysicalDevice physical, bool has_budget)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    vkGetPhysicalDeviceMemoryProperties2(physical, &memory);
    uint64_t size = 0;
    for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; i++) size += memory.memoryProperties.memoryHeaps[i].size;
    has_budget = has_budget && size;   /* RADV without hardware has no memory, and crashes when an APU's budget is asked for */
    memory.pNext = &budget;
    if (has_budget) vkGetPhysicalDeviceMemoryProperties2(physical, &memory);
    for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; i++) {
        VkMemoryHeap heap = memory.memoryProperties.memoryHeaps[i];
        if (!(heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) || heap.size <= info->heap_size) continue;
        info->heap_size = heap.size;
        /* Some drivers report a budget above the heap, or zero. */
        info->heap_budget = has_budget && budget.heapBudget[i] ? pd_min(budget.heapBudget[i], heap.size) : heap.size;
    }
    /* Unified: every device-local type can be mapped, on a device without memory of its own. */
    info->unified_memory = info->type == PERIDOT_DEVICE_INTEGRATED || info->type == PERIDOT_DEVICE_CPU;
}

/* Sizes that matmul_coop.comp can divide its tiles into. */
static bool is_supported_tile(const VkCooperativeMatrixPropertiesKHR *p)
{
    return p->AType == VK_COMPONENT_TYPE_FLOAT16_KHR && p->BType == VK_COMPONENT_TYPE_FLOAT16_KHR
        && p->CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR
        && p->scope == VK_SCOPE_SUBGROUP_KHR && !p->saturatingAccumulation && 32 % p->MSize == 0 && 32 % p->NSize == 0 && 32 % p->KSize == 0;
}

/* The largest of the sizes that the device lists. Where subgroups can be as large as a matrix is wide, they should be: Intel's
 * matrix units work so, and its compiler takes 516 spills to make do with 32 lanes (DG2: 8 lanes, none). */
static void describe_matrices(peridot_device_info *info, VkPhysicalDevice physical)
{
    uint32_t n = 0;
    if (vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &n, NULL) != VK_SUCCESS || n == 0) return;
    VkCooperativeMatrixPropertiesKHR *list = calloc(n, sizeof *list);
    for (uint32_t i = 0; list && i < n; i++) list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    if (!list || vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &n, list) != VK_SUCCESS) n = 0;
    for (uint32_t i = 0; i < n; i++) {
        const VkCooperativeMatrixPropertiesKHR *p = &list[i];
        if (!is_supported_tile(p) || p->MSize * p->NSize * p->KSize <= info->matrix_m * info->matrix_n * info->matrix_k) continue;
        info->cooperative_matrix = true;
        info->matrix_m = p->MSize, info->matrix_n = p->NSize, info->matrix_k = p->KSize;
        bool fits = info->min_subgroup_size <= p->NSize && p->NSize <= info->max_subgroup_size;
        info->matrix_subgroup_size = fits ? p->NSize : info->subgroup_size;
    }
    free(list);
}

static void describe(peridot_device_info *info, VkPhysicalDevice physical, uint32_t index)
{
    struct extension_list extensions = list_extensions(physical);
    struct device_facts f;
    ask_facts(&f, physical, &extensions);
    const VkPhysicalDeviceProperties *p = &f.properties.properties;
    *info = (peridot_device_info){.index = index, .type = device_type(p->deviceType)};
    snprintf(info->name, sizeof info->name, "%s", p->deviceName);
    snprintf(info->driver, sizeof info->driver, "%s", f.v12.driverName);
    snprintf(info->driver_info, sizeof info->driver_info, "%s", f.v12.driverInfo);
    snprintf(info->api_version, sizeof info->api_version, "%u.%u.%u", VK_API_VERSION_MAJOR(p->apiVersion),
             VK_API_VERSION_MINOR(p->apiVersion), VK_API_VERSION_PATCH(p->apiVersion));
    for (int i = 0, at = 0; i < 16; i++)
        at += snprintf(info->uuid + at, sizeof info->uuid - (size_t)at, "%s%02x",
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", f.v11.deviceUUID[i]);
    if (f.pci.sType)
        snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.%x", f.pci.pciDomain & 0xffff, f.pci.pciBus & 0xff,
                 f.pci.pciDevice & 0xff, f.pci.pciFunction & 0xf);
    snprintf(info->unusable, sizeof info->unusable, "%s", missing_feature(&f));
    uint64_t key = pd_hash(0, p->pipelineCacheUUID, sizeof p->pipelineCacheUUID);
    key = pd_hash(key, &p->driverVersion, sizeof p->driverVersion);
    key = pd_hash(key, p->deviceName, strlen(p->deviceName));
    snprintf(info->cache_key, sizeof info->cache_key, "%016" PRIx64, key);
    info->max_allocation_size = f.v11.maxMemoryAllocationSize;
    if (f.maintenance4.maxBufferSize) info->max_allocation_size = pd_min(info->max_allocation_size, f.maintenance4.maxBufferSize);
    info->subgroup_size = f.v11.subgroupSize;
    info->min_subgroup_size = info->max_subgroup_size = info->subgroup_size;
    info->max_workgroup_invocations = p->limits.maxComputeWorkGroupInvocations;
    info->max_shared_size = p->limits.maxComputeSharedMemorySize;
    info->max_push_size = p->limits.maxPushConstantsSize;
    info->fp16_arithmetic = f.f12.shaderFloat16;
    info->int8_arithmetic = f.f12.shaderInt8;
    info->int64_arithmetic = f.features.features.shaderInt64;
    info->subgroup_ballot = f.v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_BALLOT_BIT;
    info->integer_dot = f.dot.shaderIntegerDotProduct;
    info->integer_dot_instruction = info->integer_dot && f.dots.integerDotProduct4x8BitPackedSignedAccelerated;
    info->subgroup_size_control = f.subgroup_size.subgroupSizeControl && f.subgroup_size.computeFullSubgroups
        && f.subgroup_sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
    if (info->subgroup_size_control) {
        info->min_subgroup_size = f.subgroup_sizes.minSubgroupSize;
        info->max_subgroup_size = f.subgroup_sizes.maxSubgroupSize;
    }
    if (f.cooperative.cooperativeMatrix && f.f12.shaderFloat16 && f.f12.vulkanMemoryModel && f.f12.vulkanMemoryModelDeviceScope)
        describe_matrices(info, physical);
    info->external_host_memory = has_extension(&extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
    describe_heap(info, physical, has_extension(&extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME));
    free(extensions.at);
}

/* ---- instance ---- */

static peridot_status open_instance(VkInstance *out)
{
    *out = VK_NULL_HANDLE;
    if (volkInitialize() != VK_SUCCESS)
        return pd_fail(PERIDOT_ERROR_DEVICE, "no Vulkan loader found (libvulkan.so.1): install the package libvulkan1 and a driver");
    if (volkGetInstanceVersion() < VK_API_VERSION_1_2)
        return pd_fail(PERIDOT_ERROR_DEVICE, "the Vulkan loader is older than 1.2");
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "peridot", .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    VkResult result = vkCreateInstance(&create, NULL, out);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER || result == VK_ERROR_INITIALIZATION_FAILED)
        return pd_fail(PERIDOT_ERROR_DEVICE, "no Vulkan driver found: install one for your GPU, or mesa-vulkan-drivers for a software device");
    if (result != VK_SUCCESS) return pd_vk_fail(result, "vkCreateInstance");
    volkLoadInstanceOnly(*out);
    return PERIDOT_OK;
}

static peridot_status list_physical(VkPhysicalDevice **out, uint32_t *n, VkInstance instance)
{
    *n = 0;
    *out = NULL;
    VkResult result = vkEnumeratePhysicalDevices(instance, n, NULL);
    if (result != VK_SUCCESS || *n == 0)
        return pd_fail(PERIDOT_ERROR_DEVICE, "no Vulkan device found: install a driver for your GPU, or mesa-vulkan-drivers for a software device");
    *out = malloc(sizeof **out * *n);
    if (!*out) return pd_fail_alloc(sizeof **out * *n, "device list");
    result = vkEnumeratePhysicalDevices(instance, n, *out);
    return result == VK_SUCCESS || result == VK_INCOMPLETE ? PERIDOT_OK : pd_vk_fail(result, "vkEnumeratePhysicalDevices");
}

static peridot_status describe_all(peridot_device_info **out, VkPhysicalDevice **physical, uint32_t *n, VkInstance instance)
{
    *out = NULL;
    PD_TRY(list_physical(physical, n, instance));
    *out = malloc(sizeof **out * *n);
    if (!*out) return pd_fail_alloc(sizeof **out * *n, "device list");
    for (uint32_t i = 0; i < *n; i++) describe(&(*out)[i], (*physical)[i], i);
    return PERIDOT_OK;
}

peridot_status pd_gpu_list(peridot_device_info **out, size_t *n)
{
    VkInstance instance;
    VkPhysicalDevice *physical = NULL;
    uint32_t count = 0;
    *out = NULL;
    *n = 0;
    PD_TRY(open_instance(&instance));
    peridot_status status = describe_all(out, &physical, &count, instance);
    free(physical);
    vkDestroyInstance(instance, NULL);
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
    static const int rank[] = {[PERIDOT_DEVICE_DISCRETE] = 4, [PERIDOT_DEVICE_INTEGRATED] = 3, [PERIDOT_DEVICE_VIRTUAL] = 2,
                               [PERIDOT_DEVICE_OTHER] = 1, [PERIDOT_DEVICE_CPU] = 0};
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

static peridot_status choose_named(uint32_t *out, char reason[256], const peridot_device_info *infos, uint32_t n, const char *selector)
{
    uint32_t found = n;
    for (uint32_t i = 0; i < n && found == n; i++)
        if (selects(selector, &infos[i])) found = i;
    if (!*selector || found == n)
        return pd_fail(PERIDOT_ERROR_DEVICE, "no device matches \"%s\" (%u found; `peridot devices` lists them)", selector, n);
    if (infos[found].unusable[0])
        return pd_fail(PERIDOT_ERROR_DEVICE, "device %u (%s) cannot be used: it lacks %s", found, infos[found].name, infos[found].unusable);
    snprintf(reason, 256, "asked for by \"%.200s\"", selector);
    *out = found;
    return PERIDOT_OK;
}

static peridot_status choose(uint32_t *out, char reason[256], const peridot_device_info *infos, uint32_t n, const char *selector)
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
    if (usable == 1) snprintf(reason, 256, "the only usable device");
    else if (infos[best].type == PERIDOT_DEVICE_CPU) snprintf(reason, 256, "no GPU among %u devices", usable);
    else snprintf(reason, 256, "the fastest of %u by type and memory", usable);
    *out = best;
    return PERIDOT_OK;
}

/* ---- opening ---- */

static peridot_status find_queue(struct pd_gpu *gpu)
{
    uint32_t n = 0, best = UINT32_MAX;
    vkGetPhysicalDeviceQueueFamilyProperties(gpu->physical, &n, NULL);
    VkQueueFamilyProperties *families = malloc(sizeof *families * (n ? n : 1));
    if (!families) return pd_fail_alloc(sizeof *families * n, "queue families");
    vkGetPhysicalDeviceQueueFamilyProperties(gpu->physical, &n, families);
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
    vkGetPhysicalDeviceProperties(gpu->physical, &properties);
    gpu->queue_family = best;
    gpu->timestamp_period = bits ? (double)properties.limits.timestampPeriod : 0;
    gpu->timestamp_mask = bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    return PERIDOT_OK;
}

/* 0: host memory cannot be read in place. SwiftShader has the extension, but not for buffers. */
static uint64_t import_alignment(VkPhysicalDevice physical)
{
    VkPhysicalDeviceExternalBufferInfo buffer = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
        .usage = PD_IMPORT_USAGE, .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT};
    VkExternalBufferProperties external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    vkGetPhysicalDeviceExternalBufferProperties(physical, &buffer, &external);
    if (!(external.externalMemoryProperties.externalMemoryFeatures & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT)) return 0;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &host};
    vkGetPhysicalDeviceProperties2(physical, &properties);
    return host.minImportedHostPointerAlignment;
}

static peridot_status open_device(struct pd_gpu *gpu)
{
    PD_TRY(find_queue(gpu));
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = gpu->queue_family, .queueCount = 1, .pQueuePriorities = &priority};
    VkPhysicalDeviceVulkan12Features f12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .bufferDeviceAddress = VK_TRUE, .timelineSemaphore = VK_TRUE};
    const char *extensions[8];
    uint32_t n_extensions = 0;
    const peridot_device_info *info = &gpu->info;
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, .subgroupSizeControl = VK_TRUE, .computeFullSubgroups = VK_TRUE};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, .cooperativeMatrix = VK_TRUE};
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, .shaderIntegerDotProduct = VK_TRUE};
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, .pipelineExecutableInfo = VK_TRUE};
    f12.shaderFloat16 = info->fp16_arithmetic;
    /* Must go with it; and once it is there, atomics of other kernels, which are the device's, must ask for the second. */
    f12.vulkanMemoryModel = f12.vulkanMemoryModelDeviceScope = info->cooperative_matrix;
    if (info->subgroup_size_control) LINK(f12, subgroup_size);
    if (info->integer_dot) LINK(f12, dot);
    if (info->cooperative_matrix) {
        LINK(f12, cooperative);
        extensions[n_extensions++] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
    }
    struct extension_list have = list_extensions(gpu->physical);
    gpu->has_budget = has_extension(&have, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    if (gpu->has_budget) extensions[n_extensions++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    if (gpu->info.unified_memory && gpu->info.external_host_memory) {
        extensions[n_extensions++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
        gpu->import_alignment = import_alignment(gpu->physical);
    }
    gpu->statistics = gpu->statistics && has_extension(&have, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    if (gpu->statistics) {
        LINK(f12, executable);
        extensions[n_extensions++] = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
    }
    free(have.at);
    VkPhysicalDeviceFeatures features = {.shaderInt64 = info->int64_arithmetic};
    VkDeviceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &f12, .pEnabledFeatures = &features, .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue, .enabledExtensionCount = n_extensions, .ppEnabledExtensionNames = extensions};
    PD_VK(vkCreateDevice(gpu->physical, &create, NULL, &gpu->device));
    volkLoadDeviceTable(&gpu->vk, gpu->device);
    gpu->vk.vkGetDeviceQueue(gpu->device, gpu->queue_family, 0, &gpu->queue);
    vkGetPhysicalDeviceMemoryProperties(gpu->physical, &gpu->memory);
    return PERIDOT_OK;
}

static peridot_status open_chosen(struct pd_gpu *gpu, const char *selector)
{
    VkPhysicalDevice *physical = NULL;
    peridot_device_info *infos = NULL;
    uint32_t n = 0, index = 0;
    PD_TRY(open_instance(&gpu->instance));
    peridot_status status = describe_all(&infos, &physical, &n, gpu->instance);
    if (status == PERIDOT_OK) status = choose(&index, gpu->reason, infos, n, selector);
    if (status == PERIDOT_OK) {
        gpu->physical = physical[index];
        gpu->info = infos[index];
    }
    free(physical);
    free(infos);
    PD_TRY(status);
    /* 1 GiB blocks: large enough to be few, small enough for every known limit; a smaller limit wins. */
    gpu->max_block = pd_min(gpu->info.max_allocation_size, 1u << 30) & ~(uint64_t)255;
    return open_device(gpu);
}

static peridot_status open_gpu(struct pd_gpu **out, const char *selector, const char *cache_dir, bool statistics)
{
    *out = NULL;
    struct pd_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return pd_fail_alloc(sizeof *gpu, "device");
    gpu->statistics = statistics;
    peridot_status status = open_chosen(gpu, selector);
    if (status == PERIDOT_OK && !statistics) {
        pd_verdict_read(gpu->wrong, &gpu->info, cache_dir);
        status = pd_pipeline_cache_open(gpu, cache_dir);
    }
    if (status != PERIDOT_OK) {
        pd_gpu_close(gpu);
        return status;
    }
    *out = gpu;
    return PERIDOT_OK;
}

peridot_status pd_gpu_open(struct pd_gpu **out, const char *selector, const char *cache_dir)
{
    return open_gpu(out, selector, cache_dir, false);
}

peridot_status pd_gpu_open_compiler(struct pd_gpu **out, const char *selector) { return open_gpu(out, selector, NULL, true); }

void pd_gpu_close(struct pd_gpu *gpu)
{
    if (!gpu) return;
    if (gpu->device) {
        if (gpu->timeline) gpu->vk.vkDeviceWaitIdle(gpu->device);   /* nothing was submitted without it */
        pd_staging_free(gpu);
        pd_pipeline_cache_close(gpu);
        pd_kernels_free(gpu);
        gpu->vk.vkDestroySemaphore(gpu->device, gpu->timeline, NULL);
        gpu->vk.vkDestroyDevice(gpu->device, NULL);
    }
    if (gpu->instance) vkDestroyInstance(gpu->instance, NULL);
    free(gpu);
}

peridot_status pd_gpu_check(const struct pd_gpu *gpu)
{
    if (!gpu->lost) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_DEVICE_LOST, "%s was lost: its driver gave it up, or it was taken away", gpu->info.name);
}

const peridot_device_info *pd_gpu_info(const struct pd_gpu *gpu) { return &gpu->info; }
const char *pd_gpu_reason(const struct pd_gpu *gpu) { return gpu->reason; }
