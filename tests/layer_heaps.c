/* A Vulkan layer that offers a device's memory in the heaps of another kind of device, as PERIDOT_TEST_SHAPE says (a
 * row of the table below): PERIDOT_TEST_LOCAL bytes of device-local memory, and PERIDOT_TEST_SHARED bytes of the
 * host's. What does not fit a heap fails. PERIDOT_TEST_BUDGET=none: how much of a heap is free is not told. A device
 * that is destroyed appends what was allocated of each heap at most, "LOCAL SHARED", to the file PERIDOT_TEST_PEAKS. */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "layer.h"

#define LOCAL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define MAPPED (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
#define CACHED VK_MEMORY_PROPERTY_HOST_CACHED_BIT

static const struct shape {
    const char *name;
    VkPhysicalDeviceType type;
    uint32_t n_heaps, n_types;
    VkMemoryType types[4];   /* properties and heap: 0 is device-local, 1 the host's */
} shapes[] = {
    /* as AMD's driver for Windows: a carve-out, and memory that is not device-local */
    {"integrated", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 2, 4,
     {{LOCAL, 0}, {MAPPED, 1}, {LOCAL | MAPPED, 0}, {MAPPED | CACHED, 1}}},
    {"unmapped", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 2, 3, {{LOCAL, 0}, {MAPPED, 1}, {MAPPED | CACHED, 1}}},
    {"unified", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 1, 1, {{LOCAL | MAPPED | CACHED, 0}}},
    {"discrete", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 2, 4,
     {{LOCAL, 0}, {MAPPED, 1}, {LOCAL | MAPPED, 0}, {MAPPED | CACHED, 1}}}};

static const struct shape *shape(void)
{
    const char *name = getenv("PERIDOT_TEST_SHAPE");
    for (size_t i = 0; name && i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(name, shapes[i].name) == 0) return &shapes[i];
    fprintf(stderr, "PERIDOT_TEST_SHAPE is none\n");
    exit(1);
}

static uint64_t heap_size(uint32_t heap)
{
    const char *size = getenv(heap ? "PERIDOT_TEST_SHARED" : "PERIDOT_TEST_LOCAL");
    return size ? strtoull(size, NULL, 10) : (uint64_t)12 << 30;
}

static struct {
    pthread_mutex_t lock;
    uint64_t used[2], peaks[2];
    size_t n;
    struct {
        VkDeviceMemory memory;
        uint64_t size;             /* 0: the host's, imported */
        uint32_t type;
    } all[4096];
} allocated = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- what the device says ---- */

static VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties *out)
{
    NEXT(vkGetPhysicalDeviceProperties)(device, out);
    out->deviceType = shape()->type;
}

static VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *out)
{
    NEXT(vkGetPhysicalDeviceProperties2)(device, out);
    out->properties.deviceType = shape()->type;
}

static VKAPI_ATTR void VKAPI_CALL memory(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties *out)
{
    (void)device;
    *out = (VkPhysicalDeviceMemoryProperties){
        .memoryTypeCount = shape()->n_types, .memoryHeapCount = shape()->n_heaps};
    memcpy(out->memoryTypes, shape()->types, sizeof shape()->types);
    for (uint32_t i = 0; i < shape()->n_heaps; i++)
        out->memoryHeaps[i] = (VkMemoryHeap){heap_size(i), i ? 0 : VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
}

static VKAPI_ATTR void VKAPI_CALL memory2(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2 *out)
{
    memory(device, &out->memoryProperties);
    for (VkBaseOutStructure *s = out->pNext; s; s = s->pNext) {
        if (s->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) continue;
        VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = (VkPhysicalDeviceMemoryBudgetPropertiesEXT *)s;
        for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; i++) {
            bool told = i < shape()->n_heaps && !getenv("PERIDOT_TEST_BUDGET");
            budget->heapBudget[i] = told ? heap_size(i) : 0;
            budget->heapUsage[i] = told ? allocated.used[i] : 0;
        }
    }
}

static VKAPI_ATTR void VKAPI_CALL requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements *out)
{
    NEXT_OF_DEVICE(device, vkGetBufferMemoryRequirements)(device, buffer, out);
    out->memoryTypeBits = (1u << shape()->n_types) - 1;
}

/* Only the host's memory, where there is such a heap. */
static VKAPI_ATTR VkResult VKAPI_CALL pointer(VkDevice device, VkExternalMemoryHandleTypeFlagBits type,
                                              const void *host, VkMemoryHostPointerPropertiesEXT *out)
{
    VkResult result = NEXT_OF_DEVICE(device, vkGetMemoryHostPointerPropertiesEXT)(device, type, host, out);
    out->memoryTypeBits = 0;
    for (uint32_t i = 0; i < shape()->n_types; i++)
        out->memoryTypeBits |= (uint32_t)(shape()->types[i].heapIndex + 1 == shape()->n_heaps) << i;
    return result;
}

/* ---- its memory ---- */

static VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                               const VkAllocationCallbacks *allocator, VkDeviceMemory *out)
{
    VkMemoryAllocateInfo real = *info;   /* the CPU's one type is 0 */
    uint32_t heap = shape()->types[info->memoryTypeIndex].heapIndex;
    uint64_t size = info->allocationSize;
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    for (const VkBaseInStructure *s = info->pNext; s; s = s->pNext)
        if (s->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT) size = 0;
    real.memoryTypeIndex = 0;
    pthread_mutex_lock(&allocated.lock);
    if (allocated.used[heap] + size <= heap_size(heap) && allocated.n < sizeof allocated.all / sizeof *allocated.all)
        result = NEXT_OF_DEVICE(device, vkAllocateMemory)(device, &real, allocator, out);
    if (result == VK_SUCCESS) {
        allocated.all[allocated.n].memory = *out;
        allocated.all[allocated.n].type = info->memoryTypeIndex;
        allocated.all[allocated.n++].size = size;
        allocated.used[heap] += size;
        if (allocated.used[heap] > allocated.peaks[heap]) allocated.peaks[heap] = allocated.used[heap];
    }
    pthread_mutex_unlock(&allocated.lock);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL release(VkDevice device, VkDeviceMemory of, const VkAllocationCallbacks *allocator)
{
    pthread_mutex_lock(&allocated.lock);
    for (size_t i = 0; i < allocated.n; i++) {
        if (allocated.all[i].memory != of) continue;
        allocated.used[shape()->types[allocated.all[i].type].heapIndex] -= allocated.all[i].size;
        allocated.all[i] = allocated.all[--allocated.n];
        break;
    }
    pthread_mutex_unlock(&allocated.lock);
    NEXT_OF_DEVICE(device, vkFreeMemory)(device, of, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL map(VkDevice device, VkDeviceMemory of, VkDeviceSize offset, VkDeviceSize size,
                                          VkMemoryMapFlags flags, void **out)
{
    for (size_t i = 0; i < allocated.n; i++)
        if (allocated.all[i].memory == of
            && !(shape()->types[allocated.all[i].type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT))
            return VK_ERROR_MEMORY_MAP_FAILED;
    return NEXT_OF_DEVICE(device, vkMapMemory)(device, of, offset, size, flags, out);
}

static VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks *allocator)
{
    const char *path = getenv("PERIDOT_TEST_PEAKS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) fprintf(file, "%" PRIu64 " %" PRIu64 "\n", allocated.peaks[0], allocated.peaks[1]);
    if (file) fclose(file);
    memset(allocated.peaks, 0, sizeof allocated.peaks);
    NEXT_OF_DEVICE(device, vkDestroyDevice)(device, allocator);
}

/* ---- the layer ---- */

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice device, const char *name)
{
    static const struct layer_function own[] = {LAYER_FUNCTION("vkGetDeviceProcAddr", get_device_proc),
                                                LAYER_FUNCTION("vkGetBufferMemoryRequirements", requirements),
                                                LAYER_FUNCTION("vkGetMemoryHostPointerPropertiesEXT", pointer),
                                                LAYER_FUNCTION("vkAllocateMemory", allocate),
                                                LAYER_FUNCTION("vkFreeMemory", release),
                                                LAYER_FUNCTION("vkMapMemory", map),
                                                LAYER_FUNCTION("vkDestroyDevice", destroy_device)};
    return layer_get_of_device(own, sizeof own / sizeof *own, device, name);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc(VkInstance of, const char *name)
{
    static const struct layer_function own[] = {LAYER_FUNCTION("vkGetInstanceProcAddr", get_proc),
                                                LAYER_FUNCTION("vkGetDeviceProcAddr", get_device_proc),
                                                LAYER_FUNCTION("vkCreateInstance", layer_create_instance),
                                                LAYER_FUNCTION("vkCreateDevice", layer_create_device),
                                                LAYER_FUNCTION("vkGetPhysicalDeviceProperties", properties),
                                                LAYER_FUNCTION("vkGetPhysicalDeviceProperties2", properties2),
                                                LAYER_FUNCTION("vkGetPhysicalDeviceMemoryProperties", memory),
                                                LAYER_FUNCTION("vkGetPhysicalDeviceMemoryProperties2", memory2)};
    return layer_get(own, sizeof own / sizeof *own, of, name);
}
