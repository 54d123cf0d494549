/* The bytes that each token of a vocabulary adds to a text, sorted: what is allowed next is then found by following
 * each beginning once, however many tokens share it. */
#include "grammar/grammar.h"

#include "base/base.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void pd_spellings_free(struct pd_spellings *s)
{
    free(s->bytes);
    free(s->sorted);
    free(s->plain);
    free(s->others);
    free(s->of_id);
    free(s->stops);
    *s = (struct pd_spellings){0};
}

void pd_spellings_drop(struct pd_spellings *s)
{
    if (!s || !pd_refs_drop(&s->refs)) return;
    pd_spellings_free(s);
    free(s);
}

peridot_status pd_spellings_add(struct pd_spellings *s, uint32_t id, const char *bytes, size_t size)
{
    assert(size <= UINT16_MAX);
    if (size == 0) return PERIDOT_OK;
    PD_TRY(pd_array_reserve(&s->bytes, &s->bytes_capacity, s->n_bytes, size, 1, "spellings"));
    PD_TRY(pd_array_reserve(&s->sorted, &s->sorted_capacity, s->n, 1, sizeof *s->sorted, "spellings"));
    memcpy(s->bytes + s->n_bytes, bytes, size);
    s->sorted[s->n++] = (struct pd_spelling){id, (uint32_t)s->n_bytes, (uint16_t)size, 0};
    s->n_bytes += size;
    s->longest = pd_max(s->longest, size);
    return PERIDOT_OK;
}

peridot_status pd_spellings_add_stop(struct pd_spellings *s, uint32_t id)
{
    PD_TRY(pd_array_reserve(&s->stops, &s->stops_capacity, s->n_stops, 1, sizeof *s->stops, "stop tokens"));
    s->stops[s->n_stops++] = id;
    return PERIDOT_OK;
}

/* What qsort compares: it has no argument for the bytes. */
struct key {
    const char *bytes;
    struct pd_spelling spelling;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, pd_min(x->spelling.size, y->spelling.size));
    if (order) return order;
    if (x->spelling.size != y->spelling.size) return x->spelling.size < y->spelling.size ? -1 : 1;
    return x->spelling.id < y->spelling.id ? -1 : 1;
}

/* The bytes too come in that order, as masks read them all from the first to the last. */
static peridot_status spellings_sort(struct pd_spellings *s)
{
    struct key *keys = malloc((s->n + 1) * sizeof *keys);
    char *bytes = malloc(s->n_bytes + 1), *at = bytes;
    if (!keys || !bytes) {
        free(keys);
        free(bytes);
        return pd_fail_alloc(s->n * sizeof *keys + s->n_bytes, "spellings");
    }
    for (size_t i = 0; i < s->n; i++) keys[i] = (struct key){s->bytes + s->sorted[i].offset, s->sorted[i]};
    qsort(keys, s->n, sizeof *keys, compare_keys);
    for (size_t i = 0; i < s->n; i++) {
        uint16_t shared = 0;
        while (i > 0 && shared < keys[i].spelling.size && shared < keys[i - 1].spelling.size &&
               keys[i].bytes[shared] == keys[i - 1].bytes[shared])
            shared++;
        s->sorted[i] = keys[i].spelling;
        s->sorted[i].shared = shared;
        s->sorted[i].offset = (uint32_t)(at - bytes);
        memcpy(at, keys[i].bytes, keys[i].spelling.size);
        at += keys[i].spelling.size;
    }
    free(keys);
    free(s->bytes);
    s->bytes = bytes;
    s->bytes_capacity = s->n_bytes;
    return PERIDOT_OK;
}

static bool spellings_is_plain(const char *bytes, size_t size)
{
    uint32_t code, n = 0;
    size_t length;
    for (size_t i = 0; i < size; i += length, n++) {
        if (pd_utf8_next(&code, &length, bytes + i, size - i) != PD_UTF8_CHARACTER) return false;
        if (code < 0x20 || code == '"' || code == '\\') return false;
    }
    return n <= PD_PLAIN_CHARS;
}

/* What others share is at least what all those between them do. */
static peridot_status find_plain(struct pd_spellings *s)
{
    uint16_t shared = UINT16_MAX;
    size_t n = 0;
    s->plain = calloc(s->n_pieces / 32 + (size_t)1, sizeof *s->plain);
    s->others = malloc((s->n + 1) * sizeof *s->others);
    if (!s->plain || !s->others) return pd_fail_alloc((s->n + 1) * sizeof *s->others, "spellings");
    for (size_t i = 0; i < s->n; i++) {
        const struct pd_spelling *spelling = &s->sorted[i];
        shared = (uint16_t)pd_min(shared, spelling->shared);
        if (spellings_is_plain(s->bytes + spelling->offset, spelling->size)) {
            s->plain[spelling->id / 32] |= 1u << (spelling->id % 32);
        } else {
            s->others[n] = *spelling;
            s->others[n++].shared = shared;
            shared = UINT16_MAX;
        }
    }
    s->n_plain = s->n - n;
    return PERIDOT_OK;
}

/* Byte-level vocabularies that were made of text alone lack bytes that it never had (SmolLM2's 0xf1 and 0xf2, of planes
 * where nothing is assigned): grammars leave out what would need them, so that a text never gets to where no token goes
 * on. */
static void find_lacking(struct pd_spellings *s)
{
    for (unsigned b = 0; b < 256; b++) s->lacking[b] = true;
    for (size_t i = 0; i < s->n; i++)
        if (s->sorted[i].size == 1) s->lacking[(uint8_t)s->bytes[s->sorted[i].offset]] = false;
    for (unsigned b = 0x20; b <= 0xf4; b++)
        s->lacks = s->lacks || (s->lacking[b] && b != 0x7f && b != 0xc0 && b != 0xc1);
}

peridot_status pd_spellings_finish(struct pd_spellings *s, uint32_t n_pieces)
{
    s->n_pieces = n_pieces;
    if (s->n_stops == 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the vocabulary has no stop token, with which JSON could end");
    find_lacking(s);
    PD_TRY(spellings_sort(s));
    s->of_id = malloc((n_pieces + (size_t)1) * sizeof *s->of_id);
    if (!s->of_id) return pd_fail_alloc(n_pieces * sizeof *s->of_id, "spellings");
    for (uint32_t i = 0; i < n_pieces; i++) s->of_id[i] = UINT32_MAX;
    for (size_t i = 0; i < s->n; i++) s->of_id[s->sorted[i].id] = (uint32_t)i;
    return find_plain(s);
}
