#define _XOPEN_SOURCE 700
#include "harness.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fuzz_broken(const char *promise, const char *file, int line)
{
    fprintf(stderr, "%s:%d: broken promise: %s (\"%s\")\n", file, line, promise, peridot_last_error());
    abort();
}

bool fuzz_ok(peridot_status status)
{
    if (status == PERIDOT_OK) return true;
    const char *sentence = peridot_last_error();
    FUZZ_CHECK(sentence[0]);
    for (; *sentence; sentence++) FUZZ_CHECK((unsigned char)*sentence >= 0x20 && *sentence != 0x7f);
    return false;
}

static char folder[256];

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

void fuzz_remove_folder(void)
{
    if (folder[0]) nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    folder[0] = 0;
}

const char *fuzz_folder(void)
{
    static bool ends;
    if (folder[0]) return folder;
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/peridot-fuzz-XXXXXX", parent ? parent : "/tmp");
    FUZZ_CHECK(mkdtemp(folder));
    if (!ends) atexit(fuzz_remove_folder);
    ends = true;
    return folder;
}

static const char *path_of(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", fuzz_folder(), name);
    return path;
}

const char *fuzz_file(const char *name, const void *data, size_t size)
{
    const char *path = path_of(name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    FUZZ_CHECK(file >= 0 && (size == 0 || write(file, data, size) == (ssize_t)size));
    close(file);
    return path;
}

void fuzz_remove(const char *name) { remove(path_of(name)); }

bool fuzz_next_part(struct fuzz_part *out, struct fuzz_part *input)
{
    static const char separator[] = "\n===\n";
    const size_t n = sizeof separator - 1;
    size_t i = 0;
    if (!input->data) return false;
    while (i + n <= input->size && memcmp(input->data + i, separator, n) != 0) i++;
    bool found = i + n <= input->size;
    *out = (struct fuzz_part){input->data, found ? i : input->size};
    *input = found ? (struct fuzz_part){input->data + i + n, input->size - i - n} : (struct fuzz_part){NULL, 0};
    return true;
}
