/* What a call of a tool gave, as text and images. */
#ifndef PERIDOT_COMMAND_TOOLBOX_MCP_CONTENT_H
#define PERIDOT_COMMAND_TOOLBOX_MCP_CONTENT_H

#include "bytes.h"
#include "config.h"

#include <yyjson.h>

/* Adds the texts of a CallToolResult; without any its structuredContent. What is not text is named in brackets;
 * images are also added to `images`, as "data:TYPE;base64,...", unless that is NULL. */
peridot_status mcp_add_content(struct toolbox_bytes *out, struct toolbox_texts *images, yyjson_val *result);

#endif
