/* A Vulkan layer for what GPUs do and CPUs do not. Devices call themselves discrete GPUs where PERIDOT_TEST_DISCRETE is
 * set, and have heaps of at most PERIDOT_TEST_HEAP bytes where that is set. When the file PERIDOT_TEST_FAULT appears,
 * which it removes, the device is broken until it is created again, as the file says:
 *   lose   submits fail with VK_ERROR_DEVICE_LOST
 *   hang   nothing that is submitted completes: waits of up to 30 s time out, after 2 s already; longer ones never end
 *   block  submits never return */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

static PFN_vkGetInstanceProcAddr next;
static PFN_vkGetDeviceProcAddr next_of_device;
static PFN_vkGetPhysicalDeviceProperties get_properties;
static PFN_vkGetPhysicalDeviceProperties2 get_properties2;
static PFN_vkGetPhysicalDeviceMemoryProperties2 get_memory2;
static PFN_vkQueueSubmit queue_submit;
static PFN_vkWaitSemaphores wait_semaphores;
static PFN_vkDeviceWaitIdle wait_idle;
static VkInstance instance;
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
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) return (PFN_vkVoidFunction)get_device_proc;
    if (strcmp(name, "vkQueueSubmit") == 0) return (PFN_vkVoidFunction)submit;
    if (strcmp(name, "vkWaitSemaphores") == 0) return (PFN_vkVoidFunction)wait_for;
    return next_of_device ? next_of_device(device, name) : NULL;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator, VkDevice *out)
{
    VkLayerDeviceCreateInfo *chain = (VkLayerDeviceCreateInfo *)info->pNext;
    while (chain && (chain->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO
                     || chain->function != VK_LAYER_LINK_INFO))
        chain = (VkLayerDeviceCreateInfo *)chain->pNext;
    if (!chain) return VK_ERROR_INITIALIZATION_FAILED;
    PFN_vkGetInstanceProcAddr get = chain->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    next_of_device = chain->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    chain->u.pLayerInfo = chain->u.pLayerInfo->pNext;
    VkResult result = ((PFN_vkCreateDevice)get(instance, "vkCreateDevice"))(physical, info, allocator, out);
    if (result != VK_SUCCESS) return result;
    queue_submit = (PFN_vkQueueSubmit)next_of_device(*out, "vkQueueSubmit");
    wait_semaphores = (PFN_vkWaitSemaphores)next_of_device(*out, "vkWaitSemaphores");
    wait_idle = (PFN_vkDeviceWaitIdle)next_of_device(*out, "vkDeviceWaitIdle");
    fault[0] = 0;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL create(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator,
                                             VkInstance *out)
{
    VkLayerInstanceCreateInfo *chain = (VkLayerInstanceCreateInfo *)info->pNext;
    while (chain && (chain->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO
                     || chain->function != VK_LAYER_LINK_INFO))
        chain = (VkLayerInstanceCreateInfo *)chain->pNext;
    if (!chain) return VK_ERROR_INITIALIZATION_FAILED;
    next = chain->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    chain->u.pLayerInfo = chain->u.pLayerInfo->pNext;
    VkResult result = ((PFN_vkCreateInstance)next(NULL, "vkCreateInstance"))(info, allocator, out);
    if (result != VK_SUCCESS) return result;
    instance = *out;
    get_properties = (PFN_vkGetPhysicalDeviceProperties)next(*out, "vkGetPhysicalDeviceProperties");
    get_properties2 = (PFN_vkGetPhysicalDeviceProperties2)next(*out, "vkGetPhysicalDeviceProperties2");
    get_memory2 = (PFN_vkGetPhysicalDeviceMemoryProperties2)next(*out, "vkGetPhysicalDeviceMemoryProperties2");
    return VK_SUCCESS;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc(VkInstance of, const char *name)
{
    static const struct {
        const char *name;
        PFN_vkVoidFunction function;
    } own[] = {{"vkGetInstanceProcAddr", (PFN_vkVoidFunction)get_proc},
               {"vkGetDeviceProcAddr", (PFN_vkVoidFunction)get_device_proc},
               {"vkCreateInstance", (PFN_vkVoidFunction)create},
               {"vkCreateDevice", (PFN_vkVoidFunction)create_device},
               {"vkGetPhysicalDeviceProperties", (PFN_vkVoidFunction)properties},
               {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)properties2},
               {"vkGetPhysicalDeviceMemoryProperties2", (PFN_vkVoidFunction)memory2}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(name, own[i].name) == 0) return own[i].function;
    return next ? next(of, name) : NULL;
}

VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *i)
{
    i->loaderLayerInterfaceVersion = 2;
    i->pfnGetInstanceProcAddr = get_proc;
    i->pfnGetDeviceProcAddr = get_device_proc;
    i->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
