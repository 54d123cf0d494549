/* Results of tools, as a model gets them: valid UTF-8, no longer than allowed, with a note where something is left
 * out. */
#ifndef PERIDOT_COMMAND_TOOLBOX_RESULT_H
#define PERIDOT_COMMAND_TOOLBOX_RESULT_H

#include "bytes.h"

/* Adds a text of a tool, without white space at its end. Bytes that are no UTF-8, and zero bytes, become U+FFFD. */
peridot_status result_add_text(struct toolbox_bytes *out, const char *text, size_t size);
/* Cuts a result that is longer than `most` bytes; n_more bytes were left out already. A note at its end says so. */
peridot_status result_cut(struct toolbox_bytes *out, size_t most, size_t n_more);

#endif
