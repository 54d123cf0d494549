/* Lists of reports. */
#include "data.h"

#include <stdlib.h>

peridot_status reports_create(struct reports **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? PERIDOT_OK : cmd_fail_alloc(sizeof **out, "reports");
}

peridot_status reports_append(struct report **out, struct reports *list)
{
    *out = NULL;
    struct report **at = realloc(list->at, (list->n + 1) * sizeof *at);
    if (!at) return cmd_fail_alloc((list->n + 1) * sizeof *at, "reports");
    list->at = at;
    *out = list->at[list->n] = calloc(1, sizeof **at);
    if (!*out) return cmd_fail_alloc(sizeof **out, "report");
    list->n++;
    return PERIDOT_OK;
}

void reports_free(struct reports *list)
{
    if (!list) return;
    for (size_t i = 0; i < list->n; i++) free(list->at[i]);
    free(list->at);
    free(list);
}

struct report_score reports_score(const struct reports *list)
{
    return list->n ? list->at[0]->score : (struct report_score){0};
}
