/* GGUF metadata: typed values under keys. A value is a scalar or an array of scalars or strings; it is read in
 * place. Arrays of arrays are carried along: no key that is read has one. */
#ifndef PD_FORMAT_META_H
#define PD_FORMAT_META_H

#include "base/status.h"

/* The numbers are those of the file. */
enum pd_meta_type {
    PD_META_UINT8, PD_META_INT8, PD_META_UINT16, PD_META_INT16, PD_META_UINT32, PD_META_INT32, PD_META_FLOAT32,
    PD_META_BOOL, PD_META_STRING, PD_META_ARRAY, PD_META_UINT64, PD_META_INT64, PD_META_FLOAT64, PD_META_N_TYPES
};

/* Strings are not NUL-terminated in the file, so they come with a size. */
struct pd_string {
    const char *data;
    uint64_t size;
};

struct pd_meta {
    const char *key;           /* NUL-terminated */
    enum pd_meta_type type;    /* PD_META_ARRAY: see element */
    enum pd_meta_type element; /* of an array or, for a scalar, its type */
    uint64_t n;                /* elements; 1 for a scalar */
    /* private: where the value lies */
    const uint8_t *data;
    const struct pd_string *strings;   /* n of them when strings */
    uint64_t size;                     /* bytes of data */
};

/* Bytes of a scalar; 0 for strings and arrays. */
uint32_t pd_meta_type_size(enum pd_meta_type type);
/* "uint32", "string", ... */
const char *pd_meta_type_name(enum pd_meta_type type);

/* Element i of a value as a number; false when it is not one (or does not fit, or there is no element i). Integers
 * convert to float. */
bool pd_meta_uint(uint64_t *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_int(int64_t *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_float(double *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_bool(bool *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_string(struct pd_string *out, const struct pd_meta *m, uint64_t i);

/* The value for a person's eyes, allocated: a string as it is, control characters and invalid UTF-8 escaped, an array
 * as ["a", "b", ... 256000 in all]; long ones shortened. NULL when out of memory. */
char *pd_meta_text(const struct pd_meta *m);
/* The same for a string that comes from elsewhere. */
char *pd_string_text(struct pd_string s);

#endif
