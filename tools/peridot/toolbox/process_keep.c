/* What a program wrote, on whatever system. */
#include "process.h"

#include <string.h>

peridot_status process_keep_output(struct process *p, const char *data, size_t size)
{
    size_t kept = cmd_min(size, p->max_output - p->output.size);
    p->n_dropped += size - kept;
    return toolbox_bytes_add(&p->output, data, kept);
}

peridot_status process_keep_errors(struct process *p, const char *data, size_t size)
{
    size_t kept = cmd_min(size, PROCESS_ERRORS), before = cmd_min(p->n_errors, PROCESS_ERRORS - kept);
    memmove(p->errors, p->errors + p->n_errors - before, before);
    memcpy(p->errors + before, data + size - kept, kept);
    p->n_errors = before + kept;
    return PERIDOT_OK;
}
