/* How JSON spells what is in it, written into rules: constants, characters of strings, numbers, white space. Where a
 * string is not free, each of its characters has one spelling: itself, or the shortest escape where it needs one.
 *
 * Arguments of tool calls have a dialect beside it: strings are as they are between two delimiters, which are not in
 * them, names of members are as they are, and there is no white space. Another has JSON's values, but the arguments
 * themselves are keywords: (name=value, ...); or tags, in which what may be a string is text as it is. */
#ifndef PD_GRAMMAR_VALUES_H
#define PD_GRAMMAR_VALUES_H

#include "grammar/chars.h"
#include "grammar/rules.h"

#include <yyjson.h>

/* A number as it is written: digits before the point and after it, without zeros that say nothing. */
struct pd_decimal {
    bool given, negative, exclusive;
    char whole[24], fraction[24];
    double value;
};

/* Whole numbers of of / 10^places; of 0: any numbers. */
struct pd_multiple {
    uint64_t of;
    uint32_t places;
};

/* Arguments as `name` NAME `value` VALUE `after`, each, and then `end`, which begins with the byte that `name` begins
 * with and differs in the second. The first byte of `after` is in it once. */
struct pd_tags {
    const char *name, *value, *after, *end;
};

#define PD_MAX_MULTIPLE 10000u
#define PD_MAX_PLACES 9u
struct pd_number_range {
    struct pd_decimal min, max;
    struct pd_multiple multiple;   /* within those limits; integers are multiples of 1 */
};

struct pd_char_rule {
    uint32_t low, high, rule;
};

struct pd_values {
    struct pd_rules *rules;
    const char *delimiter;         /* of strings in the dialect; NULL: JSON */
    bool keywords;                 /* the object that is being written is of keywords */
    const struct pd_tags *tags;    /* or of these; NULL: it is not */
    uint32_t space, escape;        /* rules of white space and of an escape in a free string */
    struct pd_char_rule *chars;    /* rules of characters that are not one byte */
    size_t n_chars, chars_capacity, n_written;
};

void pd_values_begin(struct pd_values *v, struct pd_rules *r, const char *delimiter);
void pd_values_free(struct pd_values *v);
/* Writes the rules that others call. */
peridot_status pd_values_finish(struct pd_values *v);

/* Optional white space, one space or a newline and at most PD_INDENT spaces; a bracket, comma or colon and the white
 * space after it: the state after them. */
#define PD_INDENT 32
uint32_t pd_write_space(struct pd_values *v, uint32_t from);
uint32_t pd_write_mark(struct pd_values *v, uint32_t from, char mark);
/* In a string: a character of low .. high; any, however it is spelt. */
void pd_write_char(struct pd_values *v, uint32_t from, uint32_t low, uint32_t high, uint32_t to);
void pd_write_any_char(struct pd_values *v, uint32_t from, uint32_t to);
/* Strings with their quotes: this one; those of an automaton; those of some length. */
void pd_write_text(struct pd_values *v, uint32_t from, const char *text, size_t size, uint32_t to);
void pd_write_strings(struct pd_values *v, uint32_t from, const struct pd_chars *c, uint32_t to);
void pd_write_length(struct pd_values *v, uint32_t from, uint32_t min, uint32_t max, uint32_t to);
/* How the dialect writes members: in this order of their names, which are of these characters, and spaces within. */
int pd_name_compare(const char *a, size_t a_size, const char *b, size_t b_size);
bool pd_is_name_char(uint32_t c);
bool pd_is_keyword_char(uint32_t c);
/* Names of members: this one, which must be a name in the dialect; those of an automaton that are, NULL: any. */
bool pd_is_name(const struct pd_values *v, const char *text, size_t size);
void pd_write_name(struct pd_values *v, uint32_t from, const char *text, size_t size, uint32_t to);
void pd_write_names(struct pd_values *v, uint32_t from, const struct pd_chars *names, uint32_t to);
/* Those of an automaton in a tag, with what comes after them. */
void pd_write_tagged(struct pd_values *v, uint32_t from, const struct pd_chars *c, uint32_t to);
/* A constant of any type. */
void pd_write_constant(struct pd_values *v, uint32_t from, yyjson_val *value, uint32_t to);

/* False: the value is no number that a limit can be, or has more digits than can be compared exactly. */
bool pd_decimal_read(struct pd_decimal *out, yyjson_val *value, bool exclusive);
/* *m becomes the multiples of both. False: the value is no number above 0, or has too many digits. */
bool pd_multiple_add(struct pd_multiple *m, yyjson_val *value);
void pd_write_number(struct pd_values *v, uint32_t from, const struct pd_number_range *range, uint32_t to);

#endif
