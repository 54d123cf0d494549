/* JSON files and headers: yyjson, with sentences that have line and column. A key that is there twice must say the same
 * both times, as two readers would take different ones. */
#ifndef PD_BASE_JSON_H
#define PD_BASE_JSON_H

#include "base/status.h"

#include <yyjson.h>

/* Any JSON, whatever its keys; sentences name no file. The document is the caller's (yyjson_doc_free). */
peridot_status pd_json_read(yyjson_doc **out, const uint8_t *data, uint64_t size);
/* JSON whose root is an object, with keys that sentences can show. `path` is for sentences. Numbers may be NaN and
 * Infinity, as Python writes them. */
peridot_status pd_json_parse(yyjson_doc **out, const uint8_t *data, uint64_t size, const char *path);
/* The same from a file. */
peridot_status pd_json_open(yyjson_doc **out, const char *path);
/* When DIRECTORY/NAME is there; else *out is NULL, which is no failure. */
peridot_status pd_json_open_optional(yyjson_doc **out, const char *directory, const char *name);

#endif
