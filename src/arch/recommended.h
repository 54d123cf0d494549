/* How the publisher of a model would have it drawn from: general.sampling.* of a GGUF file, by llama.cpp's names, or
 * generation_config.json of a Hugging Face directory. Untrusted input: what is out of range recommends nothing. */
#ifndef PD_ARCH_RECOMMENDED_H
#define PD_ARCH_RECOMMENDED_H

#include "format/checkpoint.h"
#include "format/gguf_write.h"
#include "peridot.h"

struct pd_recommended {
    uint32_t members;          /* bits of peridot_recommended: of `p`, what there is */
    peridot_sampling p;
    char ignored[256];         /* a sentence on the first value that is not used; "": there is none */
};

/* Fails only where memory is short. */
peridot_status pd_recommended_read(struct pd_recommended *out, const struct pd_checkpoint *c);
/* Adds the keys general.sampling.* */
void pd_recommended_write(struct pd_gguf_writer *w, const struct pd_recommended *r);
/* What peridot_model_recommends does. */
uint32_t pd_recommended_take(const struct pd_recommended *r, peridot_sampling *sampling, uint32_t keep,
                             const char **ignored);

#endif
