/* A client of the Model Context Protocol, as far as tools go (modelcontextprotocol.io/specification): a server is asked
 * for its tools, and to carry out calls. Revisions to 2025-11-25 begin with a handshake, 2026-07-28 says all in each
 * request; a server that knows the former is spoken to in that. */
#ifndef PERIDOT_COMMAND_TOOLBOX_MCP_H
#define PERIDOT_COMMAND_TOOLBOX_MCP_H

#include "bytes.h"
#include "config.h"
#include "stop.h"

#include <yyjson.h>

struct mcp;

/* Starts a server, if it is a program, without waiting for it: several start at the same time. The entry is borrowed.
 * *out is NULL on failure. */
peridot_status mcp_open(struct mcp **out, const struct toolbox_entry *entry);
/* Ends it, if it is a program. NULL is allowed. */
void mcp_close(struct mcp *m);

/* A tool as the server has it; texts are borrowed until mcp_take_tool returns. */
struct mcp_tool {
    const char *name, *description;   /* the latter NULL: none */
    const char *parameters;           /* the JSON Schema of an object */
};
typedef peridot_status (*mcp_take_tool)(void *user, const struct mcp_tool *tool);
/* Hands out the server's tools; at first, agrees with it on a version. */
peridot_status mcp_list(struct mcp *m, mcp_take_tool take, void *user);
/* The server has said since that its tools are others now; or may have done so, with nobody listening. */
peridot_status mcp_has_changed(bool *changed, struct mcp *m);

/* The tool of that name, with arguments that are a JSON object; connects anew where the server has ended. What goes
 * wrong at the server is a failure; what the tool itself reports a result that begins with "error: ".
 * PERIDOT_CANCELLED: it was stopped (stop may be NULL). */
struct toolbox_result {
    struct toolbox_bytes text;
    struct toolbox_texts *images;   /* as URLs (mcp_content.h); NULL: they are not wanted */
};
peridot_status mcp_call(struct toolbox_result *result, struct mcp *m, const struct mcp_tool *tool,
                        yyjson_val *arguments, const struct toolbox_stop *stop);

#endif
