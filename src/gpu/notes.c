#include "gpu/notes.h"

#include "base/num.h"
#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 64 << 10, HEAD_MAX_SIZE = 64, LINE_MAX_SIZE = 128 };

/* SPIR-V is up to 100 KB: lines of one kernel follow each other, and it is hashed for the first of them. */
struct hash {
    bool known;
    enum pd_kernel_id id;
    uint64_t of_id;
};

/* What lines of a kernel begin with: "NAME HASH". */
static size_t make_head(char head[HEAD_MAX_SIZE], enum pd_kernel_id id, struct hash *hash)
{
    if (!hash->known || hash->id != id) *hash = (struct hash){true, id, pd_kernel_hash(id)};
    return (size_t)snprintf(head, HEAD_MAX_SIZE, "%s %016" PRIx64, pd_kernel_name(id), hash->of_id);
}

static char *file_path(const struct pd_notes *notes, const peridot_device_info *device, const char *directory)
{
    char name[64];
    snprintf(name, sizeof name, "%s-%s.txt", notes->name, device->cache_key);
    return pd_path_join(directory, name);
}

/* PD_N_KERNELS: the line begins with no kernel's name. */
static enum pd_kernel_id find_kernel(const char *line)
{
    size_t size = strcspn(line, " ");
    for (int id = 0; id < PD_N_KERNELS; id++) {
        const char *name = pd_kernel_name((enum pd_kernel_id)id);
        if (strlen(name) == size && memcmp(name, line, size) == 0) return (enum pd_kernel_id)id;
    }
    return PD_N_KERNELS;
}

/* A line without its end. */
static bool parse_line(struct pd_note *out, const char *line, struct hash *hash)
{
    char head[HEAD_MAX_SIZE];
    out->id = find_kernel(line);
    size_t size = out->id != PD_N_KERNELS ? make_head(head, out->id, hash) : 0;
    if (size == 0 || strncmp(line, head, size) != 0 || strlen(line + size) >= sizeof out->text) return false;
    strcpy(out->text, line + size);
    return true;
}

static void take_lines(const struct pd_notes *notes, const char *text, size_t size,
                       void (*take)(void *user, const struct pd_note *note), void *user)
{
    struct hash hash = {0};
    struct pd_note note;
    char line[LINE_MAX_SIZE];
    size_t title_size = strlen(notes->title);
    if (size > FILE_MAX || size <= title_size || memcmp(text, notes->title, title_size) != 0
        || text[title_size] != '\n') return;
    const char *at = text + title_size + 1, *end = text + size, *line_end;
    for (; at < end && (line_end = memchr(at, '\n', (size_t)(end - at))); at = line_end + 1) {
        size_t line_size = (size_t)(line_end - at);
        if (line_size >= sizeof line || memchr(at, 0, line_size)) continue;
        memcpy(line, at, line_size);
        line[line_size] = 0;
        if (parse_line(&note, line, &hash)) take(user, &note);
    }
}

void pd_notes_read(const struct pd_notes *notes, const peridot_device_info *device, const char *directory,
                   void (*take)(void *user, const struct pd_note *note), void *user)
{
    struct pd_map map = {0};
    char *path = directory ? file_path(notes, device, directory) : NULL;
    if (path && pd_is_file(path) && pd_map_open(&map, path) == PERIDOT_OK)
        take_lines(notes, (const char *)map.data, (size_t)map.size, take, user);
    pd_map_close(&map);
    free(path);
}

static peridot_status write_lines(struct pd_writer *w, const struct pd_notes *notes, const struct pd_note *list,
                                  size_t n)
{
    struct hash hash = {0};
    char head[HEAD_MAX_SIZE], line[LINE_MAX_SIZE];
    PD_TRY(pd_writer_write(w, notes->title, strlen(notes->title)));
    PD_TRY(pd_writer_write(w, "\n", 1));
    for (size_t i = 0; i < n; i++) {
        make_head(head, list[i].id, &hash);
        int size = snprintf(line, sizeof line, "%s%s\n", head, list[i].text);
        PD_TRY(pd_writer_write(w, line, (size_t)size));
    }
    return pd_writer_commit(w);
}

peridot_status pd_notes_write(const struct pd_notes *notes, const peridot_device_info *device, const char *directory,
                              const struct pd_note *list, size_t n)
{
    struct pd_writer w;
    char *path = file_path(notes, device, directory);
    if (!path) return pd_fail_alloc(strlen(directory), "path");
    peridot_status status = pd_make_directory(directory);
    if (status == PERIDOT_OK) status = pd_writer_open(&w, path);
    if (status == PERIDOT_OK) {
        status = write_lines(&w, notes, list, n);
        pd_writer_abort(&w);
    }
    free(path);
    return status;
}

peridot_status pd_notes_remove(const struct pd_notes *notes, const peridot_device_info *device, const char *directory)
{
    char *path = file_path(notes, device, directory);
    if (!path) return pd_fail_alloc(strlen(directory), "path");
    bool gone = !pd_is_file(path) || remove(path) == 0;
    peridot_status status = gone ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_IO, "%s: cannot be removed", path);
    free(path);
    return status;
}
