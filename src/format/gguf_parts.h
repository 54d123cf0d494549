/* A model in one GGUF file, or in parts as gguf-split writes them: NAME-00001-of-00003.gguf and so on. All metadata is
 * in the first, and tensors may be in any; each says which part it is (split.no, from 0) of how many (split.count).
 * Tensors in NVFP4 get their scales, which are tensors, too. */
#ifndef PD_FORMAT_GGUF_PARTS_H
#define PD_FORMAT_GGUF_PARTS_H

#include "base/os.h"
#include "format/gguf.h"

struct pd_gguf_parts {
    struct pd_arena arena;
    struct pd_map *maps;             /* one for each of n files, */
    char **paths;                    /* their names */
    struct pd_gguf *parts;           /* and what they hold */
    size_t n;
    struct pd_tensor_list tensors;   /* of all, part after part */
};

/* `path`: of the only file or the first part. On failure *out must be closed all the same. */
peridot_status pd_gguf_parts_open(struct pd_gguf_parts *out, const char *path);
void pd_gguf_parts_close(struct pd_gguf_parts *p);
peridot_status pd_gguf_parts_check(peridot_status status, const struct pd_gguf_parts *p);

#endif
