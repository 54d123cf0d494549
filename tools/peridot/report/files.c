/* Saved reports: of a file, of a folder. */
#define _POSIX_C_SOURCE 200809L
#include "report.h"
#include "../text.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

peridot_status reports_add_file(struct reports *list, const char *path)
{
    char *text;
    size_t size;
    CMD_TRY(cmd_read_file(&text, &size, path));
    peridot_status status = reports_add(list, text, size, path);
    free(text);
    return status;
}

struct names {
    char **at;
    size_t n;
};

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static peridot_status add_name(struct names *names, const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char **at = realloc(names->at, (names->n + 1) * sizeof *at);
    if (!at) return cmd_fail_alloc((names->n + 1) * sizeof *at, "names of reports");
    names->at = at;
    at[names->n] = malloc(size);
    if (!at[names->n]) return cmd_fail_alloc(size, "name of a report");
    snprintf(at[names->n++], size, "%s/%s", folder, name);
    return PERIDOT_OK;
}

static peridot_status list_folder(struct names *names, DIR *dir, const char *folder)
{
    for (const struct dirent *entry; (entry = readdir(dir));) {
        size_t size = strlen(entry->d_name);
        if (size > 5 && strcmp(entry->d_name + size - 5, ".json") == 0) CMD_TRY(add_name(names, folder, entry->d_name));
    }
    return PERIDOT_OK;
}

peridot_status reports_add_folder(struct reports *list, const char *path)
{
    struct names names = {0};
    DIR *dir = opendir(path);
    if (!dir) return reports_add_file(list, path);
    peridot_status status = list_folder(&names, dir, path);
    closedir(dir);
    if (names.n) qsort(names.at, names.n, sizeof *names.at, by_name);
    else if (status == PERIDOT_OK)
        status = cmd_fail(PERIDOT_ERROR_IO, "%s: there are no reports (*.json) in this folder", path);
    for (size_t i = 0; i < names.n; i++) {
        if (status == PERIDOT_OK) status = reports_add_file(list, names.at[i]);
        free(names.at[i]);
    }
    free(names.at);
    return status;
}
