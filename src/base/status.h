/* Errors inside the library: a peridot_status to return and, for the person, one sentence made where the failure is
 * known and carried per thread. pd_fail sets the sentence and gives back the status, so a failure is one line:
 *     return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor %s ends past the file (offset %llu)", path, name, offset);
 * Whatever the arguments are, the sentence is one line of UTF-8 that is fit for a terminal (pd_utf8_escape). */
#ifndef PD_BASE_STATUS_H
#define PD_BASE_STATUS_H

#include "peridot.h"

#if defined(__MINGW32__)   /* whose printf is otherwise taken for Microsoft's */
#define PD_PRINTF(fmt, args) __attribute__((format(gnu_printf, fmt, args)))
#elif defined(__GNUC__)
#define PD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define PD_PRINTF(fmt, args)
#endif

peridot_status pd_fail(peridot_status status, const char *format, ...) PD_PRINTF(2, 3);
/* Puts "PREFIX: " before the present sentence, for callers that know the file. */
peridot_status pd_fail_prefix(peridot_status status, const char *prefix);
/* "out of memory for N bytes (WHAT)". */
peridot_status pd_fail_alloc(size_t size, const char *what);
const char *pd_error(void);

/* The plural's ending: "%u token%s", n, PD_S(n). */
#define PD_S(n) ((n) == 1 ? "" : "s")

/* Returns early when an expression of type peridot_status is a failure. */
#define PD_TRY(expr)                                        \
    do {                                                    \
        peridot_status pd_try_status = (expr);              \
        if (pd_try_status != PERIDOT_OK) return pd_try_status; \
    } while (0)

#endif
