/* What goes wrong with a request: a status of HTTP and a sentence, in the form that a client expects. */
#ifndef PERIDOT_COMMAND_SERVE_ERROR_H
#define PERIDOT_COMMAND_SERVE_ERROR_H

#include "buffer.h"

struct serve_error {
    int status;                /* of HTTP; 0: nothing went wrong */
    const char *code;          /* "context_length_exceeded"; NULL: none */
    char param[64];            /* the parameter that is at fault; "": none */
    char message[512];
    uint64_t n_prompt;         /* tokens of a prompt that does not fit, of which there may be more; 0: another error */
    uint32_t n_ctx;            /* that it does not fit */
};

/* A prompt that is too long. */
struct serve_length {
    const char *what;          /* the parameter */
    uint64_t n_prompt;         /* its tokens; */
    bool at_least;             /* they were not counted to the end */
    uint32_t ctx;
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
    /* The sentence for a prompt that is too long: clients know such by the words of the server that they are made for,
     * and make it shorter. */
    void (*tell_length)(char *out, size_t size, const struct serve_length *length);
    bool no_param;                /* that sentence has no place for the parameter */
};
/* The sentence for forms that have nothing else: it names the parameter. */
yyjson_mut_val *serve_error_sentence(yyjson_mut_doc *doc, const struct serve_error *error);
/* {"error": {"message", "type", "param", "code"}} */
extern const struct serve_error_form serve_errors_openai;
/* {"error": "..."} */
extern const struct serve_error_form serve_errors_ollama;
/* {"type": "error", "error": {"type", "message", "details": {"error_code"}}}, the latter where there is a code */
extern const struct serve_error_form serve_errors_anthropic;
/* {"error": {"code": status, "message", "type"}}, and n_prompt_tokens and n_ctx where a prompt is too long: llama.cpp's
 * server */
extern const struct serve_error_form serve_errors_llama;
/* The error of a prompt that is too long. False. */
bool serve_refuse_length(struct serve_error *error, const struct serve_error_form *form,
                         const struct serve_length *length);
/* OpenAI's sentence for it, which others have parts of. */
void serve_tell_length(char *out, size_t size, const struct serve_length *length);

#endif
