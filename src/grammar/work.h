/* The budget of work that compiling a schema has: one for its document, patterns and rules together, so that no text
 * keeps a server for longer than half a second, or takes more than some 100 MB. Whoever loops over what a schema's
 * author chose counts the steps here before they are taken: an entry of a list or a comparison is one, an edge that is
 * followed a few. A step is 1 or 2 ns. The count depends on the schema alone: the same one compiles, or is refused, on
 * every machine. */
#ifndef PD_GRAMMAR_WORK_H
#define PD_GRAMMAR_WORK_H

#include "base/status.h"

#define PD_MAX_WORK 250000000u
#define PD_MAX_STATES 200000u      /* of rules, some 20 MB; of a rule or a pattern that is being written as well */

struct pd_work {
    uint64_t done, max;            /* 0 and PD_MAX_WORK at first */
};

/* Of so many thousandths; 0: all. */
uint64_t pd_work_of_effort(uint32_t effort);
/* Fails when more than the budget is needed, and from then on. */
peridot_status pd_work_spend(struct pd_work *w, uint64_t n);
/* The same for n log n: what sorting takes. */
peridot_status pd_work_spend_sort(struct pd_work *w, uint64_t n);
/* Sorts numbers, and counts that. */
peridot_status pd_work_sort(struct pd_work *w, uint32_t *numbers, size_t n);
/* What it fails with. */
peridot_status pd_work_fail(void);

#endif
