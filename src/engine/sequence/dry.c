/* DRY, "don't repeat yourself": tokens that would go on with a repetition, and how long it is. Where the last n tokens
 * of a text were in it before, the token that followed them there is one. No repetition reaches over a breaker: a text
 * such as a newline, or an image. What is taken from the logits is the sampler's work. */
#include "engine/sequence/sequence.h"

#include "base/base.h"
#include "engine/vision/vision.h"

#include <stdlib.h>
#include <string.h>

struct text {
    const struct pd_spellings *spellings;
    const int32_t *tokens;     /* [n] */
    uint32_t n;
    const char *const *breakers;
    size_t n_breakers;
};

/* The token i places before the last one. */
static int32_t back(const struct text *t, uint32_t i) { return t->tokens[t->n - 1 - i]; }

static const char *spell(size_t *size, const struct text *t, int32_t token)
{
    const struct pd_spellings *s = t->spellings;
    *size = 0;
    if (!s || token < 0 || (uint32_t)token >= s->n_pieces || s->of_id[token] == UINT32_MAX) return NULL;
    const struct pd_spelling *spelling = &s->sorted[s->of_id[token]];
    *size = spelling->size;
    return s->bytes + spelling->offset;
}

/* Whether the text goes on with the breaker from byte `at` of the token i places before the last one. *end becomes the
 * place of the token in which it ends. */
static bool goes_on(uint32_t *end, const struct text *t, uint32_t i, size_t at, const char *breaker)
{
    for (;; at = 0, i--) {
        size_t size;
        const char *bytes = spell(&size, t, back(t, i));
        for (; at < size && *breaker; at++)
            if (bytes[at] != *breaker++) return false;
        *end = i;
        if (!*breaker) return true;
        if (i == 0) return false;
    }
}

/* Whether a breaker begins in the token i places before the last one. *end becomes the place of the token in which the
 * last of them ends. */
static bool breaks(uint32_t *end, const struct text *t, uint32_t i)
{
    size_t size;
    uint32_t at_end;
    bool found = pd_is_image_row(back(t, i));
    *end = i;
    spell(&size, t, back(t, i));
    for (size_t at = 0; at < size; at++)
        for (size_t k = 0; k < t->n_breakers; k++) {
            if (!t->breakers[k][0] || !goes_on(&at_end, t, i, at, t->breakers[k])) continue;
            *end = (uint32_t)(found ? pd_min(*end, at_end) : at_end);
            found = true;
        }
    return found;
}

/* Tokens after the last breaker; n_most where there are more. A breaker that ends among those may begin before them, by
 * as many tokens with bytes as it has bytes. */
static uint32_t find_limit(const struct text *t, uint32_t n_most)
{
    size_t size, n_before = 0, longest = 1;   /* at least: an image is one, too */
    uint32_t end;
    for (size_t k = 0; k < t->n_breakers; k++) longest = (size_t)pd_max(longest, strlen(t->breakers[k]));
    for (uint32_t i = 0; i < t->n && n_before < longest; i++) {
        if (breaks(&end, t, i)) return (uint32_t)pd_min(end, n_most);
        spell(&size, t, back(t, i));
        n_before += i >= n_most && size;
    }
    return n_most;
}

/* A token with a breaker in it. */
static bool is_breaker(const struct text *t, int32_t token)
{
    struct text alone = *t;
    uint32_t end;
    alone.tokens = &token;
    alone.n = 1;
    return breaks(&end, &alone, 0);
}

/* at[i].length = tokens that those before place i, that one included, have in common with the end of the text: the Z
 * function of the text read backwards. The longest of them. */
static uint32_t find_lengths(struct pd_dry_pair *at, const struct text *t)
{
    uint32_t first = 0, end = 0, longest = 0;   /* of the part furthest back that equals the end */
    for (uint32_t i = 1; i < t->n; i++) {
        uint32_t n = i < end ? (uint32_t)pd_min(end - i, at[i - first].length) : 0;
        while (i + n < t->n && back(t, i + n) == back(t, n)) n++;
        at[i].length = n;
        longest = (uint32_t)pd_max(longest, n);
        if (i + n > end) first = i, end = i + n;
    }
    return longest;
}

/* By token, and the longest first. */
static int compare(const void *left, const void *right)
{
    const struct pd_dry_pair *a = left, *b = right;
    if (a->token != b->token) return a->token < b->token ? -1 : 1;
    return a->length > b->length ? -1 : a->length < b->length;
}

static uint32_t keep_longest(struct pd_dry_pair *at, uint32_t n, const struct text *t)
{
    uint32_t n_kept = 0;
    qsort(at, n, sizeof *at, compare);
    for (uint32_t i = 0; i < n; i++)
        if ((i == 0 || at[i].token != at[i - 1].token) && !is_breaker(t, at[i].token)) at[n_kept++] = at[i];
    return n_kept;
}

static peridot_status grow(struct pd_dry *dry, uint32_t n)
{
    if (n <= dry->capacity) return PERIDOT_OK;
    uint32_t capacity = n + n / 2;
    struct pd_dry_pair *at = realloc(dry->at, capacity * sizeof *at);
    if (!at) return pd_fail_alloc(capacity * sizeof *at, "repetitions");
    dry->at = at;
    dry->capacity = capacity;
    return PERIDOT_OK;
}

peridot_status pd_dry_find(struct pd_dry *dry, const peridot_sampling *p, const struct pd_spellings *spellings,
                           const int32_t *tokens, uint32_t n)
{
    static const char *const breakers[] = {"\n", ":", "\"", "*"};
    uint32_t n_back = p->dry_last_n ? (uint32_t)pd_min(n, p->dry_last_n) : n, found = 0;
    uint32_t least = pd_dry_least(p);
    const struct text t = {spellings, tokens + (n - n_back), n_back, p->dry_breakers ? p->dry_breakers : breakers,
                           p->dry_breakers ? p->n_dry_breakers : PD_COUNT(breakers)};
    dry->n = 0;
    if (n_back <= least || find_limit(&t, least) < least) return PERIDOT_OK;
    PD_TRY(grow(dry, n_back));
    uint32_t limit = find_limit(&t, find_lengths(dry->at, &t));
    for (uint32_t i = 1; i < n_back; i++) {   /* found < i: what is overwritten has been read */
        struct pd_dry_pair pair = {back(&t, i - 1), (uint32_t)pd_min(dry->at[i].length, limit)};
        if (pair.length >= least && pair.token >= 0) dry->at[found++] = pair;
    }
    dry->n = keep_longest(dry->at, found, &t);
    return PERIDOT_OK;
}
