/* What tests of failing allocations share: every allocation that a call of the library makes fails once; the call says
 * so, leaves nothing behind, and succeeds when it is made again. */
#ifndef ALLOC_FIXTURE_H
#define ALLOC_FIXTURE_H

#include "failing_alloc.h"
#include "folder_fixture.h"
#include "peridot.h"

#include "base/base.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct call {
    const char *name;
    peridot_status (*run)(void);   /* gives back what it gets */
    peridot_status good;           /* what it returns with enough memory */
    bool degrades;                 /* it can do without some of the memory */
    size_t n_tried;                /* about so many allocations fail; 0: all */
};

static inline size_t n_files(void)
{
    size_t n = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    while (readdir(directory)) n++;
    closedir(directory);
    return n;
}

static inline void fail_at(const struct call *call, size_t i, size_t n)
{
    size_t files = n_files();
    peridot_set_error("");
    failing_alloc_begin(i);
    peridot_status status = call->run();
    failing_alloc_end();
    if (n_files() > files) fail_msg("%s, allocation %zu of %zu: leaves a file", call->name, i, n);
    if (status == call->good && call->degrades) return;
    if (status != PERIDOT_ERROR_MEMORY || !strstr(peridot_last_error(), "out of memory"))
        fail_msg("%s, allocation %zu of %zu: status %d, \"%s\"", call->name, i, n, (int)status, peridot_last_error());
}

static inline void succeed(const struct call *call, const char *when)
{
    peridot_status status = call->run();
    if (status != call->good) fail_msg("%s %s: status %d, \"%s\"", call->name, when, (int)status, peridot_last_error());
}

static inline void check_call(const struct call *call)
{
    double begin = pd_now();
    succeed(call, "at first");   /* what is kept for the next time is there from now on */
    failing_alloc_begin(0);
    succeed(call, "once more");
    size_t n = failing_alloc_end(), step = call->n_tried ? pd_max(n / call->n_tried, 1) : 1;
    for (size_t i = 1; i <= n; i += step) fail_at(call, i, n);
    if (n) fail_at(call, n, n);
    succeed(call, "after failures");
    print_message("%s: %zu allocations, %.1f s\n", call->name, n, pd_now() - begin);
}

static inline void check_calls(const struct call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) check_call(&calls[i]);
}

#endif
