/* Pieces of some types, sorted, to find them in text and by name: the control pieces of a vocabulary, and the
 * user-defined ones where sentencepiece does not look for them. */
#ifndef PD_TEXT_SPECIAL_H
#define PD_TEXT_SPECIAL_H

#include "text/pieces.h"

struct pd_special {
    uint32_t *ids;    /* by text */
    uint32_t n;
    bool starts[256];   /* bytes that some piece begins with */
};

/* What stands for no text. */
enum { PD_SPECIAL_CONTROL = 1 << PD_PIECE_CONTROL | 1 << PD_PIECE_UNKNOWN, PD_SPECIAL_USER = 1 << PD_PIECE_USER };

/* types: bits 1 << enum pd_piece_type. */
peridot_status pd_special_create(struct pd_special *out, const struct pd_pieces *p, unsigned types);
void pd_special_free(struct pd_special *s);
/* The longest piece that the text begins with: its size, and *id; 0 when there is none. */
size_t pd_special_match(int32_t *id, const struct pd_special *s, const struct pd_pieces *p, const char *text,
                        size_t size);
/* Bytes of white space at the end of the text before a matched piece, and at the start of that after it, which the
 * piece takes. Where spaces became U+2581, that is white space, too. */
size_t pd_special_before(const struct pd_pieces *p, int32_t id, const char *text, size_t size);
size_t pd_special_after(const struct pd_pieces *p, int32_t id, const char *text, size_t size);
/* The id of the piece with this very text; -1 when there is none. */
int32_t pd_special_find(const struct pd_special *s, const struct pd_pieces *p, const char *name);

#endif
