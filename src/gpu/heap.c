/* Memory: heaps of blocks, and spans inside them. Every block is one VkBuffer with a device address, so that a kernel
 * gets any span as 64 bits of a push constant, and there are no descriptor sets.
 *
 * Spans are never given back one by one: what lives and dies together (a model's weights, a session's cache, a pass's
 * scratch) has a heap of its own, which is freed whole. So a block needs no list of holes, only how far it is used, and
 * memory cannot fragment. Blocks are large because drivers allow few allocations (4096 by the specification). A heap is
 * its gpu's thread's. */
#include "gpu/gpu_.h"

#include "base/base.h"

#include <stdlib.h>

#define SPAN_ALIGN 256

struct pd_heap {
    struct pd_gpu *gpu;
    enum pd_heap_kind kind;
    uint64_t block_size;
    struct pd_block **blocks;
    size_t n_blocks;
};

/* ---- blocks ---- */

#define LOCAL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define CACHED VK_MEMORY_PROPERTY_HOST_CACHED_BIT
#define MAPPED (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)

/* The memory types that each kind of heap prefers, best first. */
static const struct preference {
    VkMemoryPropertyFlags has, lacks;
} preferences[][5] = {
    [PD_HEAP_DEVICE] = {{LOCAL, 0}, {0, 0}},
    [PD_HEAP_HOST] = {{MAPPED | CACHED, 0}, {MAPPED, 0}},
    [PD_HEAP_INPUT] = {{MAPPED | LOCAL, 0}, {MAPPED | CACHED, 0}, {MAPPED, 0}},
    [PD_HEAP_HOST_RESIDENT] = {{MAPPED, LOCAL | CACHED}, {MAPPED, LOCAL}, {MAPPED, 0}},
}, unified[] = {{LOCAL | MAPPED | CACHED, 0}, {LOCAL | MAPPED, 0}, {LOCAL, 0}, {MAPPED, 0}, {0, 0}};

/* An empty preference ends a list: then any type will do for a device heap, and none for the others. */
static uint32_t memory_type(const struct pd_gpu *gpu, enum pd_heap_kind kind, uint32_t allowed)
{
    const struct preference *list = kind == PD_HEAP_DEVICE && gpu->info.unified_memory ? unified : preferences[kind];
    for (size_t w = 0; w < PD_COUNT(unified); w++) {
        if (!list[w].has && kind != PD_HEAP_DEVICE) break;
        for (uint32_t i = 0; i < gpu->memory.memoryTypeCount; i++) {
            VkMemoryPropertyFlags flags = gpu->memory.memoryTypes[i].propertyFlags;
            if ((allowed >> i & 1) && (flags & list[w].has) == list[w].has && !(flags & list[w].lacks)) return i;
        }
    }
    return UINT32_MAX;
}

static uint32_t types_of_heap(const struct pd_gpu *gpu, uint32_t heap)
{
    uint32_t types = 0;
    for (uint32_t i = 0; i < gpu->memory.memoryTypeCount; i++)
        types |= (uint32_t)(gpu->memory.memoryTypes[i].heapIndex == heap) << i;
    return types;
}

/* The types to try, one of each of the device's heaps, best first. On unified memory heaps with less than `size` free
 * come last: a driver may let them overflow, and then moves memory between them. A card's own memory is one heap. */
static uint32_t list_types(uint32_t types[VK_MAX_MEMORY_HEAPS], const struct pd_gpu *gpu, enum pd_heap_kind kind,
                           const struct pd_memory_room *room, uint64_t size)
{
    bool is_unified = gpu->info.unified_memory;
    uint32_t n = 0, full = 0, type;
    for (uint32_t i = 0; is_unified && i < gpu->memory.memoryHeapCount; i++)
        if (room->free_of[i] < size) full |= types_of_heap(gpu, i);
    for (int pass = 0; pass < 2; pass++) {
        uint32_t allowed = gpu->buffer_types & (pass ? full : ~full);
        while ((type = memory_type(gpu, kind, allowed)) != UINT32_MAX) {
            types[n++] = type;
            allowed &= ~types_of_heap(gpu, gpu->memory.memoryTypes[type].heapIndex);
        }
    }
    return kind == PD_HEAP_DEVICE && !is_unified ? (uint32_t)pd_min(n, 1) : n;
}

static void block_free(struct pd_gpu *gpu, struct pd_block *block)
{
    if (block->buffer) gpu->vk.vkDestroyBuffer(gpu->device, block->buffer, NULL);
    if (block->memory) {
        gpu->vk.vkFreeMemory(gpu->device, block->memory, NULL);
        if (block->counted) gpu->allocated -= block->size;
    }
    free(block);
}

static uint64_t buffer_address(struct pd_gpu *gpu, VkBuffer buffer)
{
    VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = buffer};
    return gpu->vk.vkGetBufferDeviceAddress(gpu->device, &info);
}

static peridot_status fail_memory(const struct pd_gpu *gpu, uint64_t size, const char *what)
{
    return pd_fail(PERIDOT_ERROR_MEMORY,
                   "%s is out of memory: %.1f MB for %s did not fit beside %.1f MB in use (heap %.1f MB)",
                   gpu->info.name, (double)size / 1e6, what, (double)gpu->allocated / 1e6,
                   (double)gpu->info.heap_size / 1e6);
}

static peridot_status allocate_memory(struct pd_gpu *gpu, struct pd_block *block, enum pd_heap_kind kind, uint32_t type,
                                      const char *what)
{
    VkMemoryRequirements need;
    gpu->vk.vkGetBufferMemoryRequirements(gpu->device, block->buffer, &need);
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags,
        .allocationSize = need.size, .memoryTypeIndex = type};
    VkResult result = gpu->vk.vkAllocateMemory(gpu->device, &allocate, NULL, &block->memory);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY)
        return fail_memory(gpu, need.size, what);
    if (result != VK_SUCCESS) return pd_vk_fail(result, "vkAllocateMemory");
    VkMemoryPropertyFlags has = gpu->memory.memoryTypes[type].propertyFlags;
    block->counted = kind == PD_HEAP_DEVICE || gpu->info.unified_memory || (kind == PD_HEAP_INPUT && has & LOCAL);
    if (block->counted) gpu->allocated += block->size;
    PD_VK(gpu->vk.vkBindBufferMemory(gpu->device, block->buffer, block->memory, 0));
    if ((has & MAPPED) == MAPPED && (kind != PD_HEAP_DEVICE || gpu->info.unified_memory))
        PD_VK(gpu->vk.vkMapMemory(gpu->device, block->memory, 0, VK_WHOLE_SIZE, 0, &block->host));
    if (block->host == (void *)-1) {   /* lavapipe, where the process has no addresses left (ulimit -v), says success */
        block->host = NULL;
        return fail_memory(gpu, need.size, what);
    }
    block->address = buffer_address(gpu, block->buffer);
    return PERIDOT_OK;
}

static peridot_status block_create_of(struct pd_block **out, struct pd_gpu *gpu, enum pd_heap_kind kind, uint32_t type,
                                      uint64_t size, const char *what)
{
    struct pd_block *block = calloc(1, sizeof *block);
    if (!block) return pd_fail_alloc(sizeof *block, "memory block");
    block->size = size;
    VkBufferCreateInfo create = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size,
        .usage = PD_BLOCK_USAGE};
    VkResult result = gpu->vk.vkCreateBuffer(gpu->device, &create, NULL, &block->buffer);
    peridot_status status = result == VK_SUCCESS ? allocate_memory(gpu, block, kind, type, what)
        : pd_vk_fail(result, "vkCreateBuffer");
    if (status == PERIDOT_OK) *out = block;
    else block_free(gpu, block);
    return status;
}

/* Of at most `most` bytes: less, but no less than `least`, fills what a heap of unified memory has free. */
static peridot_status block_create(struct pd_block **out, struct pd_gpu *gpu, enum pd_heap_kind kind, uint64_t least,
                                   uint64_t most, const char *what)
{
    enum { GRANULE = 64 << 10 };   /* what the driver adds to a buffer's size is less */
    struct pd_memory_room room;
    uint32_t types[VK_MAX_MEMORY_HEAPS];
    pd_memory_room(&room, &gpu->instance, gpu->physical, gpu->info.unified_memory, gpu->has_budget);
    uint32_t n = list_types(types, gpu, kind, &room, least);
    peridot_status status = PERIDOT_ERROR_MEMORY;
    if (!n) return pd_fail(PERIDOT_ERROR_DEVICE, "%s has no memory type for %s", gpu->info.name, what);
    for (uint32_t i = 0; i < n && status == PERIDOT_ERROR_MEMORY; i++) {
        uint64_t room_left = room.free_of[gpu->memory.memoryTypes[types[i]].heapIndex] / GRANULE * GRANULE;
        uint64_t size = gpu->info.unified_memory ? pd_max(least, pd_min(most, room_left)) : most;
        status = block_create_of(out, gpu, kind, types[i], size, what);
    }
    return status;
}

/* ---- heaps ---- */

peridot_status pd_heap_create(struct pd_heap **out, struct pd_gpu *gpu, enum pd_heap_kind kind, uint64_t block_size)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return pd_fail_alloc(sizeof **out, "heap");
    **out = (struct pd_heap){.gpu = gpu, .kind = kind,
        .block_size = block_size ? pd_min(block_size, gpu->max_block) : gpu->max_block};
    return PERIDOT_OK;
}

void pd_heap_free(struct pd_heap *heap)
{
    if (!heap) return;
    pd_staging_wait(heap->gpu);   /* it may be written */
    for (size_t i = 0; i < heap->n_blocks; i++) block_free(heap->gpu, heap->blocks[i]);
    free(heap->blocks);
    free(heap);
}

/* ---- host memory read in place ---- */

bool pd_gpu_can_import(const struct pd_gpu *gpu) { return gpu->import_alignment != 0; }

/* Buffer and memory over whole pages of the mapping. */
static VkResult import_pages(struct pd_gpu *gpu, struct pd_block *block, void *pages)
{
    const VkExternalMemoryHandleTypeFlagBits type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    VkExternalMemoryBufferCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = type};
    VkBufferCreateInfo create = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .pNext = &external, .size = block->size,
        .usage = PD_IMPORT_USAGE};
    VkResult result = gpu->vk.vkCreateBuffer(gpu->device, &create, NULL, &block->buffer);
    if (result != VK_SUCCESS) return result;
    VkMemoryRequirements need;
    VkMemoryHostPointerPropertiesEXT properties = {.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    gpu->vk.vkGetBufferMemoryRequirements(gpu->device, block->buffer, &need);
    result = gpu->vk.vkGetMemoryHostPointerPropertiesEXT(gpu->device, type, pages, &properties);
    uint32_t memory = memory_type(gpu, PD_HEAP_DEVICE, need.memoryTypeBits & properties.memoryTypeBits);
    if (result != VK_SUCCESS) return result;
    if (memory == UINT32_MAX || need.size > block->size) return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkImportMemoryHostPointerInfoEXT import = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .pNext = &flags, .handleType = type, .pHostPointer = pages};
    VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &import,
        .allocationSize = block->size, .memoryTypeIndex = memory};
    result = gpu->vk.vkAllocateMemory(gpu->device, &allocate, NULL, &block->memory);
    return result == VK_SUCCESS ? gpu->vk.vkBindBufferMemory(gpu->device, block->buffer, block->memory, 0) : result;
}

static peridot_status heap_add_block(struct pd_heap *heap, struct pd_block *block)
{
    struct pd_block **blocks = realloc(heap->blocks, sizeof *blocks * (heap->n_blocks + 1));
    if (!blocks) return pd_fail_alloc(sizeof *blocks * (heap->n_blocks + 1), "memory blocks");
    heap->blocks = blocks;
    heap->blocks[heap->n_blocks++] = block;
    return PERIDOT_OK;
}

peridot_status pd_heap_import(struct pd_span *out, struct pd_heap *heap, const void *host, uint64_t size)
{
    struct pd_gpu *gpu = heap->gpu;
    if (!gpu->import_alignment)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s cannot read host memory in place", gpu->info.name);
    uintptr_t address = (uintptr_t)host, first = address - address % gpu->import_alignment;
    struct pd_block *block = calloc(1, sizeof *block);
    if (!block) return pd_fail_alloc(sizeof *block, "memory block");
    block->used = block->size = pd_align(address - first + size, gpu->import_alignment);
    peridot_status status = import_pages(gpu, block, (void *)first) == VK_SUCCESS ? heap_add_block(heap, block)
        : pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s does not read this mapping in place", gpu->info.name);
    if (status != PERIDOT_OK) {
        block_free(gpu, block);
        return status;
    }
    block->address = buffer_address(gpu, block->buffer);
    *out = (struct pd_span){.address = block->address + (address - first), .size = size, .block = block,
        .offset = address - first};
    return PERIDOT_OK;
}

/* ---- spans ---- */

static struct pd_block *find_room(const struct pd_heap *heap, uint64_t size)
{
    for (size_t i = 0; i < heap->n_blocks; i++)
        if (heap->blocks[i]->size - heap->blocks[i]->used >= size) return heap->blocks[i];
    return NULL;
}

peridot_status pd_heap_alloc(struct pd_span *out, struct pd_heap *heap, uint64_t size, const char *what)
{
    size = pd_align(pd_max(size, 1), SPAN_ALIGN);
    if (size > heap->gpu->max_block)
        return pd_fail(PERIDOT_ERROR_MEMORY, "%s needs %.1f MB in one piece, and %s allows %.1f MB", what,
                       (double)size / 1e6, heap->gpu->info.name, (double)heap->gpu->max_block / 1e6);
    struct pd_block *block = find_room(heap, size);
    if (!block) {
        PD_TRY(block_create(&block, heap->gpu, heap->kind, size, pd_max(size, heap->block_size), what));
        peridot_status status = heap_add_block(heap, block);
        if (status != PERIDOT_OK) {
            block_free(heap->gpu, block);
            return status;
        }
    }
    *out = (struct pd_span){.address = block->address + block->used, .size = size,
        .host = block->host ? (uint8_t *)block->host + block->used : NULL, .block = block, .offset = block->used};
    block->used += size;
    return PERIDOT_OK;
}

peridot_status pd_gpu_check_budget(struct pd_gpu *gpu, uint64_t size, const char *what)
{
    struct pd_memory_room room;
    pd_memory_room(&room, &gpu->instance, gpu->physical, gpu->info.unified_memory, gpu->has_budget);
    uint64_t free_size = pd_min(room.free, gpu->info.heap_size - pd_min(gpu->allocated, gpu->info.heap_size));
    if (size <= free_size) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_MEMORY, "%s needs %.1f MB, and %s has %.1f MB free of %.1f MB", what,
                   (double)size / 1e6, gpu->info.name, (double)free_size / 1e6, (double)gpu->info.heap_size / 1e6);
}

uint64_t pd_gpu_max_span(const struct pd_gpu *gpu) { return gpu->max_block; }
uint64_t pd_gpu_allocated(const struct pd_gpu *gpu) { return gpu->allocated; }
