#include "text/pre.h"

#include "base/num.h"
#include "text/split.h"

#include <stdio.h>
#include <string.h>

/* Of names that stand for the same, the first is written. The names, and what goes without saying with them, are
 * llama.cpp's. */
static const struct pd_pre rows[] = {
    {.name = "llama-bpe", .pattern = pd_split_llama3, .whole_words = true},
    {.name = "llama3", .pattern = pd_split_llama3, .whole_words = true},
    {.name = "llama-v3", .pattern = pd_split_llama3, .whole_words = true},
    {.name = "dbrx", .pattern = pd_split_llama3, .no_bos = true},        /* OLMo 2 and 3, Granite 4, Phi 4 */
    {.name = "smaug-bpe", .pattern = pd_split_llama3, .no_bos = true},   /* SmolLM3 */
    {.name = "gpt-2", .pattern = pd_split_gpt2},
    {.name = "granite-docling", .pattern = pd_split_gpt2, .no_bos = true},
    {.name = "olmo", .pattern = pd_split_gpt2, .nfc = true, .no_bos = true},
    {.name = "refact", .pattern = pd_split_digits, .no_bos = true},      /* Granite 3 */
    {.name = "starcoder", .pattern = pd_split_digits, .no_bos = true},
    {.name = "smollm", .pattern = pd_split_digits, .no_bos = true},
    {.name = "tekken", .pattern = pd_split_tekken, .whole_words = true},
    {.name = "gpt-4o", .pattern = pd_split_gpt4o, .no_bos = true},       /* Phi-4-mini */
    {.name = "llama4", .pattern = pd_split_gpt4o, .no_bos = true},
    {.name = "qwen2", .pattern = pd_split_qwen2, .nfc = true, .no_bos = true},
    {.name = "deepseek-r1-qwen", .pattern = pd_split_qwen2, .nfc = true},
};

const struct pd_pre *pd_pre_find(const char *name, size_t size)
{
    for (size_t i = 0; i < PD_COUNT(rows); i++)
        if (strlen(rows[i].name) == size && memcmp(rows[i].name, name, size) == 0) return &rows[i];
    return NULL;
}

const char *pd_pre_name(const struct pd_pieces *p)
{
    for (size_t i = 0; i < PD_COUNT(rows); i++)
        if (strcmp(rows[i].pattern, p->pattern) == 0 && rows[i].whole_words == p->whole_words && rows[i].nfc == p->nfc)
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
