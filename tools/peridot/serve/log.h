/* One line on standard error for each request: what was asked, the status, tokens and seconds. No texts. */
#ifndef PERIDOT_COMMAND_SERVE_LOG_H
#define PERIDOT_COMMAND_SERVE_LOG_H

#include "server.h"

struct serve_log_line {
    char method[12], path[64];
    double begun_s;
    int status;                /* 0: none was sent */
};

void serve_log_begin(struct serve_log_line *line, const char *method, const char *path);
/* job may be NULL; `complete`: all of the answer was sent. Counts it, too. */
void serve_log_end(const struct serve_log_line *line, struct serve_server *server, const struct serve_job *job,
                   bool complete);
/* Something that a request says and nothing is done with: named once in the life of the process, and only so many. */
void serve_log_ignored(const struct serve_server *server, const char *name);
/* With --log-prompts: the body of a request. */
void serve_log_prompt(const struct serve_job *job);

#endif
