/* A picture's bytes: from a body, a file or an address. */
#ifndef PERIDOT_COMMAND_SERVE_PICTURES_PICTURES_PRIVATE_H
#define PERIDOT_COMMAND_SERVE_PICTURES_PICTURES_PRIVATE_H

#include "../job/job.h"
#include "pictures.h"

/* ---- picture data ---- */

enum { SERVE_PICTURE_MAX = 20 << 20 };   /* bytes of a file */

/* A picture is OpenAI's part {"type": "image_url", "image_url": URL or {"url": URL}} or {"type": "input_image",
 * "image_url": URL}, Anthropic's {"type": "image", "source": {"type": "base64", "data": ...} or {"type": "url", "url":
 * ...}}, or Ollama's string of base64. Whether a part of a message is one: */
bool serve_is_picture(yyjson_val *part);
/* Whether it has to be fetched. */
bool serve_picture_is_remote(yyjson_val *part);
/* The bytes of the file; false: the job's error says why, beginning with `name`. */
bool serve_picture_data(struct pd_buffer *out, struct serve_job *job, const char *name, yyjson_val *part);

/* ---- fetch ---- */

/* The file at the URL, of `max` bytes at most; false: the job's error says why not, beginning with `name`. It ends when
 * nobody waits for the job any more. */
bool serve_fetch(struct pd_buffer *out, struct serve_job *job, const char *name, const char *url, size_t max);

#endif
