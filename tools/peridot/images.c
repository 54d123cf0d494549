#include "images.h"
#include "json.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

peridot_status cmd_image_read(peridot_image **out, const peridot_model *model, const char *file)
{
    bool standard = strcmp(file, "-") == 0;
    const char *name = standard ? "standard input" : file;
    char *data = NULL;
    size_t size = 0;
    if (standard) CMD_TRY(cmd_read_all(&data, &size, stdin, name));
    else CMD_TRY(cmd_read_file(&data, &size, name));
    peridot_status status = peridot_image_read(out, model, data, size, name);
    free(data);
    return status;
}

peridot_status cmd_images_read(struct cmd_images *out, const peridot_model *model, const struct cmd_texts *files)
{
    *out = (struct cmd_images){.n = 0};
    for (size_t i = 0; i < files->n; i++) {
        peridot_status status = cmd_image_read(&out->at[i], model, files->at[i]);
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
    return *json ? PERIDOT_OK : cmd_fail_alloc(strlen(text), "a message");
}
