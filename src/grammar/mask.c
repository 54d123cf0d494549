/* Masks: all spellings of a vocabulary are followed from where a walk is, each beginning once. Where that leads is
 * remembered: sets of threads are numbered, and a byte leads from one to another by a table, which is filled as it is
 * used. A byte that was taken before from there is thus a look-up, and most of a vocabulary's 600,000 bytes are. Within
 * a string that is free, for some characters at least, plain spellings are allowed at once, and the others followed. */
#include "grammar/grammar.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NODES 1024             /* 1 MB; when there are as many, all are forgotten before the next spelling */
#define MAX_CALLS 2048             /* the same */
#define UNKNOWN 0
#define DEAD 1
#define THREAD_COST 16             /* steps, in which a thread follows a byte */
#define PASSED 64                  /* spellings that are passed over in as many steps */

/* Where a walk may be: threads whose calls are those of the job, each (to, outer) once. */
struct node {
    struct pd_trail_level level;
    uint32_t next[256];            /* UNKNOWN, DEAD, or node + 2 */
};

struct pd_mask_job {
    const peridot_grammar *g;
    struct pd_mask *mask;
    struct node *nodes;
    size_t n_nodes, nodes_capacity;
    struct pd_trail_call *calls;
    size_t n_calls, calls_capacity;
    uint32_t *node_slots, *call_slots;   /* [n_slots]: number + 1 by hash; 0: free */
    size_t n_slots;
    uint32_t *path;                      /* [longest + 1]: nodes after each byte of the present spelling */
    uint32_t good;                       /* of which the first so many are */
    enum { LOOKING, PLAIN, ALL } kind;   /* all plain spellings are allowed, and others are followed; all are */
    uint32_t n_chars, plain;             /* characters of a string that were looked at; the node after them */
    size_t at;                           /* the spelling that is next */
};

void pd_mask_job_free(struct pd_mask_job *job)
{
    if (!job) return;
    free(job->mask);
    free(job->nodes);
    free(job->calls);
    free(job->node_slots);
    free(job->call_slots);
    free(job->path);
    free(job);
}

/* ---- nodes ---- */

static uint32_t mix(uint64_t h)
{
    h *= 0xd6e8feb86659fd93u;
    return (uint32_t)(h >> 40);
}

/* The number of a call that goes on from others which have theirs. There is room for it. */
static uint32_t intern_call(struct pd_mask_job *job, struct pd_trail_call call)
{
    size_t slot = mix((uint64_t)call.to << 32 | call.outer) % job->n_slots;
    for (uint32_t at; (at = job->call_slots[slot]) != 0; slot = (slot + 1) % job->n_slots)
        if (job->calls[at - 1].to == call.to && job->calls[at - 1].outer == call.outer) return at - 1;
    job->calls[job->n_calls] = call;
    job->call_slots[slot] = (uint32_t)++job->n_calls;
    return (uint32_t)job->n_calls - 1;
}

/* The node of a level whose calls have numbers. There is room for it. */
static uint32_t intern_node(struct pd_mask_job *job, const struct pd_trail_level *level)
{
    size_t size = level->n * sizeof level->threads[0];
    size_t slot = mix(pd_hash(0, level->threads, size)) % job->n_slots;
    for (uint32_t at; (at = job->node_slots[slot]) != 0; slot = (slot + 1) % job->n_slots) {
        const struct pd_trail_level *other = &job->nodes[at - 1].level;
        if (other->n == level->n && memcmp(other->threads, level->threads, size) == 0) return at - 1;
    }
    job->nodes[job->n_nodes] = (struct node){.level = *level};
    job->node_slots[slot] = (uint32_t)++job->n_nodes;
    return (uint32_t)job->n_nodes - 1;
}

static peridot_status reserve(struct pd_mask_job *job)
{
    PD_TRY(pd_array_reserve(&job->nodes, &job->nodes_capacity, job->n_nodes, 1, sizeof *job->nodes, "a mask"));
    return pd_array_reserve(&job->calls, &job->calls_capacity, job->n_calls, PD_MAX_THREADS, sizeof *job->calls,
                            "a mask");
}

/* Forgets all nodes but that of the walk. */
static peridot_status begin_nodes(struct pd_mask_job *job)
{
    const struct pd_walk *w = &job->mask->walk;
    struct pd_trail_level level = {.n = w->n};
    memset(job->node_slots, 0, job->n_slots * sizeof *job->node_slots);
    memset(job->call_slots, 0, job->n_slots * sizeof *job->call_slots);
    job->n_nodes = 0;
    job->n_calls = 1;              /* none */
    PD_TRY(pd_array_reserve(&job->calls, &job->calls_capacity, 0, 1 + PD_MAX_THREADS * (PD_MAX_CALLS + 1),
                            sizeof *job->calls, "a mask"));
    PD_TRY(reserve(job));
    job->calls[0] = (struct pd_trail_call){0};
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t call = 0;
        for (uint32_t k = 0; k < w->threads[i].n_calls; k++)
            call = intern_call(job, (struct pd_trail_call){w->threads[i].returns[k], call, k + 1});
        level.threads[i] = (struct pd_trail_thread){w->threads[i].state, call};
    }
    job->path[0] = intern_node(job, &level);
    if (job->kind == LOOKING) job->plain = job->path[0];
    return PERIDOT_OK;
}

/* Where a byte leads to that was not taken from there before: DEAD, or node + 2. */
static peridot_status find_next(uint32_t *next, struct pd_mask_job *job, uint32_t from, uint8_t byte)
{
    struct pd_trail_level level;
    PD_TRY(reserve(job));
    bool goes_on = pd_level_step(&level, &job->g->rules, job->calls, (uint32_t)job->n_calls, &job->nodes[from].level,
                                 byte);
    struct pd_trail_call begun[PD_MAX_THREADS];
    uint32_t n = (uint32_t)job->n_calls;
    memcpy(begun, job->calls + n, (level.n_calls - n) * sizeof *begun);
    for (uint32_t i = 0; i < level.n; i++)
        if (level.threads[i].call >= n) level.threads[i].call = intern_call(job, begun[level.threads[i].call - n]);
    *next = job->nodes[from].next[byte] = goes_on ? intern_node(job, &level) + 2 : DEAD;
    return PERIDOT_OK;
}

/* *next: where a byte leads; *steps counts down. */
static peridot_status step(uint32_t *next, struct pd_mask_job *job, uint32_t from, uint8_t byte, uint64_t *steps)
{
    const struct pd_trail_level *level = &job->nodes[from].level;
    uint64_t used = 1;
    *next = job->nodes[from].next[byte];
    if (*next == UNKNOWN) {
        for (uint32_t i = 0; i < level->n; i++)
            used += THREAD_COST + job->g->rules.states[level->threads[i].state].n_calls / 4;
        PD_TRY(find_next(next, job, from, byte));
    }
    *steps -= pd_min(*steps, used);
    return PERIDOT_OK;
}

/* ---- plain spellings ---- */

/* Where all bytes of low .. high lead from a node; DEAD: not to one. */
static peridot_status step_all(uint32_t *next, struct pd_mask_job *job, uint32_t from, const uint8_t range[2],
                               uint64_t *steps)
{
    uint32_t to;
    PD_TRY(step(next, job, from, range[0], steps));
    for (unsigned byte = range[0] + 1u; byte <= range[1] && *next != DEAD; byte++) {
        PD_TRY(step(&to, job, from, (uint8_t)byte, steps));
        if (to != *next) *next = DEAD;
    }
    return PERIDOT_OK;
}

/* Where all characters that a string holds as they are lead from a node, in UTF-8 (RFC 3629); DEAD: not to one. */
static peridot_status step_plain(uint32_t *next, struct pd_mask_job *job, uint32_t from, uint64_t *steps)
{
    static const uint8_t chars[][4][2] = {
        {{0x20, '"' - 1}}, {{'"' + 1, '\\' - 1}}, {{'\\' + 1, 0x7f}}, {{0xc2, 0xdf}, {0x80, 0xbf}},
        {{0xe0, 0xe0}, {0xa0, 0xbf}, {0x80, 0xbf}}, {{0xe1, 0xec}, {0x80, 0xbf}, {0x80, 0xbf}},
        {{0xed, 0xed}, {0x80, 0x9f}, {0x80, 0xbf}}, {{0xee, 0xef}, {0x80, 0xbf}, {0x80, 0xbf}},
        {{0xf0, 0xf0}, {0x90, 0xbf}, {0x80, 0xbf}, {0x80, 0xbf}},
        {{0xf1, 0xf3}, {0x80, 0xbf}, {0x80, 0xbf}, {0x80, 0xbf}},
        {{0xf4, 0xf4}, {0x80, 0x8f}, {0x80, 0xbf}, {0x80, 0xbf}}};
    *next = UNKNOWN;
    for (size_t i = 0; i < PD_COUNT(chars) && *next != DEAD; i++) {
        uint32_t to = from + 2;
        for (int k = 0; k < 4 && chars[i][k][0] && to != DEAD; k++)
            PD_TRY(step_all(&to, job, to - 2, chars[i][k], steps));
        if (i == 0) *next = to;
        if (to != *next) *next = DEAD;
    }
    return PERIDOT_OK;
}

static void allow(struct pd_mask *m, uint32_t id)
{
    m->bits[id / 32] |= 1u << (id % 32);
    m->n_allowed++;
}

static void allow_plain(struct pd_mask_job *job)
{
    const struct pd_spellings *s = job->g->spellings;
    job->kind = PLAIN;
    for (uint32_t i = 0; i <= s->n_pieces / 32; i++) job->mask->bits[i] |= s->plain[i];
    job->mask->n_allowed += (uint32_t)s->n_plain;
}

/* Within a string all plain spellings are allowed where each character of so many leads to one node. */
static peridot_status look_for_plain(struct pd_mask_job *job, uint64_t *steps)
{
    for (; job->kind == LOOKING && *steps > 0; job->n_chars++) {
        uint32_t next;
        PD_TRY(step_plain(&next, job, job->plain, steps));
        if (next == DEAD) job->kind = ALL;
        else if (next - 2 == job->plain || job->n_chars + 1 == PD_PLAIN_CHARS) allow_plain(job);
        job->plain = next - 2;
    }
    return PERIDOT_OK;
}

/* ---- spellings ---- */

/* Follows the bytes of a spelling from `good` on, as far as they go. */
static peridot_status mask_follow(struct pd_mask_job *job, const struct pd_spelling *spelling, uint64_t *steps)
{
    const uint8_t *bytes = (const uint8_t *)job->g->spellings->bytes + spelling->offset;
    *steps -= *steps > 0;
    while (job->good < spelling->size) {
        uint32_t next;
        PD_TRY(step(&next, job, job->path[job->good], bytes[job->good], steps));
        if (next == DEAD) break;
        job->path[++job->good] = next - 2;
    }
    return PERIDOT_OK;
}

/* The nodes of the present path are found again. */
static peridot_status forget(struct pd_mask_job *job, const struct pd_spelling *spelling, uint64_t *steps)
{
    struct pd_spelling known = *spelling;
    known.size = (uint16_t)job->good;
    job->good = 0;
    PD_TRY(begin_nodes(job));
    return mask_follow(job, &known, steps);
}

/* Those that are to be followed, once that is known. */
static size_t list_spellings(const struct pd_spelling **out, const struct pd_mask_job *job)
{
    const struct pd_spellings *s = job->g->spellings;
    *out = job->kind == PLAIN ? s->others : s->sorted;
    return job->kind == PLAIN ? s->n - s->n_plain : s->n;
}

static bool is_finished(const struct pd_mask_job *job)
{
    const struct pd_spelling *spellings;
    return job->kind != LOOKING && job->at == list_spellings(&spellings, job);
}

/* Where a byte cannot follow, all spellings that begin with it so far are passed over. */
static peridot_status mask_work(struct pd_mask_job *job, uint64_t *steps)
{
    PD_TRY(look_for_plain(job, steps));
    const struct pd_spelling *spellings;
    size_t n = list_spellings(&spellings, job);
    for (; job->kind != LOOKING && job->at < n && *steps > 0; job->at++) {
        const struct pd_spelling *spelling = &spellings[job->at];
        *steps -= job->at % PASSED == 0;
        if (spelling->shared > job->good) continue;
        job->good = spelling->shared;
        if (job->n_nodes >= MAX_NODES || job->n_calls >= MAX_CALLS) PD_TRY(forget(job, spelling, steps));
        PD_TRY(mask_follow(job, spelling, steps));
        if (job->good == spelling->size) allow(job->mask, spelling->id);
    }
    return PERIDOT_OK;
}

/* ---- masks that are kept ---- */

/* Bytes of a thread that say something. */
static size_t thread_size(const struct pd_walk_thread *t)
{
    return offsetof(struct pd_walk_thread, returns) + sizeof t->returns[0] * t->n_calls;
}

static uint64_t hash_walk(const struct pd_walk *w)
{
    uint64_t h = pd_hash(0, &w->n, sizeof w->n);
    for (uint32_t i = 0; i < w->n; i++) h = pd_hash(h, &w->threads[i], thread_size(&w->threads[i]));
    return h;
}

static bool mask_is_same(const struct pd_walk *a, const struct pd_walk *b)
{
    if (a->n != b->n) return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct pd_walk_thread *x = &a->threads[i], *y = &b->threads[i];
        if (x->n_calls != y->n_calls || memcmp(x, y, thread_size(x)) != 0) return false;
    }
    return true;
}

bool pd_mask_is_of(const struct pd_mask *m, const struct pd_walk *w) { return mask_is_same(&m->walk, w); }

/* The mask of a walk, if it is kept; else *free_slot is where it can be, or NULL. */
static const struct pd_mask *find_mask(struct pd_mask *_Atomic **free_slot, const peridot_grammar *g, uint64_t key,
                                       const struct pd_walk *w)
{
    uint32_t slot = (uint32_t)(key ^ key >> 32) % PD_N_MASKS;
    *free_slot = NULL;
    for (uint32_t tries = 0; tries < 8 && !*free_slot; tries++, slot = (slot + 1) % PD_N_MASKS) {
        const struct pd_mask *m = atomic_load(&g->masks[slot]);
        if (!m) *free_slot = &g->masks[slot];
        if (m && m->key == key && mask_is_same(&m->walk, w)) return m;
    }
    return NULL;
}

static peridot_status mask_begin(struct pd_mask_job **out, const peridot_grammar *g, uint64_t key,
                                 const struct pd_walk *w)
{
    const struct pd_spellings *s = g->spellings;
    struct pd_mask_job *job = calloc(1, sizeof *job);
    if (!job) return pd_fail_alloc(sizeof *job, "a mask of tokens");
    *out = job;
    job->g = g;
    job->mask = calloc(1, sizeof *job->mask + sizeof(uint32_t) * (s->n_pieces / 32 + (size_t)1));
    job->n_slots = 4 * MAX_CALLS + 2 * PD_MAX_THREADS * s->longest;   /* two for each that there may be */
    job->node_slots = malloc(job->n_slots * sizeof *job->node_slots);
    job->call_slots = malloc(job->n_slots * sizeof *job->call_slots);
    job->path = malloc((s->longest + 1) * sizeof *job->path);
    if (!job->mask || !job->node_slots || !job->call_slots || !job->path)
        return pd_fail_alloc(s->n_pieces / 8, "a mask of tokens");
    job->mask->key = key;
    job->mask->walk = *w;
    if (pd_walk_is_complete(w, &g->rules))
        for (size_t i = 0; i < s->n_stops; i++) allow(job->mask, s->stops[i]);
    return begin_nodes(job);
}

peridot_status pd_grammar_mask_some(const struct pd_mask **out, struct pd_mask **made, struct pd_mask_job **job,
                                    const peridot_grammar *g, const struct pd_walk *w, uint64_t *steps)
{
    uint64_t key = hash_walk(w);
    struct pd_mask *_Atomic *free_slot;
    struct pd_mask *none = NULL;
    peridot_status status = PERIDOT_OK;
    *made = NULL;
    *out = find_mask(&free_slot, g, key, w);
    if (*job && ((*job)->g != g || !pd_mask_is_of((*job)->mask, w))) {
        pd_mask_job_free(*job);
        *job = NULL;
    }
    if (!*out && !*job) status = mask_begin(job, g, key, w);
    if (!*out && status == PERIDOT_OK) status = mask_work(*job, steps);
    if (!*out && status == PERIDOT_OK && !is_finished(*job)) return PERIDOT_OK;
    if (!*out && status == PERIDOT_OK) {
        struct pd_mask *m = (*job)->mask;
        (*job)->mask = NULL;
        *out = m;
        if (!free_slot || !atomic_compare_exchange_strong(free_slot, &none, m)) *made = m;
    }
    pd_mask_job_free(*job);
    *job = NULL;
    return status;
}

peridot_status pd_grammar_mask(const struct pd_mask **out, struct pd_mask **made, const peridot_grammar *g,
                               const struct pd_walk *w)
{
    uint64_t steps = UINT64_MAX;
    struct pd_mask_job *job = NULL;
    return pd_grammar_mask_some(out, made, &job, g, w, &steps);
}
