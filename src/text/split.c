#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/split.h"

#include "base/utf8.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BEFORE_LETTERS "[^\\r\\n\\p{L}\\p{N}]?"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* Words by case: capitals before small letters, and at least one of either. */
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(end) BEFORE_LETTERS CAPITALS "*" SMALL "+" end "|" BEFORE_LETTERS CAPITALS "+" SMALL "*" end

const char pd_split_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char pd_split_digits[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+|"
                               "\\s+(?![^\\s\\p{N}])|\\s+";
const char pd_split_qwen2[] = CONTRACTIONS "|" BEFORE_LETTERS "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES;
const char pd_split_llama3[] = CONTRACTIONS "|" BEFORE_LETTERS "\\p{L}+|\\p{N}{1,3}|"
                               " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES;
const char pd_split_tekken[] = CASED("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES;
const char pd_split_gpt4o[] = CASED(CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES;

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

/* A construct that Oniguruma reads in another way than PCRE2, or NULL: anchors are for lines there, {1,3}+ is no
 * possessive repetition, && intersects classes, what begins with (* is no verb, and most escapes of letters differ. */
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
        } else if (*p == '^' || *p == '$') {
            return "an anchor";
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
    s->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_AUTO_CALLOUT,
                            &error, &offset, NULL);
    if (!s->code) {
        PCRE2_UCHAR message[128] = "";
        free(s);
        pcre2_get_error_message(error, message, sizeof message);
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "the pattern that splits words is not understood: %s (byte %zu of %s)", (const char *)message,
                       offset, shown);
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

peridot_status pd_split_begin(struct pd_split_run *out, const struct pd_split *s, const char *text, size_t size)
{
    *out = (struct pd_split_run){.split = s, .text = text, .size = size,
        .max_steps = TEXT_STEPS + (uint64_t)STEPS_PER_BYTE * size};
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
    pcre2_match_context_free(r->context);
    pcre2_match_data_free(r->match);
    free(r->copy);
}
