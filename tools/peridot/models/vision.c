/* Files with the vision tower of a model ("mmproj"), which lie beside it wherever another program puts both. */
#define _POSIX_C_SOURCE 200809L
#include "models.h"
#include "../base/base.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- names ---- */

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What a name has before its type, or its number as a shard. */
static size_t stem_size(const char *name)
{
    uint32_t i, n;
    size_t size = strlen(name), label_size;
    const char *label = cmd_type_label(&label_size, name), *shard = cmd_shard(&i, &n, name);
    if (shard) size = (size_t)(shard - name);
    if (label && (size_t)(label - name) < size) size = (size_t)(label - name);
    return size;
}

/* Bytes of the longest text that both have, in whatever case. */
static size_t n_shared(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t best = 0;
    for (size_t i = 0; i + best < a_size; i++)
        for (size_t k = 0; k + best < b_size; k++) {
            size_t n = 0;
            while (i + n < a_size && k + n < b_size
                   && tolower((unsigned char)a[i + n]) == tolower((unsigned char)b[k + n])) n++;
            best = (size_t)pd_max(best, n);
        }
    return best;
}

size_t cmd_vision_rank(const char *path, const char *model)
{
    static const char *const types[] = {"bf16", "q8_0", "f16"};
    const char *a = file_of(path), *b = file_of(model);
    size_t rank = n_shared(a, stem_size(a), b, stem_size(b)) * (PD_COUNT(types) + 1), size;
    const char *label = cmd_type_label(&size, a);
    for (size_t i = 0; label && i < PD_COUNT(types); i++)
        if (size == strlen(types[i]) && strncasecmp(label, types[i], size) == 0) rank += i + 1;
    return rank;
}

/* ---- files ---- */

struct search {
    const char *model;
    peridot_file *file;        /* of the model, opened when there is something to compare it with */
    char best[CMD_PATH_SIZE];  /* "": nothing was found */
    bool fits;
    size_t rank;
};

static bool does_fit(struct search *s, const char *path)
{
    peridot_file *vision = NULL;
    bool fits = (s->file || peridot_file_open(&s->file, s->model) == PERIDOT_OK)
        && peridot_file_open(&vision, path) == PERIDOT_OK && peridot_file_check_vision(s->file, vision) == PERIDOT_OK;
    peridot_file_close(vision);
    return fits;
}

/* Those that fit come first, then by their names. */
static void consider(struct search *s, const char *path)
{
    bool fits = does_fit(s, path);
    size_t rank = cmd_vision_rank(path, s->model);
    if (*s->best && fits < s->fits) return;
    if (*s->best && fits == s->fits && (rank < s->rank || (rank == s->rank && strcmp(path, s->best) > 0))) return;
    snprintf(s->best, sizeof s->best, "%s", path);
    s->fits = fits, s->rank = rank;
}

/* The folder of `size` bytes of a path, "" for the present one. */
static void look_in(struct search *s, const char *path, size_t size)
{
    char folder[CMD_PATH_SIZE], file[CMD_PATH_SIZE];
    snprintf(folder, sizeof folder, "%.*s", (int)size, path);
    DIR *dir = opendir(size ? folder : ".");
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        if (!cmd_vision_is_named(e->d_name) || e->d_name[0] == '.') continue;
        int n = snprintf(file, sizeof file, "%s%s", folder, e->d_name);
        if (n > 0 && n < CMD_PATH_SIZE && pd_is_file(file)) consider(s, file);
    }
    if (dir) closedir(dir);
}

/* Bytes of ".../snapshots/COMMIT/", where a model lies in a deeper folder of it; else 0. */
static size_t snapshot_size(const char *path, size_t folder_size)
{
    static const char word[] = "/snapshots/";
    const char *at = strstr(path, word), *end = at ? strchr(at + sizeof word - 1, '/') : NULL;
    size_t size = end ? (size_t)(end + 1 - path) : 0;
    return size < folder_size ? size : 0;
}

peridot_status cmd_vision_find(char **path, bool *fits, const char *model)
{
    struct search s = {.model = model};
    size_t size = (size_t)(file_of(model) - model), top;
    *path = NULL;
    if (fits) *fits = false;
    if (size >= CMD_PATH_SIZE || !pd_is_file(model) || cmd_vision_is_named(model)) return PERIDOT_OK;
    PD_TRY(cmd_ollama_vision(path, model));
    if (*path) consider(&s, *path);
    else look_in(&s, model, size);
    if (!*s.best && (top = snapshot_size(model, size)) != 0) look_in(&s, model, top);
    peridot_file_close(s.file);
    if (fits) *fits = s.fits;
    if (*path || !*s.best) return PERIDOT_OK;
    *path = strdup(s.best);
    return *path ? PERIDOT_OK : pd_fail_alloc(strlen(s.best), "path");
}
