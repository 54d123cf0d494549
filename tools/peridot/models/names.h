/* What a model's name means, among those that are on this machine. */
#ifndef PERIDOT_COMMAND_MODELS_NAMES_H
#define PERIDOT_COMMAND_MODELS_NAMES_H

#include "../util.h"

/* The path of the model that `name` means: a path that exists, whatever else has that name, and of a
 * folder that is no model but has one GGUF model, that; a name of `peridot models`,
 * in whatever case; or a part of one that only one model has. *path is the caller's to free. A failure says which
 * models come near. A path of a file that does not exist is left as it is, for the library to refuse. */
peridot_status cmd_model_resolve(char **path, const char *name);
/* Whether a model of that name is on this machine; `part`: a part of its name will do. */
bool cmd_model_is_here(const char *name, bool part);

#endif
