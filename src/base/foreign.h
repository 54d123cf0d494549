/* What a file is that is no model: most often what a download left in the model's place. */
#ifndef PD_BASE_FOREIGN_H
#define PD_BASE_FOREIGN_H

#include "base/status.h"

/* Fails, saying what the file is and what helps, where its bytes are known to be something else than `wanted`
 * ("a GGUF file"): empty, a web page, a Git LFS pointer, a server's answer, an archive. What is not known is no
 * failure. */
peridot_status pd_foreign_check(const uint8_t *data, uint64_t size, const char *path, const char *wanted);

/* The same where text is wanted: a short one is not foreign. */
peridot_status pd_foreign_check_text(const uint8_t *data, uint64_t size, const char *path, const char *wanted);

/* For a file that ends before what it says it has: its size, and the size that it should have. */
#define PD_FOREIGN_CUT "it has %llu bytes and needs %llu: it was cut short, or is damaged; download it again"

#endif
