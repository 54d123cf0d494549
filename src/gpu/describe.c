/* What a device is: its properties, features and limits as the layers above see them. This is the one place that
 * decides what of Vulkan a device has; the others ask peridot_device_info, so that a test can describe a device that
 * nobody has. Nothing is created here, and a device that cannot be used is described like any other, with the reason:
 * `peridot devices` shows it. What drivers say is not trusted: names are escaped, and budgets kept within heaps. */
#include "gpu/gpu_.h"

#include "base/base.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Properties and features, each with its pNext chain. */
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
    VkPhysicalDevicePortabilitySubsetFeaturesKHR subset;
};

peridot_status pd_extensions_list(struct pd_extensions *out, const struct pd_instance *instance,
                                  VkPhysicalDevice physical)
{
    *out = (struct pd_extensions){0};
    instance->vkEnumerateDeviceExtensionProperties(physical, NULL, &out->n, NULL);
    out->at = malloc(sizeof *out->at * (out->n ? out->n : 1));
    if (!out->at) return pd_fail_alloc(sizeof *out->at * out->n, "device extensions");
    if (instance->vkEnumerateDeviceExtensionProperties(physical, NULL, &out->n, out->at) != VK_SUCCESS) out->n = 0;
    return PERIDOT_OK;
}

bool pd_extensions_has(const struct pd_extensions *list, const char *name)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].extensionName, name) == 0) return true;
    return false;
}

#define CHAIN(head, link, type) ((link).sType = (type), PD_LINK(head, link))

static void query_facts(struct device_facts *f, const struct pd_instance *instance, VkPhysicalDevice physical,
                      const struct pd_extensions *extensions)
{
    memset(f, 0, sizeof *f);
    f->properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    f->features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    instance->vkGetPhysicalDeviceProperties2(physical, &f->properties);
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
    if (pd_extensions_has(extensions, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME))
        CHAIN(f->properties, f->pci, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
    if (pd_extensions_has(extensions, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
        CHAIN(f->features, f->cooperative, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
    if (pd_extensions_has(extensions, VK_KHR_PORTABILITY_SUBSET_EXTENSION_NAME))
        CHAIN(f->features, f->subset, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PORTABILITY_SUBSET_FEATURES_KHR);
    instance->vkGetPhysicalDeviceProperties2(physical, &f->properties);
    instance->vkGetPhysicalDeviceFeatures2(physical, &f->features);
}

/* What the device lacks of the baseline, or "". */
static const char *missing_feature(const struct device_facts *f)
{
    const VkPhysicalDeviceLimits *limits = &f->properties.properties.limits;
    VkSubgroupFeatureFlags subgroup = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    if (f->properties.properties.apiVersion < VK_API_VERSION_1_2) return "Vulkan 1.2";
    if (!f->f12.bufferDeviceAddress) return "bufferDeviceAddress";
    if (!f->f12.timelineSemaphore) return "timelineSemaphore";
    if ((f->v11.subgroupSupportedOperations & subgroup) != subgroup
        || !(f->v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT))
        return "subgroup arithmetic in compute shaders";
    if (f->v11.subgroupSize < 4) return "subgroups of at least 4 invocations";
    if (limits->maxComputeWorkGroupInvocations < 256) return "workgroups of 256 invocations";
    if (limits->maxComputeSharedMemorySize < 32768) return "32 KiB of shared memory";
    return "";
}

/* The features that VK_KHR_portability_subset lets a device lack, in the order of its struct. Kernels need none. */
static void list_subset_lacks(char *out, size_t size, const VkPhysicalDevicePortabilitySubsetFeaturesKHR *subset)
{
    static const char *const names[] = {"constantAlphaColorBlendFactors", "events", "imageViewFormatReinterpretation",
        "imageViewFormatSwizzle", "imageView2DOn3DImage", "multisampleArrayImage", "mutableComparisonSamplers",
        "pointPolygons", "samplerMipLodBias", "separateStencilMaskRef", "shaderSampleRateInterpolationFunctions",
        "tessellationIsolines", "tessellationPointMode", "triangleFans", "vertexAttributeAccessBeyondStride"};
    VkBool32 has[PD_COUNT(names)];
    size_t used = 0;
    if (!subset->sType) return;
    memcpy(has, (const char *)subset + offsetof(VkPhysicalDevicePortabilitySubsetFeaturesKHR,
                                               constantAlphaColorBlendFactors), sizeof has);
    for (size_t i = 0; i < PD_COUNT(names) && used < size; i++)
        if (!has[i]) used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", names[i]);
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

void pd_memory_room(struct pd_memory_room *out, const struct pd_instance *instance, VkPhysicalDevice physical,
                    bool unified, bool has_budget)
{
    const VkMemoryPropertyFlags unusable = VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget =
        {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    const VkPhysicalDeviceMemoryProperties *memory = &properties.memoryProperties;
    instance->vkGetPhysicalDeviceMemoryProperties2(physical, &properties);
    uint64_t size = 0;
    uint32_t reached = 0;
    for (uint32_t i = 0; i < memory->memoryHeapCount; i++) size += memory->memoryHeaps[i].size;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++)
        if (!(memory->memoryTypes[i].propertyFlags & unusable)) reached |= 1u << memory->memoryTypes[i].heapIndex;
    properties.pNext = &budget;
    /* RADV without hardware has no memory, and crashes when an APU's budget is asked for */
    if (has_budget && size) instance->vkGetPhysicalDeviceMemoryProperties2(physical, &properties);
    *out = (struct pd_memory_room){0};
    for (uint32_t i = 0; i < memory->memoryHeapCount; i++) {
        VkMemoryHeap heap = memory->memoryHeaps[i];
        bool is_largest = heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT && heap.size > out->size;
        if (unified ? !(reached >> i & 1) : !is_largest) continue;
        if (!unified) *out = (struct pd_memory_room){0};
        /* Some drivers report a budget above the heap, or zero. */
        uint64_t limit = budget.heapBudget[i] ? pd_min(budget.heapBudget[i], heap.size) : heap.size;
        out->free_of[i] = limit - pd_min(budget.heapUsage[i], limit);
        out->size += heap.size;
        out->budget += limit;
        out->free += out->free_of[i];
    }
}

/* Sizes that matmul_coop.comp can divide its tiles into. */
static bool is_supported_tile(const VkCooperativeMatrixPropertiesKHR *p)
{
    return p->AType == VK_COMPONENT_TYPE_FLOAT16_KHR && p->BType == VK_COMPONENT_TYPE_FLOAT16_KHR
        && p->CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR
        && p->scope == VK_SCOPE_SUBGROUP_KHR && !p->saturatingAccumulation && 32 % p->MSize == 0 && 32 % p->NSize == 0
        && 32 % p->KSize == 0;
}

/* Takes the largest size that the device lists. Subgroups are as large as the matrix is wide where they can be:
 * Intel's matrix units work that way, and on DG2 its compiler spills 516 times with 32 lanes and never with 8. */
static peridot_status describe_matrices(peridot_device_info *info, const struct pd_instance *instance,
                                        VkPhysicalDevice physical)
{
    uint32_t n = 0;
    if (instance->vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &n, NULL) != VK_SUCCESS || n == 0)
        return PERIDOT_OK;
    VkCooperativeMatrixPropertiesKHR *list = calloc(n, sizeof *list);
    if (!list) return pd_fail_alloc(n * sizeof *list, "sizes of matrices");
    for (uint32_t i = 0; i < n; i++) list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    if (instance->vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &n, list) != VK_SUCCESS) n = 0;
    for (uint32_t i = 0; i < n; i++) {
        const VkCooperativeMatrixPropertiesKHR *p = &list[i];
        if (!is_supported_tile(p) || p->MSize * p->NSize * p->KSize <= info->matrix_m * info->matrix_n * info->matrix_k)
            continue;
        info->cooperative_matrix = true;
        info->matrix_m = p->MSize, info->matrix_n = p->NSize, info->matrix_k = p->KSize;
        info->matrix_subgroup_size = (uint32_t)pd_max(info->min_subgroup_size,
                                                      pd_min(p->NSize, info->max_subgroup_size));
    }
    free(list);
    return PERIDOT_OK;
}

/* Who it is. The key names the device's files in the cache: those of another driver or another card are not read. */
static void describe_identity(peridot_device_info *info, const struct device_facts *f)
{
    const VkPhysicalDeviceProperties *p = &f->properties.properties;
    info->type = device_type(p->deviceType);
    pd_utf8_escape(info->name, sizeof info->name, p->deviceName, strlen(p->deviceName));
    pd_utf8_escape(info->driver, sizeof info->driver, f->v12.driverName, strlen(f->v12.driverName));
    pd_utf8_escape(info->driver_info, sizeof info->driver_info, f->v12.driverInfo, strlen(f->v12.driverInfo));
    info->vendor_id = p->vendorID, info->device_id = p->deviceID, info->driver_version = p->driverVersion;
    snprintf(info->api_version, sizeof info->api_version, "%u.%u.%u", VK_API_VERSION_MAJOR(p->apiVersion),
             VK_API_VERSION_MINOR(p->apiVersion), VK_API_VERSION_PATCH(p->apiVersion));
    for (int i = 0, at = 0; i < 16; i++)
        at += snprintf(info->uuid + at, sizeof info->uuid - (size_t)at, "%s%02x",
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", f->v11.deviceUUID[i]);
    if (f->pci.sType)
        snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.%x", f->pci.pciDomain & 0xffff, f->pci.pciBus & 0xff,
                 f->pci.pciDevice & 0xff, f->pci.pciFunction & 0xf);
    uint64_t key = pd_hash(0, p->pipelineCacheUUID, sizeof p->pipelineCacheUUID);
    key = pd_hash(key, &p->driverVersion, sizeof p->driverVersion);
    key = pd_hash(key, p->deviceName, strlen(p->deviceName));
    snprintf(info->cache_key, sizeof info->cache_key, "%016" PRIx64, key);
}

/* How much of anything a kernel or an allocation may have. */
static void describe_limits(peridot_device_info *info, const struct device_facts *f)
{
    const VkPhysicalDeviceLimits *limits = &f->properties.properties.limits;
    info->max_allocation_size = f->v11.maxMemoryAllocationSize;
    if (f->maintenance4.maxBufferSize)
        info->max_allocation_size = pd_min(info->max_allocation_size, f->maintenance4.maxBufferSize);
    info->max_workgroup_invocations = limits->maxComputeWorkGroupInvocations;
    info->max_shared_size = limits->maxComputeSharedMemorySize;
    info->max_push_size = limits->maxPushConstantsSize;
}

/* What its kernels may be made of, beyond the baseline. */
static void describe_arithmetic(peridot_device_info *info, const struct device_facts *f)
{
    info->fp16_arithmetic = f->f12.shaderFloat16;
    info->int8_arithmetic = f->f12.shaderInt8;
    info->byte_storage = f->f12.storageBuffer8BitAccess;
    info->int64_arithmetic = f->features.features.shaderInt64;
    info->integer_dot = f->dot.shaderIntegerDotProduct;
    info->integer_dot_instruction = info->integer_dot && f->dots.integerDotProduct4x8BitPackedSignedAccelerated;
    info->subgroup_ballot = f->v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_BALLOT_BIT;
    info->subgroup_size_control = f->subgroup_size.subgroupSizeControl && f->subgroup_size.computeFullSubgroups
        && f->subgroup_sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
    info->subgroup_size = info->min_subgroup_size = info->max_subgroup_size = f->v11.subgroupSize;
    if (info->subgroup_size_control) {
        info->min_subgroup_size = f->subgroup_sizes.minSubgroupSize;
        info->max_subgroup_size = f->subgroup_sizes.maxSubgroupSize;
    }
}

static bool has_matrices(const struct device_facts *f, const struct pd_instance *instance)
{
    return f->cooperative.cooperativeMatrix && f->f12.shaderFloat16 && f->f12.vulkanMemoryModel
        && f->f12.vulkanMemoryModelDeviceScope && instance->vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
}

static void describe_memory(peridot_device_info *info, const struct pd_instance *instance, VkPhysicalDevice physical,
                            const struct pd_extensions *extensions)
{
    struct pd_memory_room room;
    info->external_host_memory = pd_extensions_has(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
    info->unified_memory = info->type == PERIDOT_DEVICE_INTEGRATED || info->type == PERIDOT_DEVICE_CPU;
    pd_memory_room(&room, instance, physical, info->unified_memory,
                   pd_extensions_has(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME));
    info->heap_size = room.size;
    info->heap_budget = room.budget;
}

peridot_status pd_device_describe(peridot_device_info *info, const struct pd_instance *instance,
                                  VkPhysicalDevice physical, uint32_t index)
{
    struct pd_extensions extensions;
    struct device_facts f;
    *info = (peridot_device_info){.index = index};
    PD_TRY(pd_extensions_list(&extensions, instance, physical));
    query_facts(&f, instance, physical, &extensions);
    describe_identity(info, &f);
    describe_limits(info, &f);
    describe_arithmetic(info, &f);
    describe_memory(info, instance, physical, &extensions);
    snprintf(info->unusable, sizeof info->unusable, "%s", missing_feature(&f));
    list_subset_lacks(info->subset_lacks, sizeof info->subset_lacks, &f.subset);
    free(extensions.at);
    return has_matrices(&f, instance) ? describe_matrices(info, instance, physical) : PERIDOT_OK;
}
