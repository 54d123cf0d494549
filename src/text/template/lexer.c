/* A program's text as tokens, and what both parsers do with them: looking at the next one, demanding it, making
 * nodes. */
#include "text/template/template_.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static peridot_status lexer_fail(const struct pd_lexer *l, const char *what)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "line %u: %s", (unsigned)l->line, what);
}

peridot_status pd_lexer_begin(struct pd_lexer *l, struct pd_arena *arena, const char *source, size_t size)
{
    *l = (struct pd_lexer){.arena = arena, .line = 1, .in = PD_TOKEN_DATA, .at_line_start = true};
    char *copy = pd_arena_string(arena, source, size);
    if (!copy) return pd_fail_alloc(size, "a template");
    for (size_t i = 0; i < size; i++) {
        if (source[i] == '\r' && i + 1 < size && source[i + 1] == '\n') continue;
        copy[l->size++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (l->size && copy[l->size - 1] == '\n') l->size--;
    copy[l->size] = 0;
    l->source = copy;
    return PERIDOT_OK;
}

static bool starts_with(const struct pd_lexer *l, size_t at, const char *what)
{
    size_t n = strlen(what);
    return n <= l->size - at && memcmp(l->source + at, what, n) == 0;
}

static struct pd_chars part(const struct pd_lexer *l, size_t from, size_t to)
{
    return (struct pd_chars){l->source + from, to - from, pd_all_own};
}

static void move_to(struct pd_lexer *l, size_t to)
{
    for (; l->at < to; l->at++) l->line += l->source[l->at] == '\n';
}

static size_t skip_space(const struct pd_lexer *l, size_t at)
{
    return l->size - pd_chars_strip(part(l, at, l->size), NULL, PD_STRIP_LEFT).size;
}

/* ---- data ---- */

/* Where a tag's end at `at` is over: after "-%}" all white space, after "%}" a line's end. 0: there is none. */
static size_t end_of(const struct pd_lexer *l, size_t at, const char *close, bool trims)
{
    bool minus = l->source[at] == '-', plus = trims && l->source[at] == '+';
    size_t end = at + (minus || plus);
    if (end > l->size || !starts_with(l, end, close)) return 0;
    end += 2;
    if (minus) return skip_space(l, end);
    return end + (!plus && trims && l->source[end] == '\n');
}

/* Where the tag "{% WORD %}" at `at` is over; 0: it is not there. */
static size_t end_of_word_tag(const struct pd_lexer *l, size_t at, const char *word, bool trims)
{
    at += 2;
    at += l->source[at] == '-' || l->source[at] == '+';
    at = skip_space(l, at);
    if (!starts_with(l, at, word)) return 0;
    return end_of(l, skip_space(l, at + strlen(word)), "%}", trims);
}

static size_t find_tag(const struct pd_lexer *l, size_t at)
{
    for (; at + 1 < l->size; at++)
        if (l->source[at] == '{' && memchr("{%#", l->source[at + 1], 3)) return at;
    return l->size;
}

/* The data before a tag at `to`, as the tag's sign and kind leave it. */
static struct pd_chars strip_before(const struct pd_lexer *l, size_t to)
{
    struct pd_chars text = part(l, l->at, to);
    char sign = to + 2 < l->size ? l->source[to + 2] : 0;
    if (sign == '-') return pd_chars_strip(text, NULL, PD_STRIP_RIGHT);
    if (sign == '+' || l->source[to + 1] == '{') return text;
    size_t line = text.size;
    while (line > 0 && text.data[line - 1] != '\n') line--;
    if (line == 0 && !l->at_line_start) return text;
    struct pd_chars last = pd_chars_part(text, line, text.size - line);
    return pd_chars_strip(last, NULL, PD_STRIP_LEFT).size ? text : pd_chars_part(text, 0, line);
}

static peridot_status skip_comment(struct pd_lexer *l)
{
    size_t at = l->at + 2, end = 0;
    at += at < l->size && (l->source[at] == '-' || l->source[at] == '+');
    while (at < l->size && (end = end_of(l, at, "#}", true)) == 0) at++;
    if (!end) return lexer_fail(l, "a comment has no end");
    move_to(l, end);
    return PERIDOT_OK;
}

/* From after {% raw %} to after {% endraw %}. */
static peridot_status take_raw(struct pd_template_token *out, struct pd_lexer *l)
{
    for (size_t at = l->at; at < l->size; at++) {
        size_t end = starts_with(l, at, "{%") ? end_of_word_tag(l, at, "endraw", true) : 0;
        if (!end) continue;
        l->at_line_start = l->source[l->at - 1] == '\n';
        *out = (struct pd_template_token){.kind = PD_TOKEN_DATA, .line = l->line, .text = strip_before(l, at)};
        move_to(l, end);
        return PERIDOT_OK;
    }
    return lexer_fail(l, "{% raw %} has no {% endraw %}");
}

/* What a tag at l->at begins with: past it. */
static peridot_status open_tag(struct pd_template_token *out, struct pd_lexer *l)
{
    char kind = l->source[l->at + 1];
    size_t raw = kind == '%' ? end_of_word_tag(l, l->at, "raw", false) : 0;
    if (kind == '#') return skip_comment(l);
    if (raw) {
        move_to(l, raw);
        return take_raw(out, l);
    }
    char sign = l->source[l->at + 2];
    l->in = kind == '{' ? PD_TOKEN_PRINT : PD_TOKEN_TAG;
    *out = (struct pd_template_token){.kind = l->in, .line = l->line};
    move_to(l, l->at + 2 + (sign == '-' || sign == '+'));
    return PERIDOT_OK;
}

/* Data up to the next tag, or that tag: *out stays PD_TOKEN_END where neither is there (a comment). */
static peridot_status take_data(struct pd_template_token *out, struct pd_lexer *l)
{
    size_t tag = find_tag(l, l->at);
    bool is_last = tag == l->size;
    if (tag > l->at) {
        struct pd_chars text = is_last ? part(l, l->at, tag) : strip_before(l, tag);
        *out = (struct pd_template_token){.kind = PD_TOKEN_DATA, .line = l->line, .text = text};
        move_to(l, tag);
        l->at_line_start = false;
        if (text.size) return PERIDOT_OK;
        out->kind = PD_TOKEN_END;
    }
    if (is_last) return PERIDOT_OK;
    peridot_status status = open_tag(out, l);
    l->at_line_start = l->at > 0 && l->source[l->at - 1] == '\n';
    return status;
}

/* ---- names, numbers, strings ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static unsigned digit_of(char c)
{
    if (is_digit(c)) return (unsigned)(c - '0');
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 99;
}

/* Digits with single underscores between them. */
static size_t skip_digits(const struct pd_lexer *l, size_t at, unsigned base)
{
    while (digit_of(l->source[at]) < base || (l->source[at] == '_' && digit_of(l->source[at + 1]) < base)) at++;
    return at;
}

static peridot_status take_int(struct pd_template_token *out, struct pd_lexer *l)
{
    static const char prefixes[] = "bxo";
    const char *s = l->source + l->at;
    const char *prefix = s[0] == '0' && s[1] ? strchr(prefixes, s[1] | 0x20) : NULL;
    const unsigned base = !prefix ? 10 : *prefix == 'b' ? 2 : *prefix == 'x' ? 16 : 8;
    size_t begin = l->at + (prefix ? 2 : 0), end = skip_digits(l, begin, base);
    if (end == begin) return lexer_fail(l, "an integer without digits");
    if (!prefix && s[0] == '0')   /* only zeros */
        for (end = begin + 1; l->source[end] == '0';) end++;
    out->kind = PD_TOKEN_INT;
    for (size_t i = begin; i < end; i++) {
        unsigned digit = l->source[i] == '_' ? 0 : digit_of(l->source[i]), times = l->source[i] == '_' ? 1 : base;
        if (out->i > (INT64_MAX - digit) / times) return lexer_fail(l, "an integer that does not fit 64 bits");
        out->i = out->i * times + digit;
    }
    move_to(l, end);
    return PERIDOT_OK;
}

/* Where a number with a fraction or an exponent ends; 0: it is an integer, or the index in "a.0.1". */
static size_t end_of_float(const struct pd_lexer *l)
{
    size_t at = skip_digits(l, l->at, 10), end = 0;
    if (l->at > 0 && l->source[l->at - 1] == '.') return 0;
    if (l->source[at] == '.' && is_digit(l->source[at + 1])) end = at = skip_digits(l, at + 1, 10);
    if ((l->source[at] | 0x20) != 'e') return end;
    at++;
    at += l->source[at] == '+' || l->source[at] == '-';
    return is_digit(l->source[at]) ? skip_digits(l, at, 10) : end;
}

static peridot_status take_number(struct pd_template_token *out, struct pd_lexer *l)
{
    char digits[64];
    size_t end = end_of_float(l), n = 0;
    if (!end) return take_int(out, l);
    for (size_t i = l->at; i < end && n < sizeof digits - 1; i++)
        if (l->source[i] != '_') digits[n++] = l->source[i];
    digits[n] = 0;
    yyjson_val number;
    const char *past = yyjson_read_number(digits, &number, 0, NULL, NULL);
    if (n == sizeof digits - 1 || past != digits + n) return lexer_fail(l, "a number that cannot be read");
    out->kind = PD_TOKEN_FLOAT;
    out->f = yyjson_get_num(&number);
    move_to(l, end);
    return PERIDOT_OK;
}

static size_t write_code(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xff) | code);
    return n;
}

/* "\x41", "\u20ac", "\101": n_max digits after s, of which *n are there. */
static uint32_t lexer_code_of(size_t *n, const char *s, unsigned base, size_t n_max)
{
    uint32_t code = 0;
    for (*n = 0; *n < n_max && digit_of(s[*n]) < base; ++*n) code = code * base + digit_of(s[*n]);
    return code;
}

/* An escape sequence at s: its value in out, *used bytes of it read. */
static peridot_status take_escape(size_t *written, char out[8], size_t *used, const struct pd_lexer *l, const char *s)
{
    static const char names[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
    const char *name = memchr(names, s[1], sizeof names - 1);
    const size_t n_digits = s[1] == 'x' ? 2 : s[1] == 'u' ? 4 : s[1] == 'U' ? 8 : 0;
    bool octal = s[1] >= '0' && s[1] <= '7';
    size_t n;
    *used = 2;
    *written = 0;
    if (s[1] == '\n') return PERIDOT_OK;
    if (name) {
        out[(*written)++] = values[name - names];
    } else if (octal || n_digits) {
        uint32_t code = lexer_code_of(&n, s + 2 - octal, octal ? 8 : 16, octal ? 3 : n_digits);
        if (!octal && n < n_digits) return lexer_fail(l, "an escape sequence with too few digits");
        if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return lexer_fail(l, "an escape sequence of no character");
        *used = 2 - octal + n;
        *written = write_code(out, code);
    } else if (s[1] == 'N' || (unsigned char)s[1] >= 0x80) {
        return lexer_fail(l, "an escape sequence that is not supported");
    } else {
        out[0] = '\\';
        out[1] = s[1];
        *written = 2;
    }
    return PERIDOT_OK;
}

static peridot_status take_string(struct pd_template_token *out, struct pd_lexer *l)
{
    const char quote = l->source[l->at];
    size_t begin = l->at + 1, end = begin, n = 0, written, used;
    while (end < l->size && l->source[end] != quote) end += 1 + (l->source[end] == '\\');
    if (end >= l->size) return lexer_fail(l, "a string has no end");
    char *text = pd_arena_string(l->arena, l->source + begin, end - begin);   /* no escape is longer than its text */
    if (!text) return pd_fail_alloc(end - begin, "a template");
    for (size_t i = begin; i < end; i += used) {
        char escaped[8];
        used = written = 1;
        escaped[0] = l->source[i];
        if (escaped[0] == '\\') PD_TRY(take_escape(&written, escaped, &used, l, l->source + i));
        memcpy(text + n, escaped, written);
        n += written;
    }
    out->kind = PD_TOKEN_STRING;
    out->text = (struct pd_chars){text, n, pd_all_own};
    move_to(l, end + 1);
    return PERIDOT_OK;
}

/* ---- operators ---- */

static peridot_status track_bracket(struct pd_lexer *l, char c)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *kind = memchr(opening, c, 3);
    if (kind && l->n_brackets == PD_LEXER_MAX_BRACKETS) return lexer_fail(l, "brackets nest too deep");
    if (kind) l->brackets[l->n_brackets++] = closing[kind - opening];
    if (kind || !memchr(closing, c, 3)) return PERIDOT_OK;
    if (l->n_brackets == 0 || l->brackets[--l->n_brackets] != c)
        return lexer_fail(l, "a closing bracket without its opening one");
    return PERIDOT_OK;
}

static peridot_status take_operator(struct pd_template_token *out, struct pd_lexer *l)
{
    static const char doubles[][3] = {"//", "**", "==", "!=", ">=", "<="}, singles[] = "+-/*%~[](){}><=.:|,";
    char shown[PD_SHOWN_SIZE];
    uint32_t code;
    size_t n = 0;
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles && !n; i++)
        if (starts_with(l, l->at, doubles[i])) n = 2;
    if (!n && memchr(singles, l->source[l->at], sizeof singles - 1)) n = 1;
    if (!n)
        return pd_fail(PERIDOT_ERROR_FORMAT, "line %u: unexpected character %s", (unsigned)l->line,
                       pd_utf8_shown(shown, l->source + l->at,
                                     pd_chars_next(&code, part(l, l->at, l->size), 0)));
    out->kind = PD_TOKEN_OPERATOR;
    out->op = PD_OP(l->source[l->at], n == 2 ? l->source[l->at + 1] : 0);
    if (n == 1) PD_TRY(track_bracket(l, l->source[l->at]));
    move_to(l, l->at + n);
    return PERIDOT_OK;
}

static peridot_status take_in_tag(struct pd_template_token *out, struct pd_lexer *l)
{
    bool print = l->in == PD_TOKEN_PRINT;
    size_t end = l->n_brackets ? 0 : end_of(l, l->at, print ? "}}" : "%}", !print);
    char c = l->source[l->at];
    *out = (struct pd_template_token){.kind = PD_TOKEN_NAME, .line = l->line};
    if (end) {
        out->kind = print ? PD_TOKEN_PRINT_END : PD_TOKEN_TAG_END;
        l->in = PD_TOKEN_DATA;
        move_to(l, end);
        l->at_line_start = l->source[end - 1] == '\n';
        return PERIDOT_OK;
    }
    if (is_digit(c)) return take_number(out, l);
    if (c == '"' || c == '\'') return take_string(out, l);
    if (!is_letter(c)) return take_operator(out, l);
    for (end = l->at; is_letter(l->source[end]) || is_digit(l->source[end]);) end++;
    out->text = part(l, l->at, end);
    move_to(l, end);
    return PERIDOT_OK;
}

static peridot_status next_token(struct pd_template_token *out, struct pd_lexer *l)
{
    do {
        *out = (struct pd_template_token){.kind = PD_TOKEN_END, .line = l->line};
        if (l->in != PD_TOKEN_DATA) move_to(l, skip_space(l, l->at));
        if (l->at == l->size) return PERIDOT_OK;
        PD_TRY(l->in == PD_TOKEN_DATA ? take_data(out, l) : take_in_tag(out, l));
    } while (out->kind == PD_TOKEN_END);
    return PERIDOT_OK;
}

/* ---- tokens ---- */

peridot_status pd_parser_fail(uint32_t line, const char *format, ...)
{
    char sentence[256];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return pd_fail(PERIDOT_ERROR_FORMAT, "line %u: %s", (unsigned)line, sentence);
}

peridot_status pd_parser_fail_token(const struct pd_parser *p, const char *expected)
{
    static const char *const names[] = {
        [PD_TOKEN_END] = "the end of the template", [PD_TOKEN_DATA] = "text", [PD_TOKEN_PRINT] = "{{",
        [PD_TOKEN_PRINT_END] = "}}", [PD_TOKEN_TAG] = "{%", [PD_TOKEN_TAG_END] = "%}", [PD_TOKEN_STRING] = "a string",
        [PD_TOKEN_INT] = "an integer", [PD_TOKEN_FLOAT] = "a number"};
    const struct pd_template_token *t = &p->token;
    char shown[PD_SHOWN_SIZE], op[3] = {(char)(t->op & 0xff), (char)(t->op >> 8), 0};
    const char *found = t->kind == PD_TOKEN_OPERATOR ? op
                        : t->kind == PD_TOKEN_NAME ? pd_utf8_shown(shown, t->text.data, t->text.size)
                                                   : names[t->kind];
    return pd_parser_fail(t->line, "%s where %s is expected", found, expected);
}

peridot_status pd_parser_next(struct pd_parser *p)
{
    if (!p->has_ahead) return next_token(&p->token, &p->lexer);
    p->token = p->ahead;
    p->has_ahead = false;
    return PERIDOT_OK;
}

peridot_status pd_parser_look_ahead(struct pd_parser *p)
{
    if (!p->has_ahead) PD_TRY(next_token(&p->ahead, &p->lexer));
    p->has_ahead = true;
    return PERIDOT_OK;
}

bool pd_parser_at_name(const struct pd_parser *p, const char *name)
{
    return p->token.kind == PD_TOKEN_NAME && pd_chars_are(p->token.text, name);
}

bool pd_parser_at_op(const struct pd_parser *p, unsigned op)
{
    return p->token.kind == PD_TOKEN_OPERATOR && p->token.op == op;
}

peridot_status pd_parser_accept_name(bool *found, struct pd_parser *p, const char *name)
{
    *found = pd_parser_at_name(p, name);
    return *found ? pd_parser_next(p) : PERIDOT_OK;
}

peridot_status pd_parser_accept_op(bool *found, struct pd_parser *p, unsigned op)
{
    *found = pd_parser_at_op(p, op);
    return *found ? pd_parser_next(p) : PERIDOT_OK;
}

peridot_status pd_parser_expect_name(struct pd_parser *p, const char *name)
{
    return pd_parser_at_name(p, name) ? pd_parser_next(p) : pd_parser_fail_token(p, name);
}

peridot_status pd_parser_expect_op(struct pd_parser *p, unsigned op)
{
    char text[3] = {(char)(op & 0xff), (char)(op >> 8), 0};
    return pd_parser_at_op(p, op) ? pd_parser_next(p) : pd_parser_fail_token(p, text);
}

peridot_status pd_parser_expect_kind(struct pd_parser *p, enum pd_token_kind kind, const char *expected)
{
    return p->token.kind == kind ? pd_parser_next(p) : pd_parser_fail_token(p, expected);
}

peridot_status pd_parser_enter(struct pd_parser *p)
{
    if (p->depth++ < PD_CODE_MAX_DEPTH) return PERIDOT_OK;
    return pd_parser_fail(p->token.line, "the template nests deeper than %d", PD_CODE_MAX_DEPTH);
}

void pd_parser_leave(struct pd_parser *p) { p->depth--; }

/* ---- nodes ---- */

peridot_status pd_code_create(struct pd_code **out, struct pd_parser *p, enum pd_code_kind kind, uint32_t line)
{
    *out = pd_arena_alloc(p->arena, sizeof **out);
    if (!*out) return pd_fail_alloc(sizeof **out, "a template");
    (*out)->kind = kind;
    (*out)->line = line;
    return PERIDOT_OK;
}

peridot_status pd_code_finish(struct pd_code *code)
{
    const struct pd_code *const lists[] = {code->a, code->b, code->c, code->d};
    for (size_t i = 0; i < PD_COUNT(lists); i++)
        for (const struct pd_code *child = lists[i]; child; child = child->next)
            if (child->depth >= code->depth) code->depth = child->depth + 1;
    if (code->depth <= PD_CODE_MAX_DEPTH) return PERIDOT_OK;
    return pd_parser_fail(code->line, "the template nests deeper than %d", PD_CODE_MAX_DEPTH);
}
