/* What a request says of a picture, and the file that this is: base64, a data URL, or a URL. */
#ifndef PERIDOT_COMMAND_SERVE_PICTURE_DATA_H
#define PERIDOT_COMMAND_SERVE_PICTURE_DATA_H

#include "job.h"

enum { SERVE_PICTURE_MAX = 20 << 20 };   /* bytes of a file */

/* A picture is OpenAI's part {"type": "image_url", "image_url": URL or {"url": URL}} or {"type": "input_image",
 * "image_url": URL}, Anthropic's {"type": "image", "source": {"type": "base64", "data": ...} or {"type": "url", "url":
 * ...}}, or Ollama's string of base64. Whether a part of a message is one: */
bool serve_is_picture(yyjson_val *part);
/* Whether it has to be fetched. */
bool serve_picture_is_remote(yyjson_val *part);
/* The bytes of the file; false: the job's error says why, beginning with `name`. */
bool serve_picture_data(struct serve_buffer *out, struct serve_job *job, const char *name, yyjson_val *part);

#endif
