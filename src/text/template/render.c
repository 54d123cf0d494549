#include "text/template/render.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

peridot_status pd_render_fail(const struct pd_render *r, const char *format, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return pd_fail(PERIDOT_ERROR_FORMAT, "line %u: %s", (unsigned)r->line, sentence);
}

peridot_status pd_render_spend(struct pd_render *r, uint64_t n)
{
    r->n_steps += n;
    if (r->n_steps <= PD_RENDER_MAX_STEPS) return PERIDOT_OK;
    return pd_render_fail(r, "the template takes more than %d steps", PD_RENDER_MAX_STEPS);
}

peridot_status pd_render_scan(struct pd_render *r, size_t size) { return pd_render_spend(r, size / 16); }

peridot_status pd_render_alloc(void *out, struct pd_render *r, size_t n, size_t size)
{
    const size_t left = PD_RENDER_MAX_SIZE - r->size;
    if (n > left / size)
        return pd_render_fail(r, "the template takes more than %d MiB of memory", PD_RENDER_MAX_SIZE >> 20);
    void *data = pd_arena_array(&r->arena, n, size);
    if (!data) return pd_fail_alloc(n * size, "values of a template");
    r->size += n * size;
    memcpy(out, &data, sizeof data);
    return PERIDOT_OK;
}

peridot_status pd_render_enter(struct pd_render *r)
{
    if (r->depth == PD_RENDER_MAX_DEPTH)
        return pd_render_fail(r, "the template nests deeper than %d", PD_RENDER_MAX_DEPTH);
    r->depth++;
    return PERIDOT_OK;
}

void pd_render_leave(struct pd_render *r) { r->depth--; }
