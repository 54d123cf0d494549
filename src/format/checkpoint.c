/* A checkpoint: the tensors and metadata of a model, whichever form it comes in: a GGUF file (v2, v3) or several, or a
 * Hugging Face directory (config.json with one or many safetensors files). Files are mapped, never copied; all
 * structure is checked at open, so that a tensor handed out lies inside its file and has the size that its shape and
 * type say. */
#include "format/format.h"

#include "base/base.h"
#include "format/format_.h"

#include <stdlib.h>
#include <string.h>

struct pd_checkpoint {
    enum pd_checkpoint_kind kind;
    char *path;
    struct pd_gguf_parts gguf;
    struct pd_hf hf;
    const struct pd_tensor_list *tensors;   /* of the one or the other */
};

static peridot_status open_gguf(struct pd_checkpoint *c)
{
    c->kind = PD_CHECKPOINT_GGUF;
    c->tensors = &c->gguf.tensors;
    return pd_gguf_parts_open(&c->gguf, c->path);
}

static peridot_status open_hf(struct pd_checkpoint *c, enum pd_hf_part part)
{
    c->kind = PD_CHECKPOINT_HF;
    c->tensors = &c->hf.tensors;
    return pd_hf_open(&c->hf, c->path, part);
}

/* Without slashes at the end, so that sentences have one before a file's name. */
static char *copy_path(const char *path)
{
    char *copy = pd_path_copy(path);
    for (size_t n = copy ? strlen(copy) : 0; n > 1 && copy[n - 1] == '/'; n--) copy[n - 1] = 0;
    return copy;
}

static peridot_status open_part(struct pd_checkpoint **out, const char *path, enum pd_hf_part part)
{
    *out = NULL;
    struct pd_checkpoint *c = calloc(1, sizeof *c);
    if (!c) return pd_fail_alloc(sizeof *c, "checkpoint");
    c->path = copy_path(path);
    peridot_status status = !c->path                   ? pd_fail_alloc(strlen(path) + 1, "path")
                            : pd_is_directory(c->path) ? open_hf(c, part)
                                                       : open_gguf(c);
    status = pd_checkpoint_check(status, c);
    if (status == PERIDOT_OK) *out = c;
    else pd_checkpoint_close(c);
    return status;
}

peridot_status pd_checkpoint_open(struct pd_checkpoint **out, const char *path, bool with_tensors)
{
    return open_part(out, path, with_tensors ? PD_HF_MODEL : PD_HF_CONFIG);
}

peridot_status pd_checkpoint_open_adapter(struct pd_checkpoint **out, const char *path)
{
    return open_part(out, path, PD_HF_ADAPTER);
}

peridot_status pd_checkpoint_check(peridot_status status, const struct pd_checkpoint *c)
{
    return pd_hf_check(pd_gguf_parts_check(status, &c->gguf), &c->hf);
}

void pd_checkpoint_close(struct pd_checkpoint *c)
{
    if (!c) return;
    pd_gguf_parts_close(&c->gguf);
    pd_hf_close(&c->hf);
    free(c->path);
    free(c);
}

peridot_status pd_checkpoint_check_output(const struct pd_checkpoint *c, const char *path)
{
    for (size_t i = 0; i < c->gguf.n; i++) PD_TRY(pd_writer_check(path, c->gguf.paths[i]));
    return pd_writer_check(path, c->path);
}

enum pd_checkpoint_kind pd_checkpoint_kind(const struct pd_checkpoint *c) { return c->kind; }
const char *pd_checkpoint_path(const struct pd_checkpoint *c) { return c->path; }

size_t pd_checkpoint_n_tensors(const struct pd_checkpoint *c) { return c->tensors->n; }

const struct pd_tensor *pd_checkpoint_tensor(const struct pd_checkpoint *c, size_t i) { return &c->tensors->items[i]; }

const struct pd_tensor *pd_checkpoint_find(const struct pd_checkpoint *c, const char *name)
{
    return pd_tensor_list_find(c->tensors, name);
}

uint64_t pd_checkpoint_hash(const struct pd_checkpoint *c)
{
    uint64_t h = 0;
    for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        uint64_t n_parts = t->experts ? t->shape[0] : 1, size = t->size / n_parts;
        if (t->block_scales) size = size / 17 * 16;
        uint64_t n = pd_min(size, 64);
        const uint8_t *last = t->experts ? t->experts[n_parts - 1] : t->data;
        h = pd_hash(h, t->name, strlen(t->name));
        h = pd_hash(h, t->type, strlen(t->type));
        h = pd_hash(h, t->shape, sizeof t->shape);
        h = pd_hash(h, t->data, n);
        h = pd_hash(h, last + size - n, n);
    }
    return h;
}

/* yyjson takes NULL for a document: no root. */
yyjson_val *pd_checkpoint_config(const struct pd_checkpoint *c) { return yyjson_doc_get_root(c->hf.config); }

yyjson_val *pd_checkpoint_modules(const struct pd_checkpoint *c) { return yyjson_doc_get_root(c->hf.modules); }

size_t pd_checkpoint_n_meta(const struct pd_checkpoint *c) { return c->gguf.n ? c->gguf.parts[0].n_meta : 0; }
const struct pd_meta *pd_checkpoint_meta(const struct pd_checkpoint *c, size_t i) { return &c->gguf.parts[0].meta[i]; }

const struct pd_meta *pd_checkpoint_find_meta(const struct pd_checkpoint *c, const char *key)
{
    return c->gguf.n ? pd_gguf_find_meta(&c->gguf.parts[0], key) : NULL;
}
