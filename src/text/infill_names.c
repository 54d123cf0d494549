#include "text/infill_names.h"

#include "base/num.h"

#include <string.h>

static const struct pd_infill_names table[] = {
    /* CodeGemma; Qwen Coder */
    {{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
     {"<|file_separator|>", "<|file_sep|>", "<|fim_pad|>", "<|repo_name|>"}},
    /* StarCoder, Granite Code */
    {{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"}, {"<file_sep>", "<fim_pad>"}},
    /* Code Llama: spaces are U+2581 */
    {{"\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"}, {"\u2581<EOT>"}},
};

static bool has(const char *const *names, size_t n, const char *text, size_t size)
{
    for (size_t i = 0; i < n && names[i]; i++)
        if (strlen(names[i]) == size && memcmp(names[i], text, size) == 0) return true;
    return false;
}

bool pd_infill_is_name(const char *text, size_t size)
{
    for (size_t i = 0; i < PD_COUNT(table); i++)
        if (has(table[i].marks, PD_N_INFILL, text, size) || has(table[i].ends, PD_COUNT(table[i].ends), text, size))
            return true;
    return false;
}

const struct pd_infill_names *pd_infill_names(size_t i) { return i < PD_COUNT(table) ? &table[i] : NULL; }
