/* The bytes that each token of a vocabulary adds to a text, sorted: what is allowed next is then found by following
 * each beginning once, however many tokens share it. */
#ifndef PD_GRAMMAR_SPELLINGS_H
#define PD_GRAMMAR_SPELLINGS_H

#include "base/refs.h"
#include "base/status.h"

struct pd_spelling {
    uint32_t id, offset;
    uint16_t size;                 /* at least 1 */
    uint16_t shared;               /* bytes that it begins with like the one before */
};

/* Of characters that a string holds as they are, whole, and at most PD_PLAIN_CHARS of them: most tokens are so. */
#define PD_PLAIN_CHARS 16

struct pd_spellings {
    struct pd_refs refs;           /* the vocabulary, and grammars */
    uint32_t n_pieces;             /* of the vocabulary */
    char *bytes;
    size_t n_bytes, bytes_capacity;
    struct pd_spelling *sorted;    /* [n] */
    size_t n, sorted_capacity;
    uint32_t *plain;               /* [n_pieces / 32 + 1]: bits of the plain ones, n_plain */
    struct pd_spelling *others;    /* [n - n_plain]: all but those, sorted */
    size_t n_plain;
    size_t longest;                /* bytes of one */
    uint32_t *of_id;               /* [n_pieces]: index in `sorted`, UINT32_MAX: it adds none */
    bool lacking[256];             /* bytes that are no token by themselves */
    bool lacks;                    /* and some of them are of UTF-8 */
    uint32_t *stops;               /* [n_stops]: ids of stop tokens */
    size_t n_stops, stops_capacity;
};

/* *s is zeroed at first; pieces are added one by one, then it is finished. Pieces without bytes are never allowed. */
peridot_status pd_spellings_add(struct pd_spellings *s, uint32_t id, const char *bytes, size_t size);
peridot_status pd_spellings_add_stop(struct pd_spellings *s, uint32_t id);
/* PERIDOT_ERROR_UNSUPPORTED when there is no stop token. */
peridot_status pd_spellings_finish(struct pd_spellings *s, uint32_t n_pieces);
/* Frees the arrays. */
void pd_spellings_free(struct pd_spellings *s);
/* Gives up an ownership of spellings that malloc gave; the last owner frees them. NULL is allowed. */
void pd_spellings_drop(struct pd_spellings *s);

#endif
