/* Which chat template a model's conversations get, and what the user is told of it. */
#ifndef PERIDOT_COMMAND_TEMPLATE_H
#define PERIDOT_COMMAND_TEMPLATE_H

#include "open.h"

/* The name for peridot_encode_messages: `given`, unless it is NULL; NULL where the model has a template; else
 * `otherwise` (NULL: the caller does without a template). Says on stderr where that is not the template in the model's
 * files. Fails where the vocabulary, which there must be, lacks control tokens of the one named. */
peridot_status cmd_template_choose(const char **name, const peridot_model *model, const struct cmd_model_args *args,
                                   const char *given, const char *otherwise);
/* Fails where --think asks for what the template does not have. */
peridot_status cmd_template_check_think(const peridot_vocab *vocab, const char *name, uint32_t think);

#endif
