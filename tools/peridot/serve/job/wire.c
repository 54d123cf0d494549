#include "job.h"

#include <string.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

val_t *serve_string(doc_t *doc, const char *text) { return serve_text(doc, text, strlen(text)); }

struct serve_usage serve_usage_of(const struct serve_job *job)
{
    struct serve_usage u = {0};
    for (size_t i = 0; i < job->work.n_tasks; i++) {
        const struct serve_task *task = &job->work.tasks[i];
        if (i % job->asks.n == 0) u.prompt += task->n_prompt, u.cached += task->n_cached;
        u.reply += task->n_reply;
        u.thought += task->n_thought;
    }
    return u;
}

void serve_send_event(struct serve_job *job, const char *name, doc_t *doc)
{
    struct serve_buffer b = {0};
    if (name) serve_print(&b, "event: %s\n", name);
    serve_print(&b, "data: ");
    serve_put_json(&b, doc);
    serve_print(&b, "\n\n");
    serve_job_write(job, &b, false);
    serve_buffer_free(&b);
}

void serve_send_line(struct serve_job *job, doc_t *doc)
{
    struct serve_buffer b = {0};
    serve_put_json(&b, doc);
    serve_put(&b, "\n", 1);
    serve_job_write(job, &b, false);
    serve_buffer_free(&b);
}
