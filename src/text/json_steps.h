/* The steps around the model in a tokenizer.json: what happens to a text before merging (normalizer, pre_tokenizer), to
 * ids afterwards (post_processor), and to pieces when decoding (decoder). Known steps set fields; any other is refused
 * by name. Source: the serialised forms of Hugging Face's tokenizers. */
#ifndef PD_TEXT_JSON_STEPS_H
#define PD_TEXT_JSON_STEPS_H

#include "text/pieces.h"

#include <yyjson.h>

struct pd_json_steps {
    bool byte_level;             /* pre_tokenizer ByteLevel: merges are of bytes */
    bool nfc;                    /* as in pd_pieces */
    bool escape;                 /* spaces become U+2581 */
    bool prefix, prefix_each, prefix_unless_space, split_spaces, strip_prefix;   /* as in pd_pieces */
    bool byte_decoder, space_decoder;
    const char *patterns[PD_MAX_PATTERNS];   /* as in pd_pieces */
    uint32_t n_patterns;
    bool drops_between;
    const char *bos;             /* the piece that the template begins with; NULL: none */
    const char *end;             /* and that it ends with */
};

/* Strings are borrowed from the document. */
peridot_status pd_json_steps_read(struct pd_json_steps *out, yyjson_val *root);

#endif
