/* Arguments of a call, byte by byte: they become JSON, and whatever is written is the beginning of a JSON object. */
#include "grammar/calls/calls.h"

#include "base/base.h"
#include "grammar/grammar.h"

#include <stdio.h>
#include <string.h>

/* What comes next. The numbers from MINUS on are states of a number. */
enum state {
    VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, NEXT, STRING, ESCAPE, HEX, SECOND, SECOND_U, WORD, DELIMITER, TEXT, NAME,
    TAG, TAG_KIND, TAG_PART, TAG_NAME, TAG_VALUE, TAGS_END,
    MINUS, ZERO, WHOLE, POINT, FRACTION, E, SIGN, EXPONENT
};

void pd_call_flush(struct pd_call_bytes *out)
{
    if (out->n && out->status == PERIDOT_OK) out->status = out->write(out->user, out->held, out->n);
    out->n = 0;
}

/* Bytes at the end that begin a character. */
static size_t count_begun(const struct pd_call_bytes *out)
{
    size_t n = 1, length;
    uint32_t code;
    while (n < out->n && n < 4 && ((uint8_t)out->held[out->n - n] & 0xc0) == 0x80) n++;
    bool begun = out->n && pd_utf8_next(&code, &length, out->held + out->n - n, n) == PD_UTF8_INCOMPLETE;
    return begun ? n : 0;
}

void pd_call_flush_characters(struct pd_call_bytes *out, bool end)
{
    size_t n = count_begun(out);
    char begun[4];
    memcpy(begun, out->held + out->n - n, n);
    out->n -= n;
    if (n && end) pd_call_put(out, "\xef\xbf\xbd", 3);
    pd_call_flush(out);
    if (!end) pd_call_put(out, begun, n);
}

void pd_call_put(struct pd_call_bytes *out, const char *bytes, size_t size)
{
    bool begins = size && ((uint8_t)*bytes & 0xc0) != 0x80;   /* characters stay whole */
    if (out->n + size + (begins ? 4 : 0) > sizeof out->held) pd_call_flush(out);
    if (size > sizeof out->held) {
        if (out->status == PERIDOT_OK) out->status = out->write(out->user, bytes, size);
        return;
    }
    memcpy(out->held + out->n, bytes, size);
    out->n += size;
}

/* ---- values ---- */

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static enum pd_call_taken go(struct pd_call_arguments *a, enum state state)
{
    a->state = (uint8_t)state;
    return PD_CALL_GOES_ON;
}

static enum pd_call_taken open_bracket(struct pd_call_arguments *a, bool object)
{
    if (a->depth == PD_MAX_CALLS) return PD_CALL_BROKEN;
    a->objects = (a->objects & ~((uint64_t)1 << a->depth)) | (uint64_t)object << a->depth;
    a->depth++;
    return go(a, object ? FIRST_KEY : FIRST_VALUE);
}

static bool is_in_object(const struct pd_call_arguments *a) { return a->objects >> (a->depth - 1) & 1; }

static enum pd_call_taken close_bracket(struct pd_call_arguments *a, char byte)
{
    if (byte != (is_in_object(a) ? '}' : ']')) return PD_CALL_BROKEN;
    a->depth--;
    return a->depth ? go(a, NEXT) : PD_CALL_COMPLETE;
}

static enum pd_call_taken begin_value(struct pd_call_arguments *a, char byte)
{
    static const char *const words[] = {"true", "false", "null"};
    if (is_space(byte)) return PD_CALL_GOES_ON;
    if (byte == '{' || byte == '[') return open_bracket(a, byte == '{');
    if (byte == '-') return go(a, MINUS);
    if (is_digit(byte)) return go(a, byte == '0' ? ZERO : WHOLE);
    a->is_key = false;
    if (byte == '"') return go(a, STRING);
    for (int i = 0; i < 3; i++) {
        if (byte != words[i][0]) continue;
        a->word = words[i] + 1;
        return go(a, WORD);
    }
    return PD_CALL_BROKEN;
}

static enum pd_call_taken begin_key(struct pd_call_arguments *a, char byte)
{
    if (is_space(byte)) return PD_CALL_GOES_ON;
    a->is_key = true;
    return byte == '"' ? go(a, STRING) : PD_CALL_BROKEN;
}

static enum pd_call_taken end_value(struct pd_call_arguments *a, char byte)
{
    if (is_space(byte)) return PD_CALL_GOES_ON;
    if (byte == ',') return go(a, is_in_object(a) ? KEY : VALUE);
    return close_bracket(a, byte);
}

static enum pd_call_taken take_number(struct pd_call_arguments *a, char byte)
{
    bool exponent = byte == 'e' || byte == 'E';
    switch (a->state) {
    case MINUS: return is_digit(byte) ? go(a, byte == '0' ? ZERO : WHOLE) : PD_CALL_BROKEN;
    case WHOLE:
        if (is_digit(byte)) return PD_CALL_GOES_ON;
        /* fall through */
    case ZERO:
        if (byte == '.') return go(a, POINT);
        break;
    case POINT: return is_digit(byte) ? go(a, FRACTION) : PD_CALL_BROKEN;
    case FRACTION:
        if (is_digit(byte)) return PD_CALL_GOES_ON;
        break;
    case E:
        if (byte == '+' || byte == '-') return go(a, SIGN);
        /* fall through */
    case SIGN: return is_digit(byte) ? go(a, EXPONENT) : PD_CALL_BROKEN;
    default:
        if (is_digit(byte)) return PD_CALL_GOES_ON;
        exponent = false;
    }
    if (exponent) return go(a, E);
    a->state = NEXT;
    return end_value(a, byte);
}

/* ---- strings ---- */

static enum pd_call_taken take_character(struct pd_call_arguments *a, char byte)
{
    if (byte == '"') return go(a, a->is_key ? COLON : NEXT);
    if (byte == '\\') return go(a, ESCAPE);
    return (uint8_t)byte < 0x20 || (uint8_t)byte >= PD_CALL_MARK ? PD_CALL_BROKEN : PD_CALL_GOES_ON;
}

static enum pd_call_taken take_escape(struct pd_call_arguments *a, char byte)
{
    a->n = 0;
    a->unit = 0;
    if (byte == 'u') return go(a, HEX);
    return byte && strchr("\"\\/bfnrt", byte) ? go(a, STRING) : PD_CALL_BROKEN;
}

/* Of surrogates a first one comes before a second one, and neither by itself. */
static enum pd_call_taken take_hex(struct pd_call_arguments *a, char byte)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *digit = byte ? strchr(digits, byte) : NULL;
    if (!digit) return PD_CALL_BROKEN;
    unsigned value = (unsigned)(digit - digits);
    a->unit = (uint16_t)(a->unit << 4 | (value < 16 ? value : value - 6));
    if (++a->n < 4) return PD_CALL_GOES_ON;
    bool first = a->unit >= 0xd800 && a->unit < 0xdc00, second = a->unit >= 0xdc00 && a->unit < 0xe000;
    if (second != a->is_pair) return PD_CALL_BROKEN;
    a->is_pair = first;
    return go(a, first ? SECOND : STRING);
}

/* ---- all of it ---- */

static enum pd_call_taken arguments_take(struct pd_call_arguments *a, char byte)
{
    switch (a->state) {
    case FIRST_VALUE: if (byte == ']') return close_bracket(a, byte); /* fall through */
    case VALUE: return begin_value(a, byte);
    case FIRST_KEY: if (byte == '}') return close_bracket(a, byte); /* fall through */
    case KEY: return begin_key(a, byte);
    case COLON: return byte == ':' ? go(a, VALUE) : is_space(byte) ? PD_CALL_GOES_ON : PD_CALL_BROKEN;
    case NEXT: return end_value(a, byte);
    case STRING: return take_character(a, byte);
    case ESCAPE: return take_escape(a, byte);
    case HEX: return take_hex(a, byte);
    case SECOND: return byte == '\\' ? go(a, SECOND_U) : PD_CALL_BROKEN;
    case SECOND_U: return byte == 'u' ? take_escape(a, byte) : PD_CALL_BROKEN;
    case WORD: return byte != *a->word ? PD_CALL_BROKEN : *++a->word ? PD_CALL_GOES_ON : go(a, NEXT);
    default: return take_number(a, byte);
    }
}

/* ---- the dialect: strings and names get quotes and escapes ---- */

static void put_escaped(struct pd_call_bytes *out, const char *bytes, size_t size)
{
    static const char letters[] = "\"\\bfnrt", codes[] = "\"\\\b\f\n\r\t";
    for (size_t i = 0; i < size; i++) {
        char escape[8] = {'\\'}, c = bytes[i];
        const char *found = c ? strchr(codes, c) : NULL;
        if (found) escape[1] = letters[found - codes];
        else if ((uint8_t)c < 0x20) snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
        else escape[0] = c;
        pd_call_put(out, escape, strlen(escape));
    }
}

static enum pd_call_taken take_delimiter(struct pd_call_arguments *a, char byte)
{
    if (byte != a->delimiter[a->n]) return PD_CALL_BROKEN;
    if (a->delimiter[++a->n]) return PD_CALL_GOES_ON;
    a->n = 0;
    return go(a, TEXT);
}

/* Delimiters do not begin anew within themselves, but for their first byte. */
static enum pd_call_taken arguments_take_text(struct pd_call_arguments *a, struct pd_call_bytes *out, char byte)
{
    if (byte != a->delimiter[a->n]) {
        put_escaped(out, a->delimiter, a->n);
        a->n = 0;
    }
    if (byte == a->delimiter[a->n]) {
        if (a->delimiter[++a->n]) return PD_CALL_GOES_ON;
        pd_call_put(out, "\"", 1);
        return go(a, NEXT);
    }
    if ((uint8_t)byte >= PD_CALL_MARK) return PD_CALL_BROKEN;
    put_escaped(out, &byte, 1);
    return PD_CALL_GOES_ON;
}

static enum pd_call_taken take_name(struct pd_call_arguments *a, struct pd_call_bytes *out, char byte)
{
    bool first = a->state != NAME;
    if (!first && byte == (a->keywords ? '=' : ':')) {
        pd_call_put(out, "\":", 2);
        return go(a, VALUE);
    }
    bool inner = byte == ' ' && !first && !a->keywords;
    bool known = a->keywords ? pd_is_keyword_char((uint8_t)byte) : pd_is_name_char((uint8_t)byte);
    if (!known && !inner) return PD_CALL_BROKEN;
    if ((uint8_t)byte >= PD_CALL_MARK) return PD_CALL_BROKEN;
    if (first) pd_call_put(out, "\"", 1);
    pd_call_put(out, &byte, 1);
    return go(a, NAME);
}

/* What is the dialect's alone; false: the byte is as in JSON. */
static bool take_dialect(enum pd_call_taken *taken, struct pd_call_arguments *a, struct pd_call_bytes *out, char byte)
{
    switch (a->state) {
    case VALUE:
    case FIRST_VALUE:
        if (byte != a->delimiter[0]) return false;
        pd_call_put(out, "\"", 1);
        a->n = 0;
        *taken = take_delimiter(a, byte);
        if (a->n) a->state = DELIMITER;
        return true;
    case DELIMITER: *taken = take_delimiter(a, byte); return true;
    case TEXT: *taken = arguments_take_text(a, out, byte); return true;
    case FIRST_KEY:
        if (byte == '}') return false;
        /* fall through */
    case KEY:
        if (is_space(byte)) return false;
        /* fall through */
    case NAME: *taken = take_name(a, out, byte); return true;
    default: return false;
    }
}

/* What is of the keywords, rather than of their values; false: the byte is as in JSON, but that they end with ")". */
static bool take_keyword(enum pd_call_taken *taken, struct pd_call_arguments *a, struct pd_call_bytes *out, char byte)
{
    if (a->depth == 0) {
        *taken = byte == '(' ? open_bracket(a, true) : PD_CALL_BROKEN;
        if (byte == '(') pd_call_put(out, "{", 1);
        return true;
    }
    bool begins = a->state == KEY || a->state == FIRST_KEY;
    if (a->depth > 1 || (a->state != NAME && !begins) || is_space(byte) || byte == ')') return false;
    *taken = take_name(a, out, byte);
    return true;
}

/* ---- tags ---- */

static enum pd_call_taken go_by(struct pd_call_arguments *a, const char *rest, enum state after)
{
    a->word = rest;
    a->after_word = (uint8_t)after;
    return go(a, *rest ? TAG_PART : after);
}

static enum pd_call_taken begin_tag(struct pd_call_arguments *a, struct pd_call_bytes *out)
{
    pd_call_put(out, a->more ? ",\"" : "\"", a->more ? 2 : 1);
    a->more = true;
    a->n = 0;
    return go(a, TAG_NAME);
}

static enum pd_call_taken begin_tag_value(struct pd_call_arguments *a, struct pd_call_bytes *out)
{
    uint64_t steps;
    bool is_long = a->n > PD_MAX_TAG_NAME;
    bool text = pd_is_tag_text(&steps, a->parameters, (struct pd_key){a->name, is_long ? 0 : a->n});
    pd_call_put(out, text ? "\":\"" : "\":", text ? 3 : 2);
    a->n = 0;
    return go(a, text ? TEXT : VALUE);
}

static enum pd_call_taken take_part(struct pd_call_arguments *a, struct pd_call_bytes *out, char byte)
{
    if (byte != *a->word) return PD_CALL_BROKEN;
    if (*++a->word) return PD_CALL_GOES_ON;
    if (a->after_word == TAG_NAME) return begin_tag(a, out);
    if (a->after_word == TAG_VALUE) return begin_tag_value(a, out);
    if (a->after_word == TAG) return go(a, TAG);
    pd_call_put(out, "}", 1);
    return PD_CALL_COMPLETE;
}

static enum pd_call_taken take_tag_name(struct pd_call_arguments *a, struct pd_call_bytes *out, char byte)
{
    if (byte == *a->tags->value) return go_by(a, a->tags->value + 1, TAG_VALUE);
    bool known = pd_is_name_char((uint8_t)byte) || byte == ' ';
    if (!known || (uint8_t)byte >= PD_CALL_MARK) return PD_CALL_BROKEN;
    if (a->n < PD_MAX_TAG_NAME) a->name[a->n] = byte;
    if (a->n <= PD_MAX_TAG_NAME) a->n++;
    pd_call_put(out, &byte, 1);
    return PD_CALL_GOES_ON;
}

static enum pd_call_taken take_tag_text(struct pd_call_arguments *a, struct pd_call_bytes *out, char byte)
{
    a->delimiter = a->tags->after;
    enum pd_call_taken taken = arguments_take_text(a, out, byte);
    a->delimiter = NULL;
    return taken == PD_CALL_GOES_ON && a->state == NEXT ? go(a, TAG) : taken;
}

/* What ends a value that is no text: to JSON, as a comma would. */
static enum pd_call_taken end_tag_value(struct pd_call_arguments *a)
{
    enum pd_call_taken taken = arguments_take(a, ',');
    return taken == PD_CALL_BROKEN ? taken : go_by(a, a->tags->after + 1, TAG);
}

/* What is of the tags, rather than of their values; false: the byte is as in JSON. */
static bool take_tags(enum pd_call_taken *taken, struct pd_call_arguments *a, struct pd_call_bytes *out, char byte)
{
    const struct pd_tags *tags = a->tags;
    if (a->depth == 0) {
        open_bracket(a, true);
        pd_call_put(out, "{", 1);
        a->state = TAG;
    }
    switch (a->state) {
    case TAG:
        *taken = byte == *tags->name ? go(a, TAG_KIND) : is_space(byte) ? PD_CALL_GOES_ON : PD_CALL_BROKEN;
        return true;
    case TAG_KIND:
        *taken = byte == tags->name[1] ? go_by(a, tags->name + 2, TAG_NAME)
               : byte == tags->end[1] ? go_by(a, tags->end + 2, TAGS_END) : PD_CALL_BROKEN;
        return true;
    case TAG_PART: *taken = take_part(a, out, byte); return true;
    case TAG_NAME: *taken = take_tag_name(a, out, byte); return true;
    case TEXT: *taken = take_tag_text(a, out, byte); return true;
    default: break;
    }
    bool ended = a->state == NEXT || a->state >= MINUS;
    if (a->depth > 1 || !ended || (byte != *tags->after && byte != ',' && byte != '}')) return false;
    *taken = byte == *tags->after ? end_tag_value(a) : PD_CALL_BROKEN;
    return true;
}

/* Brackets close what is open: of keywords, parentheses. */
static char as_json(const struct pd_call_arguments *a, char byte)
{
    bool text = a->state == STRING || a->state == ESCAPE || a->state == HEX || a->state == NAME;
    if (!a->keywords || a->depth != 1 || text) return byte;
    return byte == ')' ? '}' : byte == '}' ? ')' : byte;
}

enum pd_call_taken pd_call_arguments_take(struct pd_call_arguments *a, struct pd_call_bytes *out, char byte)
{
    enum pd_call_taken taken;
    if (a->tags && take_tags(&taken, a, out, byte)) return taken;
    if (a->delimiter && take_dialect(&taken, a, out, byte)) return taken;
    if (a->keywords && take_keyword(&taken, a, out, byte)) return taken;
    byte = as_json(a, byte);
    taken = arguments_take(a, byte);
    if (taken != PD_CALL_BROKEN) pd_call_put(out, &byte, 1);
    return taken;
}
