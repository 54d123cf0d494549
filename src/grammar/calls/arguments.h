/* Arguments of a call, byte by byte: they become JSON, and whatever is written is the beginning of a JSON object. */
#ifndef PD_GRAMMAR_CALLS_ARGUMENTS_H
#define PD_GRAMMAR_CALLS_ARGUMENTS_H

#include "base/status.h"
#include "grammar/values.h"

#define PD_MAX_TAG_NAME 128

/* Zero-initialise but for the first four. */
struct pd_call_arguments {
    const struct pd_tags *tags;    /* as in pd_call_format */
    yyjson_val *parameters;        /* of the tool, which say what is text in tags; NULL: all is */
    bool keywords;                 /* as in pd_call_format */
    const char *delimiter;         /* they are in the dialect of values.h; NULL: JSON, which stays as it is */
    uint8_t state;
    uint8_t depth;                 /* brackets that are open */
    uint8_t n;                     /* bytes of a delimiter, or digits of an escape, that have come */
    bool is_key;                   /* the present string is */
    bool is_pair;                  /* a surrogate has come, whose second must follow */
    uint16_t unit;                 /* of an escape */
    uint64_t objects;              /* bit i: bracket i is { */
    const char *word;              /* what is left of true, false or null, or of what is around a tag */
    uint8_t after_word;            /* state */
    bool more;                     /* tags than the first */
    char name[PD_MAX_TAG_NAME];    /* of the present tag */
};

/* What comes out is handed on in larger pieces. */
struct pd_call_bytes {
    peridot_status (*write)(void *user, const char *bytes, size_t size);
    void *user;
    peridot_status status;         /* of what has been handed on */
    size_t n;
    char held[256];
};
void pd_call_put(struct pd_call_bytes *out, const char *bytes, size_t size);
void pd_call_flush(struct pd_call_bytes *out);
/* Hands on whole characters, and holds the beginning of one; at the `end` that is U+FFFD. */
void pd_call_flush_characters(struct pd_call_bytes *out, bool end);

enum pd_call_taken { PD_CALL_GOES_ON, PD_CALL_COMPLETE, PD_CALL_BROKEN };
/* BROKEN: the byte cannot come here, and is not taken. */
enum pd_call_taken pd_call_arguments_take(struct pd_call_arguments *a, struct pd_call_bytes *out, char byte);

#endif
