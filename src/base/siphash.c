/* SipHash-1-3 (Aumasson and Bernstein), for hash tables of what comes from files: who does not know the key cannot make
 * entries that collide. */
#include "base/base.h"

#include <string.h>

struct state {
    uint64_t v[4];
};

static uint64_t rotate(uint64_t x, int n) { return x << n | x >> (64 - n); }

static void mix(struct state *s)
{
    uint64_t *v = s->v;
    v[0] += v[1], v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0], v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2], v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static void add_word(struct state *s, uint64_t word)
{
    s->v[3] ^= word;
    mix(s);
    s->v[0] ^= word;
}

/* Words are those of the machine: a table is never seen by another one. */
uint64_t pd_siphash(const struct pd_hash_key *key, const void *data, size_t size)
{
    struct state s = {{key->k[0] ^ 0x736f6d6570736575u, key->k[1] ^ 0x646f72616e646f6du,
        key->k[0] ^ 0x6c7967656e657261u, key->k[1] ^ 0x7465646279746573u}};
    const uint8_t *bytes = data;
    uint64_t word, last = (uint64_t)size << 56;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        memcpy(&word, bytes + i, 8);
        add_word(&s, word);
    }
    word = 0;
    if (i < size) memcpy(&word, bytes + i, size - i);
    add_word(&s, last | word);
    s.v[2] ^= 0xff;
    for (int n = 0; n < 3; n++) mix(&s);
    return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

struct pd_hash_key pd_hash_key_make(void)
{
    struct pd_hash_key key;
    pd_random_bytes(&key, sizeof key);
    return key;
}
