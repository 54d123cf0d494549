/* The importance of a matrix's columns: the mean squares of what they multiply on a text ("imatrix"). In llama.cpp's
 * two forms of files: GGUF, with tensors NAME.in_sum2 [n_matrices][n_cols] and NAME.counts [n_matrices], and the older
 * imatrix.dat: little-endian i32 n, then n times i32 size of a name, the name, i32 calls, i32 n_cols, f32 [n_cols]. */
#ifndef PD_OFFLINE_IMPORTANCE_H
#define PD_OFFLINE_IMPORTANCE_H

#include "base/status.h"

struct pd_importance;

peridot_status pd_importance_open(struct pd_importance **out, const char *path);
/* NULL is allowed. */
void pd_importance_close(struct pd_importance *m);
/* Of the matrix of a GGUF name: *out [n_matrices][n_cols], positive, until it is closed; NULL where the file has none.
 * A file that has it in another size is refused. */
peridot_status pd_importance_find(const float **out, struct pd_importance *m, const char *name, uint64_t n_matrices,
                                  uint64_t n_cols);
/* How many were found. */
uint32_t pd_importance_n_found(const struct pd_importance *m);

#endif
