/* The Vulkan loader and instances, and failed calls as sentences. */
#include "gpu/vk.h"

#include "base/num.h"

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

/* ---- instance ---- */

peridot_status pd_instance_open(VkInstance *out)
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
