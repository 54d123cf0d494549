/* A Vulkan layer whose devices offer VK_KHR_portability_subset, and lack what MoltenVK does on some machines. They can
 * be created only with that extension, as the specification demands. */
#define VK_ENABLE_BETA_EXTENSIONS
#include "layer.h"

static const char subset[] = VK_KHR_PORTABILITY_SUBSET_EXTENSION_NAME;

static VKAPI_ATTR VkResult VKAPI_CALL extensions(VkPhysicalDevice device, const char *layer, uint32_t *n,
                                                 VkExtensionProperties *out)
{
    uint32_t room = *n;
    VkResult result = NEXT(vkEnumerateDeviceExtensionProperties)(device, layer, n, out);
    if (layer || result < VK_SUCCESS) return result;
    if (out && *n == room) return VK_INCOMPLETE;
    if (out) out[*n] = (VkExtensionProperties){VK_KHR_PORTABILITY_SUBSET_EXTENSION_NAME, 1};
    ++*n;
    return result;
}

static VKAPI_ATTR void VKAPI_CALL features2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2 *out)
{
    NEXT(vkGetPhysicalDeviceFeatures2)(device, out);
    for (VkBaseOutStructure *s = out->pNext; s; s = s->pNext) {
        if (s->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PORTABILITY_SUBSET_FEATURES_KHR) continue;
        void *following = s->pNext;
        *(VkPhysicalDevicePortabilitySubsetFeaturesKHR *)s = (VkPhysicalDevicePortabilitySubsetFeaturesKHR){
            .sType = s->sType, .pNext = following, .constantAlphaColorBlendFactors = VK_TRUE, .events = VK_TRUE,
            .imageViewFormatReinterpretation = VK_TRUE, .imageViewFormatSwizzle = VK_TRUE,
            .imageView2DOn3DImage = VK_TRUE, .multisampleArrayImage = VK_TRUE, .mutableComparisonSamplers = VK_TRUE,
            .separateStencilMaskRef = VK_TRUE, .shaderSampleRateInterpolationFunctions = VK_TRUE,
            .vertexAttributeAccessBeyondStride = VK_TRUE};
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator, VkDevice *out)
{
    const char *names[64];
    VkDeviceCreateInfo below = *info;   /* the driver does not know the extension */
    below.enabledExtensionCount = 0;
    below.ppEnabledExtensionNames = names;
    for (uint32_t i = 0; i < info->enabledExtensionCount && i < sizeof names / sizeof *names; i++)
        if (strcmp(info->ppEnabledExtensionNames[i], subset) != 0)
            names[below.enabledExtensionCount++] = info->ppEnabledExtensionNames[i];
    if (below.enabledExtensionCount == info->enabledExtensionCount) return VK_ERROR_INITIALIZATION_FAILED;
    return layer_create_device(physical, &below, allocator, out);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice device, const char *name)
{
    static const struct layer_function own[] = {LAYER_FUNCTION("vkGetDeviceProcAddr", get_device_proc)};
    return layer_get_of_device(own, sizeof own / sizeof *own, device, name);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc(VkInstance of, const char *name)
{
    static const struct layer_function own[] = {LAYER_FUNCTION("vkGetInstanceProcAddr", get_proc),
                                                LAYER_FUNCTION("vkGetDeviceProcAddr", get_device_proc),
                                                LAYER_FUNCTION("vkCreateInstance", layer_create_instance),
                                                LAYER_FUNCTION("vkCreateDevice", create_device),
                                                LAYER_FUNCTION("vkEnumerateDeviceExtensionProperties", extensions),
                                                LAYER_FUNCTION("vkGetPhysicalDeviceFeatures2", features2)};
    return layer_get(own, sizeof own / sizeof *own, of, name);
}
