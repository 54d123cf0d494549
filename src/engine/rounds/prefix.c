/* The sequences of a schedule: those of its requests, and those that are kept after their requests have ended, so that
 * a prompt which begins like one of them is only evaluated from there on. Kept ones are idle; they are freed, the least
 * recently used first, when sequences or pages are short.
 *
 * A kept sequence that would lose a few tokens at most goes on itself; of others there is a fork. Layers with windows
 * pass over the end of a long system prompt, and another conversation could not begin there: so the place where prompts
 * were found to part is marked from then on (share_at). */
#include "engine/rounds/rounds.h"

#include "base/base.h"

enum { TAIL = 32 };   /* tokens of a kept sequence that may be cut off for a prompt that goes on from it */

/* ---- kept sequences ---- */

static bool is_kept(const struct pd_prefix *p) { return p->sequence && !p->request; }

static struct pd_prefix *oldest_kept(struct pd_prefix_cache *c, const struct pd_prefix *but)
{
    struct pd_prefix *oldest = NULL;
    for (uint32_t i = 0; i < PD_MAX_SEQUENCES; i++) {
        struct pd_prefix *p = &c->at[i];
        if (is_kept(p) && p != but && (!oldest || p->used_s < oldest->used_s)) oldest = p;
    }
    return oldest;
}

static void clear(struct pd_prefix_cache *c, struct pd_prefix *p)
{
    pd_session_remove(c->s, p->sequence);
    *p = (struct pd_prefix){0};
}

bool pd_prefix_make_room(struct pd_prefix_cache *c, uint64_t n_positions)
{
    const struct pd_cache *cache = &c->s->set.cache;
    struct pd_prefix *p;
    while (pd_cache_free_positions(cache) < n_positions && (p = oldest_kept(c, NULL)) != NULL) clear(c, p);
    return pd_cache_free_positions(cache) >= n_positions;
}

uint32_t pd_prefix_n_kept(const struct pd_prefix_cache *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < PD_MAX_SEQUENCES; i++) n += is_kept(&c->at[i]);
    return n;
}

uint32_t pd_prefix_n_taken(const struct pd_prefix_cache *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < PD_MAX_SEQUENCES; i++) n += c->at[i].request != NULL;
    return n;
}

/* ---- a sequence for a request ---- */

static bool session_is_full(const struct pd_session *s)
{
    for (uint32_t i = 0; i < s->set.n_max; i++)
        if (!s->set.at[i]) return false;
    return true;
}

static void make_sequence(struct pd_prefix_cache *c, const struct pd_prefix *but)
{
    struct pd_prefix *p = session_is_full(c->s) ? oldest_kept(c, but) : NULL;
    if (p) clear(c, p);
}

void pd_prefix_make_sequence(struct pd_prefix_cache *c) { make_sequence(c, NULL); }

static struct pd_prefix *free_place(struct pd_prefix_cache *c)
{
    uint32_t i = 0;
    while (c->at[i].sequence) i++;   /* a session has no more sequences than there are places */
    return &c->at[i];
}

static size_t common(const struct pd_sequence *q, const struct pd_request *r, size_t most)
{
    size_t n = 0, end = pd_min(q->pos, most);
    while (n < end && q->tokens[n] == r->tokens[n]) n++;
    return pd_image_border(r->tokens, (uint32_t)n, (uint32_t)r->n_tokens);
}

/* *n tokens of it are the request's, with the same adapters. NULL: none is worth it. */
static struct pd_prefix *find_prefix(size_t *n, struct pd_prefix_cache *c, const struct pd_request *r, size_t most)
{
    struct pd_prefix *best = NULL;
    *n = PD_PREFIX_WORTH - 1;
    for (uint32_t i = 0; i < PD_MAX_SEQUENCES; i++) {
        struct pd_prefix *p = &c->at[i];
        bool may_share = p->sequence && pd_scales_equal(&p->sequence->scales, &r->scales);
        size_t same = may_share ? common(p->sequence, r, most) : 0;
        if (same < *n || (same == *n && (!best || p->request))) continue;   /* of equals one that is idle */
        *n = same;
        best = p;
    }
    return best;
}

static peridot_status prefix_take(struct pd_prefix *p, struct pd_request *r, uint32_t n_before)
{
    p->request = r;
    p->n_before = n_before;
    p->used_s = pd_now();
    r->prompt.sequence = p->sequence;
    return PERIDOT_OK;
}

/* Goes back to what both have. Where windows have passed over that, to what is left of it. */
static peridot_status cut(struct pd_prefix_cache *c, struct pd_prefix *p, struct pd_request *r, size_t n)
{
    uint32_t kept = 0;
    (void)!pd_session_truncate(c->s, p->sequence, (uint32_t)n, &kept);   /* at worst to none */
    return prefix_take(p, r, kept);
}

peridot_status pd_prefix_take(struct pd_prefix_cache *c, struct pd_request *r, size_t most)
{
    size_t n;
    struct pd_prefix *best = find_prefix(&n, c, r, most), *place;
    struct pd_sequence *q;
    if (best && is_kept(best) && n + TAIL >= best->sequence->pos) return cut(c, best, r, n);
    make_sequence(c, best);
    uint32_t at = best ? pd_sequence_nearest(best->sequence, (uint32_t)n) : 0;
    if (best) r->share_at = n;   /* what is not there yet will be from now on */
    bool forks = at >= PD_PREFIX_WORTH && pd_session_fork(&q, c->s, best->sequence, at) == PERIDOT_OK;
    if (!forks && best && is_kept(best)) return cut(c, best, r, n);
    if (!forks) PD_TRY(pd_session_add(&q, c->s));
    q->scales = r->scales;
    place = free_place(c);
    place->sequence = q;
    return prefix_take(place, r, 0);
}

static uint32_t place_of(const struct pd_prefix_cache *c, const struct pd_request *r)
{
    uint32_t i = 0;
    while (i < PD_MAX_SEQUENCES && c->at[i].request != r) i++;
    return i;
}

bool pd_prefix_has(const struct pd_prefix_cache *c, const struct pd_request *r)
{
    return place_of(c, r) < PD_MAX_SEQUENCES;
}

void pd_prefix_release(struct pd_prefix_cache *c, struct pd_request *r, enum pd_prefix_keep keep)
{
    uint32_t unused;
    struct pd_prefix *p = &c->at[place_of(c, r)];
    struct pd_sequence *q = p->sequence;
    p->request = NULL;
    p->used_s = pd_now();
    r->prompt.sequence = NULL;
    pd_decoder_leave(&c->s->decoder, q);
    (void)!pd_session_set_sampling(c->s, q, NULL);   /* what it draws by is of no more use */
    if (keep == PD_KEEP_BEFORE && pd_session_truncate(c->s, q, p->n_before, &unused) != PERIDOT_OK) keep = PD_KEEP_NONE;
    if (keep == PD_KEEP_NONE || q->pos < PD_PREFIX_WORTH) clear(c, p);
}
