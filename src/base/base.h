/* What every room stands on: status and the last error of a thread, what the system is asked for, numbers, text in
 * UTF-8, JSON, memory that grows, random numbers, and counts of references. Nothing here knows of models. All of it may
 * be called by any thread at once; what is not so says it. */
#ifndef PD_BASE_BASE_H
#define PD_BASE_BASE_H

#include "peridot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <yyjson.h>

/* ---- siphash ---- */

struct pd_hash_key {
    uint64_t k[2];
};

/* A key that nobody can know: another one for each table. What a table is used for must not depend on it. */
struct pd_hash_key pd_hash_key_make(void);
uint64_t pd_siphash(const struct pd_hash_key *key, const void *data, size_t size);

/* ---- status ---- */

#if defined(__MINGW32__)   /* whose printf is otherwise taken for Microsoft's */
#define PD_PRINTF(fmt, args) __attribute__((format(gnu_printf, fmt, args)))
#elif defined(__GNUC__)
#define PD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define PD_PRINTF(fmt, args)
#endif

enum { PD_SENTENCE_SIZE = 1024 };   /* longer ones are cut */
peridot_status pd_fail(peridot_status status, const char *format, ...) PD_PRINTF(2, 3);
/* Puts "PREFIX: " before the present sentence, for callers that know the file. */
peridot_status pd_fail_prefix(peridot_status status, const char *prefix);
/* "out of memory for N bytes (WHAT)". */
peridot_status pd_fail_alloc(size_t size, const char *what);
static inline const char *pd_error(void) { return peridot_last_error(); }

/* The plural's ending: "%u token%s", n, PD_S(n). */
#define PD_S(n) ((n) == 1 ? "" : "s")

/* Returns early when an expression of type peridot_status is a failure. */
#define PD_TRY(expr)                                        \
    do {                                                    \
        peridot_status pd_try_status = (expr);              \
        if (pd_try_status != PERIDOT_OK) return pd_try_status; \
    } while (0)

/* ---- json ---- */

/* Any JSON, whatever its keys; sentences name no file. The document is the caller's (yyjson_doc_free). */
peridot_status pd_json_read(yyjson_doc **out, const uint8_t *data, uint64_t size);
/* JSON whose root is an object, with keys that sentences can show. `path` is for sentences. Numbers may be NaN and
 * Infinity, as Python writes them. */
peridot_status pd_json_parse(yyjson_doc **out, const uint8_t *data, uint64_t size, const char *path);
/* The same from a file. */
peridot_status pd_json_open(yyjson_doc **out, const char *path);
/* When DIRECTORY/NAME is there; else *out is NULL, which is no failure. */
peridot_status pd_json_open_optional(yyjson_doc **out, const char *directory, const char *name);

/* ---- names ---- */

/* Names in files: are they fit to be shown, are they unique, where is one. The index is a sorted array: finding
 * duplicates among n names costs n log n whatever a hostile file holds. */

/* How a sentence shows a name from a file: long ones are cut, so that the rest of the sentence has room. */
#define PD_NAME "%.120s"

struct pd_name {
    const char *name;   /* NUL-terminated, borrowed */
    size_t index;       /* of what it names */
};

struct pd_name_index {
    struct pd_name *names;   /* n of them; the index sorts them in place */
    size_t n;
};

/* Valid UTF-8, not empty, no control characters: safe in a sentence, a terminal and JSON. */
bool pd_name_valid(const char *text, size_t size);

void pd_names_sort(struct pd_name_index *x);
/* After sort: some pair with one name, lower index first; false when all names differ. */
bool pd_names_duplicate(const struct pd_name_index *x, size_t *first, size_t *second);
/* After sort: index of the name, or SIZE_MAX. */
size_t pd_names_find(const struct pd_name_index *x, const char *name);

/* ---- foreign ---- */

/* Fails, saying what the file is and what helps, where its bytes are known to be something else than `wanted`
 * ("a GGUF file"): empty, a web page, a Git LFS pointer, a server's answer, an archive. What is not known is no
 * failure. */
peridot_status pd_foreign_check(const uint8_t *data, uint64_t size, const char *path, const char *wanted);

/* The same where text is wanted: a short one is not foreign. */
peridot_status pd_foreign_check_text(const uint8_t *data, uint64_t size, const char *path, const char *wanted);

/* For a file that ends before what it says it has: its size, and the size that it should have. */
#define PD_FOREIGN_CUT "it has %llu bytes and needs %llu: it was cut short, or is damaged; download it again"

/* ---- utf8 ---- */

enum pd_utf8_state { PD_UTF8_CHARACTER, PD_UTF8_INCOMPLETE, PD_UTF8_INVALID };

/* Looks at the start of `size` > 0 bytes. CHARACTER: *length bytes are one, its value in *code. INCOMPLETE: all the
 * bytes are the start of one. INVALID: the first *length bytes can never be part of one, and stand for one U+FFFD (the
 * "maximal subpart" of Unicode 3.9, as browsers do). */
enum pd_utf8_state pd_utf8_next(uint32_t *code, size_t *length, const char *text, size_t size);

/* Gives the number of bytes. */
size_t pd_utf8_write(char out[4], uint32_t code);

/* Not fit for a terminal: control characters (C0, C1), those that change the direction of a text, and those that end
 * lines or paragraphs. */
bool pd_utf8_is_control(uint32_t code);

/* A text from a file as people may see it: the bytes of what is not fit for a terminal, and of malformed characters, as
 * "\x1b", line breaks as "\n". All of it, or what fits, with "..." at its end. The result is terminated, and no text
 * in it is changed again. Gives its size. */
size_t pd_utf8_escape(char *out, size_t out_size, const char *text, size_t size);
/* The same of the first character alone, which takes *length bytes of the text; not terminated. */
enum { PD_ESCAPED_MAX = 4 };
size_t pd_utf8_escape_next(char out[PD_ESCAPED_MAX], size_t *length, const char *text, size_t size);

/* The same for a part of a sentence. Gives `out`. */
enum { PD_SHOWN_SIZE = 48 };
const char *pd_utf8_shown(char out[PD_SHOWN_SIZE], const char *text, size_t size);

/* White space to Unicode. */
bool pd_utf8_is_space(uint32_t code);
/* Text without the white space at its ends, as Python's str.strip (and so the chat templates' trim filter) sees it. */
void pd_utf8_trim(const char **text, size_t *size);

/* ---- num ---- */

#define PD_COUNT(array) (sizeof(array) / sizeof(array)[0])

static inline uint64_t pd_min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t pd_max(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t pd_div_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
/* align is any positive number; the sum must not overflow (sizes here are below 2^63). */
static inline uint64_t pd_align(uint64_t a, uint64_t align) { return pd_div_up(a, align) * align; }

/* False, with *out untouched, when the result does not fit. */
static inline bool pd_mul(uint64_t *out, uint64_t a, uint64_t b)
{
    if (b != 0 && a > UINT64_MAX / b) return false;
    *out = a * b;
    return true;
}

static inline bool pd_add(uint64_t *out, uint64_t a, uint64_t b)
{
    if (a > UINT64_MAX - b) return false;
    *out = a + b;
    return true;
}

static inline float pd_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t pd_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float pd_f32_from_bf16(uint16_t h) { return pd_f32_from_bits((uint32_t)h << 16); }

/* Round to nearest, ties to even; NaN stays NaN. */
static inline uint16_t pd_bf16_from_f32(float f)
{
    uint32_t u = pd_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* FNV-1a: begins with 0, goes on with what came before. */
uint64_t pd_hash(uint64_t before, const void *data, size_t size);

float pd_f32_from_f16(uint16_t h);
uint16_t pd_f16_from_f32(float f);   /* round to nearest, ties to even */

/* ---- os ---- */

/* The operating system: files mapped for reading, files written, folders, clocks. What differs between systems is in
 * map.c, posix.c, posix.c and writer.c. */

struct pd_map {
    const uint8_t *data;   /* NULL when size is 0 */
    uint64_t size;
    struct pd_region *region;   /* NULL: a copy */
    int fd;                     /* of the file, where there is a region */
};

/* Maps a regular file read-only. Where its bytes are gone when they are read, zeros are: see pd_map_check. Threads that
 * read it must not block SIGBUS. */
peridot_status pd_map_open(struct pd_map *out, const char *path);
/* Copies a regular file, of no more than PD_MAP_READ_MAX bytes, into memory. */
#define PD_MAP_READ_MAX ((uint64_t)1 << 30)
peridot_status pd_map_read(struct pd_map *out, const char *path);
/* Copies the next `size` bytes of a descriptor. */
peridot_status pd_map_copy(struct pd_map *out, int fd, uint64_t size, const char *path);
/* What came of reading the mapping: status, or a failure where bytes were gone. */
peridot_status pd_map_check(peridot_status status, const struct pd_map *map, const char *path);
void pd_map_close(struct pd_map *map);
/* These bytes of a mapping are not read again soon: the pages that lie wholly among them need no memory until then. */
void pd_map_forget(const void *data, uint64_t size);

/* A file that appears at `path` when it is complete. What replaces a file takes over its mode and owner; its other hard
 * links keep the old one. Links are followed. What cannot be replaced is written in place, as it comes: devices, FIFOs,
 * descriptors of the process (/dev/stdout), mount points. */
struct pd_writer {
    FILE *file;
    char *path;            /* as it was given */
    char *name;            /* in the folder; NULL: written in place */
    char temporary[32];    /* in the folder; "": it has no name yet */
    int folder;
    uint64_t offset;
};

peridot_status pd_writer_open(struct pd_writer *out, const char *path);
peridot_status pd_writer_write(struct pd_writer *w, const void *data, size_t size);
/* Bytes that its disk still has room for; UINT64_MAX when unknown. */
uint64_t pd_writer_available(const struct pd_writer *w);
/* Flushes, syncs and renames. The writer is closed either way; on failure nothing is left of the file. */
peridot_status pd_writer_commit(struct pd_writer *w);
/* Closes and removes the temporary file. Harmless after commit. */
void pd_writer_abort(struct pd_writer *w);
/* Fails where `path` is the file `source`, or one in the folder `source`, by whatever name. */
peridot_status pd_writer_check(const char *path, const char *source);

/* Files of a folder that is this user's alone, and no link: what another put there is neither read nor written. The
 * folder is made (0700) when something is written; its files have mode 0600. */
peridot_status pd_private_read(struct pd_map *out, const char *folder, const char *name, uint64_t most);
peridot_status pd_private_write(struct pd_writer *out, const char *folder, const char *name);
peridot_status pd_private_remove(const char *folder, const char *name);
/* Fails, with the reason, where a folder that is there cannot be used so. */
peridot_status pd_private_check(const char *folder);
/* A descriptor of the folder; -1 after a sentence. */
int pd_private_folder(const char *folder);

bool pd_is_directory(const char *path);
bool pd_is_file(const char *path);
/* Makes a folder and its parents, for this user alone. */
peridot_status pd_make_directory(const char *path);
bool pd_make_one_directory(const char *path);
/* "DIR/NAME", allocated; NULL when out of memory. */
char *pd_path_join(const char *directory, const char *name);
/* A path that someone gave, allocated, with slashes between its parts; NULL when out of memory. */
char *pd_path_copy(const char *path);
/* A path with slashes between its parts, in place. */
void pd_path_clean(char *path);
char *pd_string_copy(const char *s);
/* From the system's generator, which nobody can predict. */
void pd_random_bytes(void *out, size_t size);
/* Monotonic seconds. */
double pd_now(void);
/* Date and time of day where the machine is. */
void pd_local_time(struct tm *out);
/* Bytes of memory the host can give without swapping; UINT64_MAX when unknown. */
uint64_t pd_memory_available(void);
/* The most bytes of memory that this process has held at once, mapped files in memory included; 0 when unknown. */
uint64_t pd_memory_peak(void);
/* At least 1. */
uint32_t pd_n_processors(void);

/* A function of a shared library, which stays loaded; NULL: there is none. */
typedef void (*pd_function)(void);
pd_function pd_library_function(const char *library, const char *name);

/* ---- log ---- */

/* Messages for whoever asked for them: see peridot_log. */

struct pd_logger {
    peridot_log call;   /* NULL: nobody */
    void *user;
};

void pd_log(const struct pd_logger *log, peridot_log_level level, const char *format, ...) PD_PRINTF(3, 4);

/* ---- buffer ---- */

/* Bytes that grow at their end, and have a zero behind them. {0} is the beginning, and pd_buffer_free the end. On
 * failure the contents are as before, and `failed` is set: who adds many pieces may look once, at the end. */
struct pd_buffer {
    char *data;              /* NULL until something was added, if only nothing */
    size_t size, capacity;
    bool failed;             /* memory was short for something, which is missing */
};

peridot_status pd_buffer_add(struct pd_buffer *b, const void *data, size_t size);
/* Text from outside: as it is, but U+FFFD for what is malformed. */
peridot_status pd_buffer_add_utf8(struct pd_buffer *b, const char *text, size_t size);
peridot_status pd_buffer_print(struct pd_buffer *b, const char *format, ...) PD_PRINTF(2, 3);
/* Takes away the first bytes. */
void pd_buffer_drop(struct pd_buffer *b, size_t size);
/* Puts the zero behind bytes whose size was set by hand; data is not NULL afterwards. */
peridot_status pd_buffer_end(struct pd_buffer *b);
void pd_buffer_free(struct pd_buffer *b);

/* ---- parallel ---- */

/* Work spread over the processors: independent pieces, one call each. */

/* call(user, i) for every i in 0 .. n-1, in any order and at the same time; returns when all are done. The calls must
 * not fail: sentences are kept per thread, so theirs would be lost. */
void pd_parallel(size_t n, void (*call)(void *user, size_t i), void *user);

/* ---- random ---- */

/* Random numbers, the same on every machine. */

/* splitmix64 (Steele, Lea, Flood 2014): number i of the sequence of a seed is
 * pd_splitmix(seed + i * PD_SPLITMIX_STEP), i >= 1. */
#define PD_SPLITMIX_STEP 0x9e3779b97f4a7c15u
uint64_t pd_splitmix(uint64_t state);

/* xoshiro256++ (Blackman and Vigna, https://prng.di.unimi.it). */
struct pd_random {
    uint64_t s[4];
};

/* Streams of one seed differ and are unrelated. */
void pd_random_seed(struct pd_random *r, uint64_t seed, uint64_t stream);
/* Inline: random weights are made at the speed of memory. */
static inline uint64_t pd_random_next(struct pd_random *r)
{
    uint64_t *s = r->s, sum = s[0] + s[3], result = (sum << 23 | sum >> 41) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return result;
}

/* -1 .. 1 */
float pd_random_uniform(struct pd_random *r);

#ifndef __cplusplus   /* the bridge to sentencepiece has no use for it */
#include <stdatomic.h>

/* ---- refs ---- */

/* A count of owners, for what threads may share. Zeroed, it has one. */

struct pd_refs {
    atomic_uint n_more;    /* owners beside the first */
};

static inline void pd_refs_add(struct pd_refs *r) { atomic_fetch_add(&r->n_more, 1); }
static inline bool pd_refs_has_one(struct pd_refs *r) { return atomic_load(&r->n_more) == 0; }
/* An owner has gone; true: it was the last, who frees. */
static inline bool pd_refs_drop(struct pd_refs *r) { return atomic_fetch_sub(&r->n_more, 1) == 0; }
#endif

/* ---- array ---- */

/* Arrays that grow. */

/* Makes room for `more` elements after the first n. `array` is the address of the pointer to them (NULL at first).
 * Grows by half, so that appending costs constant time on average. On failure all is as before; `what` is for the
 * sentence. */
peridot_status pd_array_reserve(void *array, size_t *capacity, size_t n, size_t more, size_t element_size,
                                const char *what);

#endif
