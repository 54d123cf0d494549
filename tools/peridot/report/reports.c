/* Lists of reports. */
#include "../bench/bench.h"

#include <stdlib.h>

peridot_status bench_reports_add(struct bench_report **out, struct bench_reports *list)
{
    *out = NULL;
    struct bench_report **at = realloc(list->at, (list->n + 1) * sizeof *at);
    if (!at) return cmd_fail_alloc((list->n + 1) * sizeof *at, "reports");
    list->at = at;
    *out = list->at[list->n] = calloc(1, sizeof **at);
    if (!*out) return cmd_fail_alloc(sizeof **out, "report");
    list->n++;
    return PERIDOT_OK;
}

void bench_reports_drop(struct bench_reports *list)
{
    free(list->at[--list->n]);
}

void bench_reports_free(struct bench_reports *list)
{
    for (size_t i = 0; i < list->n; i++) free(list->at[i]);
    free(list->at);
    *list = (struct bench_reports){0};
}
