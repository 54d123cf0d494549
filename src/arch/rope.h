/* Rotations: the rules of their frequencies, and the tables that angles are made of. */
#ifndef PD_ARCH_ROPE_H
#define PD_ARCH_ROPE_H

#include "arch/config.h"

bool pd_rope_equal(const struct pd_rope *a, const struct pd_rope *b);
/* What cos and sin are multiplied by where YaRN divides by `divisor`, by its authors' rule for a weight of 1. */
double pd_rope_mscale(double divisor, double weight);
/* What YaRN multiplies cos and sin by where files do not say it: that, divided by the same of the weight that they
 * have; 1 without YaRN. */
double pd_rope_yarn_factor(const struct pd_rope *rope);
/* Whether YaRN's numbers make a rule; `key`: what sentences name. */
peridot_status pd_rope_check_yarn(const struct pd_rope *rope, const char *key);

/* The first layer without a window, or the first one where there is none. */
const struct pd_layer *pd_rope_global_layer(const struct pd_config *config);

#define PD_ROPE_STILL 1e30f   /* what GGUF files divide frequencies by that are to be 0 */
/* Whether a GGUF file has the rule of the global rotation as a tensor, for want of keys. */
bool pd_rope_needs_factors(const struct pd_config *config);
/* That tensor: what n frequencies (half of that layer's rotated columns) are divided by; 1 where there is no such rule,
 * and PD_ROPE_STILL for pairs that are not rotated. */
void pd_rope_factors(float *out, const struct pd_config *config, uint32_t n);

/* Whether GGUF files of the family have no rotation in a layer, for which they have no key. */
bool pd_rope_is_usually_absent(const struct pd_config *config, uint32_t layer);

/* How rows of q and k are ordered within a head. On the device i is rotated with i + head_dim / 2; files have what is
 * rotated before what is not, and the two of a pair half of it apart, or side by side. */
struct pd_head_order {
    uint32_t head_dim, n_rotated;
    bool interleaved;
};

struct pd_head_order pd_head_order_of(const struct pd_config *config, uint32_t layer);
/* Whether files have another order than the device. */
bool pd_head_order_differs(const struct pd_head_order *o);
/* Where the device's row is in the file, of any number of heads. */
uint32_t pd_head_order_row(const struct pd_head_order *o, uint32_t row);

/* Where a row of a GGUF file is in a Hugging Face file, whose rows of a pair are apart, not side by side. */
uint32_t pd_head_order_split_row(const struct pd_head_order *o, uint32_t row);

/* The table of a layer, a new one where no layer before it has the same. */
peridot_status pd_rope_find_table(struct pd_config *config, struct pd_layer *layer);

/* Whether LongRoPE's long factors are those of sessions of ctx positions. transformers takes them where a text is
 * longer than the old context, but keys in the cache cannot be rotated anew when it becomes so: as in llama.cpp, all
 * texts of a session are rotated as its longest ones. */
bool pd_rope_is_long(const struct pd_config *config, uint32_t ctx);

#endif
