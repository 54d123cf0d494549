/* The control pieces of a vocabulary, sorted, to find them in text and by name. */
#ifndef PD_TEXT_SPECIAL_H
#define PD_TEXT_SPECIAL_H

#include "text/pieces.h"

struct pd_special {
    uint32_t *ids;    /* of control and unknown pieces, by text */
    uint32_t n;
    bool starts[256];   /* bytes that some piece begins with */
};

peridot_status pd_special_create(struct pd_special *out, const struct pd_pieces *p);
void pd_special_free(struct pd_special *s);
/* The longest piece that the text begins with: its size, and *id; 0 when there is none. */
size_t pd_special_match(int32_t *id, const struct pd_special *s, const struct pd_pieces *p, const char *text, size_t size);
/* The id of the piece with this very text; -1 when there is none. */
int32_t pd_special_find(const struct pd_special *s, const struct pd_pieces *p, const char *name);

#endif
