/* What the Vulkan layers of the tests share. A layer is one file: it defines get_proc, get_device_proc and what they
 * find, and has one instance and one device at a time. */
#ifndef PERIDOT_TEST_LAYER_H
#define PERIDOT_TEST_LAYER_H

#include <stddef.h>
#include <string.h>

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc(VkInstance of, const char *name);
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice device, const char *name);

/* Of the layer or driver below. */
static PFN_vkGetInstanceProcAddr next;
static PFN_vkGetDeviceProcAddr next_of_device;
static VkInstance instance;

#define NEXT(name) ((PFN_##name)next(instance, #name))
#define NEXT_OF_DEVICE(device, name) ((PFN_##name)next_of_device(device, #name))

/* An entry of the table that get_proc or get_device_proc looks into. */
struct layer_function {
    const char *name;
    PFN_vkVoidFunction function;
};
#define LAYER_FUNCTION(name, function) {name, (PFN_vkVoidFunction)(function)}

static inline PFN_vkVoidFunction layer_find(const struct layer_function *own, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, own[i].name) == 0) return own[i].function;
    return NULL;
}

/* What get_proc and get_device_proc find: one of the layer's own functions, or what is below. */
static inline PFN_vkVoidFunction layer_get(const struct layer_function *own, size_t n, VkInstance of, const char *name)
{
    PFN_vkVoidFunction found = layer_find(own, n, name);
    return found || !next ? found : next(of, name);
}

static inline PFN_vkVoidFunction layer_get_of_device(const struct layer_function *own, size_t n, VkDevice device,
                                                     const char *name)
{
    PFN_vkVoidFunction found = layer_find(own, n, name);
    return found || !next_of_device ? found : next_of_device(device, name);
}

/* The loader's link, which the layer below takes from the chain in its turn. */
static inline VkResult layer_create_instance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator,
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
    if (result == VK_SUCCESS) instance = *out;
    return result;
}

static inline VkResult layer_create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
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
    return ((PFN_vkCreateDevice)get(instance, "vkCreateDevice"))(physical, info, allocator, out);
}

VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *i)
{
    i->loaderLayerInterfaceVersion = 2;
    i->pfnGetInstanceProcAddr = get_proc;
    i->pfnGetDeviceProcAddr = get_device_proc;
    i->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}

#endif
