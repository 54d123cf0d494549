/* The sentence of a thread's last failure. A process has one of it for each thread, the library's: all else in this
 * folder is linked into the command as well, and asks for it by the names that the library exports. */
#include "base/base.h"

#include <string.h>

static _Thread_local char last[PD_SENTENCE_SIZE];

const char *peridot_last_error(void) { return last; }

void peridot_set_error(const char *sentence)
{
    char shown[sizeof last];   /* the sentence may be part of the present one */
    memcpy(last, shown, pd_utf8_escape(shown, sizeof shown, sentence, strlen(sentence)) + 1);
}
