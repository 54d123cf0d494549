/* Hashes as files and seals have them: digest.c by GnuTLS, digest_openssl.c where there is OpenSSL and no GnuTLS,
 * windows.c by what Windows has. */
#include "base.h"

#include <gnutls/crypto.h>
#include <stdlib.h>

struct cmd_hash {
    gnutls_hash_hd_t handle;
};

struct cmd_hash *cmd_hash_begin(bool sha256)
{
    struct cmd_hash *hash = calloc(1, sizeof *hash);
    if (hash && gnutls_hash_init(&hash->handle, sha256 ? GNUTLS_DIG_SHA256 : GNUTLS_DIG_SHA1) == 0) return hash;
    free(hash);
    return NULL;
}

void cmd_hash_add(struct cmd_hash *hash, const void *data, size_t size) { gnutls_hash(hash->handle, data, size); }

void cmd_hash_end(struct cmd_hash *hash, unsigned char out[32])
{
    if (hash) gnutls_hash_deinit(hash->handle, out);
    free(hash);
}
