/* What the tests of file formats share: bytes put together by hand, memory that ends at a page nobody may touch, a
 * folder for files, and the check that a failure says what it should. */
#ifndef FORMAT_FIXTURE_H
#define FORMAT_FIXTURE_H

#define _DEFAULT_SOURCE
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/mman.h>
#endif

#include <cmocka.h>

#include "folder_fixture.h"
#include "peridot_tools.h"

/* Of a model that is named by its shape, "tiny-gemma": it is made in the folder. */
static inline const char *path_of(const char *path)
{
    if (strncmp(path, "tiny-", strlen("tiny-")) != 0) return path;
    const char *file = in_folder("made.gguf");
    const peridot_make_params params = {.shape = path, .type = "q8_0"};
    if (peridot_make(file, &params) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    return file;
}

/* ---- bytes ---- */

struct blob {
    uint8_t data[1 << 16];
    size_t size;
};

static inline void put(struct blob *b, const void *data, size_t size)
{
    assert_true(size <= sizeof b->data - b->size);
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void put_u32(struct blob *b, uint32_t v) { put(b, &v, sizeof v); }
static inline void put_u64(struct blob *b, uint64_t v) { put(b, &v, sizeof v); }

static inline void put_string(struct blob *b, const char *s)
{
    put_u64(b, strlen(s));
    put(b, s, strlen(s));
}

/* ---- memory with a guard page after it ---- */

enum { GUARD_SIZE = 1 << 17 };

struct guard {
    uint8_t *base;
    size_t page;
};

#ifdef _WIN32
static inline void guard_open(struct guard *g)
{
    DWORD was;
    g->page = 4096;
    g->base = VirtualAlloc(NULL, GUARD_SIZE + g->page, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    assert_non_null(g->base);
    assert_true(VirtualProtect(g->base + GUARD_SIZE, g->page, PAGE_NOACCESS, &was));
}

static inline void guard_close(struct guard *g) { VirtualFree(g->base, 0, MEM_RELEASE); }
#else
static inline void guard_open(struct guard *g)
{
    g->page = (size_t)sysconf(_SC_PAGESIZE);
    g->base = mmap(NULL, GUARD_SIZE + g->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(g->base, MAP_FAILED);
    assert_int_equal(mprotect(g->base + GUARD_SIZE, g->page, PROT_NONE), 0);
}

static inline void guard_close(struct guard *g) { munmap(g->base, GUARD_SIZE + g->page); }
#endif

/* A copy of the data whose last byte is the last one that may be read. */
static inline const uint8_t *guard_put(struct guard *g, const void *data, size_t size)
{
    assert_true(size <= GUARD_SIZE);
    return size ? memcpy(g->base + GUARD_SIZE - size, data, size) : g->base + GUARD_SIZE;
}

/* One for a group of tests. */
static struct guard guard;

static inline int open_guard(void **state)
{
    (void)state;
    guard_open(&guard);
    return 0;
}

static inline int close_guard(void **state)
{
    (void)state;
    guard_close(&guard);
    return 0;
}

/* ---- a folder ---- */

static inline void write_file(const char *name, const void *data, size_t size)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static inline void write_text(const char *name, const char *text) { write_file(name, text, strlen(text)); }

/* ---- failures ---- */

#ifdef _WIN32   /* in words of the system's language */
#define NO_SUCH_FILE "cannot be "
#else
#define NO_SUCH_FILE "No such file"
#endif

/* The sentence holds every one of the fragments, up to a NULL. */
static inline void expect_sentence(const char *const *fragments)
{
    for (; *fragments; fragments++)
        if (!strstr(pd_error(), *fragments)) fail_msg("\"%s\" is not in \"%s\"", *fragments, pd_error());
}

#define EXPECT_FAILURE(status, expected, ...)                            \
    do {                                                                 \
        peridot_status expect_status = (status);                         \
        if (expect_status != (expected)) fail_msg("status %d, \"%s\"", (int)expect_status, pd_error()); \
        expect_sentence((const char *const[]){__VA_ARGS__, NULL});       \
    } while (0)

#define EXPECT_OK(status)                                     \
    do {                                                      \
        if ((status) != PERIDOT_OK) fail_msg("%s", pd_error()); \
    } while (0)

/* ---- a generator for fuzzing ---- */

static inline uint32_t fuzz_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* Changes a few bytes; small values and ones near the limits more often than by chance. */
static inline void fuzz_spoil(uint8_t *data, size_t size, uint64_t *state)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, '"', '}', '[', '-', '9'};
    for (uint32_t n = 1 + fuzz_next(state) % 4; n > 0; n--) {
        size_t at = fuzz_next(state) % size;
        uint32_t how = fuzz_next(state) % 3;
        if (how == 0) data[at] ^= (uint8_t)(1 << fuzz_next(state) % 8);
        else if (how == 1) data[at] = values[fuzz_next(state) % sizeof values];
        else data[at] = (uint8_t)fuzz_next(state);
    }
}

#endif
