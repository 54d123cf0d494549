/* A Vulkan layer for what GPUs do and CPUs do not. Devices call themselves discrete GPUs where PERIDOT_TEST_DISCRETE is
 * set, or what PERIDOT_TEST_GPU names (a GPU of tools/pipelines), and have heaps of at most PERIDOT_TEST_HEAP bytes
 * where that is set. All allocations of the process together have at most PERIDOT_TEST_MEMORY bytes. When the file
 * PERIDOT_TEST_FAULT appears, which it removes, the device is broken until it is created again, as the file says:
 *   lose   submits fail with VK_ERROR_DEVICE_LOST
 *   hang   nothing that is submitted completes: waits of up to 30 s time out, after 2 s already; longer ones, and those
 *          for the device to be idle or destroyed, never end
 *   block  submits never return */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layer.h"

static PFN_vkGetPhysicalDeviceProperties get_properties;
static PFN_vkGetPhysicalDeviceProperties2 get_properties2;
static PFN_vkGetPhysicalDeviceFeatures2 get_features2;
static PFN_vkGetPhysicalDeviceMemoryProperties2 get_memory2;
static PFN_vkQueueSubmit queue_submit;
static PFN_vkWaitSemaphores wait_semaphores;
static PFN_vkDeviceWaitIdle wait_idle;
static PFN_vkDestroyDevice destroy_device;
static PFN_vkAllocateMemory allocate_memory;
static PFN_vkFreeMemory free_memory;
static char fault[8];

/* ---- a device that calls itself a GPU ---- */

/* With its type, vendor, subgroup sizes, and what of optional features it lacks or has in hardware, as Mesa 25.0
 * reports them, so that kernels, variants and layouts are chosen as they are for that GPU. What the device lacks
 * itself, cooperative matrices before all, is not added. It must run subgroups of these sizes: tools/wide makes a
 * driver that does. */
#define INTEGRATED VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU
#define DISCRETE VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
#define AMD 0x1002
#define INTEL 0x8086
#define NVIDIA 0x10de
#define QUALCOMM 0x5143

static const struct gpu {
    const char *name;
    VkPhysicalDeviceType type;
    uint32_t vendor, subgroup, min_subgroup, max_subgroup;
    VkBool32 fp16, dot, control;   /* arithmetic; an instruction for integer dot products; sizes can be required */
} gpus[] = {
    {"vega10", DISCRETE, AMD, 64, 64, 64, 1, 0, 0}, {"renoir", INTEGRATED, AMD, 64, 64, 64, 1, 0, 0},
    {"navi10", DISCRETE, AMD, 64, 32, 64, 1, 0, 1}, {"navi21", DISCRETE, AMD, 64, 32, 64, 1, 1, 1},
    {"navi31", DISCRETE, AMD, 64, 32, 64, 1, 1, 1}, {"phoenix", INTEGRATED, AMD, 64, 32, 64, 1, 1, 1},
    {"vangogh", INTEGRATED, AMD, 64, 32, 64, 1, 1, 1}, {"gfx1150", INTEGRATED, AMD, 64, 32, 64, 1, 1, 1},
    {"gfx1151", INTEGRATED, AMD, 64, 32, 64, 1, 1, 1}, {"gfx1201", DISCRETE, AMD, 64, 32, 64, 1, 1, 1},
    {"skl", INTEGRATED, INTEL, 32, 8, 32, 1, 0, 1}, {"icl", INTEGRATED, INTEL, 32, 8, 32, 1, 0, 1},
    {"tgl", INTEGRATED, INTEL, 32, 8, 32, 1, 1, 1}, {"adl", INTEGRATED, INTEL, 32, 8, 32, 1, 1, 1},
    {"dg2", DISCRETE, INTEL, 32, 8, 32, 1, 1, 1}, {"mtl", INTEGRATED, INTEL, 32, 8, 32, 1, 1, 1},
    {"lnl", INTEGRATED, INTEL, 32, 16, 32, 1, 1, 1}, {"bmg", DISCRETE, INTEL, 32, 16, 32, 1, 1, 1},
    {"pascal", DISCRETE, NVIDIA, 32, 32, 32, 0, 0, 1}, {"turing", DISCRETE, NVIDIA, 32, 32, 32, 0, 1, 1},
    {"ampere", DISCRETE, NVIDIA, 32, 32, 32, 1, 1, 1}, {"a630", INTEGRATED, QUALCOMM, 128, 64, 128, 1, 0, 1},
    {"a660", INTEGRATED, QUALCOMM, 128, 64, 128, 1, 0, 1}, {"a730", INTEGRATED, QUALCOMM, 128, 64, 128, 1, 0, 1},
    {"a740", INTEGRATED, QUALCOMM, 128, 64, 128, 1, 0, 1}, {"a750", INTEGRATED, QUALCOMM, 128, 64, 128, 1, 0, 1},
};

static const struct gpu *gpu;   /* NULL: none is named */

static void rename_device(VkPhysicalDeviceProperties *p)
{
    if (getenv("PERIDOT_TEST_DISCRETE")) p->deviceType = DISCRETE;
    if (!gpu) return;
    p->deviceType = gpu->type;
    p->vendorID = gpu->vendor;
    snprintf(p->deviceName, sizeof p->deviceName, "%s (llvmpipe)", gpu->name);
}

static VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties *out)
{
    get_properties(device, out);
    rename_device(out);
}

static VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *out)
{
    get_properties2(device, out);
    rename_device(&out->properties);
    for (VkBaseOutStructure *s = out->pNext; gpu && s; s = s->pNext)
        switch (s->sType) {
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES:
            ((VkPhysicalDeviceVulkan11Properties *)s)->subgroupSize = gpu->subgroup;
            break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES:
            ((VkPhysicalDeviceSubgroupSizeControlProperties *)s)->minSubgroupSize = gpu->min_subgroup;
            ((VkPhysicalDeviceSubgroupSizeControlProperties *)s)->maxSubgroupSize = gpu->max_subgroup;
            ((VkPhysicalDeviceSubgroupSizeControlProperties *)s)->requiredSubgroupSizeStages
                = gpu->control ? VK_SHADER_STAGE_COMPUTE_BIT : 0;
            break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES:
            ((VkPhysicalDeviceShaderIntegerDotProductProperties *)s)->integerDotProduct4x8BitPackedSignedAccelerated
                = gpu->dot;
            break;
        default: break;
        }
}

static VKAPI_ATTR void VKAPI_CALL features2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2 *out)
{
    get_features2(device, out);
    for (VkBaseOutStructure *s = out->pNext; gpu && s; s = s->pNext)
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
            ((VkPhysicalDeviceVulkan12Features *)s)->shaderFloat16 &= gpu->fp16;
}

static VKAPI_ATTR void VKAPI_CALL memory2(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2 *out)
{
    const char *most = getenv("PERIDOT_TEST_HEAP");
    VkPhysicalDeviceMemoryProperties *memory = &out->memoryProperties;
    get_memory2(device, out);
    for (VkBaseOutStructure *s = out->pNext; most && s; s = s->pNext)   /* llvmpipe's usage is that of all programs */
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT)
            memset(((VkPhysicalDeviceMemoryBudgetPropertiesEXT *)s)->heapUsage, 0,
                   VK_MAX_MEMORY_HEAPS * sizeof(VkDeviceSize));
    for (uint32_t i = 0; most && i < memory->memoryHeapCount; i++)
        if (memory->memoryHeaps[i].size > strtoull(most, NULL, 10))
            memory->memoryHeaps[i].size = strtoull(most, NULL, 10);
}

/* ---- little memory ---- */

static struct {
    pthread_mutex_t lock;
    uint64_t size;                 /* of all that is not freed */
    size_t n;
    struct {
        VkDeviceMemory memory;
        uint64_t size;
    } all[4096];
} allocated = {.lock = PTHREAD_MUTEX_INITIALIZER};

static VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                               const VkAllocationCallbacks *allocator, VkDeviceMemory *out)
{
    const char *most = getenv("PERIDOT_TEST_MEMORY");
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    if (!most) return allocate_memory(device, info, allocator, out);
    pthread_mutex_lock(&allocated.lock);
    bool fits = allocated.size + info->allocationSize <= strtoull(most, NULL, 10)
        && allocated.n < sizeof allocated.all / sizeof *allocated.all;
    if (fits) result = allocate_memory(device, info, allocator, out);
    if (result == VK_SUCCESS) {
        allocated.all[allocated.n].memory = *out;
        allocated.all[allocated.n++].size = info->allocationSize;
        allocated.size += info->allocationSize;
    }
    pthread_mutex_unlock(&allocated.lock);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL release(VkDevice device, VkDeviceMemory memory,
                                          const VkAllocationCallbacks *allocator)
{
    pthread_mutex_lock(&allocated.lock);
    for (size_t i = 0; i < allocated.n; i++) {
        if (allocated.all[i].memory != memory) continue;
        allocated.size -= allocated.all[i].size;
        allocated.all[i] = allocated.all[--allocated.n];
        break;
    }
    pthread_mutex_unlock(&allocated.lock);
    free_memory(device, memory, allocator);
}

/* ---- faults ---- */

/* A file that is still empty is about to be written. */
static void look_for_fault(void)
{
    const char *path = getenv("PERIDOT_TEST_FAULT");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return;
    if (fscanf(file, "%7s", fault) == 1) unlink(path);
    fclose(file);
}

static void block(void)
{
    for (;;) pause();
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t n, const VkSubmitInfo *submits, VkFence fence)
{
    look_for_fault();
    if (strcmp(fault, "block") == 0) block();
    return strcmp(fault, "lose") == 0 ? VK_ERROR_DEVICE_LOST : queue_submit(queue, n, submits, fence);
}

/* What was submitted is over before its memory may be freed. */
static VKAPI_ATTR VkResult VKAPI_CALL wait_for(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
    /* llvmpipe may compile for longer than a GPU may take */
    if (strcmp(fault, "hang") != 0) return wait_semaphores(device, info, UINT64_MAX);
    wait_idle(device);
    if (timeout > 30000000000u) block();
    sleep(2);
    return VK_TIMEOUT;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_idle_for(VkDevice device)
{
    if (strcmp(fault, "hang") == 0) block();
    return wait_idle(device);
}

static VKAPI_ATTR void VKAPI_CALL destroy(VkDevice device, const VkAllocationCallbacks *allocator)
{
    if (strcmp(fault, "hang") == 0) block();
    destroy_device(device, allocator);
}

/* ---- the layer ---- */

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice device, const char *name)
{
    static const struct layer_function own[] = {LAYER_FUNCTION("vkGetDeviceProcAddr", get_device_proc),
                                                LAYER_FUNCTION("vkQueueSubmit", submit),
                                                LAYER_FUNCTION("vkWaitSemaphores", wait_for),
                                                LAYER_FUNCTION("vkDeviceWaitIdle", wait_idle_for),
                                                LAYER_FUNCTION("vkDestroyDevice", destroy),
                                                LAYER_FUNCTION("vkAllocateMemory", allocate),
                                                LAYER_FUNCTION("vkFreeMemory", release)};
    return layer_get_of_device(own, sizeof own / sizeof *own, device, name);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator, VkDevice *out)
{
    VkResult result = layer_create_device(physical, info, allocator, out);
    if (result != VK_SUCCESS) return result;
    queue_submit = NEXT_OF_DEVICE(*out, vkQueueSubmit);
    wait_semaphores = NEXT_OF_DEVICE(*out, vkWaitSemaphores);
    wait_idle = NEXT_OF_DEVICE(*out, vkDeviceWaitIdle);
    destroy_device = NEXT_OF_DEVICE(*out, vkDestroyDevice);
    allocate_memory = NEXT_OF_DEVICE(*out, vkAllocateMemory);
    free_memory = NEXT_OF_DEVICE(*out, vkFreeMemory);
    fault[0] = 0;
    return VK_SUCCESS;
}

/* A name that is not in the table is no GPU: no instance. */
static VkResult find_gpu(void)
{
    const char *name = getenv("PERIDOT_TEST_GPU");
    gpu = NULL;
    if (!name || !*name) return VK_SUCCESS;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (strcmp(gpus[i].name, name) == 0) gpu = &gpus[i];
    if (!gpu) fprintf(stderr, "PERIDOT_TEST_GPU: there is no GPU %s\n", name);
    return gpu ? VK_SUCCESS : VK_ERROR_INITIALIZATION_FAILED;
}

static VKAPI_ATTR VkResult VKAPI_CALL create(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator,
                                             VkInstance *out)
{
    VkResult result = find_gpu();
    if (result == VK_SUCCESS) result = layer_create_instance(info, allocator, out);
    if (result != VK_SUCCESS) return result;
    get_properties = NEXT(vkGetPhysicalDeviceProperties);
    get_properties2 = NEXT(vkGetPhysicalDeviceProperties2);
    get_features2 = NEXT(vkGetPhysicalDeviceFeatures2);
    get_memory2 = NEXT(vkGetPhysicalDeviceMemoryProperties2);
    return VK_SUCCESS;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc(VkInstance of, const char *name)
{
    static const struct layer_function own[] = {LAYER_FUNCTION("vkGetInstanceProcAddr", get_proc),
                                                LAYER_FUNCTION("vkGetDeviceProcAddr", get_device_proc),
                                                LAYER_FUNCTION("vkCreateInstance", create),
                                                LAYER_FUNCTION("vkCreateDevice", create_device),
                                                LAYER_FUNCTION("vkGetPhysicalDeviceProperties", properties),
                                                LAYER_FUNCTION("vkGetPhysicalDeviceProperties2", properties2),
                                                LAYER_FUNCTION("vkGetPhysicalDeviceFeatures2", features2),
                                                LAYER_FUNCTION("vkGetPhysicalDeviceMemoryProperties2", memory2)};
    return layer_get(own, sizeof own / sizeof *own, of, name);
}
