/* Fill-in-the-middle: the control tokens between which a model gets the text before a place and the text after it, so
 * that what it writes next is what stands there. Vocabularies have them under a few names, which are a table. */
#ifndef PD_TEXT_INFILL_H
#define PD_TEXT_INFILL_H

#include "text/infill_names.h"
#include "text/special.h"

/* By their names, and those that end a middle become stops. All are -1 where the vocabulary lacks one. */
void pd_infill_find(int32_t ids[PD_N_INFILL], struct pd_pieces *p, const struct pd_special *s);
/* The same by the keys of a GGUF file. Only control pieces count. */
peridot_status pd_infill_read_gguf(int32_t ids[PD_N_INFILL], struct pd_pieces *p, const struct pd_checkpoint *c);

#endif
