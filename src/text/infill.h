/* Fill-in-the-middle: the control tokens between which a model gets the text before a place and the text after it, so
 * that what it writes next is what stands there. Vocabularies have them under a few names, which are a table. */
#ifndef PD_TEXT_INFILL_H
#define PD_TEXT_INFILL_H

#include "text/special.h"

/* Before the text before the place, before the text after it, and before what stands there. */
enum pd_infill { PD_INFILL_PREFIX, PD_INFILL_SUFFIX, PD_INFILL_MIDDLE, PD_N_INFILL };

/* Whether it is the name of such a token, or of one that ends a middle. */
bool pd_infill_is_name(const char *text, size_t size);
/* By their names, and those that end a middle become stops. All are -1 where the vocabulary lacks one. */
void pd_infill_find(int32_t ids[PD_N_INFILL], struct pd_pieces *p, const struct pd_special *s);
/* The same by the keys of a GGUF file. Only control pieces count. */
peridot_status pd_infill_read_gguf(int32_t ids[PD_N_INFILL], struct pd_pieces *p, const struct pd_checkpoint *c);

#endif
