/* Tools that a conversation lets a model call: programs, and servers of the Model Context Protocol (MCP). Here is which
 * functions there are, which of them may be called without a question, and how a call is carried out; toolbox_.h reads
 * the files that name them. What models, servers and programs write is untrusted input.
 * A toolbox is used by one thread at a time; but while nothing else is done with it than asking what there is, calls
 * may run on threads of their own, if no two of them are at the same server. */
#define _POSIX_C_SOURCE 200809L
#include "toolbox.h"
#include "toolbox_.h"
#include "../console/console.h"
#include "../base/base.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TOOLS = 1024 };

struct tool {
    char name[TOOLBOX_NAME_SIZE];         /* as models know it */
    char *own_name, *description, *parameters;   /* as the server or the file has them; the second may be NULL */
    const struct toolbox_entry *entry;
    struct mcp *server;                   /* NULL: a program */
    bool allowed;
};

struct tools {
    struct tool *at;
    size_t n, capacity;
};

struct cmd_toolbox {
    struct toolbox_config config;
    struct mcp **servers;                 /* [config.n]; NULL where the entry is a program */
    struct tools tools;
    char *json;
};

/* ---- which tools there are ---- */

static void free_tools(struct tools *tools)
{
    for (size_t i = 0; i < tools->n; i++) {
        free(tools->at[i].own_name);
        free(tools->at[i].description);
        free(tools->at[i].parameters);
    }
    free(tools->at);
    *tools = (struct tools){0};
}

/* Where tools go that are listed. */
struct listing {
    struct tools *tools;
    const struct toolbox_entry *entry;
    struct mcp *server;
};

static peridot_status add_tool(void *user, const struct mcp_tool *own)
{
    const struct listing *l = user;
    const struct toolbox_entry *e = l->entry;
    if (l->tools->n == MAX_TOOLS) return pd_fail(PERIDOT_ERROR_ARGUMENT, "there are more than %d tools", MAX_TOOLS);
    PD_TRY(pd_array_reserve(&l->tools->at, &l->tools->capacity, l->tools->n, 1, sizeof *l->tools->at, "tools"));
    struct tool *tool = &l->tools->at[l->tools->n++];
    *tool = (struct tool){.own_name = strdup(own->name), .parameters = strdup(own->parameters), .entry = e,
                          .description = own->description ? strdup(own->description) : NULL, .server = l->server,
                          .allowed = e->allows_all || toolbox_texts_have(&e->allow, own->name)};
    bool complete = tool->own_name && tool->parameters && !own->description == !tool->description;
    return complete ? PERIDOT_OK : pd_fail_alloc(strlen(own->parameters), "tool");
}

static peridot_status list_tools(struct tools *tools, const struct cmd_toolbox *t)
{
    for (size_t i = 0; i < t->config.n; i++) {
        const struct toolbox_entry *e = &t->config.entries[i];
        struct listing listing = {.tools = tools, .entry = e, .server = t->servers[i]};
        const struct mcp_tool program = {.name = e->name, .description = e->description, .parameters = e->parameters};
        PD_TRY(e->is_server ? mcp_list(listing.server, add_tool, &listing) : add_tool(&listing, &program));
    }
    return PERIDOT_OK;
}

static bool is_taken(const struct tools *tools, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(tools->at[i].name, name) == 0) return true;
    return false;
}

static bool clashes(const struct tools *tools, size_t i)
{
    for (size_t k = 0; k < tools->n; k++)
        if (k != i && strcmp(tools->at[k].own_name, tools->at[i].own_name) == 0) return true;
    return false;
}

/* Programs have the names that files give them; of servers' tools those that clash begin with the server's. What is
 * the same even then, as it was cut or had other characters, gets a number. */
static peridot_status name_tools(struct tools *tools)
{
    enum { NUMBER = 6 };
    for (size_t i = 0; i < tools->n; i++) {
        struct tool *tool = &tools->at[i];
        bool prefixed = tool->server && clashes(tools, i);
        toolbox_make_name(tool->name, prefixed ? tool->entry->name : NULL, tool->own_name);
        if (!is_taken(tools, i, tool->name)) continue;
        if (!tool->server) return pd_fail(PERIDOT_ERROR_ARGUMENT, "two tools have the name %s", tool->name);
        size_t size = pd_min(strlen(tool->name), TOOLBOX_NAME_SIZE - NUMBER);
        for (int k = 2; is_taken(tools, i, tool->name); k++)
            snprintf(tool->name + size, TOOLBOX_NAME_SIZE - size, "_%d", k);
    }
    return PERIDOT_OK;
}

static void write_function(FILE *file, const struct tool *tool)
{
    fprintf(file, "{\"type\":\"function\",\"function\":{\"name\":\"%s\"", tool->name);
    if (tool->description) {
        fputs(",\"description\":", file);
        cmd_json_string(file, tool->description, strlen(tool->description));
    }
    fprintf(file, ",\"parameters\":%s}}", tool->parameters);
}

static peridot_status write_json(char **out, const struct tools *tools)
{
    size_t size = 0;
    FILE *file = cmd_memory_open(out, &size);
    if (!file) return pd_fail_alloc(0, "list of tools");
    fputc('[', file);
    for (size_t i = 0; i < tools->n; i++) {
        if (i) fputc(',', file);
        write_function(file, &tools->at[i]);
    }
    fputc(']', file);
    if (cmd_memory_close(file, out, &size)) return PERIDOT_OK;
    free(*out);
    *out = NULL;
    return pd_fail_alloc(size, "list of tools");
}

static bool has_definition_of(const struct tool *a, const struct tool *b)
{
    bool described = a->description && b->description;
    return a->entry == b->entry && strcmp(a->own_name, b->own_name) == 0 && strcmp(a->parameters, b->parameters) == 0 &&
           (described ? strcmp(a->description, b->description) == 0 : !a->description == !b->description);
}

/* What a person has allowed is allowed to what he saw. */
static void keep_allowed(struct tools *tools, const struct tools *before)
{
    for (size_t i = 0; i < tools->n; i++)
        for (size_t k = 0; k < before->n; k++)
            if (before->at[k].allowed && has_definition_of(&tools->at[i], &before->at[k])) tools->at[i].allowed = true;
}

/* Nothing changes on failure. */
static peridot_status take_tools(bool *changed, struct cmd_toolbox *t)
{
    struct tools tools = {0};
    char *json = NULL;
    peridot_status status = list_tools(&tools, t);
    if (status == PERIDOT_OK) status = name_tools(&tools);
    if (status == PERIDOT_OK) status = write_json(&json, &tools);
    if (status != PERIDOT_OK) {
        free_tools(&tools);
        return status;
    }
    *changed = !t->json || strcmp(t->json, json) != 0;
    keep_allowed(&tools, &t->tools);
    free_tools(&t->tools);
    free(t->json);
    t->tools = tools;
    t->json = json;
    return PERIDOT_OK;
}

peridot_status cmd_toolbox_refresh(bool *changed, struct cmd_toolbox *t)
{
    bool may_differ = false;
    *changed = false;
    for (size_t i = 0; i < t->config.n && !may_differ; i++)
        if (t->servers[i]) PD_TRY(mcp_has_changed(&may_differ, t->servers[i]));
    if (!may_differ) return PERIDOT_OK;
    peridot_status status = take_tools(changed, t);
    if (status == PERIDOT_CANCELLED || status == PERIDOT_ERROR_MEMORY || status == PERIDOT_OK) return status;
    cmd_say("peridot: %s; the tools stay as they were\n", peridot_last_error());
    return PERIDOT_OK;
}

/* ---- beginning and end ---- */

static peridot_status open_servers(struct cmd_toolbox *t)
{
    t->servers = calloc(t->config.n + 1, sizeof *t->servers);
    if (!t->servers) return pd_fail_alloc(t->config.n * sizeof *t->servers, "servers");
    for (size_t i = 0; i < t->config.n; i++)
        if (t->config.entries[i].is_server) PD_TRY(mcp_open(&t->servers[i], &t->config.entries[i]));
    return PERIDOT_OK;
}

peridot_status cmd_toolbox_open(struct cmd_toolbox **out, const char *const *sources, size_t n_sources)
{
    struct cmd_toolbox *t = *out = calloc(1, sizeof *t);
    bool changed;
    if (!t) return pd_fail_alloc(sizeof *t, "toolbox");
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; status == PERIDOT_OK && i < n_sources; i++) status = toolbox_config_add(&t->config, sources[i]);
    if (status == PERIDOT_OK) status = open_servers(t);
    if (status == PERIDOT_OK) status = take_tools(&changed, t);
    if (status != PERIDOT_OK) cmd_toolbox_close(t), *out = NULL;
    return status;
}

void cmd_toolbox_close(struct cmd_toolbox *t)
{
    if (!t) return;
    for (size_t i = 0; t->servers && i < t->config.n; i++) mcp_close(t->servers[i]);
    free(t->servers);
    free_tools(&t->tools);
    toolbox_config_free(&t->config);
    free(t->json);
    free(t);
}

/* ---- what is asked of it ---- */

size_t cmd_toolbox_size(const struct cmd_toolbox *t) { return t->tools.n; }
const char *cmd_toolbox_json(const struct cmd_toolbox *t) { return t->json; }

static struct tool *toolbox_find(const struct cmd_toolbox *t, const char *name)
{
    for (size_t i = 0; i < t->tools.n; i++)
        if (strcmp(t->tools.at[i].name, name) == 0) return &t->tools.at[i];
    return NULL;
}

struct source {
    char text[1040];
};

static struct source source_of(const struct tool *tool)
{
    const struct toolbox_entry *e = tool->entry;
    struct source source;
    snprintf(source.text, sizeof source.text, "%s %s", tool->server ? "server" : "program",
             cmd_shown(tool->server ? e->name : e->command.at[0]));
    return source;
}

void cmd_toolbox_print_source(FILE *file, const struct cmd_toolbox *t, const char *name)
{
    const struct tool *tool = toolbox_find(t, name);
    fputs(tool ? source_of(tool).text : "not known", file);
}

void cmd_toolbox_print(FILE *file, const struct cmd_toolbox *t)
{
    enum { DESCRIBED = 120 };
    for (size_t i = 0; i < t->tools.n; i++) {
        const struct tool *tool = &t->tools.at[i];
        const char *text = tool->description ? tool->description : "";
        char line[DESCRIBED];
        text += strspn(text, " \t\r\n");
        peridot_printable(line, sizeof line, text, strcspn(text, "\r\n"));
        fprintf(file, "%s (%s%s)%s%s\n", tool->name, source_of(tool).text, tool->allowed ? ", allowed" : "",
                line[0] ? ": " : "", line);
    }
}

void cmd_toolbox_write_about(FILE *file, const struct cmd_toolbox *t)
{
    fputc('{', file);
    for (size_t i = 0; i < t->tools.n; i++) {
        const struct tool *tool = &t->tools.at[i];
        struct source source = source_of(tool);
        fprintf(file, "%s\"%s\":{\"source\":", i ? "," : "", tool->name);
        cmd_json_string(file, source.text, strlen(source.text));
        fprintf(file, ",\"allowed\":%s}", tool->allowed ? "true" : "false");
    }
    fputc('}', file);
}

const void *cmd_toolbox_server(const struct cmd_toolbox *t, const char *name)
{
    const struct tool *tool = toolbox_find(t, name);
    return tool ? tool->server : NULL;
}

bool cmd_toolbox_has(const struct cmd_toolbox *t, const char *name) { return toolbox_find(t, name) != NULL; }

bool cmd_toolbox_is_allowed(const struct cmd_toolbox *t, const char *name)
{
    const struct tool *tool = toolbox_find(t, name);
    return tool && tool->allowed;
}

void cmd_toolbox_allow(struct cmd_toolbox *t, const char *name)
{
    struct tool *tool = toolbox_find(t, name);
    if (tool) tool->allowed = true;
}

/* ---- calls ---- */

static peridot_status toolbox_call(struct toolbox_result *result, const struct tool *tool, const char *arguments,
                                   yyjson_val *value, const struct toolbox_stop *stop)
{
    const struct mcp_tool own = {.name = tool->own_name, .description = tool->description,
                                 .parameters = tool->parameters};
    struct pd_buffer *out = &result->text;
    if (!yyjson_is_obj(value)) return pd_buffer_print(out, "error: the arguments are not a JSON object");
    peridot_status status = tool->server ? mcp_call(result, tool->server, &own, value, stop)
                                         : program_call(out, tool->entry, arguments, stop);
    if (status == PERIDOT_OK || status == PERIDOT_CANCELLED || status == PERIDOT_ERROR_MEMORY) return status;
    out->size = 0;
    PD_TRY(pd_buffer_print(out, "error: "));
    return result_add_text(out, peridot_last_error(), strlen(peridot_last_error()));
}

void cmd_tool_result_free(struct cmd_tool_result *result)
{
    struct toolbox_texts images = {result->images, result->n_images, 0};
    toolbox_texts_free(&images);
    free(result->text);
    *result = (struct cmd_tool_result){0};
}

peridot_status cmd_toolbox_call(struct cmd_tool_result *result, struct cmd_toolbox *t,
                                const struct cmd_tool_call *made, const struct toolbox_stop *stop)
{
    struct toolbox_texts images = {0};
    struct toolbox_result out = {.images = made->sees ? &images : NULL};
    const struct tool *tool = toolbox_find(t, made->name);
    size_t size = strlen(made->arguments);
    yyjson_read_err error;
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)made->arguments, size, 0, NULL, &error);
    peridot_status status = pd_buffer_add(&out.text, "", 0);
    *result = (struct cmd_tool_result){0};
    if (!doc && error.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        status = pd_fail_alloc(size, "arguments");
    if (status == PERIDOT_OK && tool)
        status = toolbox_call(&out, tool, made->arguments, yyjson_doc_get_root(doc), stop);
    else if (status == PERIDOT_OK)
        status = pd_buffer_print(&out.text, "error: there is no tool %s", cmd_shown(made->name));
    yyjson_doc_free(doc);
    *result = (struct cmd_tool_result){out.text.data, images.at, images.n};
    if (status != PERIDOT_OK) cmd_tool_result_free(result);
    return status;
}
