/* Messages for whoever asked for them: see peridot_log. */
#ifndef PD_BASE_LOG_H
#define PD_BASE_LOG_H

#include "base/status.h"

struct pd_log {
    peridot_log call;   /* NULL: nobody */
    void *user;
};

void pd_log(const struct pd_log *log, peridot_log_level level, const char *format, ...) PD_PRINTF(3, 4);

#endif
