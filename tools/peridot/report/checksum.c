/* The checksum of a report: SHA-256 (FIPS 180-4) of its text without the white space outside of strings and without the
 * key itself, which is the last one. So numbers are hashed as they are written, and any language checks it in some
 * lines. It shows that a report is as it was measured, and not by whom: who means to can compute it anew. It has a hash
 * of its own, as base's is GnuTLS's, OpenSSL's or Windows', which peridot-report needs nothing else of. */
#include "../base/base.h"
#include "report_.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t first_state[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void add_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8
            | block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3)
            + (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t t = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6]))
            + constants[i] + w[i];
        uint32_t u = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22))
            + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t;
        s[0] = t + u;
    }
    for (int i = 0; i < 8; i++) state[i] += s[i];
}

/* Writes behind the text: it has room for 72 bytes more. */
static void sha256(char out[REPORT_CHECKSUM], unsigned char *text, size_t size)
{
    const uint64_t n_bits = 8 * (uint64_t)size;
    uint32_t state[8];
    memcpy(state, first_state, sizeof state);
    text[size++] = 0x80;
    while (size % 64 != 56) text[size++] = 0;
    for (int i = 56; i >= 0; i -= 8) text[size++] = (unsigned char)(n_bits >> i);
    for (size_t at = 0; at < size; at += 64) add_block(state, text + at);
    for (int i = 0; i < 8; i++) snprintf(out + 8 * i, 9, "%08x", (unsigned)state[i]);
}

/* Removes white space outside of strings; the new size. */
static size_t compact(char *out, const char *json, size_t size)
{
    size_t n = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (!quoted && strchr(" \t\r\n", json[i]) && json[i]) continue;
        if (json[i] == '"') quoted = !quoted;
        else if (quoted && json[i] == '\\' && i + 1 < size) out[n++] = json[i++];
        out[n++] = json[i];
    }
    return n;
}

static const char key[] = ",\"checksum\":\"";

peridot_status report_checksum(char out[REPORT_CHECKSUM], const char *json, size_t size)
{
    const size_t tail = sizeof key - 1 + REPORT_CHECKSUM - 1 + 2;   /* with "} behind it */
    char *text = malloc(size + 72);
    if (!text) return pd_fail_alloc(size + 72, "text of a report");
    size_t n = compact(text, json, size);
    if (n > tail && memcmp(text + n - tail, key, sizeof key - 1) == 0) {
        n -= tail;
        text[n++] = '}';
    }
    sha256(out, (unsigned char *)text, n);
    free(text);
    return PERIDOT_OK;
}

peridot_status report_add_checksum(char **json, size_t *size)
{
    char sum[REPORT_CHECKSUM], *end = strrchr(*json, '}');
    PD_TRY(report_checksum(sum, *json, *size));
    while (end > *json && strchr(" \n", end[-1])) end--;
    const size_t before = (size_t)(end - *json), most = before + sizeof sum + 32;
    char *text = malloc(most);
    if (!text) return pd_fail_alloc(most, "text of a report");
    *size = (size_t)snprintf(text, most, "%.*s,\n  \"checksum\": \"%s\"\n}", (int)before, *json, sum);
    free(*json);
    *json = text;
    return PERIDOT_OK;
}
