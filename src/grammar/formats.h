/* The formats of JSON Schema as patterns. */
#ifndef PD_GRAMMAR_FORMATS_H
#define PD_GRAMMAR_FORMATS_H

/* The pattern of a format; NULL: it has none, and is an annotation. */
const char *pd_format_pattern(const char *name);

#endif
