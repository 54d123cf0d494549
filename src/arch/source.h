/* The tensors of a checkpoint, found by the names of the plan and checked against its shapes. */
#ifndef PD_ARCH_SOURCE_H
#define PD_ARCH_SOURCE_H

#include "arch/plan.h"

struct pd_source {
    const struct pd_checkpoint *checkpoint;
    const struct pd_config *config;
    const char *prefix;            /* pd_tensor_prefix */
    bool *used;                    /* [tensors of the checkpoint]: those that were got */
};

/* Borrows both. Fails where the config contradicts the tensors of the vocabulary. *out must be closed even on
 * failure. */
peridot_status pd_source_open(struct pd_source *out, const struct pd_checkpoint *checkpoint,
                              const struct pd_config *config);
void pd_source_close(struct pd_source *s);

/* NULL: none. */
const struct pd_tensor *pd_source_find(const struct pd_source *s, enum pd_role role, uint32_t layer);
/* Fails where the tensor is missing, or is not of a known type and of the plan's shape, or has not as many labels as
 * the config. */
peridot_status pd_source_get(const struct pd_tensor **out, struct pd_source *s, const struct pd_plan *plan);
/* A tied file may hold the matrix under either name, or both. */
peridot_status pd_source_get_embedding(const struct pd_tensor **out, struct pd_source *s);
/* A tensor that nothing has got would be an effect lost without a word, and is refused by name; those of a vision
 * tower are counted, and those that repeat what is known from elsewhere are not. */
peridot_status pd_source_check_unused(uint32_t *n_ignored, const struct pd_source *s);

/* What a model's tensors come to. */
struct pd_source_totals {
    uint32_t type_counts[PD_N_DTYPES];   /* matrices of each type */
    uint32_t vocab_size, n_outputs, n_ignored;
    uint64_t n_params;
    uint64_t size;                       /* bytes in the files */
};

/* Gets every tensor that loading the model would get, with the checks that this makes. */
peridot_status pd_source_count(struct pd_source_totals *out, const struct pd_checkpoint *checkpoint,
                               const struct pd_config *config);

#endif
