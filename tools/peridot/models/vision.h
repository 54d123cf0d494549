/* Files with the vision tower of a model ("mmproj"), which lie beside it wherever another program puts both. */
#ifndef PERIDOT_COMMAND_MODELS_VISION_H
#define PERIDOT_COMMAND_MODELS_VISION_H

#include "../util.h"

/* How well the name of one suits a model's file, the more the better: by what it has of the model's name, and then its
 * type, f16 or else q8_0 before others. */
size_t cmd_vision_rank(const char *path, const char *model);
/* The one that belongs to a model's file: in the same folder, at the top of its repository in Hugging Face's cache, or
 * named in a manifest of ollama's. *path is to be freed; NULL: there is none. *fits (NULL is allowed): it opens, and is
 * a tower of that model; one that is not is given where no other is. */
peridot_status cmd_vision_find(char **path, bool *fits, const char *model);

#endif
