/* Copies between the host and spans: through a staging buffer where the host cannot see the device's memory. It has two
 * halves, so that the next piece of a file is laid out by the host while the device copies the one before: loading
 * takes the longer of the two, not their sum. Where a span is mapped the caller writes into it, and nothing is
 * copied. */
#include "gpu/gpu_.h"

#include "base/base.h"

#include <string.h>

void pd_staging_free(struct pd_gpu *gpu)
{
    struct pd_staging s = gpu->staging;
    gpu->staging = (struct pd_staging){0};
    for (int i = 0; i < 2; i++) pd_commands_free(s.commands[i]);
    pd_heap_free(s.heap);
}

/* Each part is looked for by itself: where one could not be made, a later call makes what is missing. */
static peridot_status staging_open(struct pd_gpu *gpu)
{
    struct pd_staging *s = &gpu->staging;
    if (s->spans[1].size) return PERIDOT_OK;
    if (!s->heap) PD_TRY(pd_heap_create(&s->heap, gpu, PD_HEAP_HOST, 2 * PD_UPLOAD_MAX));
    for (int i = 0; i < 2; i++) {
        if (!s->commands[i]) PD_TRY(pd_commands_create(&s->commands[i], gpu));
        if (!s->spans[i].size) PD_TRY(pd_heap_alloc(&s->spans[i], s->heap, PD_UPLOAD_MAX, "staging"));
    }
    return PERIDOT_OK;
}

peridot_status pd_upload_begin(void **out, struct pd_gpu *gpu, struct pd_span span, uint64_t offset, uint64_t size)
{
    struct pd_staging *s = &gpu->staging;
    if (!span.host) {
        PD_TRY(staging_open(gpu));
        PD_TRY(pd_commands_wait(s->commands[s->next]));   /* the copy from this half; that from the other may go on */
    }
    s->target = span;
    s->target_offset = offset;
    s->size = size;
    *out = span.host ? (uint8_t *)span.host + offset : s->spans[s->next].host;
    return PERIDOT_OK;
}

peridot_status pd_upload_end(struct pd_gpu *gpu)
{
    struct pd_staging *s = &gpu->staging;
    if (s->target.host || !s->size) return PERIDOT_OK;
    struct pd_commands *c = s->commands[s->next];
    PD_TRY(pd_commands_begin(c));
    pd_copy(c, s->target, s->target_offset, s->spans[s->next], 0, s->size);
    PD_TRY(pd_commands_end(c));
    s->next ^= 1;
    return pd_commands_submit(c);
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
    struct pd_staging *s = &gpu->staging;
    PD_TRY(staging_open(gpu));
    PD_TRY(pd_commands_wait(s->commands[s->next]));
    for (uint64_t done = 0; done < size;) {
        uint64_t piece = pd_min(size - done, PD_UPLOAD_MAX);
        PD_TRY(pd_commands_begin(s->commands[s->next]));
        pd_copy(s->commands[s->next], s->spans[s->next], 0, span, offset + done, piece);
        PD_TRY(pd_commands_end(s->commands[s->next]));
        PD_TRY(pd_commands_run(s->commands[s->next]));
        memcpy((uint8_t *)data + done, s->spans[s->next].host, (size_t)piece);
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
    struct pd_commands **c = gpu->staging.commands;
    PD_TRY(staging_open(gpu));
    PD_TRY(pd_commands_wait(c[0]));
    PD_TRY(pd_commands_begin(c[0]));
    pd_fill(c[0], span, span.size, 0);
    PD_TRY(pd_commands_end(c[0]));
    return pd_commands_run(c[0]);
}
