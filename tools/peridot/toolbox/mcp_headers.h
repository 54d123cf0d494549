/* Headers of HTTP that repeat what a call says, since revision 2026-07-28: Mcp-Name, and Mcp-Param-NAME for parameters
 * whose schema has "x-mcp-header": NAME. */
#ifndef PERIDOT_COMMAND_TOOLBOX_MCP_HEADERS_H
#define PERIDOT_COMMAND_TOOLBOX_MCP_HEADERS_H

#include "config.h"
#include "mcp.h"

#include <yyjson.h>

/* Why a tool with this schema (NULL: none) must not be offered; NULL: it may. */
const char *mcp_headers_check(yyjson_val *schema);
/* Adds the headers of a call. */
peridot_status mcp_headers_make(struct toolbox_texts *out, const struct mcp_tool *tool, yyjson_val *arguments);

#endif
