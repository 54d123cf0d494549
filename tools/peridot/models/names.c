/* What a model's name means, among those that are on this machine. */
#define _POSIX_C_SOURCE 200809L
#include "models.h"
#include "../base/base.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_CANDIDATES = 6 };

struct part {
    const char *at;
    size_t size;
};

/* "google/gemma-3-1b-it-GGUF/gemma-3-1b-it-Q4_K_M", or "gemma3:1b": base, then what comes behind a colon. */
struct name {
    const char *whole;
    struct part base;      /* before the colon, without .gguf */
    struct part last;      /* its last component */
    struct part stem;      /* that without a type at its end */
    struct part type;      /* behind the colon, or the type in the last component; empty: none */
};

static struct name parse_name(const char *text)
{
    struct name n = {.whole = text};
    const char *slash = strrchr(text, '/'), *colon = strrchr(slash ? slash : text, ':');
    size_t size = colon ? (size_t)(colon - text) : strlen(text), label_size = 0;
    if (size > 5 && strncasecmp(text + size - 5, ".gguf", 5) == 0) size -= 5;
    n.base = (struct part){text, size};
    size_t begin = slash ? (size_t)(slash + 1 - text) : 0;
    n.last = n.stem = (struct part){text + begin, size > begin ? size - begin : 0};
    const char *label = cmd_type_label(&label_size, n.last.at);
    bool ends = label && label + label_size == text + size && label > n.last.at;
    if (ends) n.stem.size = (size_t)(label - 1 - n.last.at);
    n.type = colon ? (struct part){colon + 1, strlen(colon + 1)} : ends ? (struct part){label, label_size}
                                                                        : (struct part){NULL, 0};
    return n;
}

static bool same(struct part a, struct part b) { return a.size == b.size && strncasecmp(a.at, b.at, a.size) == 0; }

static bool begins(struct part a, struct part b)
{
    return b.size && a.size >= b.size && strncasecmp(a.at, b.at, b.size) == 0;
}

static struct part plain(struct part label)
{
    const size_t n = label.at ? cmd_type_marker(label.at, label.size) : 0;
    return (struct part){label.at + n, label.size - n};
}

static const char *type_of(struct part label)
{
    char text[32];
    snprintf(text, sizeof text, "%.*s", (int)pd_min(label.size, sizeof text - 1), label.at ? label.at : "");
    return peridot_type_find(text);
}

/* How a name may mean a model, the strictest way first. At each, types by their labels come before those that only have
 * a marker more (Q4_K_XL for UD-Q4_K_XL), and they before types that are the same (Q4_K for Q4_K_M). */
enum level { WHOLE, BASE, LAST, STEM, BEGIN, N_LEVELS };
enum likeness { LABEL, PLAIN_LABEL, TYPE, N_LIKENESSES };

static bool types_agree(const struct name *wanted, const struct name *model, enum likeness how)
{
    if (how == LABEL) return same(wanted->type, model->type);
    if (how == PLAIN_LABEL) return same(wanted->type, plain(model->type));
    const char *type = type_of(wanted->type);
    return type && type == type_of(plain(model->type));
}

static bool means(const struct name *wanted, const struct name *model, int way)
{
    const enum level level = (enum level)(way / N_LIKENESSES);
    static const char latest[] = ":latest";   /* ollama's default */
    size_t n = strlen(wanted->whole);
    if (level == WHOLE)
        return strcasecmp(model->whole, wanted->whole) == 0
            || (strncasecmp(model->whole, wanted->whole, n) == 0 && strcmp(model->whole + n, latest) == 0);
    bool has_type = strchr(wanted->base.at + wanted->base.size, ':') != NULL;
    if (has_type && !types_agree(wanted, model, (enum likeness)(way % N_LIKENESSES))) return false;
    switch (level) {
    case BASE: return same(wanted->base, model->base);
    case LAST: return same(wanted->base, model->last);
    case STEM: return same(wanted->base, model->stem);
    default: return begins(model->base, wanted->base) || begins(model->stem, wanted->base);
    }
}

/* One or two letters differ, or one name is a part of the other. */
static bool is_near(const struct name *wanted, const struct name *model)
{
    if (cmd_distance(wanted->whole, strlen(wanted->whole), model->whole) <= CMD_NEAR) return true;
    for (size_t i = 0; wanted->stem.size >= 3 && i < model->base.size; i++)
        if (begins((struct part){model->base.at + i, model->base.size - i}, wanted->stem)) return true;
    return begins(wanted->stem, model->stem);
}

/* Names with ", " between them. */
struct names {
    char text[640];
    size_t size, n;
};

static void append_name(struct names *names, const char *name)
{
    if (names->n++ < MAX_CANDIDATES && names->size + 100 < sizeof names->text)
        names->size += (size_t)snprintf(names->text + names->size, sizeof names->text - names->size, "%s%.90s",
                                        names->size ? ", " : "", cmd_shown(name));
    else if (names->n == MAX_CANDIDATES + 1) strcpy(names->text + names->size, ", ...");
}

static peridot_status fail_unknown(const struct cmd_model_list *list, const struct name *wanted)
{
    struct names near = {.n = 0};
    for (size_t i = 0; i < list->n; i++) {
        struct name model = parse_name(list->items[i].name);
        if (is_near(wanted, &model)) append_name(&near, model.whole);
    }
    bool of_hub = strchr(wanted->whole, '/') != NULL;
    return pd_fail(PERIDOT_ERROR_IO, "%s: no such file, and no model of that name on this machine%s%s%s; peridot "
                   "models lists the models here, and peridot pull %s", cmd_shown(wanted->whole),
                   near.n ? " (similar: " : "", near.text, near.n ? ")" : "",
                   of_hub ? "fetches this one if Hugging Face has it" : "OWNER/NAME fetches one from Hugging Face");
}

static peridot_status find_model(char **path, const struct cmd_model_list *list, const struct name *wanted)
{
    for (int way = 0; way < N_LIKENESSES * N_LEVELS; way++) {
        struct names found = {.n = 0};
        const struct cmd_model_file *first = NULL;
        bool differ = false;
        for (size_t i = 0; i < list->n; i++) {
            struct name model = parse_name(list->items[i].name);
            if (!means(wanted, &model, way)) continue;
            if (!first) first = &list->items[i];
            differ |= strcmp(first->path, list->items[i].path) != 0;
            append_name(&found, model.whole);
        }
        if (!first) continue;
        if (differ && way / N_LIKENESSES != WHOLE)   /* of one name in two stores, the first one's is taken */
            return pd_fail(PERIDOT_ERROR_IO, "%s could be any of %s: give more of the name",
                           cmd_shown(wanted->whole), found.text);
        *path = strdup(first->path);
        return *path ? PERIDOT_OK : pd_fail_alloc(strlen(first->path), "path");
    }
    return fail_unknown(list, wanted);
}

bool cmd_model_is_here(const char *name, bool part)
{
    struct cmd_model_list list = {0};
    const struct name wanted = parse_name(name);
    bool found = false;
    if (cmd_model_list_find(&list) == PERIDOT_OK)
        for (int way = 0; way < N_LIKENESSES * (part ? N_LEVELS : BEGIN) && !found; way++)
            for (size_t i = 0; i < list.n && !found; i++) {
                struct name model = parse_name(list.items[i].name);
                found = means(&wanted, &model, way);
            }
    cmd_model_list_free(&list);
    return found;
}

/* Names that can only be paths. */
static bool is_path(const char *name)
{
    static const char *const ends[] = {"/", ".gguf", ".json", ".model", ".safetensors"};
    for (size_t i = 0; i < PD_COUNT(ends); i++)
        if (cmd_ends_with(name, ends[i])) return true;
    return !*name || strchr("/.~", *name);
}

/* The only GGUF model in a folder that is no model by itself, to be freed; NULL: there is none. */
static peridot_status find_gguf(char **path, const char *folder)
{
    struct names found = {.n = 0};
    struct cmd_model_list list = {0};
    peridot_status status = cmd_model_list_folder(&list, folder);
    for (size_t i = 0; i < list.n; i++) append_name(&found, list.items[i].path);
    if (status == PERIDOT_OK && list.n > 1)
        status = pd_fail(PERIDOT_ERROR_IO, "%s has no safetensors with a config.json, and several GGUF files: give "
                         "one of %s", cmd_shown(folder), found.text);
    *path = status == PERIDOT_OK && list.n ? strdup(list.items[0].path) : NULL;
    if (status == PERIDOT_OK && list.n && !*path) status = pd_fail_alloc(strlen(folder), "path");
    cmd_model_list_free(&list);
    return status;
}

peridot_status cmd_model_resolve(char **path, const char *name)
{
    struct cmd_model_list list = {0};
    *path = NULL;
    bool exists = cmd_path_exists(name);
    if (exists) PD_TRY(find_gguf(path, name));
    if (*path) return PERIDOT_OK;
    peridot_status status = exists ? PERIDOT_OK : cmd_model_list_find(&list);
    if (!exists && status == PERIDOT_OK) {
        const struct name wanted = parse_name(name);
        status = find_model(path, &list, &wanted);
    }
    cmd_model_list_free(&list);
    if (!exists && (status == PERIDOT_OK || status == PERIDOT_ERROR_MEMORY || !is_path(name))) return status;
    *path = strdup(name);
    return *path ? PERIDOT_OK : pd_fail_alloc(strlen(name), "path");
}
