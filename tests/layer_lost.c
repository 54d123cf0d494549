/* A Vulkan layer that loses its device when the file PERIDOT_TEST_LOSE appears, which it removes: all submits fail from
 * then on, until a device is created again. */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

static PFN_vkGetInstanceProcAddr next;
static PFN_vkGetDeviceProcAddr next_of_device;
static PFN_vkQueueSubmit queue_submit;
static VkInstance instance;
static bool lost;

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t n, const VkSubmitInfo *submits, VkFence fence)
{
    const char *file = getenv("PERIDOT_TEST_LOSE");
    if (file && unlink(file) == 0) lost = true;
    return lost ? VK_ERROR_DEVICE_LOST : queue_submit(queue, n, submits, fence);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice device, const char *name)
{
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) return (PFN_vkVoidFunction)get_device_proc;
    if (strcmp(name, "vkQueueSubmit") == 0) return (PFN_vkVoidFunction)submit;
    return next_of_device ? next_of_device(device, name) : NULL;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator, VkDevice *out)
{
    VkLayerDeviceCreateInfo *chain = (VkLayerDeviceCreateInfo *)info->pNext;
    while (chain && (chain->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO || chain->function != VK_LAYER_LINK_INFO))
        chain = (VkLayerDeviceCreateInfo *)chain->pNext;
    if (!chain) return VK_ERROR_INITIALIZATION_FAILED;
    PFN_vkGetInstanceProcAddr get = chain->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    next_of_device = chain->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    chain->u.pLayerInfo = chain->u.pLayerInfo->pNext;
    VkResult result = ((PFN_vkCreateDevice)get(instance, "vkCreateDevice"))(physical, info, allocator, out);
    if (result != VK_SUCCESS) return result;
    queue_submit = (PFN_vkQueueSubmit)next_of_device(*out, "vkQueueSubmit");
    lost = false;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL create(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator, VkInstance *out)
{
    VkLayerInstanceCreateInfo *chain = (VkLayerInstanceCreateInfo *)info->pNext;
    while (chain && (chain->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO || chain->function != VK_LAYER_LINK_INFO))
        chain = (VkLayerInstanceCreateInfo *)chain->pNext;
    if (!chain) return VK_ERROR_INITIALIZATION_FAILED;
    next = chain->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    chain->u.pLayerInfo = chain->u.pLayerInfo->pNext;
    VkResult result = ((PFN_vkCreateInstance)next(NULL, "vkCreateInstance"))(info, allocator, out);
    if (result == VK_SUCCESS) instance = *out;
    return result;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc(VkInstance of, const char *name)
{
    if (strcmp(name, "vkGetInstanceProcAddr") == 0) return (PFN_vkVoidFunction)get_proc;
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) return (PFN_vkVoidFunction)get_device_proc;
    if (strcmp(name, "vkCreateInstance") == 0) return (PFN_vkVoidFunction)create;
    if (strcmp(name, "vkCreateDevice") == 0) return (PFN_vkVoidFunction)create_device;
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
