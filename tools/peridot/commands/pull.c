/* peridot pull: a model of huggingface.co, or of a hub like it, into Hugging Face's cache on this machine. Nothing else
 * in Peridot asks another host for anything. */
#include "../models/models.h"
#include "../cli/cli.h"
#include "../base/base.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct pull_args {
    const char *name, *revision;
    bool no_vision;
};

static const struct cmd_option options[] = {
    {.metavar = "NAME", .kind = CMD_TEXT, .offset = offsetof(struct pull_args, name), .required = true,
     .help = "OWNER/MODEL, as the hub has it; or OWNER/MODEL:TYPE, its GGUF file of that type (Q4_K_M, q8_0, "
             "UD-Q4_K_XL); or OWNER/MODEL/FILE, one of its files."},
    {.name = "revision", .metavar = "REV", .kind = CMD_TEXT, .offset = offsetof(struct pull_args, revision),
     .fallback = "main", .help = "A branch, a tag or a commit."},
    {.name = "no-vision", .kind = CMD_FLAG, .offset = offsetof(struct pull_args, no_vision),
     .help = "Leave out the file with the vision tower of a GGUF model (mmproj), without which it sees no images."},
};

/* ---- which files ---- */

struct wanted {
    char repo[256];
    const char *type, *file;   /* one of them at most */
};

static bool pull_is_name(const char *text, size_t size, const char *more)
{
    size_t n = 0;
    while (n < size && text[n] && (strchr(more, text[n]) || (text[n] >= '0' && text[n] <= '9')
                                   || ((text[n] | 0x20) >= 'a' && (text[n] | 0x20) <= 'z'))) n++;
    return size && n == size && !strstr(text, "..") && !strchr("./", text[0]) && text[size - 1] != '/';
}

/* OWNER/MODEL, and what comes behind it. */
static bool parse_wanted(struct wanted *out, const char *text)
{
    *out = (struct wanted){.type = NULL};
    size_t owner = strcspn(text, "/:");
    if (text[owner] != '/') return false;
    size_t n = owner + 1 + strcspn(text + owner + 1, "/:");
    if (n >= sizeof out->repo || !pull_is_name(text, owner, "._-")
        || !pull_is_name(text + owner + 1, n - owner - 1, "._-"))
        return false;
    memcpy(out->repo, text, n);
    if (text[n] == ':') out->type = text + n + 1;
    if (text[n] == '/') out->file = text + n + 1;
    return !text[n] || text[n + 1];
}

static bool is_gguf(const struct hub_file *f)
{
    return cmd_ends_with(f->path, ".gguf") && !cmd_vision_is_named(f->path) && !strstr(f->path, "imatrix");
}

/* Files that are one, in shards, have the same name but for the number. */
static bool is_same_set(const char *a, const char *b)
{
    uint32_t i, j, n, m;
    const char *at = cmd_shard(&i, &n, a), *bt = cmd_shard(&j, &m, b);
    if (!at || !bt) return strcmp(a, b) == 0;
    return n == m && at - a == bt - b && memcmp(a, b, (size_t)(at - a)) == 0
        && strcmp(strrchr(a, '.'), strrchr(b, '.')) == 0;
}

static void want_set(struct hub *hub, const char *path)
{
    for (size_t i = 0; i < hub->n; i++) hub->files[i].wanted |= is_same_set(hub->files[i].path, path);
}

/* Lists the GGUF files, by their types or by their paths. */
static peridot_status fail_choice(const struct hub *hub, const char *why, bool by_path)
{
    char types[400] = "";
    size_t size = 0;
    for (size_t i = 0; i < hub->n; i++) {
        uint32_t shard = 1, n;
        size_t label_size = 0;
        const char *path = hub->files[i].path;
        cmd_shard(&shard, &n, path);
        if (!is_gguf(&hub->files[i]) || shard > 1 || size + 110 > sizeof types) continue;
        const char *label = by_path ? NULL : cmd_type_label(&label_size, path);
        if (!label) label = path, label_size = strlen(path);
        size += (size_t)snprintf(types + size, sizeof types - size, "%s%.*s", size ? ", " : "",
                                 (int)pd_min(label_size, 100), label);
    }
    if (!size) return pd_fail(PERIDOT_ERROR_IO, "%s %s; it has no GGUF files", hub->repo, why);
    return pd_fail(PERIDOT_ERROR_IO, "%s %s; its GGUF files: %s", hub->repo, why, cmd_shown(types));
}

/* Whether a file's name ends so, before its number as a shard: "Q4_K_XL" of "...-UD-Q4_K_XL.gguf". */
static bool ends_in_type(const char *path, const char *type)
{
    uint32_t i, n;
    const char *end = cmd_shard(&i, &n, path);
    const size_t size = end ? (size_t)(end - path) : strlen(path) - strlen(".gguf"), n_type = strlen(type);
    return size > n_type && strchr("-._/", path[size - n_type - 1])
        && strncasecmp(path + size - n_type, type, n_type) == 0;
}

/* The GGUF file of a type: of the very label, or else of one that ends so, or else, unless it must be `exact`, of one
 * that means the same. */
static peridot_status want_type(struct hub *hub, const char *type, bool exact)
{
    const char *meant = peridot_type_find(type), *found = NULL;
    char why[160];
    for (int way = 0; way < (exact ? 2 : 3) && !found; way++)
        for (size_t i = 0; i < hub->n; i++) {
            char label[32];
            size_t size = 0;
            const char *path = hub->files[i].path, *at = is_gguf(&hub->files[i]) ? cmd_type_label(&size, path) : NULL;
            snprintf(label, sizeof label, "%.*s", (int)pd_min(size, sizeof label - 1), at ? at : "");
            bool same = at && strcasecmp(label, type) == 0;
            if (way == 1) same = is_gguf(&hub->files[i]) && ends_in_type(path, type);
            if (way == 2) same = meant && meant == peridot_type_find(label + cmd_type_marker(label, size));
            if (!same || (found && is_same_set(found, path))) continue;
            snprintf(why, sizeof why, "has several files of type %.30s: name one, as %.60s/FILE", cmd_shown(type),
                     hub->repo);
            if (found) return fail_choice(hub, why, true);
            found = path;
        }
    snprintf(why, sizeof why, "has no GGUF file of type %.30s", cmd_shown(type));
    if (!found) return fail_choice(hub, why, false);
    want_set(hub, found);
    return PERIDOT_OK;
}

/* What a Hugging Face directory is made of: in the top folder, and none of another program's. */
static bool is_of_directory(const char *path)
{
    static const char *const ends[] = {".safetensors", ".json", ".jinja", "tokenizer.model"};
    if (strchr(path, '/') || strncmp(path, "consolidated", 12) == 0 || strncmp(path, "adapter", 7) == 0) return false;
    for (size_t i = 0; i < PD_COUNT(ends); i++)
        if (cmd_ends_with(path, ends[i])) return true;
    return false;
}

/* Without a type or file: the directory, or else the only GGUF file, or the one that most people take. */
static peridot_status want_model(struct hub *hub)
{
    static const char usual[] = "Q4_K_M";
    bool has_config = false, has_weights = false;
    const char *first = NULL;
    bool several = false;
    for (size_t i = 0; i < hub->n; i++) {
        const char *path = hub->files[i].path;
        has_config |= strcmp(path, "config.json") == 0;
        has_weights |= is_of_directory(path) && cmd_ends_with(path, ".safetensors");
        if (!is_gguf(&hub->files[i])) continue;
        if (!first) first = path;
        several |= !is_same_set(first, path);
    }
    if (has_config && has_weights) {
        for (size_t i = 0; i < hub->n; i++) hub->files[i].wanted = is_of_directory(hub->files[i].path);
        return PERIDOT_OK;
    }
    if (!first) return fail_choice(hub, "has no safetensors files with a config.json", false);
    if (!several) want_set(hub, first);
    else if (want_type(hub, usual, true) != PERIDOT_OK)
        return fail_choice(hub, "has several GGUF files: name a type, as OWNER/MODEL:Q8_0", false);
    else fprintf(stderr, "of several GGUF files: %s\n", usual);
    return PERIDOT_OK;
}

static peridot_status pull_choose(struct hub *hub, const struct wanted *wanted)
{
    if (wanted->type) return want_type(hub, wanted->type, false);
    if (!wanted->file) return want_model(hub);
    for (size_t i = 0; i < hub->n; i++)
        if (strcmp(hub->files[i].path, wanted->file) == 0) {
            want_set(hub, wanted->file);
            return PERIDOT_OK;
        }
    char why[128];
    snprintf(why, sizeof why, "has no file %.90s", cmd_shown(wanted->file));
    return fail_choice(hub, why, true);
}

/* The vision tower of a GGUF model that is wanted: of several, the one that cmd_vision_find would take. */
static void want_vision(struct hub *hub)
{
    struct hub_file *best = NULL;
    const char *model = NULL;
    for (size_t i = 0; i < hub->n && !model; i++)
        if (hub->files[i].wanted && is_gguf(&hub->files[i])) model = hub->files[i].path;
    for (size_t i = 0; i < hub->n && model; i++) {
        struct hub_file *f = &hub->files[i];
        if (!cmd_vision_is_named(f->path)) continue;
        if (!best || cmd_vision_rank(f->path, model) > cmd_vision_rank(best->path, model)) best = f;
    }
    if (!best) return;
    best->wanted = true;
    fprintf(stderr, "with its vision tower: %s, %s (--no-vision leaves it out)\n", cmd_shown(best->path),
            cmd_size_text(best->size));
}

/* ---- fetching ---- */

static peridot_status fetch(struct hub *hub, const struct hub_cache *cache)
{
    uint64_t missing = 0;   /* of the total, so that it needs no check of its own */
    struct hub_progress progress = {.total = 0};
    for (size_t i = 0; i < hub->n; i++) {
        const struct hub_file *f = &hub->files[i];
        if (!f->wanted) continue;
        if (f->size > UINT64_MAX - progress.total)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: %s and the files before it have more bytes than there can be",
                           hub->repo, cmd_shown(f->path));
        missing += hub_cache_missing(cache, f);
        progress.total += f->size;
    }
    PD_TRY(hub_cache_check_room(cache, missing));
    fprintf(stderr, "%s: %s to fetch of %s\n", hub->repo, cmd_size_text(missing), cmd_size_text(progress.total));
    progress.line = cmd_progress_begin("fetching");
    progress.line.begin = progress.total - missing;
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; i < hub->n && status == PERIDOT_OK; i++) {
        if (!hub->files[i].wanted) continue;
        status = hub_cache_fetch(cache, hub, &hub->files[i], &progress);
        progress.before += hub->files[i].size;
    }
    cmd_progress_end(&progress.line);
    if (status == PERIDOT_CANCELLED) fputs("what was fetched is kept: the same command goes on from there\n", stderr);
    return status == PERIDOT_OK ? hub_cache_set_revision(cache, hub) : status;
}

/* A shell takes it for one word and nothing else: names of a hub may be anything. */
static bool is_plain(const char *text, size_t size) { return pull_is_name(text, size, "._-+=/"); }

/* Says how to run the model; that Peridot cannot run it is no failure of fetching it. The path is the cache's, and then
 * the hub's, which may not drive the terminal. */
static peridot_status report_model(const struct hub *hub, const struct hub_cache *cache, const struct wanted *wanted)
{
    char path[2 * CMD_PATH_SIZE], shown[2 * CMD_PATH_SIZE] = "";
    const char *file = wanted->file;
    peridot_file *model;
    size_t size = 0;
    for (size_t i = hub->n; i-- > 0;)   /* the first shard */
        if (hub->files[i].wanted && is_gguf(&hub->files[i])) file = hub->files[i].path;
    snprintf(path, sizeof path, "%s%s%s", cache->snapshot, file ? "/" : "", file ? file : "");
    if (file) peridot_printable(shown, sizeof shown, file, strlen(file));
    printf("%s%s%s\n", cache->snapshot, file ? "/" : "", shown);
    if (file && !cmd_ends_with(file, ".gguf")) return PERIDOT_OK;
    const char *label = file ? cmd_type_label(&size, file) : NULL;
    peridot_status status = peridot_file_open(&model, path);
    if (status == PERIDOT_OK) status = peridot_file_check(model);
    if (status != PERIDOT_OK) fprintf(stderr, "Peridot cannot run it: %s\n", peridot_last_error());
    else if (label && is_plain(label, size))
        fprintf(stderr, "run it: peridot chat -m %s:%.*s\n", hub->repo, (int)size, label);
    else if (!file || is_plain(file, strlen(file)))
        fprintf(stderr, "run it: peridot chat -m %s%s%s\n", hub->repo, file ? "/" : "", file ? file : "");
    else fputs("its name is not one to type: peridot chat -m takes its path\n", stderr);
    peridot_file_close(model);
    return PERIDOT_OK;
}

static peridot_status pull(const struct pull_args *args, const struct wanted *wanted)
{
    struct hub hub;
    struct hub_cache cache;
    peridot_status status = hub_open(&hub, wanted->repo, args->revision);
    if (status == PERIDOT_OK) status = pull_choose(&hub, wanted);
    if (status == PERIDOT_OK && !args->no_vision) want_vision(&hub);
    if (status == PERIDOT_OK) status = hub_cache_open(&cache, &hub);
    if (status == PERIDOT_OK) status = fetch(&hub, &cache);
    if (status == PERIDOT_OK) status = report_model(&hub, &cache, wanted);
    hub_close(&hub);
    return status;
}

static bool is_offline(void)
{
    static const char *const yes[] = {"1", "on", "yes", "true"};
    const char *value = getenv("HF_HUB_OFFLINE");
    for (size_t i = 0; value && i < PD_COUNT(yes); i++)
        if (strcasecmp(value, yes[i]) == 0) return true;
    return false;
}

static int run_pull(const struct cmd_command *command, const void *arguments)
{
    const struct pull_args *args = arguments;
    struct wanted wanted;
    if (!parse_wanted(&wanted, args->name))
        return cmd_usage(command, "%s does not name a model on a hub: OWNER/MODEL, such as google/gemma-3-1b-it",
                         args->name);
    if (!pull_is_name(args->revision, strlen(args->revision), "._-/"))
        return cmd_usage(command, "%s is not the name of a revision", args->revision);
    if (is_offline())
        return cmd_exit(pd_fail(PERIDOT_ERROR_IO, "HF_HUB_OFFLINE is set: nothing is fetched"));
    cmd_interrupt_watch();
    return cmd_exit(pull(args, &wanted));
}

const struct cmd_command cmd_pull = {
    .name = "pull",
    .summary = "fetch a model from Hugging Face",
    .description =
        "Fetches a model into Hugging Face's cache, in the cache's own layout, so that other programs find it too, and "
        "prints its path; peridot models lists it, and -m takes its name. From a repository with safetensors, the "
        "files that Peridot needs are fetched; from one with several GGUF files, the file of the type that is named, "
        "or of Q4_K_M. All shards of a file are fetched, and with a GGUF file the one of its vision tower (mmproj), if "
        "the repository has any: the f16 one of several, or else the q8_0 one.\n\n"
        "Files that are there already are not fetched again, and an interrupted download is resumed. Every file is "
        "checked against the hub's hash. No other command of Peridot contacts another host.\n\n"
        "Gated models need a token of an account that has accepted their licence: in HF_TOKEN, or in the file that hf "
        "auth login writes. HF_HUB_CACHE and HF_HOME say where the cache is, HF_ENDPOINT names another hub, "
        "https_proxy a proxy, and SSL_CERT_FILE the certificates to trust instead of the system's.",
    .examples = "peridot pull ggml-org/gemma-3-1b-it-GGUF:Q4_K_M\n"
                "peridot pull google/gemma-3-1b-it\n"
                "peridot pull ggml-org/gemma-3-1b-it-GGUF/gemma-3-1b-it-Q8_0.gguf",
    CMD_ARGUMENTS(options, struct pull_args),
    .run = run_pull,
};
