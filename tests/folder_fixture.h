/* A folder of its own for a test program's files. */
#ifndef FOLDER_FIXTURE_H
#define FOLDER_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

static char folder[64];

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/peridot-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* "FOLDER/NAME", good for the next three calls as well. */
static inline const char *in_folder(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

#endif
