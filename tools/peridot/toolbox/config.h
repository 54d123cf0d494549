/* The programs and servers that a toolbox is made of, as JSON files name them:
 *     {"mcpServers": {NAME: {"command": "PROGRAM", "args": [...], "env": {...}, "cwd": "FOLDER"},
 *                     NAME: {"url": "http://...", "headers": {...}}},
 *      "tools": [{"name": NAME, "description": "...", "parameters": SCHEMA, "command": ["PROGRAM", "ARG", ...]}]}
 * "mcpServers" is what other programs keep on disk ("servers" in some): comments, commas at the end of lists, keys that
 * are not known and ${NAME} for variables of the environment are allowed there. Each may also have "timeout" (seconds
 * for a call), "max_output" (bytes of a result) and "allow" (true, or names of a server's tools): what may be called
 * without a question. */
#ifndef PERIDOT_COMMAND_TOOLBOX_CONFIG_H
#define PERIDOT_COMMAND_TOOLBOX_CONFIG_H

#include "../util.h"

#define TOOLBOX_TIMEOUT 30.0
enum { TOOLBOX_MAX_OUTPUT = 64 << 10 };

/* {0}: none. at[n] is NULL, once there is one. */
struct toolbox_texts {
    char **at;
    size_t n, capacity;
};

struct toolbox_entry {
    char *name;
    bool is_server;
    char *url;                         /* of a server; NULL: it is a program that speaks on its standard streams */
    struct toolbox_texts command;      /* the program and its arguments */
    struct toolbox_texts env;          /* "NAME=VALUE", beside what is inherited */
    char *cwd;                         /* NULL: inherited */
    struct toolbox_texts headers;      /* "Name: value", of a URL */
    char *description, *parameters;    /* of a tool that is a program; the latter is JSON text */
    double timeout_s;
    size_t max_output;
    bool allows_all;
    struct toolbox_texts allow;        /* tools of a server that are allowed */
};

/* {0} is the beginning. */
struct toolbox_config {
    struct toolbox_entry *entries;
    size_t n, capacity;
};

/* Appends what a file names, or the server at a URL. */
peridot_status toolbox_config_add(struct toolbox_config *c, const char *source);
void toolbox_config_free(struct toolbox_config *c);

/* Appends a copy of a text. */
peridot_status toolbox_texts_add(struct toolbox_texts *t, const char *text);
bool toolbox_texts_have(const struct toolbox_texts *t, const char *text);
void toolbox_texts_free(struct toolbox_texts *t);

#endif
