/* How a model's final hidden states become one vector of a text: pooled, through dense layers without bias, and of
 * length 1; and what texts of a task begin with. Read from sentence-transformers' files beside a Hugging Face model, or
 * from GGUF metadata, which has no prefixes: those that were published with the model stand in. Models whose tokens see
 * only what is before them (Qwen3-Embedding) may be embedding models as well. */
#ifndef PD_ARCH_EMBEDDING_H
#define PD_ARCH_EMBEDDING_H

#include "arch/family.h"
#include "format/checkpoint.h"
#include "peridot.h"

enum { PD_MAX_DENSE = 2 };

struct pd_task {
    char *name, *prefix;
};

struct pd_embedding {
    bool trained;            /* the files say how texts are pooled: of other models any vector will do */
    peridot_pool pool;
    uint32_t n_dense, dense_dims[PD_MAX_DENSE];   /* rows of each matrix */
    struct pd_task *tasks;
    uint32_t n_tasks;
};

/* *out must be freed even on failure. */
peridot_status pd_embedding_read(struct pd_embedding *out, const struct pd_checkpoint *c,
                                 const struct pd_family_traits *family);
void pd_embedding_free(struct pd_embedding *e);
/* Columns of the vector. */
uint32_t pd_embedding_dim(const struct pd_embedding *e, uint32_t d_model);

#endif
