/* Each rule and terminal is written where it is named, as a group: a grammar without recursion is one regular
 * expression. Recursion, which would go on for ever, is seen by how deep names nest; names that double what they name
 * are bounded by the budget. What a regular expression says is left to who reads it as one. */
#include "wire_.h"

#include <string.h>

enum { MAX_DEPTH = 28, MAX_NAMES = 500 };   /* groups of an expression nest 32 deep at most */

struct name {
    const char *text, *body;   /* body: where its expansions begin; NULL: it is a pattern */
    const char *pattern;
    size_t size;
};

struct lark {
    const char *at, *end;
    struct name names[MAX_NAMES];
    size_t n;
    char *out;
    size_t n_out, *budget;
    unsigned depth;
    bool failed;
};

/* The terminals of Lark's common.lark that need no look-behind. */
static const struct { const char *name, *pattern; } common[] = {
    {"DIGIT", "[0-9]"}, {"HEXDIGIT", "[0-9a-fA-F]"}, {"INT", "[0-9]+"}, {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "(?:[0-9]+\\.[0-9]*|\\.[0-9]+)"},
    {"FLOAT", "(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"NUMBER", "(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER", "[+-]?(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?"},
    {"ESCAPED_STRING", "\"(?:[^\"\\\\\\n]|\\\\[^\\n])*\""}, {"LCASE_LETTER", "[a-z]"}, {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"}, {"WORD", "[A-Za-z]+"}, {"CNAME", "[_A-Za-z][_A-Za-z0-9]*"}, {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"}, {"CR", "\\r"}, {"LF", "\\n"}, {"NEWLINE", "(?:\\r?\\n)+"},
};

static bool lark_fail(struct lark *l)
{
    l->failed = true;
    l->at = l->end;
    return false;
}

static bool spend(struct lark *l, size_t n)
{
    if (n > *l->budget) return lark_fail(l);
    *l->budget -= n;
    return true;
}

static void lark_put(struct lark *l, const char *text, size_t size)
{
    if (size >= SERVE_LARK_MAX - l->n_out) lark_fail(l);
    if (l->failed || !spend(l, size)) return;
    memcpy(l->out + l->n_out, text, size);
    l->n_out += size;
}

static void put_text(struct lark *l, const char *text) { lark_put(l, text, strlen(text)); }

/* ---- what is read ---- */

static bool begins(const struct lark *l, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(l->end - l->at) >= n && memcmp(l->at, text, n) == 0;
}

static bool lark_take(struct lark *l, const char *text)
{
    if (!begins(l, text)) return false;
    l->at += strlen(text);
    return true;
}

static bool is_name_char(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t take_name(struct lark *l, const char **name)
{
    *name = l->at;
    while (l->at < l->end && is_name_char(*l->at)) l->at++;
    return (size_t)(l->at - *name);
}

/* Spaces and comments of a line. */
static void skip_blanks(struct lark *l)
{
    for (;;) {
        while (l->at < l->end && strchr(" \t\r", *l->at)) l->at++;
        if (!begins(l, "//") && !begins(l, "#")) return;
        while (l->at < l->end && *l->at != '\n') l->at++;
    }
}

static void skip_lines(struct lark *l)
{
    do skip_blanks(l);
    while (lark_take(l, "\n"));
}

/* The end of a definition's line: another may go on with it by a |, which is left there. */
static bool ends_line(struct lark *l)
{
    skip_blanks(l);
    if (l->at < l->end && *l->at != '\n') return false;
    const char *here = l->at;
    skip_lines(l);
    bool more = begins(l, "|");
    if (!spend(l, (size_t)(l->at - here))) return true;   /* lines of comments are read each time that it is named */
    if (!more) l->at = here;
    return !more;
}

/* ---- terminals ---- */

/* A character of a text, by itself in a regular expression. */
static void put_char(struct lark *l, unsigned char c, bool any_case)
{
    static const char hex[] = "0123456789abcdef";
    const char letter[] = {'[', (char)(c & ~32), (char)(c | 32), ']'};
    if (any_case && c >= 0x80) lark_fail(l);
    else if (any_case && letter[1] >= 'A' && letter[1] <= 'Z') lark_put(l, letter, sizeof letter);
    else if (c < 32 || c == 127) lark_put(l, (const char[]){'\\', 'x', hex[c >> 4], hex[c & 15]}, 4);
    else if (strchr("\\^$.*+?()[]{}|/", c)) lark_put(l, (const char[]){'\\', (char)c}, 2);
    else lark_put(l, (const char *)&c, 1);
}

/* After a backslash in a text. */
static void put_code(struct lark *l)
{
    static const char escapes[] = "n\nr\rt\tf\fv\v\\\\\"\"//''";
    size_t n = begins(l, "x") ? 2 : begins(l, "u") ? 4 : 0;
    const char *e = escapes;
    while (*e && !n && *e != *l->at) e += 2;
    if (!*e || (n && strspn(l->at + 1, "0123456789abcdefABCDEF") < n)) {   /* a quote ends the digits */
        lark_fail(l);
    } else if (n) {
        put_text(l, "\\");
        lark_put(l, l->at, n + 1);
    } else {
        put_char(l, (unsigned char)e[1], false);
    }
    if (!l->failed) l->at += n + 1;
}

/* A range of two letters or digits, whose first quote is taken: "a".."z". */
static bool take_range(struct lark *l)
{
    const char *s = l->at;
    if (l->end - s < 7 || memcmp(s + 1, "\"..\"", 4) != 0 || s[6] != '"') return false;
    if (!is_name_char(s[0]) || !is_name_char(s[5])) return !lark_fail(l);
    lark_put(l, (const char[]){'[', s[0], '-', s[5], ']'}, 5);
    l->at += l->failed ? 0 : 7;
    return true;
}

/* "..." or "..."i; its first quote is taken. */
static void take_text(struct lark *l)
{
    const char *end = l->at;
    if (take_range(l)) return;
    while (end < l->end && *end != '"' && *end != '\n') end += *end == '\\' && end + 1 < l->end ? 2 : 1;
    if (end >= l->end || *end != '"') {
        lark_fail(l);
        return;
    }
    bool any_case = end + 1 < l->end && end[1] == 'i' && (end + 2 == l->end || !is_name_char(end[2]));
    while (!l->failed && l->at < end) {
        if (!lark_take(l, "\\")) put_char(l, (unsigned char)*l->at++, any_case);
        else if (any_case) lark_fail(l);
        else put_code(l);
    }
    if (!l->failed) l->at = end + (any_case ? 2 : 1);
}

/* A regular expression of Python's: its dot is all but a newline, or anything. */
static void put_regex(struct lark *l, const char *text, const char *end, bool dot_all)
{
    bool in_class = false;
    for (; text < end && !l->failed; text++) {
        if (*text == '\\' && text + 1 < end) {
            text++;
            if (*text != '/') put_text(l, "\\");
        } else if (*text == '.' && !in_class) {
            put_text(l, dot_all ? "[\\s\\S]" : "[^\\n]");
            continue;
        } else {
            in_class = in_class ? *text != ']' : *text == '[';
        }
        lark_put(l, text, 1);
    }
}

/* /.../flags; its first slash is taken. */
static void take_regex(struct lark *l)
{
    const char *begin = l->at, *end = begin, *flags;
    while (end < l->end && *end != '/' && *end != '\n') end += *end == '\\' && end + 1 < l->end ? 2 : 1;
    if (end >= l->end || *end != '/') {
        lark_fail(l);
        return;
    }
    l->at = end + 1;
    size_t n = take_name(l, &flags);
    bool dot_all = n == 1 && *flags == 's';
    if (n > 0 && !dot_all) lark_fail(l);
    else put_regex(l, begin, end, dot_all);
}

/* ---- expansions ---- */

static void take_choice(struct lark *l, const char *end);

static const struct name *lark_find(const struct lark *l, const char *text, size_t size)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->names[i].size == size && memcmp(l->names[i].text, text, size) == 0) return &l->names[i];
    return NULL;
}

/* The budget is for those that are long and write little, too. */
static void put_named(struct lark *l, const struct name *name)
{
    const char *here = l->at;
    if (name && name->pattern) {
        put_text(l, name->pattern);
        return;
    }
    if (!name || l->depth >= MAX_DEPTH) {
        lark_fail(l);
        return;
    }
    l->depth++;
    l->at = name->body;
    take_choice(l, NULL);
    l->depth--;
    if (!l->failed && spend(l, (size_t)(l->at - name->body))) l->at = here;
}

static void take_group(struct lark *l, const char *end)
{
    if (l->depth++ >= MAX_DEPTH) lark_fail(l);
    take_choice(l, end);
    l->depth--;
    if (!l->failed && !lark_take(l, end)) lark_fail(l);
}

static void take_atom(struct lark *l)
{
    const char *name;
    size_t size;
    bool optional = begins(l, "[");
    put_text(l, optional ? "(?:(?:" : "(?:");
    if (lark_take(l, "(")) take_group(l, ")");
    else if (lark_take(l, "[")) take_group(l, "]");
    else if (lark_take(l, "\"")) take_text(l);
    else if (lark_take(l, "/")) take_regex(l);
    else if ((size = take_name(l, &name)) > 0) put_named(l, lark_find(l, name, size));
    else lark_fail(l);
    put_text(l, optional ? ")?)" : ")");
}

static void take_digits(struct lark *l)
{
    skip_blanks(l);
    const char *begin = l->at;
    while (l->at < l->end && l->at - begin < 5 && *l->at >= '0' && *l->at <= '9') l->at++;
    if (l->at == begin) lark_fail(l);
    else lark_put(l, begin, (size_t)(l->at - begin));
}

/* x?, x*, x+, x ~ 3, x ~ 1..3 */
static void take_item(struct lark *l)
{
    take_atom(l);
    skip_blanks(l);
    if (l->at < l->end && strchr("?*+", *l->at)) {
        lark_put(l, l->at, 1);
        l->at += !l->failed;
    } else if (lark_take(l, "~")) {
        put_text(l, "{");
        take_digits(l);
        skip_blanks(l);
        if (lark_take(l, "..")) {
            put_text(l, ",");
            take_digits(l);
        }
        put_text(l, "}");
    }
}

/* end: of a group; NULL: that of a line, or of several. */
static bool ends(struct lark *l, const char *end)
{
    if (!end) return ends_line(l);
    skip_lines(l);
    return begins(l, end);
}

/* Alternatives. What they are called says nothing. */
static void take_choice(struct lark *l, const char *end)
{
    const char *name;
    while (!l->failed && !ends(l, end)) {
        if (lark_take(l, "|")) {
            put_text(l, "|");
        } else if (lark_take(l, "->")) {
            skip_blanks(l);
            if (take_name(l, &name) == 0) lark_fail(l);
        } else {
            take_item(l);
        }
    }
}

/* ---- definitions ---- */

static void define(struct lark *l, struct name name)
{
    if (l->n == MAX_NAMES || name.size == 0 || lark_find(l, name.text, name.size)) lark_fail(l);
    else l->names[l->n++] = name;
}

/* After %import: common.NAME, common.NAME -> OTHER, or common (NAME, ...). */
static void take_import(struct lark *l)
{
    skip_blanks(l);
    bool several = lark_take(l, "common") && (skip_blanks(l), lark_take(l, "("));
    if (!several && !lark_take(l, ".")) lark_fail(l);
    do {
        struct name name = {0};
        skip_blanks(l);
        name.size = take_name(l, &name.text);
        for (size_t i = 0; i < sizeof common / sizeof *common; i++)
            if (strlen(common[i].name) == name.size && memcmp(common[i].name, name.text, name.size) == 0)
                name.pattern = common[i].pattern;
        skip_blanks(l);
        if (!several && lark_take(l, "->")) {
            skip_blanks(l);
            name.size = take_name(l, &name.text);
            skip_blanks(l);
        }
        if (name.pattern) define(l, name);
        else lark_fail(l);
    } while (several && lark_take(l, ","));
    if (several && !lark_take(l, ")")) lark_fail(l);
}

/* Expansions are looked at when they are written: here only for where they end. */
static void skip_expansions(struct lark *l)
{
    while (!l->failed && !ends_line(l)) {
        char c = *l->at++;
        if (c != '"' && c != '/') continue;
        while (l->at < l->end && *l->at != c && *l->at != '\n') l->at += *l->at == '\\' && l->end - l->at > 1 ? 2 : 1;
        if (!lark_take(l, (const char[]){c, 0})) lark_fail(l);
    }
}

/* name: or ?name: or NAME.2: and its expansions. */
static void take_definition(struct lark *l)
{
    struct name name = {0};
    const char *priority;
    while (lark_take(l, "?") || lark_take(l, "!")) {
    }
    name.size = take_name(l, &name.text);
    if (lark_take(l, ".")) take_name(l, &priority);
    skip_blanks(l);
    if (!lark_take(l, ":")) lark_fail(l);
    name.body = l->at;
    if (!l->failed) define(l, name);
    skip_expansions(l);
}

static void take_definitions(struct lark *l)
{
    for (skip_lines(l); !l->failed && l->at < l->end; skip_lines(l)) {
        if (lark_take(l, "%import")) take_import(l);
        else take_definition(l);
    }
}

static bool finish(struct lark *l)
{
    lark_put(l, ")$", 3);   /* with its NUL */
    return !l->failed;
}

bool serve_lark_pattern(char out[SERVE_LARK_MAX], size_t *budget, const char *grammar, size_t size)
{
    struct lark l = {.at = grammar, .end = grammar + size, .out = out, .budget = budget};
    if (!spend(&l, size)) return false;
    take_definitions(&l);
    put_text(&l, "^(?:");
    if (!l.failed) put_named(&l, lark_find(&l, "start", 5));
    return finish(&l);
}

bool serve_regex_pattern(char out[SERVE_LARK_MAX], size_t *budget, const char *regex, size_t size)
{
    struct lark l = {.at = regex, .end = regex + size, .out = out, .budget = budget};
    put_text(&l, "^(?:");
    put_regex(&l, regex, l.end, false);
    return finish(&l);
}
