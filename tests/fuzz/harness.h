/* What the harnesses share. A harness is a file fuzz_NAME.c with one LLVMFuzzerTestOneInput, which hands its input to a
 * parser: tools/fuzz links each with libFuzzer, and test_fuzz_corpus all of them with a main that feeds them seeds
 * (seeds.c) and past findings (findings/fuzz_NAME). NAME.dict is its dictionary, if there is one. */
#ifndef FUZZ_HARNESS_H
#define FUZZ_HARNESS_H

#include "peridot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process where a promise of the library's is broken. */
#define FUZZ_CHECK(promise) \
    do {                    \
        if (!(promise)) fuzz_broken(#promise, __FILE__, __LINE__); \
    } while (0)
void fuzz_broken(const char *promise, const char *file, int line);

/* Whether it is PERIDOT_OK; else the failure has a sentence, in one line that a terminal can show. */
bool fuzz_ok(peridot_status status);

/* For parsers that open a path: a file of this process, in a folder that is removed at the end. The path of the folder
 * is good for ever, that of a file until the next call but three. */
const char *fuzz_folder(void);
const char *fuzz_file(const char *name, const void *data, size_t size);
void fuzz_remove(const char *name);
/* The folder goes with all that is in it; the next file makes a new one. */
void fuzz_remove_folder(void);

/* Takes the text up to the next separator from the input: "\n===\n" in a seed. False at the end of the input. */
struct fuzz_part {
    const uint8_t *data;
    size_t size;
};
bool fuzz_next_part(struct fuzz_part *out, struct fuzz_part *input);

#endif
