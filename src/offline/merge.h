/* Adapters that become a part of the matrices of a file that is written: W + scale B A, before W is quantised. */
#ifndef PD_OFFLINE_MERGE_H
#define PD_OFFLINE_MERGE_H

#include "arch/adapter.h"
#include "peridot_tools.h"

enum { PD_MAX_MERGED = 32 };

struct pd_merge {
    const struct pd_config *config;
    const peridot_adapter_file *files;
    struct pd_adapter adapters[PD_MAX_MERGED];
    uint32_t n;
};

/* What is added to one matrix, its rows in a GGUF file's order. */
struct pd_merge_matrix {
    uint32_t n_ranks;          /* of all adapters; 0: nothing is added */
    uint32_t n_cols;
    float *a, *b;              /* [n_ranks][n_cols], [n_rows][n_ranks] */
};

/* Borrows config and files. *out must be closed even on failure. */
peridot_status pd_merge_open(struct pd_merge *out, const struct pd_config *config, const peridot_adapter_file *files,
                             size_t n);
void pd_merge_close(struct pd_merge *m);
/* By the tensor's name in a GGUF file. pd_merge_matrix_free frees it, even on failure. */
peridot_status pd_merge_find(struct pd_merge_matrix *out, const struct pd_merge *m, const char *name);
void pd_merge_matrix_free(struct pd_merge_matrix *x);
/* Adds it to n weights of the matrix, from number `first` on. */
void pd_merge_add(float *weights, const struct pd_merge_matrix *x, uint64_t first, uint64_t n);

#endif
