/* Pictures that the command line names, for models that see. */
#ifndef PERIDOT_COMMAND_IMAGES_H
#define PERIDOT_COMMAND_IMAGES_H

#include "open.h"

#define CMD_VISION_OPTION \
    {.name = "vision", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct cmd_model_args, vision), \
     .help = "The file with the model's vision tower (mmproj, GGUF); none: the model is to see nothing. Without it, " \
             "the file with mmproj in its name beside the model that fits it, or the Hugging Face directory's own."}, \
    {.name = "image-rows", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct cmd_model_args, image_rows), \
     .fallback = "0", .max = 1120, \
     .help = "Rows of a picture at most, where the model leaves it open: Gemma 4's 70, 140, 280, 560 or 1120; more " \
             "for small print. 0: as the model's files say, or 280."}, \
    {.name = "pan-and-scan", .kind = CMD_FLAG, .offset = offsetof(struct cmd_model_args, pan_and_scan), \
     .help = "Show Gemma 3 a long picture whole, and then in two to four parts, for small print: where one side is " \
             "at least 1.2 times the other, and parts have 256 pixels a side. Each part takes as many rows as the " \
             "whole. Other families refuse it."}

/* For commands with a member `images`. */
#define CMD_IMAGE_OPTION(type, what) \
    {.name = "image", .metavar = "FILE", .kind = CMD_TEXTS, .offset = offsetof(type, images), .help = what}
#define CMD_IMAGES_PLACED_HELP \
    "A picture (JPEG, PNG, WebP, GIF) for a model that sees; may be repeated. In --tokens its rows are the model's " \
    "image tokens, as many as it has, as transformers' processors write them; images take them in order, with " \
    "--pan-and-scan each followed by its parts."

struct cmd_images {
    peridot_image *at[CMD_TEXTS_MAX];
    size_t n;
};

/* Reads a file for a model; "-" is standard input. pan_and_scan: see peridot_image_params. */
peridot_status cmd_image_read(peridot_image **out, const peridot_model *model, const char *file, bool pan_and_scan);
#define CMD_FILE_URL "file:"   /* before a path */
/* The same of "file:PATH" or "data:...;base64,...". */
peridot_status cmd_image_read_url(peridot_image **out, const peridot_model *model, const char *url, bool pan_and_scan);
/* Reads the files (JPEG, PNG, WebP, GIF; "-": standard input) for a model. */
peridot_status cmd_images_read(struct cmd_images *out, const peridot_model *model, const struct cmd_texts *files,
                               bool pan_and_scan);
void cmd_images_free(struct cmd_images *images);
/* A message of the user's with n images before its text, as JSON of *size bytes for peridot_chat, to be freed. */
peridot_status cmd_images_message(char **json, size_t *size, size_t n, const char *text);

#endif
