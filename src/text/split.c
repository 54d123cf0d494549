/* What is done to a text before anything is merged: splitting it into words by the patterns of vocabularies (a GGUF
 * file has only a name for them), and bringing it into Unicode's form C. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/text_.h"

#include "base/base.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BEFORE_LETTERS "[^\\r\\n\\p{L}\\p{N}]?"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* Words by case: capitals before small letters, and at least one of either. */
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(end) BEFORE_LETTERS CAPITALS "*" SMALL "+" end "|" BEFORE_LETTERS CAPITALS "+" SMALL "*" end

/* DeepSeek's: most of Unicode's letters that have a case. */
#define CASED_LETTERS \
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373" \
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f" \
    "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77" \
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-" \
    "\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec" \
    "\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-" \
    "\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3" \
    "\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17" \
    "\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-" \
    "\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"

const char pd_split_digit[] = "\\p{N}";
const char pd_split_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char pd_split_qwen2[] = CONTRACTIONS "|" BEFORE_LETTERS "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES;
const char pd_split_qwen35[] = CONTRACTIONS "|" BEFORE_LETTERS "[\\p{L}\\p{M}]+|\\p{N}|"
                               " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES;
const char pd_split_llama3[] = CONTRACTIONS "|" BEFORE_LETTERS "\\p{L}+|\\p{N}{1,3}|"
                               " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES;
const char pd_split_tekken[] = CASED("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES;
const char pd_split_gpt4o[] = CASED(CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES;
const char pd_split_seed_coder[] = CONTRACTIONS "|" BEFORE_LETTERS "\\p{L}+|\\p{N}{1}|"
                                   " ?[^\\s\\p{L}\\p{N}\r\n]+|" SPACES;
const char pd_split_break[] = "[\r\n]";
const char pd_split_cased_word[] = "\\s?[" CASED_LETTERS "]+";
const char pd_split_word[] = "\\s?\\p{L}+";
const char pd_split_wide_marks[] = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+";
const char pd_split_marks[] = "\\s?\\p{P}+";
const char pd_split_last_spaces[] = "\\s+$";
const char pd_split_east_asian[] = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+";

/* Of a whole text: parts of the pattern tried, and characters that they went through. Published patterns take up to 25
 * steps for a byte. */
enum { TEXT_STEPS = 100000, STEPS_PER_BYTE = 200, HEAP_KIB = 64 << 10, LONGEST_REPETITION = 255 };

struct pd_split {
    pcre2_code *code;
};

/* ---- the pattern ---- */

/* The last byte of what follows a backslash, \p{...} whole; NULL when it is not known to mean one thing. */
static const char *skip_escape(const char *p)
{
    bool letter = (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z');
    if (!*p || (letter && !strchr("rntsSdDpP", *p))) return NULL;
    return (*p == 'p' || *p == 'P') && p[1] == '{' ? strchr(p, '}') : p;
}

/* "{300}" and "{1,300}", whose characters are gone through in one step. */
static bool is_long_repetition(const char *p)
{
    unsigned long n = strtoul(p + 1, (char **)&p, 10);
    return n > LONGEST_REPETITION || (*p == ',' && strtoul(p + 1, NULL, 10) > LONGEST_REPETITION);
}

/* A construct that Oniguruma reads in another way than PCRE2, or NULL: {1,3}+ is no possessive repetition there, &&
 * intersects classes, what begins with (* is no verb, and most escapes of letters differ. */
static const char *find_foreign(const char *p)
{
    bool class = false;
    for (; *p; p++) {
        if (*p == '\\') {
            p = skip_escape(p + 1);
            if (!p) return "an escape that Peridot does not know";
        } else if (class) {
            if (*p == ']') class = false;
            else if (*p == '[') return "a class within a class";
            else if (*p == '&' && p[1] == '&') return "an intersection of classes";
        } else if (*p == '[') {
            class = true;
            p += p[1] == '^';
        } else if (*p == '{' && is_long_repetition(p)) {
            return "a repetition of more than 255";
        } else if (*p == '(' && p[1] == '*') {
            return "a verb";
        } else if (*p == '}' && p[1] == '+') {
            return "a repetition of a repetition";
        }
    }
    return NULL;
}

/* Oniguruma's anchors are for lines, which end with "\n" alone. */
static pcre2_code *split_compile(const char *pattern, int *error, size_t *offset)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    pcre2_code *code = NULL;
    /* Searched from the left, these begin where no space is before them: so long runs are gone through once. */
    if (strcmp(pattern, pd_split_last_spaces) == 0) pattern = "(?<!\\s)\\s+$";
    *error = PCRE2_ERROR_NOMEMORY;
    *offset = 0;
    if (!context) return NULL;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                         PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_AUTO_CALLOUT, error, offset, context);
    pcre2_compile_context_free(context);
    return code;
}

peridot_status pd_split_create(struct pd_split **out, const char *pattern)
{
    int error;
    size_t offset;
    *out = NULL;
    char shown[PD_SHOWN_SIZE];
    pd_utf8_shown(shown, pattern, strlen(pattern));
    const char *foreign = find_foreign(pattern);
    if (foreign) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the pattern that splits words has %s: %s", foreign, shown);
    struct pd_split *s = malloc(sizeof *s);
    if (!s) return pd_fail_alloc(sizeof *s, "pattern");
    s->code = split_compile(pattern, &error, &offset);
    if (!s->code) {
        PCRE2_UCHAR message[128] = "";
        free(s);
        pcre2_get_error_message(error, message, sizeof message);
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "the pattern that splits words is not understood: %s (byte %zu of %s)", (const char *)message,
                       offset, shown);
    }
    uint32_t empty = 0;
    pcre2_pattern_info(s->code, PCRE2_INFO_MATCHEMPTY, &empty);
    if (empty) {   /* to tokenizers, words end there */
        pd_split_free(s);
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the pattern that splits words can match no text: %s", shown);
    }
    *out = s;
    return PERIDOT_OK;
}

void pd_split_free(struct pd_split *s)
{
    if (!s) return;
    pcre2_code_free(s->code);
    free(s);
}

/* ---- a text ---- */

/* To PCRE2, U+180E is a space; Unicode took that back in version 6.3. It gets to see U+200B there, which has the
 * category and the length in bytes of U+180E. */
static peridot_status hide_false_spaces(struct pd_split_run *r)
{
    for (size_t i = 0; i + 3 <= r->size; i++) {
        const char *found = memchr(r->text + i, 0xe1, r->size - i - 2);
        if (!found) return PERIDOT_OK;
        i = (size_t)(found - r->text);
        if (memcmp(found, "\xe1\xa0\x8e", 3) != 0) continue;
        if (!r->copy) {
            r->copy = malloc(r->size);
            if (!r->copy) return pd_fail_alloc(r->size, "text");
            memcpy(r->copy, r->text, r->size);
            r->text = r->copy;
        }
        memcpy(r->copy + i, "\xe2\x80\x8b", 3);
    }
    return PERIDOT_OK;
}

/* Called before each part of the pattern is tried. */
static int count_step(pcre2_callout_block *c, void *user)
{
    struct pd_split_run *r = user;
    size_t at = c->current_position;
    r->n_steps += 1 + (at > r->seen ? at - r->seen : r->seen - at);
    r->seen = at;
    return r->n_steps > r->max_steps ? PCRE2_ERROR_CALLOUT : 0;
}

peridot_status pd_split_begin(struct pd_split_run *out, const struct pd_split *s, const char *text, size_t size,
                              struct pd_split_run *outer)
{
    *out = (struct pd_split_run){.split = s, .text = text, .size = size, .outer = outer,
        .n_steps = outer ? outer->n_steps : 0,
        .max_steps = outer ? outer->max_steps : TEXT_STEPS + (uint64_t)STEPS_PER_BYTE * size};
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    out->context = context;
    out->match = pcre2_match_data_create(1, NULL);
    if (!out->context || !out->match) return pd_fail_alloc(size, "splitting words");
    pcre2_set_match_limit(context, out->max_steps < UINT32_MAX ? (uint32_t)out->max_steps : UINT32_MAX);
    pcre2_set_heap_limit(context, HEAP_KIB);
    pcre2_set_callout(context, count_step, out);
    return hide_false_spaces(out);
}

static peridot_status find_match(struct pd_split_run *r, size_t at)
{
    int n = pcre2_match(r->split->code, (PCRE2_SPTR)r->text, r->size, at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, r->match,
                        r->context);
    r->match_begin = r->match_end = r->size;
    if (n == PCRE2_ERROR_NOMATCH) return PERIDOT_OK;
    if (n == PCRE2_ERROR_NOMEMORY) return pd_fail_alloc(r->size, "splitting words");
    if (n < 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "the pattern that splits words takes too long at byte %zu of a text of %zu", at, r->size);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(r->match);
    r->match_begin = ends[0];
    r->match_end = ends[1];
    return PERIDOT_OK;
}

peridot_status pd_split_next(size_t *end, struct pd_split_run *r, size_t at)
{
    if (at >= r->match_end) PD_TRY(find_match(r, at));
    *end = at < r->match_begin ? r->match_begin : r->match_end;
    return PERIDOT_OK;
}

void pd_split_end(struct pd_split_run *r)
{
    if (r->outer) r->outer->n_steps = r->n_steps;
    pcre2_match_context_free(r->context);
    pcre2_match_data_free(r->match);
    free(r->copy);
}

/* ---- pre ---- */

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
    {.name = "lfm2", .patterns = {pd_split_llama3}, .whole_words = true},
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

/* ---- nfc ---- */

/* Normalization form C, of Unicode's tables in libutf8proc. Its own way to put marks in order takes the square of their
 * number, which a hostile text may have by the hundred thousand: here they are sorted, and only looked up and composed
 * there. A text goes in spans: a character that never combines with what comes before it, and all of the others that
 * follow it. */

/* Marks and letters that Unicode got after version 10, with what lies between them that never changes. Hugging Face's
 * tokenizers do not know them: what is there stays as it is, and nothing is joined across it. U+11A7 is among them, a
 * vowel that libutf8proc takes for the sign that there is no final consonant. */
static const uint32_t unknown[][2] = {
    {0x7fd, 0x7fd}, {0x897, 0x8d3}, {0x9fe, 0x9fe}, {0xc3c, 0xc3c}, {0xd3b, 0xd3c}, {0xeba, 0xeba}, {0x11a7, 0x11a7},
    {0x1715, 0x1715}, {0x1abf, 0x1aff}, {0x1df6, 0x1dfa}, {0xa82c, 0xa82c}, {0x105c0, 0x105ff}, {0x10d24, 0x10d27},
    {0x10d69, 0x10d6d}, {0x10eab, 0x10eff}, {0x10f46, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b},
    {0x11380, 0x113ff}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11943}, {0x119e0, 0x119e0},
    {0x11a34, 0x11a47}, {0x11a99, 0x11a99}, {0x11b60, 0x11b6f}, {0x11d42, 0x11d45}, {0x11d97, 0x11d97},
    {0x11de0, 0x11dff}, {0x11f41, 0x11f5a}, {0x16100, 0x1613f}, {0x16d40, 0x16d7f}, {0x16ff0, 0x16ff1},
    {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ef}, {0x1e4ec, 0x1e4ef}, {0x1e5d0, 0x1e5ff},
    {0x1e6c0, 0x1e6ff}};

static int compare_range(const void *key, const void *range)
{
    const uint32_t code = *(const uint32_t *)key, *r = range;
    return code > r[1] ? 1 : code < r[0] ? -1 : 0;
}

static bool is_unknown(uint32_t code)
{
    return bsearch(&code, unknown, PD_COUNT(unknown), sizeof *unknown, compare_range) != NULL;
}

/* ---- a span ---- */

struct mark {
    utf8proc_int32_t code;
    uint32_t class;      /* canonical combining class */
    size_t index;        /* in the span */
};

struct span {
    struct mark *marks;
    utf8proc_int32_t *codes;         /* of the marks, in their order */
    size_t n, capacity, codes_capacity;
};

static peridot_status decompose(struct span *s, uint32_t code)
{
    enum { MOST = 4 };               /* that one becomes, in any version of Unicode */
    utf8proc_int32_t parts[MOST];
    const utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)code, parts, MOST, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, NULL);
    PD_TRY(pd_array_reserve(&s->marks, &s->capacity, s->n, MOST, sizeof *s->marks, "text"));
    for (utf8proc_ssize_t i = 0; i < n && n <= MOST; i++, s->n++) {
        const uint32_t class = (uint32_t)utf8proc_get_property(parts[i])->combining_class;
        s->marks[s->n] = (struct mark){parts[i], class, s->n};
    }
    return PERIDOT_OK;
}

static int compare_marks(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->class != y->class) return x->class > y->class ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Marks between two characters of class 0 go by their classes, those of one class as they come. */
static void split_sort(struct span *s)
{
    for (size_t i = 0, end; i < s->n; i = end + 1) {
        for (end = i; end < s->n && s->marks[end].class;) end++;
        if (end > i + 1) qsort(s->marks + i, end - i, sizeof *s->marks, compare_marks);
    }
}

static peridot_status append_code(struct pd_buffer *out, uint32_t code)
{
    char text[4];
    return pd_buffer_add(out, text, pd_utf8_write(text, code));
}

/* What was decomposed, composed again. */
static peridot_status flush(struct pd_buffer *out, struct span *s)
{
    split_sort(s);
    PD_TRY(pd_array_reserve(&s->codes, &s->codes_capacity, 0, s->n, sizeof *s->codes, "text"));
    for (size_t i = 0; i < s->n; i++) s->codes[i] = s->marks[i].code;
    const utf8proc_ssize_t n =
        utf8proc_normalize_utf32(s->codes, (utf8proc_ssize_t)s->n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < n; i++) PD_TRY(append_code(out, (uint32_t)s->codes[i]));
    s->n = 0;
    return PERIDOT_OK;
}

static peridot_status append_span(struct pd_buffer *out, struct span *s, const char *text, size_t size)
{
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code;
        pd_utf8_next(&code, &length, text + i, size - i);
        if (!is_unknown(code)) {
            PD_TRY(decompose(s, code));
            continue;
        }
        PD_TRY(flush(out, s));
        PD_TRY(append_code(out, code));
    }
    return flush(out, s);
}

/* ---- a text ---- */

static bool is_continuation(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

/* The first byte of characters below U+0300, and of U+4000 to U+9FFF (Han): in form C by themselves, and never joined
 * to what comes before them. */
static bool is_inert(char c)
{
    unsigned char byte = (unsigned char)c;
    return !is_continuation(c) && (byte < 0xcc || (byte >= 0xe4 && byte <= 0xe9));
}

static peridot_status append_all(struct pd_buffer *out, struct span *s, const char *text, size_t size)
{
    for (size_t at = 0, high, end; at < size; at = end) {
        for (high = at; high < size && (is_inert(text[high]) || is_continuation(text[high]));) high++;
        size_t begin = high;   /* of the span: the character before */
        while (begin > at && high < size && is_continuation(text[--begin])) {}
        for (end = high; end < size && !is_inert(text[end]);) end++;
        PD_TRY(pd_buffer_add(out, text + at, begin - at));
        PD_TRY(append_span(out, s, text + begin, end - begin));
    }
    return PERIDOT_OK;
}

peridot_status pd_text_append_nfc(struct pd_buffer *out, const char *text, size_t size)
{
    struct span s = {0};
    peridot_status status = append_all(out, &s, text, size);
    free(s.marks);
    free(s.codes);
    return status;
}
