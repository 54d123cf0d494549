/* What goes wrong with a request: a status of HTTP and a sentence, in the form that a client expects. */
#ifndef PERIDOT_COMMAND_SERVE_ERROR_H
#define PERIDOT_COMMAND_SERVE_ERROR_H

#include "buffer.h"

struct serve_error {
    int status;                /* of HTTP; 0: nothing went wrong */
    const char *code;          /* "context_length_exceeded"; NULL: none */
    char param[64];            /* the parameter that is at fault; "": none */
    char message[512];
};

/* Sets it, unless something went wrong before; false. code and param may be NULL. */
bool serve_refuse(struct serve_error *error, int status, const char *code, const char *param, const char *format, ...)
    CMD_PRINTF(5, 6);
/* The same for a parameter of a wrong type: "NAME WHAT". False. */
bool serve_refuse_type(struct serve_error *error, const char *name, const char *what);
/* The same with the library's sentence for a status: 400 for what is wrong with the request. False. */
bool serve_refuse_status(struct serve_error *error, peridot_status status);
/* The error is of element i of a list: its sentence begins with "NAME[i]: ". False. */
bool serve_refuse_element(struct serve_error *error, const char *name, size_t i);

/* How clients are told. */
struct serve_error_form {
    void (*put)(struct serve_buffer *buffer, const struct serve_error *error);   /* a JSON object */
    const char *before, *after;   /* of it within a stream */
    bool short_length;            /* clients look for "prompt is too long" where it is */
};
/* The sentence for forms that have nothing else: it names the parameter. */
yyjson_mut_val *serve_error_sentence(yyjson_mut_doc *doc, const struct serve_error *error);
/* {"error": {"message", "type", "param", "code"}} */
extern const struct serve_error_form serve_errors_openai;
/* {"error": "..."} */
extern const struct serve_error_form serve_errors_ollama;
/* {"type": "error", "error": {"type", "message", "details": {"error_code"}}}, the latter where there is a code */
extern const struct serve_error_form serve_errors_anthropic;

#endif
