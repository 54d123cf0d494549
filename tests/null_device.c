/* Each allocation is one of malloc's, so that AddressSanitizer guards its end. */
#include "null_device.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(promise) ((promise) ? (void)0 : broken(#promise))
static void broken(const char *promise)
{
    fprintf(stderr, "null_device.c: broken promise: %s\n", promise);
    abort();
}

#pragma GCC diagnostic ignored "-Wunused-parameter"   /* the functions have Vulkan's parameters */

/* What handles point at: buffers, and memory. */
struct object {
    VkDeviceSize size;
    void *at;                      /* of a buffer: what it is bound to */
};

/* A handle of what is never looked at. */
static char anything;
#define ANY(type) ((type)(uintptr_t)&anything)

static const VkPhysicalDeviceMemoryProperties memory = {.memoryTypeCount = 1,
    .memoryTypes = {{.propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
        | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT}},
    .memoryHeapCount = 1, .memoryHeaps = {{.size = NULL_DEVICE_MEMORY, .flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}}};

static VKAPI_ATTR void VKAPI_CALL get_memory(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2 *out)
{
    out->memoryProperties = memory;
}

/* ---- memory ---- */

static struct object *object_create(VkDeviceSize size, void *at)
{
    struct object *object = malloc(sizeof *object);
    CHECK(object);
    *object = (struct object){size, at};
    return object;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice device, const VkBufferCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks, VkBuffer *out)
{
    *out = (VkBuffer)object_create(info->size, NULL);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_buffer(VkDevice device, VkBuffer buffer,
                                                 const VkAllocationCallbacks *callbacks)
{
    free((struct object *)buffer);
}

static VKAPI_ATTR void VKAPI_CALL get_requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements *out)
{
    *out = (VkMemoryRequirements){.size = ((struct object *)buffer)->size, .alignment = 256, .memoryTypeBits = 1};
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                      const VkAllocationCallbacks *callbacks, VkDeviceMemory *out)
{
    struct pd_gpu *gpu = (struct pd_gpu *)device;
    if (info->allocationSize > NULL_DEVICE_MEMORY - gpu->allocated) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    void *at = malloc((size_t)info->allocationSize);
    CHECK(at);
    *out = (VkDeviceMemory)object_create(info->allocationSize, at);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory handle,
                                              const VkAllocationCallbacks *callbacks)
{
    free(((struct object *)handle)->at);
    free((struct object *)handle);
}

static VKAPI_ATTR VkResult VKAPI_CALL bind_memory(VkDevice device, VkBuffer buffer, VkDeviceMemory handle,
                                                  VkDeviceSize offset)
{
    ((struct object *)buffer)->at = ((struct object *)handle)->at;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory handle, VkDeviceSize offset,
                                                 VkDeviceSize size, VkMemoryMapFlags flags, void **out)
{
    *out = ((struct object *)handle)->at;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkDeviceAddress VKAPI_CALL get_address(VkDevice device, const VkBufferDeviceAddressInfo *info)
{
    return (VkDeviceAddress)(uintptr_t)((struct object *)info->buffer)->at;
}

/* ---- kernels, commands ---- */

static VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks, VkShaderModule *out)
{
    *out = ANY(VkShaderModule);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_layout(VkDevice device, const VkPipelineLayoutCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks, VkPipelineLayout *out)
{
    *out = ANY(VkPipelineLayout);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t n,
                                                       const VkComputePipelineCreateInfo *infos,
                                                       const VkAllocationCallbacks *callbacks, VkPipeline *out)
{
    for (uint32_t i = 0; i < n; i++) out[i] = ANY(VkPipeline);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_module(VkDevice device, VkShaderModule module,
                                                 const VkAllocationCallbacks *callbacks) {}
static VKAPI_ATTR void VKAPI_CALL destroy_layout(VkDevice device, VkPipelineLayout layout,
                                                 const VkAllocationCallbacks *callbacks) {}
static VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice device, VkPipeline pipeline,
                                                   const VkAllocationCallbacks *callbacks) {}

static VKAPI_ATTR VkResult VKAPI_CALL create_pool(VkDevice device, const VkCommandPoolCreateInfo *info,
                                                  const VkAllocationCallbacks *callbacks, VkCommandPool *out)
{
    *out = ANY(VkCommandPool);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_pool(VkDevice device, VkCommandPool pool,
                                               const VkAllocationCallbacks *callbacks) {}
static VKAPI_ATTR void VKAPI_CALL destroy_queries(VkDevice device, VkQueryPool queries,
                                                  const VkAllocationCallbacks *callbacks) {}
static VKAPI_ATTR VkResult VKAPI_CALL reset_pool(VkDevice device, VkCommandPool pool, VkCommandPoolResetFlags flags)
{
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_commands(VkDevice device, const VkCommandBufferAllocateInfo *info,
                                                        VkCommandBuffer *out)
{
    *out = ANY(VkCommandBuffer);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL begin_commands(VkCommandBuffer commands, const VkCommandBufferBeginInfo *info)
{
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL end_commands(VkCommandBuffer commands) { return VK_SUCCESS; }

static VKAPI_ATTR void VKAPI_CALL cmd_barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                                              VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t n,
                                              const VkMemoryBarrier *barriers, uint32_t n_buffers,
                                              const VkBufferMemoryBarrier *buffers, uint32_t n_images,
                                              const VkImageMemoryBarrier *images) {}
static VKAPI_ATTR void VKAPI_CALL cmd_bind(VkCommandBuffer commands, VkPipelineBindPoint point, VkPipeline pipeline) {}
static VKAPI_ATTR void VKAPI_CALL cmd_push(VkCommandBuffer commands, VkPipelineLayout layout, VkShaderStageFlags stages,
                                           uint32_t offset, uint32_t size, const void *values) {}
static VKAPI_ATTR void VKAPI_CALL cmd_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z)
{
    CHECK(x > 0 && x <= 0xffff && y > 0 && y <= 0xffff && z > 0 && z <= 0xffff);
}

static bool is_in(VkBuffer buffer, VkDeviceSize offset, VkDeviceSize size)
{
    const struct object *object = (const struct object *)buffer;
    return offset <= object->size && size <= object->size - offset;
}

static VKAPI_ATTR void VKAPI_CALL cmd_dispatch_indirect(VkCommandBuffer commands, VkBuffer buffer, VkDeviceSize offset)
{
    CHECK(is_in(buffer, offset, 3 * sizeof(uint32_t)));
}

static VKAPI_ATTR void VKAPI_CALL cmd_copy(VkCommandBuffer commands, VkBuffer from, VkBuffer to, uint32_t n,
                                           const VkBufferCopy *regions)
{
    for (uint32_t i = 0; i < n; i++)
        CHECK(is_in(from, regions[i].srcOffset, regions[i].size) && is_in(to, regions[i].dstOffset, regions[i].size));
}

static VKAPI_ATTR void VKAPI_CALL cmd_fill(VkCommandBuffer commands, VkBuffer buffer, VkDeviceSize offset,
                                           VkDeviceSize size, uint32_t word)
{
    CHECK(is_in(buffer, offset, size));
}

static VKAPI_ATTR VkResult VKAPI_CALL create_semaphore(VkDevice device, const VkSemaphoreCreateInfo *info,
                                                       const VkAllocationCallbacks *callbacks, VkSemaphore *out)
{
    *out = ANY(VkSemaphore);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t n, const VkSubmitInfo *submits, VkFence fence)
{
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
    return VK_SUCCESS;
}

/* ---- the device ---- */

void null_device_open(struct pd_gpu *out)
{
    *out = (struct pd_gpu){.device = (VkDevice)out, .memory = memory, .buffer_types = 1,
        .max_block = NULL_DEVICE_MEMORY / 8, .frozen = PD_N_KERNELS,
        .instance.vkGetPhysicalDeviceMemoryProperties2 = get_memory,
        .info = {.name = "a device", .type = PERIDOT_DEVICE_CPU, .unified_memory = true,
            .heap_size = NULL_DEVICE_MEMORY, .subgroup_size = 8, .min_subgroup_size = 8,
            .max_subgroup_size = 8, .max_workgroup_invocations = 256, .max_shared_size = 32 << 10,
            .max_push_size = 128},
        .vk = {.vkCreateBuffer = create_buffer, .vkDestroyBuffer = destroy_buffer,
            .vkGetBufferMemoryRequirements = get_requirements, .vkAllocateMemory = allocate_memory,
            .vkFreeMemory = free_memory, .vkBindBufferMemory = bind_memory, .vkMapMemory = map_memory,
            .vkGetBufferDeviceAddress = get_address, .vkCreateShaderModule = create_module,
            .vkCreatePipelineLayout = create_layout, .vkCreateComputePipelines = create_pipelines,
            .vkDestroyShaderModule = destroy_module, .vkDestroyPipelineLayout = destroy_layout,
            .vkDestroyPipeline = destroy_pipeline, .vkCreateCommandPool = create_pool,
            .vkDestroyCommandPool = destroy_pool, .vkDestroyQueryPool = destroy_queries,
            .vkResetCommandPool = reset_pool, .vkAllocateCommandBuffers = allocate_commands,
            .vkBeginCommandBuffer = begin_commands, .vkEndCommandBuffer = end_commands,
            .vkCmdPipelineBarrier = cmd_barrier, .vkCmdBindPipeline = cmd_bind, .vkCmdPushConstants = cmd_push,
            .vkCmdDispatch = cmd_dispatch, .vkCmdDispatchIndirect = cmd_dispatch_indirect,
            .vkCmdCopyBuffer = cmd_copy, .vkCmdFillBuffer = cmd_fill, .vkCreateSemaphore = create_semaphore,
            .vkQueueSubmit = submit, .vkWaitSemaphores = wait}};
}

void null_device_close(struct pd_gpu *gpu)
{
    pd_kernels_free(gpu);
    CHECK(gpu->allocated == 0);
}
