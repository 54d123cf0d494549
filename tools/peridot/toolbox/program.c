/* Tools that are programs: the arguments are one JSON object on standard input, the result is standard output. */
#include "toolbox_.h"
#include "../console/console.h"

#include <string.h>

static peridot_status program_begin(struct process *p, const struct toolbox_entry *e, const char *arguments)
{
    const struct process_params params = {.command = (const char *const *)e->command.at,
                                          .env = (const char *const *)e->env.at, .cwd = e->cwd,
                                          .max_output = e->max_output};
    PD_TRY(process_start(p, &params));
    peridot_status status = process_write(p, arguments, strlen(arguments));
    if (status == PERIDOT_OK) status = process_write(p, "\n", 1);
    process_end_input(p);
    return status;
}

/* What is left of what it wrote, once nobody writes any more; were there somebody still, it has an end, too. */
static peridot_status read_rest(struct process *p, double deadline)
{
    enum { MOST = 1 << 20 };   /* of a pipe */
    size_t program_begin = p->n_read, before = SIZE_MAX;
    while (!p->has_ended && p->n_read != before && p->n_read - program_begin < MOST && pd_now() < deadline) {
        before = p->n_read;
        PD_TRY(process_step(p, 0));
    }
    return PERIDOT_OK;
}

/* Until it has exited and what it wrote is read. What it started ends with it. */
static peridot_status program_run(struct process *p, bool *in_time, double deadline, const struct toolbox_stop *stop)
{
    enum { STEP_MS = 100, LAST_STEP_MS = 5 };
    *in_time = true;
    while (!process_has_exited(p)) {
        if (toolbox_is_stopped(stop)) return pd_fail(PERIDOT_CANCELLED, "stopped");
        *in_time = pd_now() < deadline;
        if (!*in_time) return PERIDOT_OK;
        PD_TRY(process_step(p, (p->has_ended ? LAST_STEP_MS : STEP_MS) / 1e3));
    }
    process_end_rest(p);
    return read_rest(p, deadline);
}

static peridot_status add_output(struct pd_buffer *result, const struct process *p)
{
    return result_add_text(result, p->output.data ? p->output.data : "", p->output.size);
}

/* Why it failed, and what it wrote: errors first, as the end may be cut. */
static peridot_status explain(struct pd_buffer *result, const struct process *p, const struct toolbox_entry *e,
                              const char *why)
{
    PD_TRY(pd_buffer_print(result, "error: %s %s%s", e->name, why, p->n_errors ? "\n" : ""));
    PD_TRY(result_add_text(result, p->errors, p->n_errors));
    if (p->output.size) PD_TRY(pd_buffer_add(result, "\n", 1));
    return add_output(result, p);
}

static void show_errors(const struct process *p, const struct toolbox_entry *e)
{
    struct cmd_notice m;
    if (p->n_errors == 0 || !cmd_notice_begin(&m)) return;
    fprintf(m.file, "%s: ", e->name);
    cmd_write_text(m.file, p->errors, p->n_errors);
    if (p->errors[p->n_errors - 1] != '\n') fputc('\n', m.file);
    cmd_notice_end(&m);
}

peridot_status program_call(struct pd_buffer *result, const struct toolbox_entry *e, const char *arguments,
                            const struct toolbox_stop *stop)
{
    struct process p;
    bool in_time = false;
    char how[64];
    peridot_status status = program_begin(&p, e, arguments);
    if (status == PERIDOT_OK) status = program_run(&p, &in_time, pd_now() + e->timeout_s, stop);
    process_close(&p, 0, how);
    if (!in_time) snprintf(how, sizeof how, "gave no result within %g s", e->timeout_s);
    if (status == PERIDOT_OK && how[0]) status = explain(result, &p, e, how);
    else if (status == PERIDOT_OK) status = add_output(result, &p);
    if (status == PERIDOT_OK) status = result_cut(result, e->max_output, p.n_dropped);
    if (status == PERIDOT_OK && !how[0]) show_errors(&p, e);
    pd_buffer_free(&p.output);
    return status;
}

/* ---- what a program wrote, on whatever system ---- */

peridot_status process_keep_output(struct process *p, const char *data, size_t size)
{
    size_t kept = pd_min(size, p->max_output - p->output.size);
    p->n_dropped += size - kept;
    return pd_buffer_add(&p->output, data, kept);
}

peridot_status process_keep_errors(struct process *p, const char *data, size_t size)
{
    size_t kept = pd_min(size, PROCESS_ERRORS), before = pd_min(p->n_errors, PROCESS_ERRORS - kept);
    memmove(p->errors, p->errors + p->n_errors - before, before);
    memcpy(p->errors + before, data + size - kept, kept);
    p->n_errors = before + kept;
    return PERIDOT_OK;
}
