/* A folder of its own for a test program's files. */
#ifndef FOLDER_FIXTURE_H
#define FOLDER_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
#include <direct.h>
#include <string.h>
#define TEMPORARY getenv("TEMP")
static char folder[256];

static inline char *mkdtemp(char *name)
{
    for (char *p = name; (p = strchr(p, '\\'));) *p = '/';
    return _mktemp_s(name, strlen(name) + 1) == 0 && _mkdir(name) == 0 ? name : NULL;
}

static inline int remove_any(const char *path) { return remove(path) == 0 ? 0 : _rmdir(path); }
#define remove remove_any   /* folders, too, as in POSIX */
#else
#define TEMPORARY "/tmp"
static char folder[64];
#endif

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/peridot-test-XXXXXX", TEMPORARY);
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
