/* What a call of a tool gave, as text. */
#ifndef PERIDOT_COMMAND_TOOLBOX_MCP_CONTENT_H
#define PERIDOT_COMMAND_TOOLBOX_MCP_CONTENT_H

#include "bytes.h"

#include <yyjson.h>

/* Adds the texts of a CallToolResult; without any its structuredContent. What is not text is named in brackets. */
peridot_status mcp_add_content(struct toolbox_bytes *out, yyjson_val *result);

#endif
