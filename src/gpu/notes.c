/* Text files in the cache folder that say something of kernels, one file of each sort for each device and driver. A
 * line is the name of a kernel, the hash of its SPIR-V, and a text: it says nothing of a kernel that has changed since.
 * The files are untrusted input: one with a line that nobody wrote so says nothing at all. */
#include "gpu/gpu.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FILE_MAX = 64 << 10, NAME_MAX_SIZE = 64, HASH_SIZE = 16, LINE_MAX_SIZE = 128, MAX_LINES = 4 * PD_N_KERNELS };

/* The hash of a kernel's SPIR-V, which is up to 100 KB: each is hashed once, however many lines name it. */
struct hashes {
    uint64_t of[PD_N_KERNELS];   /* 0: not yet */
};

static uint64_t hash_of(struct hashes *h, enum pd_kernel_id id)
{
    if (!h->of[id]) h->of[id] = pd_kernel_hash(id);
    return h->of[id];
}

static const char *file_name(char name[NAME_MAX_SIZE], const struct pd_notes *notes, const peridot_device_info *device)
{
    snprintf(name, NAME_MAX_SIZE, "%s-%s.txt", notes->name, device->cache_key);
    return name;
}

/* PD_N_KERNELS: there is none of this name. */
static enum pd_kernel_id find_kernel(const char *word, size_t size)
{
    for (int id = 0; id < PD_N_KERNELS; id++) {
        const char *name = pd_kernel_name((enum pd_kernel_id)id);
        if (strlen(name) == size && memcmp(name, word, size) == 0) return (enum pd_kernel_id)id;
    }
    return PD_N_KERNELS;
}

enum line { LINE_BAD, LINE_STALE, LINE_GOOD };   /* stale: of a kernel that has changed since, or is gone */

/* A line without its end: "NAME HASH", and a text that begins with a space, if there is one. */
static enum line parse_line(struct pd_note *out, const char *line, struct hashes *hashes)
{
    char hash[HASH_SIZE + 1];
    size_t name_size = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789_"), size = strlen(line);
    const char *digits = line + name_size + 1, *text = digits + HASH_SIZE;
    if (name_size == 0 || size < name_size + 1 + HASH_SIZE || line[name_size] != ' '
        || strspn(digits, "0123456789abcdef") != HASH_SIZE || (*text && *text != ' ')
        || strlen(text) >= sizeof out->text) return LINE_BAD;
    out->id = find_kernel(line, name_size);
    if (out->id == PD_N_KERNELS) return LINE_STALE;
    snprintf(hash, sizeof hash, "%016" PRIx64, hash_of(hashes, out->id));
    if (memcmp(hash, digits, HASH_SIZE) != 0) return LINE_STALE;
    strcpy(out->text, text);
    return LINE_GOOD;
}

/* False at the first line that nobody wrote so. */
static bool take_lines(const struct pd_notes *notes, const char *text, size_t size,
                       bool (*take)(void *user, const struct pd_note *note), void *user)
{
    struct hashes hashes = {{0}};
    struct pd_note note;
    char line[LINE_MAX_SIZE];
    size_t title_size = strlen(notes->title), n = 0;
    if (size <= title_size || memcmp(text, notes->title, title_size) != 0 || text[title_size] != '\n') return false;
    const char *at = text + title_size + 1, *end = text + size;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t line_size = line_end ? (size_t)(line_end - at) : sizeof line;
        if (line_size >= sizeof line || memchr(at, 0, line_size) || ++n > MAX_LINES) return false;
        memcpy(line, at, line_size);
        line[line_size] = 0;
        enum line kind = parse_line(&note, line, &hashes);
        if (kind == LINE_BAD || (kind == LINE_GOOD && !take(user, &note))) return false;
        at = line_end + 1;
    }
    return true;
}

bool pd_notes_read(const struct pd_notes *notes, const peridot_device_info *device, const char *directory,
                   bool (*take)(void *user, const struct pd_note *note), void *user)
{
    struct pd_map map = {0};
    char name[NAME_MAX_SIZE];
    if (!directory || pd_private_read(&map, directory, file_name(name, notes, device), FILE_MAX) != PERIDOT_OK)
        return false;
    bool whole = take_lines(notes, (const char *)map.data, (size_t)map.size, take, user);
    pd_map_close(&map);
    return whole;
}

static peridot_status write_lines(struct pd_writer *w, const struct pd_notes *notes, const struct pd_note *list,
                                  size_t n)
{
    struct hashes hashes = {{0}};
    char line[LINE_MAX_SIZE];
    PD_TRY(pd_writer_write(w, notes->title, strlen(notes->title)));
    PD_TRY(pd_writer_write(w, "\n", 1));
    for (size_t i = 0; i < n; i++) {
        int size = snprintf(line, sizeof line, "%s %016" PRIx64 "%s\n", pd_kernel_name(list[i].id),
                            hash_of(&hashes, list[i].id), list[i].text);
        PD_TRY(pd_writer_write(w, line, (size_t)size));
    }
    return pd_writer_commit(w);
}

peridot_status pd_notes_write(const struct pd_notes *notes, const peridot_device_info *device, const char *directory,
                              const struct pd_note *list, size_t n)
{
    struct pd_writer w;
    char name[NAME_MAX_SIZE];
    PD_TRY(pd_private_write(&w, directory, file_name(name, notes, device)));
    peridot_status status = write_lines(&w, notes, list, n);
    pd_writer_abort(&w);
    return status;
}

peridot_status pd_notes_remove(const struct pd_notes *notes, const peridot_device_info *device, const char *directory)
{
    char name[NAME_MAX_SIZE];
    return pd_private_remove(directory, file_name(name, notes, device));
}
