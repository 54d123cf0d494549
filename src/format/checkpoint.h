/* A checkpoint: the tensors and metadata of a model, whichever form it comes in: a GGUF file (v2, v3) or several, or a
 * Hugging Face directory (config.json with one or many safetensors files). Files are mapped, never copied; all
 * structure is checked at open, so that a tensor handed out lies inside its file and has the size that its shape and
 * type say. */
#ifndef PD_FORMAT_CHECKPOINT_H
#define PD_FORMAT_CHECKPOINT_H

#include "format/meta.h"
#include "format/tensor.h"

#include <yyjson.h>

struct pd_checkpoint;

enum pd_checkpoint_kind { PD_CHECKPOINT_GGUF, PD_CHECKPOINT_HF };

/* `path`: a .gguf file (told by its magic, not its name), the first of its parts, or a directory. A GGUF without
 * tensors opens. A tensor of a type that Peridot does not know is refused by name. A Hugging Face directory needs
 * config.json; its tensors are opened only when with_tensors. There, tensors of the vision tower, which text models
 * ignore, may have any type (PD_DTYPE_OTHER). */
peridot_status pd_checkpoint_open(struct pd_checkpoint **out, const char *path, bool with_tensors);
/* The same of an adapter to a model: a .gguf file, or a PEFT directory, whose adapter_config.json is the config
 * then. */
peridot_status pd_checkpoint_open_adapter(struct pd_checkpoint **out, const char *path);
void pd_checkpoint_close(struct pd_checkpoint *c);
/* What came of reading its files: status, or a failure where a part of one was gone (pd_map_check). */
peridot_status pd_checkpoint_check(peridot_status status, const struct pd_checkpoint *c);
/* Tells models apart: of all tensors' names, types and shapes, and of some bytes of each. */
uint64_t pd_checkpoint_hash(const struct pd_checkpoint *c);
/* Fails where `path` is one of its files. */
peridot_status pd_checkpoint_check_output(const struct pd_checkpoint *c, const char *path);

enum pd_checkpoint_kind pd_checkpoint_kind(const struct pd_checkpoint *c);
const char *pd_checkpoint_path(const struct pd_checkpoint *c);

size_t pd_checkpoint_n_tensors(const struct pd_checkpoint *c);
const struct pd_tensor *pd_checkpoint_tensor(const struct pd_checkpoint *c, size_t i);   /* in file order */
const struct pd_tensor *pd_checkpoint_find(const struct pd_checkpoint *c, const char *name);   /* NULL: none */

/* Hugging Face: the root object of config.json; NULL for GGUF. */
yyjson_val *pd_checkpoint_config(const struct pd_checkpoint *c);
/* The root array of sentence-transformers' modules.json; NULL: there is none. */
yyjson_val *pd_checkpoint_modules(const struct pd_checkpoint *c);

/* GGUF metadata; none in a Hugging Face directory. */
size_t pd_checkpoint_n_meta(const struct pd_checkpoint *c);
const struct pd_meta *pd_checkpoint_meta(const struct pd_checkpoint *c, size_t i);
const struct pd_meta *pd_checkpoint_find_meta(const struct pd_checkpoint *c, const char *key);   /* NULL: none */

#endif
