/* Hashes by OpenSSL, for systems and archives without GnuTLS: the same functions as in digest.c. */
#include "base.h"

#include <openssl/evp.h>
#include <stdlib.h>

struct cmd_hash {
    EVP_MD_CTX *context;
};

struct cmd_hash *cmd_hash_begin(bool sha256)
{
    struct cmd_hash *hash = calloc(1, sizeof *hash);
    if (hash && (hash->context = EVP_MD_CTX_new())
        && EVP_DigestInit_ex(hash->context, sha256 ? EVP_sha256() : EVP_sha1(), NULL) == 1) return hash;
    cmd_hash_end(hash, NULL);
    return NULL;
}

void cmd_hash_add(struct cmd_hash *hash, const void *data, size_t size)
{
    EVP_DigestUpdate(hash->context, data, size);
}

void cmd_hash_end(struct cmd_hash *hash, unsigned char out[32])
{
    if (!hash) return;
    if (out) EVP_DigestFinal_ex(hash->context, out, NULL);
    EVP_MD_CTX_free(hash->context);
    free(hash);
}
