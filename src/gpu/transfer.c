/* Copies between the host and spans: through a staging buffer where the host cannot see the device's memory. */
#include "gpu/vk.h"

#include "base/num.h"

#include <string.h>

void pd_staging_free(struct pd_gpu *gpu)
{
    pd_commands_free(gpu->staging.commands);
    pd_heap_free(gpu->staging.heap);
    gpu->staging = (struct pd_staging){0};
}

static peridot_status staging_open(struct pd_gpu *gpu)
{
    struct pd_staging *s = &gpu->staging;
    if (s->span.size) return PERIDOT_OK;
    if (!s->heap) PD_TRY(pd_heap_create(&s->heap, gpu, PD_HEAP_HOST, PD_UPLOAD_MAX));
    if (!s->commands) PD_TRY(pd_commands_create(&s->commands, gpu));
    return pd_heap_alloc(&s->span, s->heap, PD_UPLOAD_MAX, "staging");
}

static peridot_status copy_now(struct pd_gpu *gpu, struct pd_span to, uint64_t to_offset, struct pd_span from,
                               uint64_t from_offset, uint64_t size)
{
    PD_TRY(pd_commands_begin(gpu->staging.commands));
    pd_copy(gpu->staging.commands, to, to_offset, from, from_offset, size);
    PD_TRY(pd_commands_end(gpu->staging.commands));
    return pd_commands_run(gpu->staging.commands);
}

peridot_status pd_upload_begin(void **out, struct pd_gpu *gpu, struct pd_span span, uint64_t offset, uint64_t size)
{
    struct pd_staging *s = &gpu->staging;
    if (!span.host) PD_TRY(staging_open(gpu));
    s->target = span;
    s->target_offset = offset;
    s->size = size;
    *out = span.host ? (uint8_t *)span.host + offset : s->span.host;
    return PERIDOT_OK;
}

peridot_status pd_upload_end(struct pd_gpu *gpu)
{
    struct pd_staging *s = &gpu->staging;
    if (s->target.host || !s->size) return PERIDOT_OK;
    return copy_now(gpu, s->target, s->target_offset, s->span, 0, s->size);
}

peridot_status pd_span_write(struct pd_gpu *gpu, struct pd_span span, uint64_t offset, const void *data, uint64_t size)
{
    for (uint64_t done = 0; done < size;) {
        uint64_t piece = pd_min(size - done, PD_UPLOAD_MAX);
        void *to;
        PD_TRY(pd_upload_begin(&to, gpu, span, offset + done, piece));
        memcpy(to, (const uint8_t *)data + done, (size_t)piece);
        PD_TRY(pd_upload_end(gpu));
        done += piece;
    }
    return PERIDOT_OK;
}

peridot_status pd_span_read(struct pd_gpu *gpu, void *data, struct pd_span span, uint64_t offset, uint64_t size)
{
    if (span.host) {
        memcpy(data, (uint8_t *)span.host + offset, (size_t)size);
        return PERIDOT_OK;
    }
    PD_TRY(staging_open(gpu));
    for (uint64_t done = 0; done < size;) {
        uint64_t piece = pd_min(size - done, PD_UPLOAD_MAX);
        PD_TRY(copy_now(gpu, gpu->staging.span, 0, span, offset + done, piece));
        memcpy((uint8_t *)data + done, gpu->staging.span.host, (size_t)piece);
        done += piece;
    }
    return PERIDOT_OK;
}

peridot_status pd_span_zero(struct pd_gpu *gpu, struct pd_span span)
{
    if (span.host) {
        memset(span.host, 0, (size_t)span.size);
        return PERIDOT_OK;
    }
    PD_TRY(staging_open(gpu));
    PD_TRY(pd_commands_begin(gpu->staging.commands));
    pd_fill(gpu->staging.commands, span, span.size, 0);
    PD_TRY(pd_commands_end(gpu->staging.commands));
    return pd_commands_run(gpu->staging.commands);
}
