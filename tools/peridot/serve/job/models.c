#define _POSIX_C_SOURCE 200809L
#include "job.h"
#include "../../models/models.h"
#include "../../base/base.h"
#include "../../cli/cli.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* ---- on the command line ---- */

static bool put_path(char out[CMD_PATH_SIZE], const char *folder, const char *name)
{
    int n = snprintf(out, CMD_PATH_SIZE, "%s/%s", folder, name);
    return n > 0 && n < CMD_PATH_SIZE;
}

/* "gemma-2-2b-it" of DIR/gemma-2-2b-it.gguf */
static void name_model(struct serve_model *m, const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') size--;
    size_t begin = size;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    if (size - begin > 5 && memcmp(path + size - 5, ".gguf", 5) == 0) size -= 5;
    snprintf(m->id, sizeof m->id, "%.*s", (int)(size - begin), path + begin);
}

/* `path` NULL: the demo model. */
static peridot_status models_add_model(struct serve_server *s, const char *path)
{
    const char *found;
    struct serve_model *m = &s->models[s->n_models];
    if (s->n_models == SERVE_MAX_MODELS)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: a server has at most %d models", path, SERVE_MAX_MODELS);
    PD_TRY(cmd_model_path(&found, path));
    name_model(m, path ? path : found);   /* a name, where it is one: ollama's files have none */
    if (serve_models_get(s, m->id))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: there is another model with the name %s", path, m->id);
    m->path = path ? strdup(path) : NULL;
    if (path && !m->path) return pd_fail_alloc(strlen(path), "model's path");
    s->n_models++;
    return PERIDOT_OK;
}

static bool is_model_folder(const char *path)
{
    char config[CMD_PATH_SIZE];
    return put_path(config, path, "config.json") && pd_is_file(config);
}

/* A .gguf file, of several the first, or a directory as Hugging Face's. */
static bool is_model(const char *name, const char *path)
{
    uint32_t i = 1, n;
    if (name[0] == '.' || strncmp(name, "mmproj", 6) == 0) return false;
    if (!cmd_ends_with(name, ".gguf")) return is_model_folder(path);
    return (!cmd_shard(&i, &n, name) || i == 1) && pd_is_file(path);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Allocated names of what a folder has, in order; on failure those so far. */
static peridot_status read_names(char ***names, size_t *n, const char *folder)
{
    const struct dirent *entry;
    size_t capacity = 0;
    peridot_status status = PERIDOT_OK;
    DIR *dir = opendir(folder);
    *names = NULL, *n = 0;
    if (!dir) return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be read", folder);
    while (status == PERIDOT_OK && (entry = readdir(dir)) != NULL) {
        status = pd_array_reserve(names, &capacity, *n, 1, sizeof **names, "names of files");
        if (status != PERIDOT_OK) break;
        if (!((*names)[*n] = strdup(entry->d_name))) status = pd_fail_alloc(strlen(entry->d_name), "name of a file");
        else ++*n;
    }
    closedir(dir);
    if (*n) qsort(*names, *n, sizeof **names, by_name);
    return status;
}

static peridot_status add_folder(struct serve_server *s, const char *folder)
{
    char path[CMD_PATH_SIZE];
    char **names;
    size_t before = s->n_models, n;
    peridot_status status = read_names(&names, &n, folder);
    for (size_t i = 0; i < n; i++) {
        if (status == PERIDOT_OK && put_path(path, folder, names[i]) && is_model(names[i], path))
            status = models_add_model(s, path);
        free(names[i]);
    }
    free(names);
    if (status == PERIDOT_OK && s->n_models == before)
        return pd_fail(PERIDOT_ERROR_IO, "%s: there is no model in this folder", folder);
    return status;
}

static bool is_folder_of_models(const char *path)
{
    DIR *dir = is_model_folder(path) ? NULL : opendir(path);
    if (dir) closedir(dir);
    return dir != NULL;
}

peridot_status serve_models_find(struct serve_server *s)
{
    const struct cmd_texts *given = &s->args->models;
    if (given->n == 0) PD_TRY(models_add_model(s, NULL));
    for (size_t i = 0; i < given->n; i++)
        PD_TRY(is_folder_of_models(given->at[i]) ? add_folder(s, given->at[i]) : models_add_model(s, given->at[i]));
    if (s->n_models > 1 && s->args->draft.name && strcmp(s->args->draft.name, "none"))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "--draft needs a server with one model");
    if (s->n_models > 1 && cmd_ranks_count() > 1)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a server on several ranks has one model");
    if (s->n_models > 1 && s->args->model.vision)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "--vision needs a server with one model");
    if (s->n_models > 1 && s->args->alias)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "--alias needs a server with one model");
    if (s->n_models > 1 && s->args->model.adapters.n)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "--lora needs a server with one model");
    if (s->args->alias) snprintf(s->models->id, sizeof s->models->id, "%s", s->args->alias);
    return PERIDOT_OK;
}

void serve_models_free(struct serve_server *s)
{
    for (size_t i = 0; i < s->n_models; i++) free(s->models[i].path);
}

struct cmd_model_args serve_model_args(const struct serve_server *s, const struct serve_model *m)
{
    struct cmd_model_args args = s->args->model;
    args.path = m->path;
    return args;
}

/* ---- in a request ---- */

static bool models_is_name(const char *name, const char *id)
{
    size_t n = strlen(id);
    return strncmp(name, id, n) == 0 && (!name[n] || strcmp(name + n, ":latest") == 0);
}

const struct serve_model *serve_models_get(const struct serve_server *s, const char *name)
{
    for (const struct serve_model *m = s->models; m < s->models + s->n_models; m++)
        if (models_is_name(name, m->id)) return m;
    return NULL;
}

const peridot_adapter *serve_models_get_adapter(const struct serve_server *s, const char *name)
{
    const struct serve_model *m = s->models;
    size_t n = strlen(m->id);
    bool nested = strncmp(name, m->id, n) == 0 && name[n] == ':';
    for (uint32_t i = 0; m->known && i < m->n_adapters; i++)
        if (models_is_name(name, m->adapters[i].name) || (nested && models_is_name(name + n + 1, m->adapters[i].name)))
            return &m->adapters[i];
    return NULL;
}
