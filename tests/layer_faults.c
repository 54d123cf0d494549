/* A Vulkan layer for what GPUs do and CPUs do not. Devices call themselves discrete GPUs where PERIDOT_TEST_DISCRETE is
 * set, and have heaps of at most PERIDOT_TEST_HEAP bytes where that is set. All allocations of the process together
 * have at most PERIDOT_TEST_MEMORY bytes. When the file PERIDOT_TEST_FAULT appears, which it removes, the device is
 * broken until it is created again, as the file says:
 *   lose   submits fail with VK_ERROR_DEVICE_LOST
 *   hang   nothing that is submitted completes: waits of up to 30 s time out, after 2 s already; longer ones never end
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
static PFN_vkGetPhysicalDeviceMemoryProperties2 get_memory2;
static PFN_vkQueueSubmit queue_submit;
static PFN_vkWaitSemaphores wait_semaphores;
static PFN_vkDeviceWaitIdle wait_idle;
static PFN_vkAllocateMemory allocate_memory;
static PFN_vkFreeMemory free_memory;
static char fault[8];

/* ---- a device that calls itself a discrete GPU ---- */

static void rename_type(VkPhysicalDeviceProperties *properties)
{
    if (getenv("PERIDOT_TEST_DISCRETE")) properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

static VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties *out)
{
    get_properties(device, out);
    rename_type(out);
}

static VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *out)
{
    get_properties2(device, out);
    rename_type(&out->properties);
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
    if (strcmp(fault, "hang") != 0) return wait_semaphores(device, info, timeout);
    wait_idle(device);
    if (timeout > 30000000000u) block();
    sleep(2);
    return VK_TIMEOUT;
}

/* ---- the layer ---- */

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice device, const char *name)
{
    static const struct layer_function own[] = {LAYER_FUNCTION("vkGetDeviceProcAddr", get_device_proc),
                                                LAYER_FUNCTION("vkQueueSubmit", submit),
                                                LAYER_FUNCTION("vkWaitSemaphores", wait_for),
                                                LAYER_FUNCTION("vkAllocateMemory", allocate),
                                                LAYER_FUNCTION("vkFreeMemory", release)};
    PFN_vkVoidFunction found = layer_find(own, sizeof own / sizeof *own, name);
    return found || !next_of_device ? found : next_of_device(device, name);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator, VkDevice *out)
{
    VkResult result = layer_create_device(physical, info, allocator, out);
    if (result != VK_SUCCESS) return result;
    queue_submit = NEXT_OF_DEVICE(*out, vkQueueSubmit);
    wait_semaphores = NEXT_OF_DEVICE(*out, vkWaitSemaphores);
    wait_idle = NEXT_OF_DEVICE(*out, vkDeviceWaitIdle);
    allocate_memory = NEXT_OF_DEVICE(*out, vkAllocateMemory);
    free_memory = NEXT_OF_DEVICE(*out, vkFreeMemory);
    fault[0] = 0;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL create(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator,
                                             VkInstance *out)
{
    VkResult result = layer_create_instance(info, allocator, out);
    if (result != VK_SUCCESS) return result;
    get_properties = NEXT(vkGetPhysicalDeviceProperties);
    get_properties2 = NEXT(vkGetPhysicalDeviceProperties2);
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
                                                LAYER_FUNCTION("vkGetPhysicalDeviceMemoryProperties2", memory2)};
    PFN_vkVoidFunction found = layer_find(own, sizeof own / sizeof *own, name);
    return found || !next ? found : next(of, name);
}
