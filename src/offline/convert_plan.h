/* What a converted file will hold: every tensor's new name and type, and how it comes from the source. */
#ifndef PD_OFFLINE_CONVERT_PLAN_H
#define PD_OFFLINE_CONVERT_PLAN_H

#include "arch/rope.h"
#include "format/arena.h"

struct pd_convert_item {
    const char *name;
    const struct pd_tensor *source;   /* NULL: `made` is its data, n_dims is 1 and dtype f32 */
    const float *made;
    enum pd_dtype dtype;
    uint32_t n_dims;
    uint64_t shape[4];                /* outermost first */
    bool plus_one;                    /* add 1 to every weight: Hugging Face centres norm weights on zero */
    bool interleaves;                 /* rows of q and k are ordered for rotation of neighbours, in heads */
    struct pd_head_order order;       /* of so many rows */
    const float *importance;          /* of the columns of each of its matrices; NULL: not known */
};

struct pd_convert_plan {
    struct pd_arena arena;            /* names and what is made */
    struct pd_convert_item *items;
    uint32_t n, capacity;
    uint32_t vocab_size;              /* rows of the embedding; 0 for a GGUF source, whose keys are copied */
    uint32_t n_replaced;              /* matrices that got another type because their rows are not whole blocks */
    uint32_t n_ignored;               /* tensors that are left out: those of vision */
    enum pd_dtype dtype;
};

/* Matrices become `dtype`, except that types below 6 bits leave embeddings and output at q6_k, and what published files
 * never quantise becomes bf16; all else becomes f32. The config is that of a Hugging Face directory, and not read for a
 * GGUF file. Checks all shapes. *out is freed by pd_convert_plan_free even on failure; tensors are borrowed. */
peridot_status pd_convert_plan_create(struct pd_convert_plan *out, const struct pd_checkpoint *c,
                                      const struct pd_config *config, enum pd_dtype dtype);
void pd_convert_plan_free(struct pd_convert_plan *p);

#endif
