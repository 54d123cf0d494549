/* What belongs to no handle: the last failure's sentence, and memory that goes back. */
#include "base/status.h"

#include <stdlib.h>

const char *peridot_last_error(void) { return pd_error(); }

void peridot_set_error(const char *sentence) { pd_fail(PERIDOT_OK, "%s", sentence); }

void peridot_free(void *p) { free(p); }
