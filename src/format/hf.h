/* A Hugging Face directory: config.json, and the tensors of model.safetensors or of the shards that
 * model.safetensors.index.json names; and where sentence-transformers' modules.json has dense layers, those of each,
 * "linear.weight" being called as in GGUF: dense_2.weight, dense_3.weight. */
#ifndef PD_FORMAT_HF_H
#define PD_FORMAT_HF_H

#include "base/json.h"
#include "base/os.h"
#include "format/tensor.h"

struct pd_hf {
    struct pd_arena arena;
    yyjson_doc *config;
    yyjson_doc *modules;             /* of modules.json, an array of objects; NULL: there is none */
    struct pd_map *maps;             /* one for each of n_maps files, */
    char **paths;                    /* and their names */
    size_t n_maps;
    struct pd_tensor_list tensors;   /* file after file, in the order of their data */
};

enum pd_hf_part {
    PD_HF_CONFIG,      /* config.json alone */
    PD_HF_MODEL,       /* with the tensors */
    PD_HF_ADAPTER      /* adapter_config.json and adapter_model.safetensors: PEFT's */
};

/* On failure *out is empty. */
peridot_status pd_hf_open(struct pd_hf *out, const char *directory, enum pd_hf_part part);
void pd_hf_close(struct pd_hf *h);
peridot_status pd_hf_check(peridot_status status, const struct pd_hf *h);
/* Whether a string of a file names something in the model's own folder: with a slash or a drive it could be
 * anywhere. */
bool pd_hf_is_own_name(const char *name);

#endif
