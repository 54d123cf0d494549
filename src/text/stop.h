/* Stop texts: finds the first of them in text that comes in pieces, and holds back what may be the beginning of one. */
#ifndef PD_TEXT_STOP_H
#define PD_TEXT_STOP_H

#include "text/buffer.h"

/* Zero-initialise but for the first two; free(held.data) ends it. */
struct pd_stop {
    const char *const *texts;     /* borrowed; an empty one never stops */
    size_t n;
    struct pd_text_buffer held;
    size_t n_given;               /* bytes of `held` that were handed out by the last call */
    bool found;
};

/* Takes the next bytes of the text; *out, *size are those that may be shown now, borrowed until the next call. Once a
 * stop text is found there are none. `last`: the text ends here, and nothing needs to be held. */
peridot_status pd_stop_next(const char **out, size_t *size, struct pd_stop *s, const char *text, size_t n, bool last);

#endif
