/* Base64 (RFC 4648), with its padding, and nothing else. */
#ifndef PERIDOT_COMMAND_BASE64_H
#define PERIDOT_COMMAND_BASE64_H

#include "util.h"

/* out: [size / 4 * 3]. False: it is not base64. */
bool cmd_base64_decode(unsigned char *out, size_t *n_out, const char *text, size_t size);

#endif
