#include "text/pre.h"

#include "base/num.h"
#include "text/split.h"

#include <stdio.h>
#include <string.h>

#define DIGITS_APART {pd_split_digit, pd_split_gpt2}
#define DEEPSEEK_LLM {pd_split_break, pd_split_cased_word, pd_split_wide_marks, pd_split_last_spaces, \
                      pd_split_east_asian, pd_split_digit}
#define DEEPSEEK_CODER {pd_split_break, pd_split_word, pd_split_marks, pd_split_east_asian, pd_split_digit}

/* Of names that stand for the same, the first is written. The names, and what goes without saying with them, are
 * llama.cpp's. */
static const struct pd_pre rows[] = {
    {.name = "llama-bpe", .patterns = {pd_split_llama3}, .whole_words = true},
    {.name = "llama3", .patterns = {pd_split_llama3}, .whole_words = true},
    {.name = "llama-v3", .patterns = {pd_split_llama3}, .whole_words = true},
    {.name = "falcon3", .patterns = {pd_split_llama3}, .whole_words = true},
    {.name = "pixtral", .patterns = {pd_split_llama3}, .whole_words = true},
    {.name = "midm-2.0", .patterns = {pd_split_llama3}, .whole_words = true},
    {.name = "dbrx", .patterns = {pd_split_llama3}, .no_bos = true},        /* OLMo 2 and 3, Granite 4, Phi 4 */
    {.name = "smaug-bpe", .patterns = {pd_split_llama3}, .no_bos = true},   /* SmolLM3 */
    {.name = "gpt-2", .patterns = {pd_split_gpt2}, .no_bos = true},
    {.name = "granite-docling", .patterns = {pd_split_gpt2}, .no_bos = true},
    {.name = "mellum", .patterns = {pd_split_gpt2}, .no_bos = true},
    {.name = "trillion", .patterns = {pd_split_gpt2}, .no_bos = true},
    {.name = "a.x-4.0", .patterns = {pd_split_gpt2}, .no_bos = true},
    {.name = "olmo", .patterns = {pd_split_gpt2}, .nfc = true, .no_bos = true},
    {.name = "refact", .patterns = DIGITS_APART, .no_bos = true},           /* Granite 3 */
    {.name = "starcoder", .patterns = DIGITS_APART, .no_bos = true},
    {.name = "smollm", .patterns = DIGITS_APART, .no_bos = true},
    {.name = "minerva-7b", .patterns = DIGITS_APART, .no_bos = true},
    {.name = "tekken", .patterns = {pd_split_tekken}, .whole_words = true},
    {.name = "gpt-4o", .patterns = {pd_split_gpt4o}, .no_bos = true},       /* Phi-4-mini */
    {.name = "llama4", .patterns = {pd_split_gpt4o}, .no_bos = true},
    {.name = "qwen2", .patterns = {pd_split_qwen2}, .nfc = true, .no_bos = true},
    {.name = "deepseek-r1-qwen", .patterns = {pd_split_qwen2}, .nfc = true, .no_bos = true},
    {.name = "f2llmv2", .patterns = {pd_split_qwen2}, .nfc = true, .no_bos = true},
    {.name = "kormo", .patterns = {pd_split_qwen2}, .no_bos = true},
    {.name = "megrez", .patterns = {pd_split_qwen2}, .no_bos = true},
    {.name = "qwen35", .patterns = {pd_split_qwen35}, .nfc = true, .no_bos = true},
    {.name = "seed-coder", .patterns = {pd_split_seed_coder}, .no_bos = true},
    {.name = "deepseek-llm", .patterns = DEEPSEEK_LLM, .no_bos = true},
    {.name = "deepseek-coder", .patterns = DEEPSEEK_CODER, .no_bos = true},
};

const struct pd_pre *pd_pre_find(const char *name, size_t size)
{
    for (size_t i = 0; i < PD_COUNT(rows); i++)
        if (strlen(rows[i].name) == size && memcmp(rows[i].name, name, size) == 0) return &rows[i];
    return NULL;
}

static bool has_patterns(const struct pd_pre *row, const struct pd_pieces *p)
{
    for (uint32_t i = 0; i < p->n_patterns; i++)
        if (!row->patterns[i] || strcmp(row->patterns[i], p->patterns[i]) != 0) return false;
    return p->n_patterns == PD_MAX_PATTERNS || !row->patterns[p->n_patterns];
}

const char *pd_pre_name(const struct pd_pieces *p)
{
    for (size_t i = 0; i < PD_COUNT(rows); i++)
        if (has_patterns(&rows[i], p) && rows[i].whole_words == p->whole_words && rows[i].nfc == p->nfc)
            return rows[i].name;
    return NULL;
}

const char *pd_pre_known(char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < PD_COUNT(rows) && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s\"%s\"", i ? ", " : "", rows[i].name);
    return out;
}
