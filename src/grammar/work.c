#include "grammar/work.h"

#include "base/num.h"

uint64_t pd_work_of_effort(uint32_t effort)
{
    return effort && effort < 1000 ? (uint64_t)PD_MAX_WORK / 1000 * effort : PD_MAX_WORK;
}

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

/* Shell's, with the gaps of Ciura (2001) and further ones of 2.25 times: sets of states are sorted in part already,
 * which makes it faster than qsort. */
peridot_status pd_work_sort(struct pd_work *w, uint32_t *numbers, size_t n)
{
    static const size_t gaps[] = {92882, 41281, 18347, 8154, 3624, 1611, 701, 301, 132, 57, 23, 10, 4, 1};
    PD_TRY(pd_work_spend_sort(w, n));
    for (size_t k = 0; k < PD_COUNT(gaps); k++)
        for (size_t i = gaps[k]; i < n; i++) {
            uint32_t number = numbers[i];
            size_t at = i;
            for (; at >= gaps[k] && numbers[at - gaps[k]] > number; at -= gaps[k]) numbers[at] = numbers[at - gaps[k]];
            numbers[at] = number;
        }
    return PERIDOT_OK;
}
