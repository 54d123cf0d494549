/* A Hugging Face directory: config.json, and the tensors of model.safetensors or of the shards that
 * model.safetensors.index.json names. */
#ifndef PD_FORMAT_HF_H
#define PD_FORMAT_HF_H

#include "base/json.h"
#include "base/os.h"
#include "format/tensor.h"

struct pd_hf {
    struct pd_arena arena;
    yyjson_doc *config;
    struct pd_map *maps;             /* one for each of n_maps files, */
    char **paths;                    /* and their names */
    size_t n_maps;
    struct pd_tensor_list tensors;   /* file after file, in the order of their data */
};

/* Without tensors only config.json is opened. On failure *out is empty. */
peridot_status pd_hf_open(struct pd_hf *out, const char *directory, bool with_tensors);
void pd_hf_close(struct pd_hf *h);
peridot_status pd_hf_check(peridot_status status, const struct pd_hf *h);

#endif
