/* The Vulkan functions that are called, each in the table of what it was loaded from: an instance or a device. Nothing
 * is global but the loader's entry (instance.c), so that threads open and list devices at once. A new call is a name
 * here. */
#ifndef PD_GPU_FUNCTIONS_H
#define PD_GPU_FUNCTIONS_H

#define VK_NO_PROTOTYPES
#define VK_ENABLE_BETA_EXTENSIONS   /* structs of VK_KHR_portability_subset */
#include <vulkan/vulkan.h>

#define PD_INSTANCE_FUNCTIONS(X) \
    X(vkCreateDevice) X(vkDestroyInstance) X(vkEnumerateDeviceExtensionProperties) X(vkEnumeratePhysicalDevices) \
    X(vkGetDeviceProcAddr) X(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) \
    X(vkGetPhysicalDeviceExternalBufferProperties) X(vkGetPhysicalDeviceFeatures2) \
    X(vkGetPhysicalDeviceMemoryProperties) X(vkGetPhysicalDeviceMemoryProperties2) X(vkGetPhysicalDeviceProperties) \
    X(vkGetPhysicalDeviceProperties2) X(vkGetPhysicalDeviceQueueFamilyProperties)

#define PD_DEVICE_FUNCTIONS(X) \
    X(vkAllocateCommandBuffers) X(vkAllocateMemory) X(vkBeginCommandBuffer) X(vkBindBufferMemory) X(vkCmdBindPipeline) \
    X(vkCmdCopyBuffer) X(vkCmdDispatch) X(vkCmdDispatchIndirect) X(vkCmdFillBuffer) X(vkCmdPipelineBarrier) \
    X(vkCmdPushConstants) X(vkCmdResetQueryPool) X(vkCmdWriteTimestamp) X(vkCreateBuffer) X(vkCreateCommandPool) \
    X(vkCreateComputePipelines) X(vkCreatePipelineCache) X(vkCreatePipelineLayout) X(vkCreateQueryPool) \
    X(vkCreateSemaphore) X(vkCreateShaderModule) X(vkDestroyBuffer) X(vkDestroyCommandPool) X(vkDestroyDevice) \
    X(vkDestroyPipeline) X(vkDestroyPipelineCache) X(vkDestroyPipelineLayout) X(vkDestroyQueryPool) \
    X(vkDestroySemaphore) X(vkDestroyShaderModule) X(vkDeviceWaitIdle) X(vkEndCommandBuffer) X(vkFreeMemory) \
    X(vkGetBufferDeviceAddress) X(vkGetBufferMemoryRequirements) X(vkGetDeviceQueue) \
    X(vkGetMemoryHostPointerPropertiesEXT) X(vkGetPipelineCacheData) X(vkGetPipelineExecutablePropertiesKHR) \
    X(vkGetPipelineExecutableInternalRepresentationsKHR) \
    X(vkGetPipelineExecutableStatisticsKHR) X(vkGetQueryPoolResults) X(vkMapMemory) X(vkQueueSubmit) \
    X(vkResetCommandPool) X(vkWaitSemaphores)

#define PD_FUNCTION(name) PFN_##name name;

struct pd_instance {
    VkInstance handle;
    PD_INSTANCE_FUNCTIONS(PD_FUNCTION)
};

struct pd_device_functions {
    PD_DEVICE_FUNCTIONS(PD_FUNCTION)
};

#undef PD_FUNCTION

#endif
