/* Which of an engine's tasks are at work. The others wait here and not in the session, whose order is that of arrival:
 * so clients take turns (fair.h), whoever sends a thousand requests has his own wait, and where too many do, those that
 * are refused are of the client who has most. A short text need not wait until a long one is written: one gives way and
 * goes on later from its tokens, to the same text, as it does where a device was lost. The engine's thread calls all of
 * these. */
#ifndef PERIDOT_COMMAND_SERVE_ADMISSION_H
#define PERIDOT_COMMAND_SERVE_ADMISSION_H

#include "job.h"

struct serve_admission {
    struct serve_fair fair;
    uint32_t n_parallel;       /* tasks at work, at most */
};

/* Refuses the dearest waiting jobs of the clients who have most, as far as there are more than n_most. */
void serve_admission_limit(const struct serve_task *tasks, size_t n_most);
/* The task that is to be submitted next; NULL: none. Another one may have to give way, and waits again. */
struct serve_task *serve_admission_next(struct serve_admission *a, struct serve_task *tasks);

#endif
