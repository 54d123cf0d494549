/* Pictures that the command line names, for models that see. */
#include "cli.h"
#include "../base/base.h"

#include <stdlib.h>
#include <string.h>

peridot_status cmd_image_read(peridot_image **out, const peridot_model *model, const char *file, bool pan_and_scan)
{
    const peridot_image_params params = {.size = sizeof params, .pan_and_scan = pan_and_scan};
    bool standard = strcmp(file, "-") == 0;
    const char *name = standard ? "standard input" : file;
    char *data = NULL;
    size_t size = 0;
    if (standard) PD_TRY(cmd_read_all(&data, &size, stdin, name));
    else PD_TRY(cmd_read_file(&data, &size, name));
    peridot_status status = peridot_image_read(out, model, data, size, name, &params);
    free(data);
    return status;
}

static peridot_status read_base64(peridot_image **out, const peridot_model *model, const char *text, bool pan_and_scan)
{
    const peridot_image_params params = {.size = sizeof params, .pan_and_scan = pan_and_scan};
    size_t size = strlen(text);
    unsigned char *data = malloc(size + 2);
    if (!data) return pd_fail_alloc(size, "the image");
    peridot_status status = cmd_base64_decode(data, &size, text, size)
        ? peridot_image_read(out, model, data, size, "the image", &params)
        : pd_fail(PERIDOT_ERROR_FORMAT, "the image is not base64");
    free(data);
    return status;
}

peridot_status cmd_image_read_url(peridot_image **out, const peridot_model *model, const char *url, bool pan_and_scan)
{
    static const char marker[] = ";base64,";
    const char *base64 = strncmp(url, "data:", 5) == 0 ? strstr(url, marker) : NULL;
    *out = NULL;
    if (base64) return read_base64(out, model, base64 + strlen(marker), pan_and_scan);
    if (strncmp(url, CMD_FILE_URL, strlen(CMD_FILE_URL)) == 0)
        return cmd_image_read(out, model, url + strlen(CMD_FILE_URL), pan_and_scan);
    return pd_fail(PERIDOT_ERROR_FORMAT, "an image is neither a file's (file:) nor base64 (data:)");
}

peridot_status cmd_images_read(struct cmd_images *out, const peridot_model *model, const struct cmd_texts *files,
                               bool pan_and_scan)
{
    *out = (struct cmd_images){.n = 0};
    for (size_t i = 0; i < files->n; i++) {
        peridot_status status = cmd_image_read(&out->at[i], model, files->at[i], pan_and_scan);
        if (status != PERIDOT_OK) {
            cmd_images_free(out);
            return status;
        }
        out->n++;
    }
    return PERIDOT_OK;
}

void cmd_images_free(struct cmd_images *images)
{
    for (size_t i = 0; i < images->n; i++) peridot_image_free(images->at[i]);
    images->n = 0;
}

peridot_status cmd_images_message(char **json, size_t *size, size_t n, const char *text)
{
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *list = yyjson_mut_arr(doc), *message = yyjson_mut_arr_add_obj(doc, list), *parts, *part = NULL;
    yyjson_mut_doc_set_root(doc, list);
    yyjson_mut_obj_add_str(doc, message, "role", "user");
    parts = yyjson_mut_obj_add_arr(doc, message, "content");
    for (size_t i = 0; i < n; i++) {
        part = yyjson_mut_arr_add_obj(doc, parts);
        yyjson_mut_obj_add_str(doc, part, "type", "image");
    }
    part = yyjson_mut_arr_add_obj(doc, parts);
    yyjson_mut_obj_add_str(doc, part, "type", "text");
    if (!yyjson_mut_obj_add_str(doc, part, "text", text)) cmd_json_fail();
    *json = cmd_json_end(doc, 0, size);
    return *json ? PERIDOT_OK : pd_fail_alloc(strlen(text), "a message");
}
