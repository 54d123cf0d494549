/* Base64 (RFC 4648) as people have it: of either alphabet, with the line breaks of MIME and `base64`, with or without
 * its padding, and percent-encoded where it was part of a URL. Padding that is there must be whole, and bits of no byte
 * must be 0. */
#ifndef PERIDOT_COMMAND_BASE64_H
#define PERIDOT_COMMAND_BASE64_H

#include "util.h"

/* out: [size / 4 * 3 + 2]. False: it is not base64. */
bool cmd_base64_decode(unsigned char *out, size_t *n_out, const char *text, size_t size);
/* In the alphabet of + and /, padded; out: [(size + 2) / 3 * 4 + 1]. The end of it, where a 0 is. */
char *cmd_base64_encode(char *out, const void *data, size_t size);

#endif
