/* SipHash-1-3 (Aumasson and Bernstein), for hash tables of what comes from files: who does not know the key cannot make
 * entries that collide. */
#ifndef PD_BASE_SIPHASH_H
#define PD_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct pd_hash_key {
    uint64_t k[2];
};

/* A key that nobody can know: another one for each table. What a table is used for must not depend on it. */
struct pd_hash_key pd_hash_key_make(void);
uint64_t pd_siphash(const struct pd_hash_key *key, const void *data, size_t size);

#endif
