/* Words of a text by a regular expression, for byte-level vocabularies: each match is a word, and so is what lies
 * between two matches. PCRE2 with Unicode does the matching; published patterns are written for Oniguruma, so what the
 * two read differently is refused or evened out. */
#ifndef PD_TEXT_SPLIT_H
#define PD_TEXT_SPLIT_H

#include "base/status.h"

/* Of a digit by itself, and the patterns of GPT-2, Llama 3, Qwen 2, Qwen 3.5, Mistral's tekken, GPT-4o and
 * Seed-Coder. */
extern const char pd_split_digit[], pd_split_gpt2[], pd_split_llama3[], pd_split_qwen2[], pd_split_qwen35[],
    pd_split_tekken[], pd_split_gpt4o[], pd_split_seed_coder[];
/* DeepSeek's, which follow one another: a line break, a word of cased letters (LLM) or of any (Coder), punctuation, the
 * spaces that end a stretch (LLM), other letters. */
extern const char pd_split_break[], pd_split_cased_word[], pd_split_word[], pd_split_wide_marks[], pd_split_marks[],
    pd_split_last_spaces[], pd_split_east_asian[];

struct pd_split;

/* Thread-safe once created. */
peridot_status pd_split_create(struct pd_split **out, const char *pattern);
void pd_split_free(struct pd_split *s);

/* One text being split. */
struct pd_split_run {
    const struct pd_split *split;
    struct pd_split_run *outer;
    void *match, *context;       /* PCRE2's */
    char *copy;                  /* of the text, when PCRE2 must see another one; else NULL */
    const char *text;
    size_t size;
    uint64_t n_steps, max_steps; /* of matching, all words so far together */
    size_t seen;                 /* where the last step began */
    size_t match_begin, match_end;   /* the match found last; match_begin is size when there is none left */
};

/* `text` must be valid UTF-8 and outlive the run; `outer` is the run that it is a word of, which counts the steps of
 * both, or NULL. *out must be ended even on failure. */
peridot_status pd_split_begin(struct pd_split_run *out, const struct pd_split *s, const char *text, size_t size,
                              struct pd_split_run *outer);
/* Where the word that starts at `at` ends; `at` < size goes from word to word. */
peridot_status pd_split_next(size_t *end, struct pd_split_run *r, size_t at);
void pd_split_end(struct pd_split_run *r);

#endif
