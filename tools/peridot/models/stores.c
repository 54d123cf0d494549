/* The models that are on this machine already, wherever another program put them: Hugging Face's cache, ollama's store,
 * LM Studio's folders, llama.cpp's cache, and the folders that PERIDOT_MODELS names. Files are found here, and not
 * opened: what is in them may be anything. */
#define _POSIX_C_SOURCE 200809L
#include "models.h"
#include "../base/base.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <yyjson.h>

/* Bounds for folders that hold much else. */
enum { MAX_DEPTH = 5, MAX_VISITS = 100000, MAX_MANIFEST = 1 << 20, HASH_SIZE = 64 };

/* ---- names of files ---- */

bool cmd_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), size = strlen(end);
    return n >= size && strcasecmp(text + n - size, end) == 0;
}

const char *cmd_shard(uint32_t *i, uint32_t *n, const char *name)
{
    static const char pattern[] = "-00000-of-00000";
    const char *end = strrchr(name, '.');
    if (!end || (size_t)(end - name) < sizeof pattern - 1) return NULL;
    const char *at = end - (sizeof pattern - 1);
    for (size_t k = 0; pattern[k]; k++)
        if (pattern[k] == '0' ? !isdigit((unsigned char)at[k]) : at[k] != pattern[k]) return NULL;
    *i = (uint32_t)strtoul(at + 1, NULL, 10);
    *n = (uint32_t)strtoul(at + 10, NULL, 10);
    return *i >= 1 && *i <= *n ? at : NULL;
}

/* "Q4_K_M", "IQ3_XXS", "TQ1_0", "MXFP4_MOE", "BF16" */
static bool is_label(const char *text, size_t size)
{
    static const char *const plain[] = {"bf16", "f16", "fp16", "f32", "fp32"};
    for (size_t i = 0; i < PD_COUNT(plain); i++)
        if (size == strlen(plain[i]) && strncasecmp(text, plain[i], size) == 0) return true;
    if (size >= 5 && (strncasecmp(text, "mxfp4", 5) == 0 || strncasecmp(text, "nvfp4", 5) == 0)) return true;
    size_t q = size && strchr("iItT", text[0]) ? 1 : 0;
    return size >= q + 4 && (text[q] == 'q' || text[q] == 'Q') && isdigit((unsigned char)text[q + 1])
        && text[q + 2] == '_';
}

/* What publishers put before a type, to tell theirs from the plain one: Unsloth's dynamic mixes, mradermacher's by
 * importance. */
static const char *const markers[] = {"UD-", "i1-"};

size_t cmd_type_marker(const char *label, size_t size)
{
    for (size_t i = 0; i < PD_COUNT(markers); i++) {
        const size_t n = strlen(markers[i]);
        if (size > n && strncasecmp(label, markers[i], n) == 0) return n;
    }
    return 0;
}

/* With the marker before it. */
static const char *widen(const char *name, const char *label, size_t *size)
{
    for (size_t i = 0; i < PD_COUNT(markers); i++) {
        const size_t n = strlen(markers[i]), before = (size_t)(label - name);
        if (before < n || strncasecmp(label - n, markers[i], n) != 0) continue;
        if (before > n && !strchr("-._/", *(label - n - 1))) continue;
        *size += n;
        return label - n;
    }
    return label;
}

const char *cmd_type_label(size_t *size, const char *name)
{
    const char *found = NULL;
    for (const char *at = name; *at; at += strcspn(at, "-._/"), at += *at != 0) {
        size_t n = strcspn(at, "-./");
        if (!is_label(at, n)) continue;
        found = at, *size = n;
        at += n - 1;   /* "0" of "Q8_0" is none of its own */
    }
    return found ? widen(name, found, size) : NULL;
}

bool cmd_vision_is_named(const char *path)
{
    static const char word[] = "mmproj";
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!cmd_ends_with(name, ".gguf")) return false;
    for (; *name; name++)
        if (strncasecmp(name, word, sizeof word - 1) == 0) return true;
    return false;
}

/* ---- the list ---- */

static peridot_status stores_add_model(struct cmd_model_list *list, const char *store, const char *name,
                                       const char *path, uint64_t size)
{
    PD_TRY(pd_array_reserve(&list->items, &list->capacity, list->n, 1, sizeof *list->items, "list of models"));
    struct cmd_model_file file = {strdup(name), strdup(path), store, size};
    list->items[list->n++] = file;
    return file.name && file.path ? PERIDOT_OK : pd_fail_alloc(strlen(name) + strlen(path), "list of models");
}

void cmd_model_list_free(struct cmd_model_list *list)
{
    for (size_t i = 0; i < list->n; i++) free(list->items[i].name), free(list->items[i].path);
    free(list->items);
    *list = (struct cmd_model_list){0};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct cmd_model_file *)a)->name, ((const struct cmd_model_file *)b)->name);
}

static bool is_listed(const struct cmd_model_list *list, const char *store, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].store == store && strcmp(list->items[i].name, name) == 0) return true;
    return false;
}

static bool stores_join(char out[CMD_PATH_SIZE], const char *folder, const char *name)
{
    int size = snprintf(out, CMD_PATH_SIZE, "%s/%s", folder, name);
    return size > 0 && size < CMD_PATH_SIZE;
}

/* The next entry of a folder that is not hidden, with its path and what it is; links are followed. */
static bool next_entry(char path[CMD_PATH_SIZE], struct stat *st, DIR *dir, const char *folder,
                       struct cmd_model_list *list)
{
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL && list->n_visits < MAX_VISITS) {
        list->n_visits++;
        if (entry->d_name[0] != '.' && stores_join(path, folder, entry->d_name) && stat(path, st) == 0) return true;
    }
    return false;
}

/* ---- folders of files ---- */

struct walk {
    struct cmd_model_list *list;
    const char *store;
    const char *repo;         /* of Hugging Face's cache: its name, which begins those of its models; else NULL */
    const char *root;
    const char *tower_of;     /* of ollama's store: see add_manifest */
    char tower[CMD_PATH_SIZE];
    struct stat above[MAX_DEPTH + 1];   /* the folders that lead to the present one */
};

static uint64_t file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/* Of all shards, where the path is one's. */
static uint64_t gguf_size(const char *path)
{
    uint32_t i, n;
    const char *at = cmd_shard(&i, &n, path);
    uint64_t size = 0;
    char shard[CMD_PATH_SIZE + 32];
    if (!at) return file_size(path);
    for (i = 1; i <= n && i < 1000; i++) {
        snprintf(shard, sizeof shard, "%.*s-%05u-of-%05u.gguf", (int)(at - path), path, (unsigned)i, (unsigned)n);
        size += file_size(shard);
    }
    return size;
}

static peridot_status add_gguf(struct walk *w, const char *path)
{
    char name[2 * CMD_PATH_SIZE];
    uint32_t i = 1, n;
    const char *below = path + strlen(w->root) + 1, *shard = cmd_shard(&i, &n, below);
    if (i > 1 || cmd_vision_is_named(below)) return PERIDOT_OK;   /* not the first shard; a vision tower by itself */
    size_t size, stem = shard ? (size_t)(shard - below) : strlen(below) - strlen(".gguf");
    const char *label = w->repo ? cmd_type_label(&size, below) : NULL;
    if (label) snprintf(name, sizeof name, "%s:%.*s", w->repo, (int)size, label);
    else if (!w->repo) snprintf(name, sizeof name, "%.*s", (int)stem, below);
    if ((w->repo && !label) || is_listed(w->list, w->store, name))
        snprintf(name, sizeof name, "%s%s%s", w->repo ? w->repo : "", w->repo ? "/" : "", below);
    return stores_add_model(w->list, w->store, name, path, gguf_size(path));
}

static peridot_status add_directory(struct walk *w, const char *path, uint64_t size)
{
    char name[2 * CMD_PATH_SIZE];
    const char *below = path + strlen(w->root);
    if (w->repo) snprintf(name, sizeof name, "%s%s", w->repo, below);
    else snprintf(name, sizeof name, "%s", *below ? below + 1 : strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    return stores_add_model(w->list, w->store, name, path, size);
}

/* Whether the folder is, by a link, one of those that lead to it. */
static bool is_circle(struct walk *w, const char *folder, int depth)
{
    if (stat(folder, &w->above[depth]) != 0) return true;
    for (int i = 0; i < depth; i++)
        if (w->above[depth].st_ino && w->above[i].st_ino == w->above[depth].st_ino   /* Windows has no numbers */
            && w->above[i].st_dev == w->above[depth].st_dev) return true;
    return false;
}

/* "2_Dense" of a sentence-transformers model, which is a part of it and no model. */
static bool is_module(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    const size_t n = strspn(name, "0123456789");
    return n && name[n] == '_';
}

static peridot_status walk_folder(struct walk *w, const char *folder, int depth)
{
    char path[CMD_PATH_SIZE];
    struct stat st;
    bool has_config = false;
    const bool has_modules = stores_join(path, folder, "modules.json") && pd_is_file(path);
    uint64_t size = 0;   /* of weights */
    peridot_status status = PERIDOT_OK;
    DIR *dir = is_circle(w, folder, depth) ? NULL : opendir(folder);
    while (dir && status == PERIDOT_OK && next_entry(path, &st, dir, folder, w->list)) {
        if (S_ISDIR(st.st_mode) && has_modules && is_module(path)) continue;
        if (S_ISDIR(st.st_mode)) status = depth < MAX_DEPTH ? walk_folder(w, path, depth + 1) : PERIDOT_OK;
        else if (!S_ISREG(st.st_mode)) continue;   /* reading a FIFO would wait */
        else if (cmd_ends_with(path, ".gguf")) status = add_gguf(w, path);
        else if (cmd_ends_with(path, ".safetensors")) size += (uint64_t)st.st_size;
        else has_config |= cmd_ends_with(path, "/config.json");
    }
    if (dir) closedir(dir);
    return status == PERIDOT_OK && has_config && size ? add_directory(w, folder, size) : status;
}

static peridot_status list_folder(struct cmd_model_list *list, const char *store, const char *root)
{
    return walk_folder(&(struct walk){.list = list, .store = store, .root = root}, root, 0);
}

peridot_status cmd_model_list_folder(struct cmd_model_list *out, const char *folder)
{
    static const char *const marks[] = {"model.safetensors", "model.safetensors.index.json"};
    const size_t n = strlen(folder);
    char root[CMD_PATH_SIZE], path[CMD_PATH_SIZE];
    struct walk w = {.list = out, .store = "", .root = root};
    struct stat st;
    peridot_status status = PERIDOT_OK;
    *out = (struct cmd_model_list){.n = 0};
    snprintf(root, sizeof root, "%.*s", (int)(n > 1 && folder[n - 1] == '/' ? n - 1 : n), folder);
    for (size_t i = 0; i < PD_COUNT(marks); i++)
        if (stores_join(path, root, marks[i]) && pd_is_file(path)) return PERIDOT_OK;
    DIR *dir = n < sizeof root ? opendir(folder) : NULL;
    while (dir && status == PERIDOT_OK && next_entry(path, &st, dir, root, out))
        if (S_ISREG(st.st_mode) && cmd_ends_with(path, ".gguf")) status = add_gguf(&w, path);
    if (dir) closedir(dir);
    if (out->n) qsort(out->items, out->n, sizeof *out->items, by_name);
    return status;
}

/* ---- Hugging Face's cache: models--OWNER--NAME/{blobs,refs,snapshots/COMMIT} ---- */

/* The snapshot of refs/main, or else the newest. */
static bool find_snapshot(char out[CMD_PATH_SIZE], const char *repo, struct cmd_model_list *list)
{
    char path[CMD_PATH_SIZE], commit[HASH_SIZE + 1] = "";
    struct stat st;
    bool found = false;
    time_t newest = 0;
    FILE *file = stores_join(path, repo, "refs/main") && file_size(path) ? fopen(path, "rb") : NULL;
    if (file) {
        commit[fread(commit, 1, HASH_SIZE, file)] = 0;
        fclose(file);
    }
    commit[strspn(commit, "0123456789abcdef")] = 0;
    int size = *commit ? snprintf(out, CMD_PATH_SIZE, "%s/snapshots/%s", repo, commit) : 0;
    if (size > 0 && size < CMD_PATH_SIZE && stat(out, &st) == 0 && S_ISDIR(st.st_mode)) return true;
    char snapshots[CMD_PATH_SIZE];
    DIR *dir = stores_join(snapshots, repo, "snapshots") ? opendir(snapshots) : NULL;
    while (dir && next_entry(path, &st, dir, snapshots, list)) {
        if (!S_ISDIR(st.st_mode) || (found && st.st_mtime <= newest)) continue;
        strcpy(out, path);
        newest = st.st_mtime, found = true;
    }
    if (dir) closedir(dir);
    return found;
}

static peridot_status list_hub(struct cmd_model_list *list, const char *store, const char *root)
{
    static const char prefix[] = "models--";
    char path[CMD_PATH_SIZE], snapshot[CMD_PATH_SIZE], name[CMD_PATH_SIZE];
    struct stat st;
    peridot_status status = PERIDOT_OK;
    DIR *dir = opendir(root);
    while (dir && status == PERIDOT_OK && next_entry(path, &st, dir, root, list)) {
        const char *folder = strrchr(path, '/') + 1;
        if (!S_ISDIR(st.st_mode) || strncmp(folder, prefix, sizeof prefix - 1) != 0) continue;
        if (!find_snapshot(snapshot, path, list)) continue;
        strcpy(name, folder + sizeof prefix - 1);
        for (char *at; (at = strstr(name, "--")) != NULL;) {
            *at = '/';
            memmove(at + 1, at + 2, strlen(at + 2) + 1);
        }
        status = walk_folder(&(struct walk){.list = list, .store = store, .repo = name, .root = snapshot}, snapshot, 0);
    }
    if (dir) closedir(dir);
    return status;
}

/* ---- ollama's store: manifests/HOST/NAMESPACE/MODEL/TAG, blobs/sha256-... ---- */

/* A layer in a manifest, "model" or "projector": its blob's hash, or NULL. */
static const char *find_layer(uint64_t *size, yyjson_val *manifest, const char *kind)
{
    static const char prefix[] = "application/vnd.ollama.image.";
    static const char sha[] = "sha256:";
    size_t i, n;
    yyjson_val *layer;
    yyjson_arr_foreach(yyjson_obj_get(manifest, "layers"), i, n, layer) {
        const char *type = yyjson_get_str(yyjson_obj_get(layer, "mediaType"));
        const char *digest = yyjson_get_str(yyjson_obj_get(layer, "digest"));
        if (!type || strncmp(type, prefix, sizeof prefix - 1) != 0 || strcmp(type + sizeof prefix - 1, kind) != 0)
            continue;
        if (!digest || strncmp(digest, sha, sizeof sha - 1) != 0) continue;
        digest += sizeof sha - 1;
        *size = yyjson_get_uint(yyjson_obj_get(layer, "size"));
        if (strlen(digest) == HASH_SIZE && strspn(digest, "0123456789abcdef") == HASH_SIZE) return digest;
    }
    return NULL;
}

/* "gemma3:1b" of ".../registry.ollama.ai/library/gemma3/1b"; other hosts and namespaces stay in front. */
static void name_manifest(char name[CMD_PATH_SIZE], const char *below)
{
    static const char host[] = "registry.ollama.ai/", library[] = "library/";
    if (strncmp(below, host, sizeof host - 1) == 0) below += sizeof host - 1;
    if (strncmp(below, library, sizeof library - 1) == 0) below += sizeof library - 1;
    strcpy(name, below);
    char *tag = strrchr(name, '/');
    if (tag) *tag = ':';
}

static bool blob_path(char out[CMD_PATH_SIZE], const char *root, const char *hash)
{
    int size = hash ? snprintf(out, CMD_PATH_SIZE, "%s/blobs/sha256-%s", root, hash) : 0;
    return size > 0 && size < CMD_PATH_SIZE;
}

/* Where w->tower_of is set: only the tower beside that blob is wanted, in w->tower. */
static peridot_status add_manifest(struct walk *w, const char *path, const struct stat *st)
{
    char name[CMD_PATH_SIZE], blob[CMD_PATH_SIZE], tower[CMD_PATH_SIZE];
    char *text;
    size_t text_size;
    uint64_t size, tower_size;
    if (!S_ISREG(st->st_mode) || st->st_size > MAX_MANIFEST) return PERIDOT_OK;
    if (cmd_read_file(&text, &text_size, path) != PERIDOT_OK) return PERIDOT_OK;
    yyjson_doc *doc = yyjson_read(text, text_size, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    bool found = blob_path(blob, w->root, find_layer(&size, root, "model"));
    bool sees = blob_path(tower, w->root, find_layer(&tower_size, root, "projector"));
    yyjson_doc_free(doc);
    free(text);
    if (w->tower_of) {
        if (found && sees && strcmp(blob, w->tower_of) == 0) strcpy(w->tower, tower);
        return PERIDOT_OK;
    }
    if (!found) return PERIDOT_OK;
    name_manifest(name, path + strlen(w->root) + sizeof "/manifests");
    return stores_add_model(w->list, w->store, name, blob, size);
}

static peridot_status walk_manifests(struct walk *w, const char *folder, int depth)
{
    char path[CMD_PATH_SIZE];
    struct stat st;
    peridot_status status = PERIDOT_OK;
    DIR *dir = opendir(folder);
    while (dir && status == PERIDOT_OK && next_entry(path, &st, dir, folder, w->list)) {
        if (!S_ISDIR(st.st_mode)) status = add_manifest(w, path, &st);
        else if (depth < MAX_DEPTH) status = walk_manifests(w, path, depth + 1);
    }
    if (dir) closedir(dir);
    return status;
}

static peridot_status list_ollama(struct cmd_model_list *list, const char *store, const char *root)
{
    char manifests[CMD_PATH_SIZE];
    if (!stores_join(manifests, root, "manifests")) return PERIDOT_OK;
    return walk_manifests(&(struct walk){.list = list, .store = store, .root = root}, manifests, 1);
}

peridot_status cmd_ollama_vision(char **path, const char *model)
{
    static const char word[] = "/blobs/sha256-";
    char root[CMD_PATH_SIZE], manifests[CMD_PATH_SIZE];
    struct cmd_model_list list = {0};
    struct walk w = {.list = &list, .root = root, .tower_of = model};
    const char *at = strstr(model, word);
    *path = NULL;
    if (!at || strlen(at) != sizeof word - 1 + HASH_SIZE) return PERIDOT_OK;
    snprintf(root, sizeof root, "%.*s", (int)(at - model), model);
    if (!stores_join(manifests, root, "manifests")) return PERIDOT_OK;
    PD_TRY(walk_manifests(&w, manifests, 1));
    *path = *w.tower ? strdup(w.tower) : NULL;
    return *path || !*w.tower ? PERIDOT_OK : pd_fail_alloc(strlen(w.tower), "path");
}

/* ---- all of them ---- */

/* Where the stores are; a row with `otherwise` is for where no variable of an earlier row of its store is set. */
static const struct place {
    const char *store, *variable, *below;
    peridot_status (*list)(struct cmd_model_list *list, const char *store, const char *root);
    bool otherwise;
} places[] = {
    {"Hugging Face", "HF_HUB_CACHE", "", list_hub, false},
    {"Hugging Face", "HUGGINGFACE_HUB_CACHE", "", list_hub, true},
    {"Hugging Face", "HF_HOME", "/hub", list_hub, true},
    {"Hugging Face", "XDG_CACHE_HOME", "/huggingface/hub", list_hub, true},
    {"Hugging Face", "HOME", "/.cache/huggingface/hub", list_hub, true},
    {"ollama", "OLLAMA_MODELS", "", list_ollama, false},
    {"ollama", "HOME", "/.ollama/models", list_ollama, true},
    {"ollama", NULL, "/usr/share/ollama/.ollama/models", list_ollama, false},   /* of its service on Linux */
    {"LM Studio", "HOME", "/.lmstudio/models", list_folder, false},
    {"LM Studio", "HOME", "/.cache/lm-studio/models", list_folder, false},
    {"llama.cpp", "LLAMA_CACHE", "", list_folder, false},
    {"llama.cpp", "XDG_CACHE_HOME", "/llama.cpp", list_folder, true},
    {"llama.cpp", "HOME", "/.cache/llama.cpp", list_folder, true},
};

bool cmd_env_path(char path[CMD_PATH_SIZE], const char *variable, const char *below)
{
    const char *value = variable ? getenv(variable) : "";
    if (!value || (variable && !*value)) return false;
    size_t n = strlen(value);
    while (n > 1 && value[n - 1] == '/') n--;
    int size = snprintf(path, CMD_PATH_SIZE, "%.*s%s", (int)pd_min(n, CMD_PATH_SIZE), value, below);
    return size > 0 && size < CMD_PATH_SIZE;
}

static peridot_status make_parents(const char *path)
{
    char folder[CMD_PATH_SIZE];
    for (const char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
        snprintf(folder, sizeof folder, "%.*s", (int)(at - path), path);
        if (!cache_make_folder(folder)) return pd_fail(PERIDOT_ERROR_IO, "%s cannot be made", cmd_shown(folder));
    }
    return PERIDOT_OK;
}

peridot_status cmd_write_file(const char *path, const char *text)
{
    struct pd_writer output;
    PD_TRY(make_parents(path));
    PD_TRY(pd_writer_open(&output, path));
    peridot_status status = pd_writer_write(&output, text, strlen(text));
    if (status == PERIDOT_OK && text[strlen(text) - 1] != '\n') status = pd_writer_write(&output, "\n", 1);
    if (status == PERIDOT_OK) return pd_writer_commit(&output);
    pd_writer_abort(&output);
    return status;
}

bool cmd_hub_cache(char path[CMD_PATH_SIZE])
{
    for (size_t i = 0; i < PD_COUNT(places) && places[i].list == list_hub; i++)
        if (cmd_env_path(path, places[i].variable, places[i].below)) return true;
    return false;
}

static peridot_status list_place(struct cmd_model_list *out, const struct place *place, const char *root)
{
    size_t begin = out->n;
    peridot_status status = place->list(out, place->store, root);
    if (out->n > begin) qsort(out->items + begin, out->n - begin, sizeof *out->items, by_name);
    return status;
}

/* The folders of PERIDOT_MODELS. */
static peridot_status list_own(struct cmd_model_list *out)
{
    const struct place place = {"PERIDOT_MODELS", NULL, "", list_folder, false};
    const char *value = getenv("PERIDOT_MODELS");
    char root[CMD_PATH_SIZE];
    for (size_t size; value && *value; value += size + (value[size] != 0)) {
        size = strcspn(value, cmd_list_separator);
        size_t n = size;
        while (n > 1 && value[n - 1] == '/') n--;
        if (n == 0 || n >= CMD_PATH_SIZE) continue;
        memcpy(root, value, n);
        root[n] = 0;
        PD_TRY(list_place(out, &place, root));
    }
    return PERIDOT_OK;
}

peridot_status cmd_model_list_find(struct cmd_model_list *out)
{
    char root[CMD_PATH_SIZE];
    const char *found = NULL;   /* the store that has been looked at */
    *out = (struct cmd_model_list){0};
    PD_TRY(list_own(out));
    for (size_t i = 0; i < PD_COUNT(places); i++) {
        const struct place *place = &places[i];
        if (place->otherwise && found && strcmp(found, place->store) == 0) continue;
        if (!cmd_env_path(root, place->variable, place->below)) continue;
        found = place->store;
        PD_TRY(list_place(out, place, root));
    }
    if (out->n_visits >= MAX_VISITS)
        fprintf(stderr, "more than %d files in the folders of models: the rest was not searched\n", MAX_VISITS);
    return PERIDOT_OK;
}
