#include "toolbox_.h"
#include "../base/base.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_UNREAD = 1 << 16 };   /* of what a server was sent: who does not read gets no replies */
#define CLOSE_SECONDS 2.0
#define STEP_SECONDS 0.1

struct stdio_link {
    struct link link;
    struct process process;
    size_t n_seen;             /* bytes of its output that have no line break */
};

static peridot_status link_stdio_open_link(struct link **out, const struct toolbox_entry *e)
{
    const struct process_params params = {.command = (const char *const *)e->command.at,
                                          .env = (const char *const *)e->env.at, .cwd = e->cwd,
                                          .max_output = LINK_MAX_MESSAGE};
    struct stdio_link *l = calloc(1, sizeof *l);
    *out = NULL;
    if (!l) return pd_fail_alloc(sizeof *l, "server");
    l->link.kind = &link_stdio;
    peridot_status status = process_start(&l->process, &params);
    if (status == PERIDOT_OK) *out = &l->link;
    else free(l);
    return status;
}

static void close_link(struct link *link)
{
    struct stdio_link *l = (struct stdio_link *)link;
    process_close(&l->process, CLOSE_SECONDS, NULL);
    pd_buffer_free(&l->process.output);
    free(l);
}

static peridot_status write_line(struct process *p, const char *text, size_t size)
{
    PD_TRY(process_write(p, text, size));
    return process_write(p, "\n", 1);
}

/* Messages are lines. What is no message is passed over by who takes it: servers print greetings. */
static peridot_status take_lines(struct stdio_link *l, struct link_receiver *r)
{
    struct pd_buffer *output = &l->process.output;
    size_t begin = 0;
    peridot_status status = PERIDOT_OK;
    for (char *end; status == PERIDOT_OK && l->n_seen < output->size && !r->done;) {
        end = memchr(output->data + l->n_seen, '\n', output->size - l->n_seen);
        l->n_seen = end ? (size_t)(end - output->data) : output->size;
        if (!end) break;
        status = r->take(r, output->data + begin, l->n_seen - begin);
        begin = ++l->n_seen;
        if (status == PERIDOT_OK && r->replies.size && l->process.input.size < MAX_UNREAD)
            status = process_write(&l->process, r->replies.data, r->replies.size);
        r->replies.size = 0;
    }
    pd_buffer_drop(output, begin);
    l->n_seen -= begin;
    return status;
}

/* The last line that it wrote to standard error says why, as a rule. */
static peridot_status fail_lost(struct stdio_link *l, const char *why)
{
    const struct process *p = &l->process;
    size_t end = p->n_errors, begin;
    char line[512];
    l->link.is_lost = true;
    while (end && strchr(" \t\r\n", p->errors[end - 1])) end--;
    for (begin = end; begin && p->errors[begin - 1] != '\n';) begin--;
    peridot_printable(line, sizeof line, p->errors + begin, end - begin);
    return pd_fail(PERIDOT_ERROR_IO, "%s%s%s", why, line[0] ? ": " : "", line);
}

static peridot_status request(struct link *link, const struct link_message *m, struct link_receiver *r, double deadline)
{
    struct stdio_link *l = (struct stdio_link *)link;
    PD_TRY(write_line(&l->process, m->text, m->size));
    for (;;) {
        PD_TRY(take_lines(l, r));
        if (r->done) return PERIDOT_OK;
        if (toolbox_is_stopped(r->stop)) return pd_fail(PERIDOT_CANCELLED, "stopped");
        if (l->process.n_dropped) return fail_lost(l, "sent a message of more than 8 MiB");
        if (l->process.output_has_ended) return fail_lost(l, "has ended");
        if (pd_now() >= deadline) return pd_fail(PERIDOT_ERROR_IO, "does not answer in time");
        PD_TRY(process_step(&l->process, STEP_SECONDS));
    }
}

static void notify(struct link *link, const struct link_message *m)
{
    struct stdio_link *l = (struct stdio_link *)link;
    if (write_line(&l->process, m->text, m->size) == PERIDOT_OK) process_step(&l->process, 0);
}

static peridot_status poll_link(struct link *link, struct link_receiver *r)
{
    struct stdio_link *l = (struct stdio_link *)link;
    for (size_t before = SIZE_MAX; before != l->process.output.size && !l->process.output_has_ended;) {
        before = l->process.output.size;
        PD_TRY(process_step(&l->process, 0));
    }
    l->link.is_lost |= l->process.output_has_ended;
    return take_lines(l, r);
}

const struct link_kind link_stdio = {link_stdio_open_link, request, notify, poll_link, close_link};
