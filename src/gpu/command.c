/* Recording and running commands. Each pd_commands has a pool, and a command buffer for each piece of what is recorded;
 * they may be submitted many times: a decode step is recorded once for each shape of a batch, as what changes from step
 * to step (positions, tables of pages, ids) is in memory that kernels read. Completion is a value of the device's
 * timeline semaphore, which one submission raises after the other, so that "is it done" is a comparison. Submissions
 * begin with a barrier, so that each sees what those before it wrote, whether or not the host waited for them.
 *
 * Barriers are of all memory: kernels address buffers by numbers, and on one queue with dispatches in a chain drivers
 * do the same for a barrier of one buffer. A wait that never ends would hang the program that embeds the library, so a
 * GPU has 30 seconds, after which it counts as lost. */
#include "gpu/gpu_.h"

#include <stdlib.h>
#include <string.h>

struct pd_commands {
    struct pd_gpu *gpu;
    VkCommandPool pool;
    VkCommandBuffer *buffers;          /* [n_buffers], of which n_pieces are used */
    VkCommandBuffer buffer;            /* that is recorded */
    uint32_t n_buffers, n_pieces, n_dispatches;
    VkResult result;                   /* the first failure since begin */
    bool has[PD_N_KERNELS];            /* dispatches of that kernel */
    VkQueryPool queries;               /* one timestamp at the start and one after each dispatch; none when not timed */
    struct pd_dispatch_time *times;    /* [PD_MAX_TIMES] */
    bool timed;
    uint64_t value;                    /* of the timeline when the last submission is done; 0: none */
};

static peridot_status add_buffer(struct pd_commands *c)
{
    VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = c->pool, .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1};
    VkCommandBuffer *buffers = realloc(c->buffers, (c->n_buffers + 1) * sizeof *buffers);
    if (!buffers) return pd_fail_alloc((c->n_buffers + 1) * sizeof *buffers, "command buffers");
    c->buffers = buffers;
    VkResult result = c->gpu->vk.vkAllocateCommandBuffers(c->gpu->device, &allocate, &buffers[c->n_buffers]);
    if (result != VK_SUCCESS) return pd_vk_fail(result, "vkAllocateCommandBuffers");
    c->n_buffers++;
    return PERIDOT_OK;
}

peridot_status pd_commands_create(struct pd_commands **out, struct pd_gpu *gpu)
{
    struct pd_commands *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return pd_fail_alloc(sizeof *c, "commands");
    c->gpu = gpu;
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .queueFamilyIndex = gpu->queue_family};
    VkResult result = gpu->vk.vkCreateCommandPool(gpu->device, &pool, NULL, &c->pool);
    peridot_status status = result == VK_SUCCESS ? add_buffer(c) : pd_vk_fail(result, "vkCreateCommandPool");
    if (status == PERIDOT_OK) *out = c;
    else pd_commands_free(c);
    return status;
}

void pd_commands_free(struct pd_commands *c)
{
    if (!c) return;
    pd_commands_wait(c);   /* a lost device executes nothing */
    c->gpu->vk.vkDestroyQueryPool(c->gpu->device, c->queries, NULL);
    c->gpu->vk.vkDestroyCommandPool(c->gpu->device, c->pool, NULL);
    free(c->buffers);
    free(c->times);
    free(c);
}

static VkResult begin_piece(struct pd_commands *c)
{
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    c->buffer = c->buffers[c->n_pieces++];
    return c->gpu->vk.vkBeginCommandBuffer(c->buffer, &begin);
}

peridot_status pd_commands_begin(struct pd_commands *c)
{
    c->n_dispatches = c->n_pieces = 0;
    c->result = VK_SUCCESS;
    memset(c->has, 0, sizeof c->has);
    PD_VK(c->gpu->vk.vkResetCommandPool(c->gpu->device, c->pool, 0));
    PD_VK(begin_piece(c));
    pd_barrier(c);
    if (c->timed) {
        c->gpu->vk.vkCmdResetQueryPool(c->buffer, c->queries, 0, PD_MAX_TIMES + 1);
        c->gpu->vk.vkCmdWriteTimestamp(c->buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, c->queries, 0);
    }
    return PERIDOT_OK;
}

static void barrier(struct pd_commands *c, VkPipelineStageFlags to, VkAccessFlags access)
{
    VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, .dstAccessMask = access};
    c->gpu->vk.vkCmdPipelineBarrier(c->buffer, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                                    to, 0, 1, &memory, 0, NULL, 0, NULL);
}

peridot_status pd_commands_end(struct pd_commands *c)
{
    barrier(c, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    PD_VK(c->gpu->vk.vkEndCommandBuffer(c->buffer));
    return c->result == VK_SUCCESS ? PERIDOT_OK : pd_vk_fail(c->result, "vkEndCommandBuffer");
}

/* Barriers are between all that is submitted before and after them: pieces need none of their own. Without memory for
 * another piece this one goes on. */
void pd_commands_cut(struct pd_commands *c)
{
    if (c->n_pieces == c->n_buffers && add_buffer(c) != PERIDOT_OK) return;
    VkResult ended = c->gpu->vk.vkEndCommandBuffer(c->buffer), begun = begin_piece(c);
    if (c->result == VK_SUCCESS) c->result = ended != VK_SUCCESS ? ended : begun;
}

uint32_t pd_commands_n_pieces(const struct pd_commands *c) { return c->n_pieces; }

void pd_barrier(struct pd_commands *c)
{
    barrier(c, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT
            | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
}

static void bind(struct pd_commands *c, const struct pd_kernel *kernel, const void *push)
{
    c->gpu->vk.vkCmdBindPipeline(c->buffer, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
    c->gpu->vk.vkCmdPushConstants(c->buffer, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel->push_size, push);
}

static void count(struct pd_commands *c, const struct pd_kernel *kernel)
{
    uint32_t i = c->n_dispatches++;
    c->has[kernel->id] = true;
    if (!c->timed || i >= PD_MAX_TIMES) return;
    c->times[i].kernel = kernel;
    c->gpu->vk.vkCmdWriteTimestamp(c->buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, c->queries, i + 1);
}

void pd_dispatch(struct pd_commands *c, const struct pd_kernel *kernel, const void *push, uint32_t x, uint32_t y,
                 uint32_t z)
{
    bind(c, kernel, push);
    c->gpu->vk.vkCmdDispatch(c->buffer, x, y, z);
    count(c, kernel);
}

void pd_dispatch_indirect(struct pd_commands *c, const struct pd_kernel *kernel, const void *push,
                          struct pd_span grid, uint64_t offset)
{
    bind(c, kernel, push);
    c->gpu->vk.vkCmdDispatchIndirect(c->buffer, grid.block->buffer, grid.offset + offset);
    count(c, kernel);
}

void pd_copy(struct pd_commands *c, struct pd_span to, uint64_t to_offset, struct pd_span from, uint64_t from_offset,
             uint64_t size)
{
    VkBufferCopy region = {.srcOffset = from.offset + from_offset, .dstOffset = to.offset + to_offset, .size = size};
    c->gpu->vk.vkCmdCopyBuffer(c->buffer, from.block->buffer, to.block->buffer, 1, &region);
}

void pd_fill(struct pd_commands *c, struct pd_span span, uint64_t size, uint32_t word)
{
    c->gpu->vk.vkCmdFillBuffer(c->buffer, span.block->buffer, span.offset, size, word);
}

bool pd_commands_has(const struct pd_commands *c, enum pd_kernel_id id) { return c->has[id]; }

uint32_t pd_commands_n_dispatches(const struct pd_commands *c) { return c->n_dispatches; }

/* A submit or a wait may find the device lost. */
static peridot_status command_fail(struct pd_gpu *gpu, VkResult result, const char *call)
{
    gpu->hangs = gpu->hangs || result == VK_TIMEOUT;
    gpu->lost = gpu->lost || gpu->hangs || result == VK_ERROR_DEVICE_LOST;
    return gpu->lost ? pd_gpu_check(gpu) : pd_vk_fail(result, call);
}

/* ---- times ---- */

bool pd_gpu_can_time(const struct pd_gpu *gpu) { return gpu->timestamp_period > 0; }

peridot_status pd_commands_time(struct pd_commands *c, bool on)
{
    c->timed = on;
    if (!on || c->queries) return PERIDOT_OK;
    if (!pd_gpu_can_time(c->gpu))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s has no timestamps on its compute queue", c->gpu->info.name);
    c->times = calloc(PD_MAX_TIMES, sizeof *c->times);
    if (!c->times) return pd_fail_alloc(PD_MAX_TIMES * sizeof *c->times, "times");
    VkQueryPoolCreateInfo create = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = PD_MAX_TIMES + 1};
    PD_VK(c->gpu->vk.vkCreateQueryPool(c->gpu->device, &create, NULL, &c->queries));
    return PERIDOT_OK;
}

peridot_status pd_commands_times(const struct pd_dispatch_time **out, uint32_t *n, struct pd_commands *c)
{
    *n = c->n_dispatches < PD_MAX_TIMES ? c->n_dispatches : PD_MAX_TIMES;
    *out = c->times;
    uint64_t *ticks = calloc(*n + 1, sizeof *ticks);
    if (!ticks) return pd_fail_alloc((*n + 1) * sizeof *ticks, "times");
    VkResult result = c->gpu->vk.vkGetQueryPoolResults(c->gpu->device, c->queries, 0, *n + 1, (*n + 1) * sizeof *ticks,
        ticks, sizeof *ticks, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    for (uint32_t i = 0; i < *n; i++)
        c->times[i].seconds = (double)((ticks[i + 1] - ticks[i]) & c->gpu->timestamp_mask) * c->gpu->timestamp_period
        * 1e-9;
    free(ticks);
    return result == VK_SUCCESS ? PERIDOT_OK : command_fail(c->gpu, result, "vkGetQueryPoolResults");
}

/* Created at the first submit, as drivers without hardware, which only compile, have none. */
static peridot_status open_timeline(struct pd_gpu *gpu)
{
    if (gpu->timeline) return PERIDOT_OK;
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo create = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    PD_VK(gpu->vk.vkCreateSemaphore(gpu->device, &create, NULL, &gpu->timeline));
    return PERIDOT_OK;
}

static peridot_status submit(struct pd_commands *c, uint32_t first, uint32_t n)
{
    struct pd_gpu *gpu = c->gpu;
    PD_TRY(pd_gpu_check(gpu));
    PD_TRY(open_timeline(gpu));
    uint64_t value = ++gpu->timeline_value;
    VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1, .pSignalSemaphoreValues = &value};
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &timeline, .commandBufferCount = n,
        .pCommandBuffers = c->buffers + first, .signalSemaphoreCount = 1, .pSignalSemaphores = &gpu->timeline};
    VkResult result = gpu->vk.vkQueueSubmit(gpu->queue, 1, &submit, VK_NULL_HANDLE);
    if (result != VK_SUCCESS) return command_fail(gpu, result, "vkQueueSubmit");
    c->value = value;
    return PERIDOT_OK;
}

peridot_status pd_commands_submit(struct pd_commands *c) { return submit(c, 0, c->n_pieces); }

peridot_status pd_commands_submit_piece(struct pd_commands *c, uint32_t piece) { return submit(c, piece, 1); }

peridot_status pd_commands_wait(struct pd_commands *c)
{
    struct pd_gpu *gpu = c->gpu;
    if (c->value <= gpu->timeline_done) return PERIDOT_OK;
    if (gpu->hangs) return pd_gpu_check(gpu);
    VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1,
        .pSemaphores = &gpu->timeline, .pValues = &c->value};
    VkResult result = gpu->vk.vkWaitSemaphores(gpu->device, &wait, gpu->patience);
    if (result != VK_SUCCESS) return command_fail(gpu, result, "vkWaitSemaphores");
    gpu->timeline_done = c->value;
    return PERIDOT_OK;
}

void pd_staging_wait(struct pd_gpu *gpu)
{
    for (int i = 0; i < 2; i++)
        if (gpu->staging.commands[i]) pd_commands_wait(gpu->staging.commands[i]);
}

peridot_status pd_commands_run(struct pd_commands *c)
{
    PD_TRY(pd_commands_submit(c));
    return pd_commands_wait(c);
}
