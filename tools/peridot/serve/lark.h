/* Grammars of custom tools as regular expressions of ECMA-262: Lark's where their language is one, as no rule is in
 * itself and nothing is ignored between terminals, and expressions as Python and Rust have them. */
#ifndef PERIDOT_COMMAND_SERVE_LARK_H
#define PERIDOT_COMMAND_SERVE_LARK_H

#include <stdbool.h>
#include <stddef.h>

/* The expression of what such texts match as a whole, terminated. *budget, which grammars of a request share, bounds
 * what is read and written. False: it is not understood, has no such expression, or is too large; whether what it has
 * of regular expressions can be followed, who compiles the pattern says. */
#define SERVE_LARK_MAX 65536
#define SERVE_LARK_BUDGET 1000000
bool serve_lark_pattern(char out[SERVE_LARK_MAX], size_t *budget, const char *grammar, size_t size);
bool serve_regex_pattern(char out[SERVE_LARK_MAX], size_t *budget, const char *regex, size_t size);

#endif
