/* Numbers of config.json, for the files that read one. The first failure is kept in the reader, after which nothing is
 * read, so that what reads many needs no checks. Values are those of the document, borrowed. */
#ifndef PD_ARCH_HF_READER_H
#define PD_ARCH_HF_READER_H

#include "arch/config.h"
#include "arch/numbers.h"

/* An object of config.json. */
struct pd_hf_object {
    yyjson_val *at;          /* NULL: there is none */
    const char *prefix;      /* of its keys in sentences: "", "rope_scaling." */
};

struct pd_hf_reader {
    struct pd_hf_object config;    /* of the text model */
    const struct pd_hf_type *type;
    const struct pd_family_traits *family;
    uint32_t n_layers;       /* 0: not known yet */
    peridot_status status;   /* of the first failure, after which nothing is read */
};

enum { PD_HF_KEY_SIZE = 160 };

/* "config.json: text_config.head_dim" */
const char *pd_hf_key(char out[PD_HF_KEY_SIZE], struct pd_hf_object o, const char *key);
void pd_hf_fail_type(struct pd_hf_reader *r, struct pd_hf_object o, const char *key, const char *want);
/* NULL for null, too. */
yyjson_val *pd_hf_member(yyjson_val *object, const char *key);
/* An object under a key; at is NULL where there is none. */
struct pd_hf_object pd_hf_object(struct pd_hf_reader *r, struct pd_hf_object o, const char *key, const char *prefix);
/* Of an array with one value per layer, that of layer i; else the one value. Null is as good as absent where the value
 * can be derived: of head_dim and num_key_value_heads. */
uint32_t pd_hf_layer_uint(struct pd_hf_reader *r, enum pd_number number, uint32_t i, uint32_t fallback);
uint32_t pd_hf_uint(struct pd_hf_reader *r, enum pd_number number, uint32_t fallback);
/* fallback NAN: the key must be there. */
double pd_hf_number(struct pd_hf_reader *r, struct pd_hf_object o, enum pd_number number, double fallback);
/* hf_rope.c: both rotations of the config, by any generation of keys. */
void pd_hf_read_ropes(struct pd_hf_reader *r, struct pd_config *out);
/* and which layers have none. */
peridot_status pd_hf_read_no_rope(struct pd_hf_reader *r, struct pd_config *out);

#endif
