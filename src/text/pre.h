/* What GGUF's tokenizer.ggml.pre stands for: of the steps before merging, files keep only this name. */
#ifndef PD_TEXT_PRE_H
#define PD_TEXT_PRE_H

#include "text/pieces.h"

struct pd_pre {
    const char *name;
    const char *patterns[PD_MAX_PATTERNS];   /* as in pd_pieces; NULL after the last */
    bool whole_words, nfc;   /* as in pd_pieces */
    bool no_bos;             /* unless tokenizer.ggml.add_bos_token says so */
};

/* NULL: not known. */
const struct pd_pre *pd_pre_find(const char *name, size_t size);
/* The name to write for a byte-level vocabulary; NULL: there is none. */
const char *pd_pre_name(const struct pd_pieces *p);
/* "gpt-2", "qwen2", ...: those that users have. */
const char *pd_pre_known(char *out, size_t size);

#endif
