/* What vocabularies call their control tokens for fill-in-the-middle (infill.h). */
#ifndef PD_TEXT_INFILL_NAMES_H
#define PD_TEXT_INFILL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Before the text before the place, before the text after it, and before what stands there. */
enum pd_infill { PD_INFILL_PREFIX, PD_INFILL_SUFFIX, PD_INFILL_MIDDLE, PD_N_INFILL };

struct pd_infill_names {
    const char *marks[PD_N_INFILL];
    const char *ends[4];       /* what ends a middle; NULL: no more */
};

/* Row i; NULL past the last. */
const struct pd_infill_names *pd_infill_names(size_t i);
/* Whether it is the name of such a token, or of one that ends a middle. */
bool pd_infill_is_name(const char *text, size_t size);

#endif
