/* Text to ids for vocabularies with merges, in the steps of Hugging Face's tokenizers: user-defined pieces are cut out
 * of the text first, then each stretch between them is either merged by characters (CHAR_MERGES), or split into words
 * that are merged by bytes (BYTE_MERGES). One difference: with CHAR_MERGES, spaces
 * become U+2581 before anything else, as in sentencepiece, so that Gemma's pieces for runs of spaces are found, and a
 * tokenizer.json gives the ids that its tokenizer.model gives. (Hugging Face's own code merges spaces instead; runs of
 * more than 31 then come out in other parts than those that Gemma was trained on.) Thread-safe once created. */
#ifndef PD_TEXT_BPE_H
#define PD_TEXT_BPE_H

#include "text/pieces.h"

struct pd_bpe;

/* `p` must be complete, and outlives *out. */
peridot_status pd_bpe_create(struct pd_bpe **out, const struct pd_pieces *p);
void pd_bpe_free(struct pd_bpe *b);
/* Appends the ids of plain text, which some vocabularies put a space before. Malformed UTF-8 counts as U+FFFD. */
peridot_status pd_bpe_encode(struct pd_ids *out, const struct pd_bpe *b, const char *text, size_t size,
                             enum pd_text_place place);

/* Some characters are nothing to it. */
bool pd_bpe_drops(const struct pd_bpe *b);

#endif
