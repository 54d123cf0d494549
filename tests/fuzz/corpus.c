/* Feeds every harness with the files of its folders, without libFuzzer: test_fuzz_corpus SEEDS FINDINGS. */
#define _XOPEN_SOURCE 700
#include "harness.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HARNESS(name) int name(const uint8_t *data, size_t size);
#include "harnesses.def"
#undef HARNESS

static const struct {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} harnesses[] = {
#define HARNESS(name) {#name, name},
#include "harnesses.def"
#undef HARNESS
};

/* The bytes lie in memory of their size, so that one read too many is seen. */
static void run_file(int (*run)(const uint8_t *data, size_t size), const char *path)
{
    FILE *file = fopen(path, "rb");
    FUZZ_CHECK(file && fseek(file, 0, SEEK_END) == 0);
    size_t size = (size_t)ftell(file);
    uint8_t *data = malloc(size ? size : 1);
    rewind(file);
    FUZZ_CHECK(data && fread(data, 1, size, file) == size);
    fclose(file);
    fprintf(stderr, "%s\n", path);   /* the last line is the one that failed */
    peridot_set_error("");
    run(data, size);
    if (peridot_last_error()[0]) fprintf(stderr, "    %s\n", peridot_last_error());
    free(data);
}

static size_t run_folder(int (*run)(const uint8_t *data, size_t size), const char *folder, const char *name)
{
    char path[1024];
    struct dirent **entries = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int n_entries = scandir(path, &entries, NULL, alphasort);   /* in the same order on every file system */
    for (int i = 0; i < n_entries; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, name, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') run_file(run, path), n++;
        free(entries[i]);
    }
    free(entries);
    return n;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    for (size_t i = 0; i < sizeof harnesses / sizeof harnesses[0]; i++) {
        size_t n_seeds = run_folder(harnesses[i].run, argv[1], harnesses[i].name);
        size_t n_findings = run_folder(harnesses[i].run, argv[2], harnesses[i].name);
        printf("%s: %zu seeds, %zu findings\n", harnesses[i].name, n_seeds, n_findings);
        if (!n_seeds) return 1;
        fuzz_remove_folder();   /* another harness's files are none of the next one's */
    }
    return 0;
}
