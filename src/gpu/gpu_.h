/* The device's insides, for the files of this folder and for tests that take calls of Vulkan away. */
#ifndef PD_GPU_GPU_PRIVATE_H
#define PD_GPU_GPU_PRIVATE_H

#include "gpu/gpu.h"

/* ---- functions ---- */

/* The Vulkan functions that are called, each in the table of what it was loaded from: an instance or a device. Nothing
 * is global but the loader's entry (instance.c), so that threads open and list devices at once. A new call is a name
 * here. */

#define VK_NO_PROTOTYPES
#define VK_ENABLE_BETA_EXTENSIONS   /* structs of VK_KHR_portability_subset */
#include <vulkan/vulkan.h>

#ifndef VK_KHR_cooperative_matrix   /* headers before 1.3.255 (Debian 12): what is used of the specification's */
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR ((VkStructureType)1000506000)
#define VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR ((VkStructureType)1000506001)

typedef enum { VK_COMPONENT_TYPE_FLOAT16_KHR = 0, VK_COMPONENT_TYPE_FLOAT32_KHR = 1 } VkComponentTypeKHR;
typedef enum { VK_SCOPE_SUBGROUP_KHR = 3 } VkScopeKHR;

typedef struct {
    VkStructureType sType;
    void *pNext;
    VkBool32 cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
} VkPhysicalDeviceCooperativeMatrixFeaturesKHR;

typedef struct {
    VkStructureType sType;
    void *pNext;
    uint32_t MSize, NSize, KSize;
    VkComponentTypeKHR AType, BType, CType, ResultType;
    VkBool32 saturatingAccumulation;
    VkScopeKHR scope;
} VkCooperativeMatrixPropertiesKHR;

typedef VkResult (VKAPI_PTR *PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)(
    VkPhysicalDevice, uint32_t *, VkCooperativeMatrixPropertiesKHR *);
#endif

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

/* ---- vk ---- */

/* Private to src/gpu: the Vulkan objects behind gpu.h. */

enum {
    PD_IMPORT_USAGE = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
    PD_BLOCK_USAGE = PD_IMPORT_USAGE | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT
        | VK_BUFFER_USAGE_TRANSFER_DST_BIT
};

struct pd_block {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint64_t address, size, used;
    void *host;
    bool counted;         /* in the device's `allocated`: its own memory, and allocated by us */
};

struct pd_pipeline_cache {
    VkPipelineCache handle;
    char *folder;         /* NULL: not kept on disk */
    size_t loaded_size;
};

struct pd_staging {
    struct pd_heap *heap;
    struct pd_span spans[2];       /* one is written while the device copies from the other */
    struct pd_commands *commands[2];
    uint32_t next;
    struct pd_span target;         /* of the piece between begin and end */
    uint64_t target_offset, size;
};

struct pd_gpu {
    struct pd_instance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t queue_family;
    struct pd_device_functions vk;
    peridot_device_info info;
    char reason[256];
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t buffer_types;         /* bits of the memory types that blocks can have */
    bool has_budget;
    bool statistics;               /* compiled kernels keep statistics */
    uint64_t import_alignment;     /* of host memory that the device can read in place; 0: it cannot */
    uint64_t max_block, allocated;
    double timestamp_period;       /* nanoseconds of a tick; 0: the queue has no timestamps */
    uint64_t timestamp_mask;
    VkSemaphore timeline;
    uint64_t timeline_value, timeline_done;   /* of the last submission; what it was found to have reached */
    uint64_t patience;             /* nanoseconds, after which a submission that is not done counts as lost */
    bool lost;                     /* nothing is submitted any more */
    bool hangs;                    /* nor waited for */
    struct pd_pipeline_cache cache;
    struct pd_kernel *kernels;     /* list of compiled kernels */
    uint32_t n_pipelines;
    bool deferring;                /* pd_kernel_get queues kernels, and compiles none */
    enum pd_kernel_id frozen;      /* no pipeline of this one is compiled any more; PD_N_KERNELS: none is frozen */
    bool wrong[PD_N_KERNELS];      /* what the last self-test found */
    VkPipelineLayout layouts[PD_N_KERNELS];
    VkShaderModule modules[PD_N_KERNELS];
    struct pd_staging staging;
};

struct pd_kernel {
    struct pd_kernel *next;
    enum pd_kernel_id id;
    uint32_t spec[PD_MAX_SPEC], n_spec;
    VkPipeline pipeline;
    VkResult result;               /* of compiling it */
    bool warm;                     /* see warm.c */
    VkPipelineLayout layout;
    uint32_t push_size;
};

/* A failed call, "vkMapMemory" or "gpu->vk.vkMapMemory(...)", as a status and a sentence. */
peridot_status pd_vk_fail(VkResult result, const char *call);
#define PD_VK(call)                                                \
    do {                                                           \
        VkResult pd_vk_result = (call);                            \
        if (pd_vk_result != VK_SUCCESS) return pd_vk_fail(pd_vk_result, #call); \
    } while (0)

/* instance.c */
peridot_status pd_instance_open(struct pd_instance *out);
void pd_instance_close(struct pd_instance *instance);
void pd_device_functions_load(struct pd_device_functions *out, const struct pd_instance *instance, VkDevice device);

/* describe.c */
struct pd_extensions {
    VkExtensionProperties *at;   /* [n], malloc */
    uint32_t n;
};
peridot_status pd_extensions_list(struct pd_extensions *out, const struct pd_instance *instance,
                                  VkPhysicalDevice physical);
bool pd_extensions_has(const struct pd_extensions *list, const char *name);
peridot_status pd_device_describe(peridot_device_info *info, const struct pd_instance *instance,
                                  VkPhysicalDevice physical, uint32_t index);
/* The memory that models may take. `unified`: all heaps that memory types reach; else the largest of the device's own.
 * budget is what of them this process may use, free what it does not use yet. Without VK_EXT_memory_budget
 * (has_budget) that is the heaps' size. */
struct pd_memory_room {
    uint64_t size, budget, free;
    uint64_t free_of[VK_MAX_MEMORY_HEAPS];   /* 0: not among them */
};
void pd_memory_room(struct pd_memory_room *out, const struct pd_instance *instance, VkPhysicalDevice physical,
                    bool unified, bool has_budget);
/* Puts a struct into the pNext chain of another. */
#define PD_LINK(head, link) ((link).pNext = (head).pNext, (head).pNext = &(link))

/* device.c */
peridot_status pd_device_open(struct pd_gpu *gpu, const char *selector);
void pd_device_close(struct pd_gpu *gpu);

/* gpu.c */
struct pd_kernel_source {
    const char *name;
    const uint32_t *code;
    size_t code_size;
    uint32_t push_size;
    enum pd_needs needs;
};
extern const struct pd_kernel_source pd_kernel_sources[PD_N_KERNELS];

/* kernel.c, transfer.c */
peridot_status pd_pipeline_cache_open(struct pd_gpu *gpu, const char *directory);
void pd_pipeline_cache_close(struct pd_gpu *gpu);
void pd_kernels_free(struct pd_gpu *gpu);
void pd_staging_free(struct pd_gpu *gpu);
/* For copies to spans that are under way. */
void pd_staging_wait(struct pd_gpu *gpu);

#endif
