/* What a request says of a picture, and the file that this is: base64, a data URL, or a URL. */
#define _DEFAULT_SOURCE   /* strncasecmp */
#include "pictures_.h"
#include "../job/job.h"
#include "../../base/base.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool serve_is_picture(yyjson_val *part)
{
    static const char *const types[] = {"image_url", "input_image", "image"};
    yyjson_val *type = yyjson_obj_get(part, "type");
    for (size_t i = 0; i < PD_COUNT(types); i++)
        if (yyjson_equals_str(type, types[i])) return true;
    return false;
}

/* ---- where it is ---- */

/* Of a URL, or of base64 alone; text NULL: of neither. */
struct source {
    const char *text;
    size_t size;
    bool is_url;
};

static struct source source_of(yyjson_val *part)
{
    yyjson_val *source = yyjson_obj_get(part, "source"), *type = yyjson_obj_get(source, "type");
    yyjson_val *url = yyjson_obj_get(part, "image_url");
    yyjson_val *base64 = yyjson_is_str(part) ? part : NULL;
    if (yyjson_equals_str(type, "base64")) base64 = yyjson_obj_get(source, "data");
    if (yyjson_equals_str(type, "url")) url = source;
    if (yyjson_is_obj(url)) url = yyjson_obj_get(url, "url");
    yyjson_val *at = base64 ? base64 : url;
    return (struct source){yyjson_get_str(at), yyjson_get_len(at), !base64};
}

static bool is_data_url(struct source s) { return s.size >= 5 && strncasecmp(s.text, "data:", 5) == 0; }

bool serve_picture_is_remote(yyjson_val *part)
{
    struct source s = source_of(part);
    return s.text && s.is_url && !is_data_url(s);
}

/* ---- base64 ---- */

static bool put_base64(struct pd_buffer *out, struct serve_job *job, const char *name, const char *text, size_t size)
{
    out->capacity = size / 4 * 3 + 4;   /* line breaks take of it what no byte needs */
    out->data = malloc(out->capacity);
    if (!out->data) return serve_refuse(&job->error, 500, NULL, NULL, "out of memory for %s", name);
    if (!cmd_base64_decode((unsigned char *)out->data, &out->size, text, size))
        return serve_job_refuse_picture(job, name, "it is not base64");
    return out->size <= SERVE_PICTURE_MAX
        || serve_job_refuse_picture(job, name, "the file has more than %d bytes", SERVE_PICTURE_MAX);
}

/* "data:image/png;base64,..." */
static bool put_data_url(struct pd_buffer *out, struct serve_job *job, const char *name, struct source s)
{
    static const char marker[] = ";base64";
    const char *comma = memchr(s.text, ',', s.size);
    size_t n = comma ? (size_t)(comma - s.text) : 0, n_marker = strlen(marker);
    if (n < n_marker || strncasecmp(comma - n_marker, marker, n_marker) != 0)
        return serve_job_refuse_picture(job, name, "its data URL is not one of base64");
    return put_base64(out, job, name, comma + 1, s.size - n - 1);
}

bool serve_picture_data(struct pd_buffer *out, struct serve_job *job, const char *name, yyjson_val *part)
{
    struct source s = source_of(part);
    if (!s.text || strlen(s.text) != s.size)
        return serve_job_refuse_picture(job, name, "it must be base64, a data URL or an https URL");
    if (is_data_url(s)) return put_data_url(out, job, name, s);
    return s.is_url ? serve_fetch(out, job, name, s.text, SERVE_PICTURE_MAX)
                    : put_base64(out, job, name, s.text, s.size);
}
