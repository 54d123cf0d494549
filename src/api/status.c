/* What belongs to no handle: the version, names of statuses, and memory that goes back. */
#include "base/base.h"

#include <stdlib.h>

const char *peridot_version(void) { return PERIDOT_VERSION; }

const char *peridot_status_name(peridot_status status)
{
    static const char *const names[] = {
        [PERIDOT_OK] = "PERIDOT_OK",
        [PERIDOT_ERROR_ARGUMENT] = "PERIDOT_ERROR_ARGUMENT",
        [PERIDOT_ERROR_IO] = "PERIDOT_ERROR_IO",
        [PERIDOT_ERROR_FORMAT] = "PERIDOT_ERROR_FORMAT",
        [PERIDOT_ERROR_UNSUPPORTED] = "PERIDOT_ERROR_UNSUPPORTED",
        [PERIDOT_ERROR_DEVICE] = "PERIDOT_ERROR_DEVICE",
        [PERIDOT_ERROR_DEVICE_LOST] = "PERIDOT_ERROR_DEVICE_LOST",
        [PERIDOT_ERROR_MEMORY] = "PERIDOT_ERROR_MEMORY",
        [PERIDOT_CANCELLED] = "PERIDOT_CANCELLED",
        [PERIDOT_ERROR_LINK] = "PERIDOT_ERROR_LINK",
    };
    return (unsigned)status < PD_COUNT(names) ? names[status] : "unknown status";
}

void peridot_free(void *p) { free(p); }
