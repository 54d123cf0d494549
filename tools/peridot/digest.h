/* Hashes as files and seals have them: digest.c by GnuTLS, windows.c by what Windows has. */
#ifndef PERIDOT_COMMAND_DIGEST_H
#define PERIDOT_COMMAND_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

struct cmd_hash;
/* SHA-256, or SHA-1; NULL: there is no memory. */
struct cmd_hash *cmd_hash_begin(bool sha256);
void cmd_hash_add(struct cmd_hash *hash, const void *data, size_t size);
/* Frees it; out may be NULL. */
void cmd_hash_end(struct cmd_hash *hash, unsigned char out[32]);

#endif
