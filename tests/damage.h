/* What a broken kernel or driver would leave in a trial's memory, planted there after the run of a case. */
#ifndef DAMAGE_H
#define DAMAGE_H

#include "selftest/selftest_.h"

/* The first word from `from` on that the kernel wrote; `used` when there is none. */
static inline uint32_t written_word(const struct pd_trial *t, uint32_t from)
{
    while (from < t->used && t->now[from] == t->image[from]) from++;
    return from;
}

/* The word in the middle of what was written, as other words may be of no account (rows that are only scratch). */
static inline uint32_t middle_word(const struct pd_trial *t)
{
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < t->used; i++) n += t->now[i] != t->image[i];
    for (uint32_t i = 0; i < n / 2 + 1; i++) at = written_word(t, i ? at + 1 : 0);
    return at;
}

/* Everything that was written is off by an eighth or more, and signs are wrong. */
static inline void damage_numbers(struct pd_trial *t, void *user)
{
    (void)user;
    for (uint32_t i = 0; i < t->used; i++)
        if (t->now[i] != t->image[i]) t->now[i] ^= 0x80a00080u;
}

/* One number is. */
static inline void damage_one(struct pd_trial *t, void *user)
{
    (void)user;
    uint32_t i = middle_word(t);
    if (i < t->used) t->now[i] ^= 0x00c01000u;
}

/* Nothing was written. */
static inline void damage_nothing(struct pd_trial *t, void *user)
{
    (void)user;
    memcpy(t->now, t->image, 4 * (size_t)t->used);
}

/* A word before the first buffer was written. */
static inline void damage_guard(struct pd_trial *t, void *user)
{
    (void)user;
    t->now[t->buffers[0].start - 1] = 0;
}

#endif
