/* The programs and servers that a toolbox is made of, as JSON files name them:
 *     {"mcpServers": {NAME: {"command": "PROGRAM", "args": [...], "env": {...}, "cwd": "FOLDER"},
 *                     NAME: {"url": "http://...", "headers": {...}}},
 *      "tools": [{"name": NAME, "description": "...", "parameters": SCHEMA, "command": ["PROGRAM", "ARG", ...]}]}
 * "mcpServers" is what other programs keep on disk ("servers" in some): comments, commas at the end of lists, keys that
 * are not known and ${NAME} for variables of the environment are allowed there. Each may also have "timeout" (seconds
 * for a call), "max_output" (bytes of a result) and "allow" (true, or names of a server's tools): what may be called
 * without a question. */
#define _POSIX_C_SOURCE 200809L
#include "../base/base.h"
#include "toolbox_.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

enum { MAX_ENTRIES = 256, MAX_SECONDS = 86400, MIN_OUTPUT = 64, MAX_OUTPUT = 16 << 20 };

/* ---- lists of texts ---- */

peridot_status toolbox_texts_add(struct toolbox_texts *t, const char *text)
{
    PD_TRY(pd_array_reserve(&t->at, &t->capacity, t->n, 2, sizeof *t->at, "list of texts"));
    char *copy = strdup(text);
    if (!copy) return pd_fail_alloc(strlen(text), "text");
    t->at[t->n++] = copy;
    t->at[t->n] = NULL;
    return PERIDOT_OK;
}

bool toolbox_texts_have(const struct toolbox_texts *t, const char *text)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->at[i], text) == 0) return true;
    return false;
}

void toolbox_texts_free(struct toolbox_texts *t)
{
    for (size_t i = 0; i < t->n; i++) free(t->at[i]);
    free(t->at);
    *t = (struct toolbox_texts){0};
}

/* ---- values ---- */

/* What is being read, for sentences. */
struct place {
    const char *path;
    const char *kind, *name;   /* "server", "tool" */
    bool expands;              /* ${NAME} in texts */
};

static peridot_status refuse(const struct place *p, const char *key, const char *why)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: %s %s: \"%s\" %s", p->path, p->kind, cmd_shown(p->name), cmd_shown(key),
                   why);
}

/* *out is the caller's. */
static peridot_status config_read_text(char **out, yyjson_val *value, const struct place *p, const char *key)
{
    const char *text = yyjson_get_str(value);
    if (!text) return refuse(p, key, "is not a text");
    if (strlen(text) != yyjson_get_len(value)) return refuse(p, key, "has a zero byte");
    if (p->expands) {
        char why[256];
        peridot_status status = toolbox_expand(out, text, why, sizeof why);
        return status == PERIDOT_ERROR_FORMAT ? refuse(p, key, why) : status;
    }
    *out = strdup(text);
    return *out ? PERIDOT_OK : pd_fail_alloc(strlen(text), "text");
}

static peridot_status config_add_text(struct toolbox_texts *out, yyjson_val *value, const struct place *p,
                                      const char *key)
{
    char *text;
    PD_TRY(config_read_text(&text, value, p, key));
    peridot_status status = toolbox_texts_add(out, text);
    free(text);
    return status;
}

static peridot_status read_texts(struct toolbox_texts *out, yyjson_val *list, const struct place *p, const char *key)
{
    yyjson_val *value;
    size_t i, n;
    if (list && !yyjson_is_arr(list)) return refuse(p, key, "is not a list of texts");
    yyjson_arr_foreach(list, i, n, value) PD_TRY(config_add_text(out, value, p, key));
    return PERIDOT_OK;
}

/* Of environments and HTTP: no name holds what ends it, and no value a line break. */
static bool is_pair(const char *name, const char *text, const char *separator)
{
    if (!*name || strpbrk(name, "=: \t\r\n")) return false;
    return separator[0] == '=' || !strpbrk(text, "\r\n");
}

/* {"NAME": "VALUE"} as texts "NAME SEPARATOR VALUE". */
static peridot_status read_pairs(struct toolbox_texts *out, yyjson_val *object, const struct place *p, const char *key,
                                 const char *separator)
{
    yyjson_val *name, *value;
    size_t i, n;
    if (!object) return PERIDOT_OK;
    if (!yyjson_is_obj(object)) return refuse(p, key, "is not an object of texts");
    yyjson_obj_foreach(object, i, n, name, value) {
        char *text;
        PD_TRY(config_read_text(&text, value, p, key));
        const char *key_text = yyjson_get_len(name) ? yyjson_get_str(name) : "";
        size_t size = strlen(key_text) + strlen(separator) + strlen(text) + 1;
        char *pair = malloc(size);
        if (pair) snprintf(pair, size, "%s%s%s", key_text, separator, text);
        peridot_status status = !pair ? pd_fail_alloc(size, "text")
                                : is_pair(key_text, text, separator)
                                    ? toolbox_texts_add(out, pair)
                                    : refuse(p, key, "has a name or a value that it cannot have");
        free(pair);
        free(text);
        PD_TRY(status);
    }
    return PERIDOT_OK;
}

/* What programs and servers have in common. */
static peridot_status read_common(struct toolbox_entry *e, yyjson_val *object, const struct place *p)
{
    yyjson_val *timeout = yyjson_obj_get(object, "timeout"), *output = yyjson_obj_get(object, "max_output");
    yyjson_val *allow = yyjson_obj_get(object, "allow"), *cwd = yyjson_obj_get(object, "cwd");
    e->timeout_s = timeout ? yyjson_get_num(timeout) : TOOLBOX_TIMEOUT;
    e->max_output = output ? (size_t)yyjson_get_uint(output) : TOOLBOX_MAX_OUTPUT;
    if (!(e->timeout_s > 0 && e->timeout_s <= MAX_SECONDS))
        return refuse(p, "timeout", "is not a number of seconds up to 86400");
    if (e->max_output < MIN_OUTPUT || e->max_output > MAX_OUTPUT)
        return refuse(p, "max_output", "is not a number of bytes from 64 to 16777216");
    if (cwd) PD_TRY(config_read_text(&e->cwd, cwd, p, "cwd"));
    e->allows_all = yyjson_is_true(allow);
    if (!yyjson_is_bool(allow)) PD_TRY(read_texts(&e->allow, allow, p, "allow"));
    return read_pairs(&e->env, yyjson_obj_get(object, "env"), p, "env", "=");
}

/* ---- entries ---- */

static peridot_status add_entry(struct toolbox_entry **out, struct toolbox_config *c, const struct place *p)
{
    if (c->n == MAX_ENTRIES)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: there are more than %d tools and servers", p->path, MAX_ENTRIES);
    PD_TRY(pd_array_reserve(&c->entries, &c->capacity, c->n, 1, sizeof *c->entries, "tools"));
    struct toolbox_entry *e = *out = &c->entries[c->n];
    *e = (struct toolbox_entry){.name = strdup(p->name), .timeout_s = TOOLBOX_TIMEOUT,
                                .max_output = TOOLBOX_MAX_OUTPUT};
    if (!e->name) return pd_fail_alloc(strlen(p->name), "name");
    c->n++;
    return PERIDOT_OK;
}

static peridot_status read_server(struct toolbox_config *c, const struct place *p, yyjson_val *object)
{
    struct toolbox_entry *e;
    yyjson_val *url = yyjson_obj_get(object, "url"), *command = yyjson_obj_get(object, "command");
    const char *type = yyjson_get_str(yyjson_obj_get(object, "type"));
    if (!yyjson_is_obj(object)) return refuse(p, p->name, "is not an object");
    if (yyjson_is_true(yyjson_obj_get(object, "disabled"))) return PERIDOT_OK;
    if (!url == !command) return refuse(p, "command", "and \"url\": a server has one of them");
    if (url && type && strcmp(type, "sse") == 0)
        return refuse(p, "type", "is sse, a transport that MCP has given up: only Streamable HTTP is known");
    PD_TRY(add_entry(&e, c, p));
    e->is_server = true;
    PD_TRY(read_common(e, object, p));
    if (url) {
        PD_TRY(config_read_text(&e->url, url, p, "url"));
        if (!toolbox_is_url(e->url)) return refuse(p, "url", "begins with neither http:// nor https://");
        return read_pairs(&e->headers, yyjson_obj_get(object, "headers"), p, "headers", ": ");
    }
    PD_TRY(config_add_text(&e->command, command, p, "command"));
    return read_texts(&e->command, yyjson_obj_get(object, "args"), p, "args");
}

/* A key that is not known may be one that is misspelt. */
static peridot_status check_keys(yyjson_val *object, const struct place *p)
{
    static const char *const keys[] = {"name", "description", "parameters", "command", "env", "cwd", "timeout",
                                       "max_output", "allow"};
    yyjson_val *key, *value;
    size_t i, n;
    yyjson_obj_foreach(object, i, n, key, value) {
        size_t k = 0;
        while (k < PD_COUNT(keys) && !yyjson_equals_str(key, keys[k])) k++;
        if (k == PD_COUNT(keys)) return refuse(p, yyjson_get_str(key), "is not a key that tools have");
    }
    return PERIDOT_OK;
}

static peridot_status read_program(struct toolbox_config *c, struct place *p, yyjson_val *object)
{
    struct toolbox_entry *e;
    yyjson_val *description = yyjson_obj_get(object, "description");
    yyjson_val *parameters = yyjson_obj_get(object, "parameters");
    p->name = yyjson_get_str(yyjson_obj_get(object, "name"));
    if (!p->name) return pd_fail(PERIDOT_ERROR_FORMAT, "%s: a tool has no name that is text", p->path);
    if (!toolbox_is_name(p->name)) return refuse(p, "name", "is not 1 to 64 of A-Z, a-z, 0-9, _ and -");
    PD_TRY(check_keys(object, p));
    PD_TRY(add_entry(&e, c, p));
    PD_TRY(read_common(e, object, p));
    PD_TRY(read_texts(&e->command, yyjson_obj_get(object, "command"), p, "command"));
    if (!e->command.n) return refuse(p, "command", "is not a list of a program and its arguments");
    if (description) PD_TRY(config_read_text(&e->description, description, p, "description"));
    if (parameters && !yyjson_is_obj(parameters)) return refuse(p, "parameters", "is not a JSON Schema of an object");
    e->parameters = parameters ? yyjson_val_write(parameters, 0, NULL) : strdup(TOOLBOX_NO_PARAMETERS);
    return e->parameters ? PERIDOT_OK : pd_fail_alloc(0, "parameters");
}

static peridot_status read_root(struct toolbox_config *c, yyjson_val *root, const char *path)
{
    static const char *const server_keys[] = {"mcpServers", "servers"};
    struct place p = {.path = path, .kind = "server", .expands = true};
    yyjson_val *name, *value, *tools = yyjson_obj_get(root, "tools");
    size_t i, n;
    bool known = tools != NULL;
    for (size_t k = 0; k < PD_COUNT(server_keys); k++) {
        yyjson_val *servers = yyjson_obj_get(root, server_keys[k]);
        if (!servers) continue;
        known = true;
        if (!yyjson_is_obj(servers))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: \"%s\" is not an object", path, server_keys[k]);
        yyjson_obj_foreach(servers, i, n, name, value) {
            p.name = yyjson_get_str(name);
            PD_TRY(read_server(c, &p, value));
        }
    }
    if (!known || (tools && !yyjson_is_arr(tools)))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: is no object with \"mcpServers\", {NAME: {\"command\": ...}}, or "
                       "\"tools\", [{\"name\": ..., \"command\": [...]}]", path);
    p.kind = "tool", p.expands = false;
    yyjson_arr_foreach(tools, i, n, value) PD_TRY(read_program(c, &p, value));
    return PERIDOT_OK;
}

static peridot_status add_url(struct toolbox_config *c, const char *url)
{
    struct toolbox_entry *e;
    const char *host = strstr(url, "://") + 3;
    char name[TOOLBOX_NAME_SIZE];
    const char *user_end = strchr(host, '@');
    size_t size = strcspn(host, "/?#");
    if (user_end && user_end < host + size) size -= (size_t)(user_end + 1 - host), host = user_end + 1;
    snprintf(name, sizeof name, "%.*s", (int)pd_min(size, sizeof name - 1), host);
    PD_TRY(add_entry(&e, c, &(struct place){.path = url, .name = name}));
    e->is_server = true;
    e->url = strdup(url);
    return e->url ? PERIDOT_OK : pd_fail_alloc(strlen(url), "URL");
}

peridot_status toolbox_config_add(struct toolbox_config *c, const char *source)
{
    yyjson_read_err error;
    char *text;
    size_t size;
    if (toolbox_is_url(source)) return add_url(c, source);
    PD_TRY(cmd_read_file(&text, &size, source));
    yyjson_doc *doc = yyjson_read_opts(text, size, YYJSON_READ_ALLOW_COMMENTS | YYJSON_READ_ALLOW_TRAILING_COMMAS, NULL,
                                       &error);
    peridot_status status = doc ? read_root(c, yyjson_doc_get_root(doc), source)
                            : error.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION ? pd_fail_alloc(size, source)
                                : pd_fail(PERIDOT_ERROR_FORMAT, "%s: byte %zu: %s", source, error.pos, error.msg);
    yyjson_doc_free(doc);
    free(text);
    return status;
}

void toolbox_config_free(struct toolbox_config *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct toolbox_entry *e = &c->entries[i];
        struct toolbox_texts *const lists[] = {&e->command, &e->env, &e->headers, &e->allow};
        char *const texts[] = {e->name, e->url, e->cwd, e->description, e->parameters};
        for (size_t k = 0; k < PD_COUNT(lists); k++) toolbox_texts_free(lists[k]);
        for (size_t k = 0; k < PD_COUNT(texts); k++) free(texts[k]);
    }
    free(c->entries);
    *c = (struct toolbox_config){0};
}

/* ---- expand ---- */

/* Of what stands between the braces. */
static peridot_status add_variable(struct pd_buffer *to, const char *inner, size_t size, char *why, size_t why_size)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    enum { PREFIX = sizeof "env:" - 1 };
    char name[128];
    if (size > PREFIX && strncmp(inner, "env:", PREFIX) == 0) inner += PREFIX, size -= PREFIX;
    size_t n = pd_min(strspn(inner, letters), size);
    bool has_default = size - n >= 2 && inner[n] == ':' && inner[n + 1] == '-';
    if (n == 0 || n >= sizeof name || (n < size && !has_default)) {
        snprintf(why, why_size, "has ${%.*s}, which is no variable of the environment", (int)pd_min(size, 64), inner);
        return PERIDOT_ERROR_FORMAT;
    }
    memcpy(name, inner, n);
    name[n] = 0;
    const char *value = getenv(name);
    if (value) return pd_buffer_add(to, value, strlen(value));
    if (has_default) return pd_buffer_add(to, inner + n + 2, size - n - 2);
    snprintf(why, why_size, "has ${%s}, which is not set in the environment", name);
    return PERIDOT_ERROR_FORMAT;
}

peridot_status toolbox_expand(char **out, const char *text, char *why, size_t why_size)
{
    struct pd_buffer to = {0};
    peridot_status status = pd_buffer_add(&to, "", 0);
    while (status == PERIDOT_OK && *text) {
        const char *begin = strstr(text, "${"), *end = begin ? strchr(begin, '}') : NULL;
        if (!end) begin = text + strlen(text);
        status = pd_buffer_add(&to, text, (size_t)(begin - text));
        if (status == PERIDOT_OK && end)
            status = add_variable(&to, begin + 2, (size_t)(end - begin - 2), why, why_size);
        text = end ? end + 1 : begin;
    }
    *out = to.data;
    if (status != PERIDOT_OK) free(to.data), *out = NULL;
    return status;
}
