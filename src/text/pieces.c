/* The table of pieces, whatever file it was read from: adding, checking, finding. With it what its texts may be: bytes
 * in the spelling of byte-level vocabularies, names of marks for fill-in-the-middle, control tokens to look for. */
#include "text/text_.h"

#include "base/base.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Real pieces are below 100 bytes. sentencepiece recurses once per character of a piece when it takes an unused one
 * apart. */
enum { MAX_PIECE_SIZE = 1024 };
/* sentencepiece looks up user-defined pieces into an array of 64 results and reads as many as were found, not as
 * fit. */
enum { MAX_NESTED_USER = 64 };

void pd_pieces_free(struct pd_pieces *p)
{
    free(p->piece);
    free(p->text.data);
    free(p->merges);
    for (uint32_t i = 0; i < p->n_patterns; i++) free(p->patterns[i]);
    *p = (struct pd_pieces){0};
}

bool pd_pieces_is_plain(const struct pd_pieces *p, uint32_t id)
{
    uint8_t type = p->piece[id].type;
    return type == PD_PIECE_NORMAL || type == PD_PIECE_USER || type == PD_PIECE_UNUSED;
}

bool pd_pieces_has_bytes(const struct pd_pieces *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->piece[i].type == PD_PIECE_BYTE) return true;
    return false;
}

bool pd_pieces_by_merges(const struct pd_pieces *p) { return p->algorithm >= PD_ALGORITHM_CHAR_MERGES; }

peridot_status pd_pieces_add_pattern(struct pd_pieces *p, const char *pattern)
{
    assert(p->n_patterns < PD_MAX_PATTERNS);
    char *copy = pd_string_copy(pattern);
    if (!copy) return pd_fail_alloc(strlen(pattern), "pattern");
    p->patterns[p->n_patterns++] = copy;
    return PERIDOT_OK;
}

const char *pd_pieces_text(const struct pd_pieces *p, uint32_t id)
{
    return p->text.data + p->piece[id].offset;
}

int32_t pd_pieces_find(const struct pd_pieces *p, const char *text, size_t size)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->piece[i].size == size && memcmp(pd_pieces_text(p, i), text, size) == 0) return (int32_t)i;
    return -1;
}

int32_t pd_pieces_find_control(const struct pd_pieces *p, const char *text, size_t size)
{
    int32_t id = pd_pieces_find(p, text, size);
    return id >= 0 && p->piece[id].type == PD_PIECE_CONTROL ? id : -1;
}

void pd_pieces_mark_stop(struct pd_pieces *p, int64_t id)
{
    if (id >= 0 && id < p->n) p->piece[id].stop = true;
}

void pd_pieces_suppress(struct pd_pieces *p, int64_t id)
{
    if (id < 0 || id >= p->n || p->piece[id].suppressed) return;
    p->piece[id].suppressed = true;
    p->n_suppressed++;
}

static bool is_named(const char *text, size_t size, const char *name)
{
    return strlen(name) == size && memcmp(text, name, size) == 0;
}

/* <unused0> ... <unused6241> */
static bool is_reserve(const char *text, size_t size)
{
    if (size < 9 || memcmp(text, "<unused", 7) != 0 || text[size - 1] != '>') return false;
    for (size_t i = 7; i < size - 1; i++)
        if (text[i] < '0' || text[i] > '9') return false;
    return true;
}

bool pd_pieces_is_reserve(const struct pd_pieces *p, uint32_t id)
{
    return is_reserve(pd_pieces_text(p, id), p->piece[id].size);
}

/* Google's models have turn markers, image markers and reserves as user-defined pieces, beside newlines and HTML tags
 * that text must match. GGUF files call the first kind control, and so do we: what plain text must never make. The
 * patterns are those of the GGUF converter, so that both forms of a model give the same ids. "<|channel>" and
 * "<channel|>" are Gemma 4's, some of which the converter makes user-defined for other reasons, and DeepSeek's have
 * U+FF5C for "|". `text` is the piece as the table has it. */
static bool is_marker(const char *text, size_t size, int64_t type)
{
    static const char *const names[] = {
        "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>",
        "<mask>", "<2mass>", "[@BOS@]",
    };
    /* Of calls of functions, and of thoughts: FunctionGemma's, Qwen's and others'. */
    static const char *const calls[] = {
        "<start_function_declaration>", "<end_function_declaration>", "<start_function_call>", "<end_function_call>",
        "<start_function_response>", "<end_function_response>", "<escape>", "<tool_call>", "</tool_call>",
        "<tool_response>", "</tool_response>", "<think>", "</think>", "<functions>", "</functions>", "<function_calls>",
        "</function_calls>",
    };
    if (type != PD_PIECE_USER && type != PD_PIECE_NORMAL) return false;
    for (size_t i = 0; i < PD_COUNT(names); i++)
        if (is_named(text, size, names[i])) return true;
    if (pd_infill_is_name(text, size)) return true;
    if (type == PD_PIECE_NORMAL) return false;
    for (size_t i = 0; i < PD_COUNT(calls); i++)
        if (is_named(text, size, calls[i])) return true;
    static const char wide[] = "\xef\xbd\x9c";
    bool angles = size > 3 && text[0] == '<' && text[size - 1] == '>';
    bool pipes = angles && (text[1] == '|' || text[size - 2] == '|');
    bool wide_pipes = angles && size > 8 && memcmp(text + 1, wide, 3) == 0 && memcmp(text + size - 4, wide, 3) == 0;
    return pipes || wide_pipes || is_reserve(text, size);
}

bool pd_pieces_is_marker(const struct pd_pieces *p, uint32_t id)
{
    return is_marker(pd_pieces_text(p, id), p->piece[id].size, PD_PIECE_USER);
}

static peridot_status append_piece_text(struct pd_pieces *p, const char *text, size_t size, int64_t *type)
{
    bool spelt = false;
    if (p->algorithm == PD_ALGORITHM_BYTE_MERGES && *type == PD_PIECE_NORMAL) {
        PD_TRY(pd_byte_level_read(&p->text, &spelt, text, size));
        if (spelt) return PERIDOT_OK;
        *type = PD_PIECE_UNUSED;
    }
    /* GGUF files hold user-defined runs of spaces as spaces, but they are matched after spaces became U+2581. */
    if (*type == PD_PIECE_USER && p->algorithm != PD_ALGORITHM_BYTE_MERGES)
        return pd_text_append_escaped(&p->text, text, size);
    return pd_buffer_add(&p->text, text, size);
}

bool pd_pieces_is_byte_name(const char *text, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    return size == 6 && memcmp(text, "<0x", 3) == 0 && memchr(digits, text[3], 16) && memchr(digits, text[4], 16) &&
           text[5] == '>';
}

/* What sentencepiece checks, or what it need not know. A user-defined piece that is no whole characters would be
 * matched within a character, and leave parts of one. */
static peridot_status check_merged_piece(uint32_t id, const char *text, size_t size, int64_t type)
{
    if (type == PD_PIECE_BYTE && !pd_pieces_is_byte_name(text, size))
        return pd_fail(PERIDOT_ERROR_FORMAT, "piece %u of the vocabulary is a byte with another name than <0x00>", id);
    for (size_t i = 0, length; type == PD_PIECE_USER && i < size; i += length) {
        uint32_t code;
        if (pd_utf8_next(&code, &length, text + i, size - i) != PD_UTF8_CHARACTER)
            return pd_fail(PERIDOT_ERROR_FORMAT, "piece %u of the vocabulary is not UTF-8", id);
    }
    return PERIDOT_OK;
}

static peridot_status check_piece(const struct pd_pieces *p, const char *text, uint64_t size, double score,
                                  int64_t type)
{
    uint32_t id = p->n;
    if (size == 0) return pd_fail(PERIDOT_ERROR_FORMAT, "piece %u of the vocabulary is empty", id);
    if (size > MAX_PIECE_SIZE)
        return pd_fail(PERIDOT_ERROR_FORMAT, "piece %u of the vocabulary has %llu bytes (at most %d)", id,
                       (unsigned long long)size, MAX_PIECE_SIZE);
    if (memchr(text, 0, size) && !pd_pieces_by_merges(p))
        return pd_fail(PERIDOT_ERROR_FORMAT, "piece %u of the vocabulary holds a zero byte", id);
    if (type < PD_PIECE_NORMAL || type > PD_PIECE_BYTE)
        return pd_fail(PERIDOT_ERROR_FORMAT, "piece %u of the vocabulary has the unknown type %lld", id,
                       (long long)type);
    if (isnan(score))
        return pd_fail(PERIDOT_ERROR_FORMAT, "piece %u of the vocabulary has a score that is not a number", id);
    return pd_pieces_by_merges(p) ? check_merged_piece(id, text, size, type) : PERIDOT_OK;
}

peridot_status pd_pieces_add(struct pd_pieces *p, const char *text, uint64_t size, double score, int64_t type)
{
    PD_TRY(check_piece(p, text, size, score, type));
    if (p->n >= INT32_MAX / 2) return pd_fail(PERIDOT_ERROR_FORMAT, "the vocabulary has too many pieces");
    PD_TRY(pd_array_reserve(&p->piece, &p->capacity, p->n, 1, sizeof *p->piece, "vocabulary"));
    size_t offset = p->text.size;
    PD_TRY(append_piece_text(p, text, size, &type));
    if (is_marker(p->text.data + offset, p->text.size - offset, type)) type = PD_PIECE_CONTROL;
    p->piece[p->n++] = (struct pd_piece){
        .offset = offset, .size = (uint32_t)(p->text.size - offset), .score = (float)score, .type = (uint8_t)type,
    };
    return PERIDOT_OK;
}

struct sorted {
    const char *text;
    uint32_t size;
};

static int compare_text(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    int order = memcmp(x->text, y->text, pd_min(x->size, y->size));
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

static bool is_prefix(const struct sorted *a, const struct sorted *b)
{
    return a->size <= b->size && memcmp(a->text, b->text, a->size) == 0;
}

/* Most pieces that are prefixes of one another; `all` is sorted, so those of a piece are on the stack when it comes. */
static uint32_t nesting(const struct sorted *all, uint32_t n)
{
    const struct sorted *stack[MAX_NESTED_USER + 1];
    uint32_t depth = 0, most = 0;
    for (uint32_t i = 0; i < n && most <= MAX_NESTED_USER; i++) {
        while (depth && !is_prefix(stack[depth - 1], &all[i])) depth--;
        stack[depth++] = &all[i];
        if (depth > most) most = depth;
    }
    return most;
}

static peridot_status check_nesting(const struct pd_pieces *p)
{
    struct sorted *all = malloc(p->n * sizeof *all);
    if (!all) return pd_fail_alloc(p->n * sizeof *all, "vocabulary");
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->piece[i].type == PD_PIECE_USER) all[n++] = (struct sorted){pd_pieces_text(p, i), p->piece[i].size};
    qsort(all, n, sizeof *all, compare_text);
    uint32_t most = nesting(all, n);
    free(all);
    if (most <= MAX_NESTED_USER) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "more than %d user-defined pieces of the vocabulary begin alike",
                   MAX_NESTED_USER);
}

static peridot_status check_unknown(const struct pd_pieces *p)
{
    int32_t unknown = -1;
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->piece[i].type != PD_PIECE_UNKNOWN) continue;
        if (unknown >= 0)
            return pd_fail(PERIDOT_ERROR_FORMAT, "the vocabulary has two unknown pieces, %d and %u", unknown,
                           i);
        unknown = (int32_t)i;
    }
    bool bytes = p->algorithm == PD_ALGORITHM_BYTE_MERGES || (pd_pieces_by_merges(p) && pd_pieces_has_bytes(p));
    if (unknown < 0 && !bytes)
        return pd_fail(PERIDOT_ERROR_FORMAT, "the vocabulary has no unknown piece%s",
                       pd_pieces_by_merges(p) ? " and no byte pieces" : "");
    return PERIDOT_OK;
}

peridot_status pd_pieces_check(struct pd_pieces *p)
{
    if (p->n == 0) return pd_fail(PERIDOT_ERROR_FORMAT, "the vocabulary has no pieces");
    PD_TRY(check_unknown(p));
    if (!pd_pieces_by_merges(p)) PD_TRY(check_nesting(p));
    pd_pieces_mark_stop(p, p->eos);
    return PERIDOT_OK;
}

bool pd_pieces_lines_apart(const struct pd_pieces *p)
{
    bool break_known = false;
    if ((p->algorithm != PD_ALGORITHM_BPE && p->algorithm != PD_ALGORITHM_CHAR_MERGES) || p->remove_spaces)
        return false;
    for (uint32_t i = 0; i < p->n; i++) {
        const char *text = pd_pieces_text(p, i);
        size_t breaks = 0;
        break_known |= p->piece[i].type == PD_PIECE_BYTE || (p->piece[i].size == 1 && text[0] == '\n');
        if (p->piece[i].type == PD_PIECE_CONTROL || !memchr(text, '\n', p->piece[i].size)) continue;
        for (size_t k = 0; k < p->piece[i].size; k++) breaks += text[k] == '\n';
        if (breaks != p->piece[i].size) return false;
    }
    return break_known;
}

/* ---- byte level ---- */

/* The bytes that don't stand for themselves are 0 to 32, 127 to 160, and 173. */
static int byte_of(uint32_t code)
{
    if ((code > 32 && code < 127) || (code > 160 && code < 256 && code != 173)) return (int)code;
    if (code >= 256 && code <= 256 + 32) return (int)code - 256;
    if (code >= 289 && code <= 289 + 33) return (int)code - 289 + 127;
    return code == 323 ? 173 : -1;
}

static uint32_t pieces_code_of(unsigned char byte)
{
    if (byte <= 32) return 256u + byte;
    if (byte >= 127 && byte <= 160) return 289u + byte - 127;
    return byte == 173 ? 323 : byte;
}

peridot_status pd_byte_level_read(struct pd_buffer *out, bool *spelt, const char *text, size_t size)
{
    size_t before = out->size, length;
    for (size_t i = 0; i < size; i += length) {
        uint32_t code;
        int byte = pd_utf8_next(&code, &length, text + i, size - i) == PD_UTF8_CHARACTER ? byte_of(code) : -1;
        *spelt = byte >= 0;
        if (!*spelt) {
            out->size = before;
            return PERIDOT_OK;
        }
        PD_TRY(pd_buffer_add(out, &(char){(char)byte}, 1));
    }
    *spelt = true;
    return PERIDOT_OK;
}

peridot_status pd_byte_level_write(struct pd_buffer *out, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint32_t code = pieces_code_of((unsigned char)bytes[i]);
        char two[2] = {(char)(0xc0 | code >> 6), (char)(0x80 | (code & 0x3f))};   /* all codes are below U+0800 */
        if (code < 0x80) PD_TRY(pd_buffer_add(out, &bytes[i], 1));
        else PD_TRY(pd_buffer_add(out, two, 2));
    }
    return PERIDOT_OK;
}

/* ---- infill names ---- */

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

/* ---- special ---- */

struct entry {
    const char *text;
    uint32_t size, id;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = memcmp(x->text, y->text, pd_min(x->size, y->size));
    if (order) return order;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

peridot_status pd_special_create(struct pd_special *out, const struct pd_pieces *p, unsigned types)
{
    *out = (struct pd_special){0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) n += types >> p->piece[i].type & 1;
    struct entry *entries = malloc((n + 1) * sizeof *entries);
    out->ids = malloc((n + 1) * sizeof *out->ids);
    if (!entries || !out->ids) {
        free(entries);
        pd_special_free(out);
        return pd_fail_alloc(n * sizeof *entries, "pieces matched literally");
    }
    for (uint32_t i = 0; i < p->n; i++)
        if (types >> p->piece[i].type & 1)
            entries[out->n++] = (struct entry){pd_pieces_text(p, i), p->piece[i].size, i};
    qsort(entries, n, sizeof *entries, compare_entries);
    for (uint32_t i = 0; i < n; i++) {
        out->ids[i] = entries[i].id;
        out->starts[(unsigned char)entries[i].text[0]] = true;
    }
    free(entries);
    return PERIDOT_OK;
}

void pd_special_free(struct pd_special *s)
{
    free(s->ids);
    *s = (struct pd_special){0};
}

/* First index in [lo, hi) whose byte k is at least `byte` (pieces that end before k come first). */
static uint32_t lower_bound(const struct pd_special *s, const struct pd_pieces *p, uint32_t lo, uint32_t hi, size_t k,
                            unsigned byte)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2, id = s->ids[mid];
        if (p->piece[id].size <= k || (unsigned char)pd_pieces_text(p, id)[k] < byte) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

size_t pd_special_match(int32_t *id, const struct pd_special *s, const struct pd_pieces *p, const char *text,
                        size_t size)
{
    uint32_t lo = 0, hi = s->n;
    size_t longest = 0;
    if (size && !s->starts[(unsigned char)text[0]]) return 0;
    /* Pieces in [lo, hi) agree with the text in their first k bytes. */
    for (size_t k = 0; k < size && lo < hi; k++) {
        unsigned byte = (unsigned char)text[k];
        lo = lower_bound(s, p, lo, hi, k, byte);
        hi = lower_bound(s, p, lo, hi, k, byte + 1);
        if (lo == hi || p->piece[s->ids[lo]].size != k + 1) continue;
        longest = k + 1;
        *id = (int32_t)s->ids[lo];
    }
    return longest;
}

static bool is_space(size_t *length, const char *text, size_t size, bool escaped)
{
    uint32_t code;
    if (pd_utf8_next(&code, length, text, size) != PD_UTF8_CHARACTER) return false;
    return pd_utf8_is_space(code) || (code == 0x2581 && escaped);
}

size_t pd_special_after(const struct pd_pieces *p, int32_t id, const char *text, size_t size, bool escaped)
{
    size_t n = 0, length;
    while (p->piece[id].rstrip && n < size && is_space(&length, text + n, size - n, escaped)) n += length;
    return n;
}

size_t pd_special_before(const struct pd_pieces *p, int32_t id, const char *text, size_t size, bool escaped)
{
    size_t n = 0, length;
    while (p->piece[id].lstrip && n < size) {
        size_t at = size - n - 1;
        while (at && (text[at] & 0xc0) == 0x80) at--;
        if (!is_space(&length, text + at, size - n - at, escaped) || length != size - n - at) break;
        n += length;
    }
    return n;
}

int32_t pd_special_find(const struct pd_special *s, const struct pd_pieces *p, const char *name)
{
    int32_t id = -1;
    size_t size = strlen(name);
    return pd_special_match(&id, s, p, name, size) == size ? id : -1;
}
