/* Words of a text by a regular expression, for byte-level vocabularies: each match is a word, and so is what lies
 * between two matches. PCRE2 with Unicode does the matching; published patterns are written for Oniguruma, so what the
 * two read differently is refused or evened out. */
#ifndef PD_TEXT_SPLIT_H
#define PD_TEXT_SPLIT_H

#include "base/status.h"

/* The patterns of GPT-2, of GPT-2 after digits were taken out one by one (as in StarCoder), of Llama 3, of Qwen 2, of
 * Mistral's tekken and of GPT-4o. */
extern const char pd_split_gpt2[], pd_split_digits[], pd_split_llama3[], pd_split_qwen2[], pd_split_tekken[],
    pd_split_gpt4o[];

struct pd_split;

/* Thread-safe once created. */
peridot_status pd_split_create(struct pd_split **out, const char *pattern);
void pd_split_free(struct pd_split *s);

/* One text being split. */
struct pd_split_run {
    const struct pd_split *split;
    void *match, *context;       /* PCRE2's */
    char *copy;                  /* of the text, when PCRE2 must see another one; else NULL */
    const char *text;
    size_t size;
    uint64_t n_steps, max_steps; /* of matching, all words so far together */
    size_t seen;                 /* where the last step began */
    size_t match_begin, match_end;   /* the match found last; match_begin is size when there is none left */
};

/* `text` must be valid UTF-8 and outlive the run. *out must be ended even on failure. */
peridot_status pd_split_begin(struct pd_split_run *out, const struct pd_split *s, const char *text, size_t size);
/* Where the word that starts at `at` ends; `at` < size goes from word to word. */
peridot_status pd_split_next(size_t *end, struct pd_split_run *r, size_t at);
void pd_split_end(struct pd_split_run *r);

#endif
