#include "grammar/work.h"

peridot_status pd_work_fail(void)
{
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the schema is too large: its automaton would take too long to make or "
                                              "need more than %u states", PD_MAX_STATES);
}

peridot_status pd_work_spend(struct pd_work *w, uint64_t n)
{
    w->done += n;
    return w->done > w->max ? pd_work_fail() : PERIDOT_OK;
}

peridot_status pd_work_spend_sort(struct pd_work *w, uint64_t n)
{
    uint64_t log = 1;
    while (n >> log) log++;
    return pd_work_spend(w, n * log);
}
