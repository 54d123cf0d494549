/* How parameters, texts and messages are read, for all interfaces. */
#ifndef PERIDOT_COMMAND_SERVE_WIRE_WIRE_PRIVATE_H
#define PERIDOT_COMMAND_SERVE_WIRE_WIRE_PRIVATE_H

#include "../job/job.h"
#include "wire.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- messages ---- */

/* Messages in the form of OpenAI's chat completions, whatever the interface. {0} is the beginning. */
struct serve_conversation {
    yyjson_mut_doc *doc;
    yyjson_mut_val *list;
    size_t n_told;             /* tools that results referred to */
    struct pd_buffer thought;   /* of the assistant's message that comes next */
};

/* All: false, or NULL: the job's error says why. `name`: the parameter that is read. */

/* The next message; its text is copied. */
bool serve_conversation_add(struct serve_conversation *c, struct serve_job *job, const char *role,
                            const char *content);
/* The next message, whose content is a text or a list of the parts that the interface has; results of calls that are
 * among them are messages before it. */
bool serve_conversation_add_content(struct serve_conversation *c, struct serve_job *job, const char *role,
                                    const char *name, yyjson_val *content);
/* The same with images before the content: a list of some of the job's pictures, or NULL. */
bool serve_conversation_add_seen(struct serve_conversation *c, struct serve_job *job, const char *role,
                                 const char *name, yyjson_val *content, yyjson_val *images);
/* Messages of one role that follow each other become one, up to one that has calls. */
bool serve_conversation_join(struct serve_conversation *c, struct serve_job *job);
/* Puts the messages into an order of roles that strict templates have a place for; without has_system also what a
 * system says first becomes part of the user's turn (roles.c). */
bool serve_conversation_fold(struct serve_conversation *c, struct serve_job *job, bool has_system);
/* Whether the model's template leaves out what systems say that are not the first message: some know no others, and say
 * nothing. */
bool serve_conversation_loses(const struct serve_conversation *c, struct serve_job *job, const peridot_vocab *vocab);
/* A call in the message of the assistant's that is the last, or in a new one. `arguments`: JSON text of an object. */
bool serve_conversation_add_call(struct serve_conversation *c, struct serve_job *job, const char *id, const char *name,
                                 const char *arguments);
/* The result of a call: a text, or parts of text and of images. */
bool serve_conversation_add_result(struct serve_conversation *c, struct serve_job *job, const char *id,
                                   const char *name, yyjson_val *content);
/* The role of a message, as the library calls it. */
const char *serve_conversation_role(struct serve_job *job, const char *name, yyjson_val *message);
/* A message as OpenAI's interfaces have it; and a list of them, the interface's input. */
bool serve_conversation_read_one(struct serve_conversation *c, struct serve_job *job, yyjson_val *message);
bool serve_conversation_read(struct serve_conversation *c, struct serve_job *job, yyjson_val *messages);

/* ---- prompt ---- */

/* Prompts: of texts as they are, for completions and embeddings, and of conversations by the template of their model,
 * without the oldest turns where all do not fit and the request allows it. */

/* Tasks of the interface's input: a text, its ids, texts, or lists of ids. A `read` of an interface. */
bool serve_read_texts(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root);
/* A task of a list of ids. */
bool serve_read_ids(struct serve_job *job, const peridot_vocab *vocab, const char *name, yyjson_val *list);

/* The prompt of the messages that the interface reads; ids are to be freed by peridot_free, whatever is returned, and
 * can be too many. */
bool serve_conversation_encode(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                               yyjson_val *root);
/* The task of a conversation: a `read` of an interface. */
bool serve_read_conversation(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab,
                             yyjson_val *root);

/* ---- infill ---- */

/* The prompt of a text's middle as llama.cpp's server makes it for editors: files, what stands before a place, what
 * stands after it. What of them does not fit the context is left out, as editors send what they have. */

/* The task of a body with input_prefix, input_suffix, prompt and input_extra. A `read` of an interface. */
bool serve_read_infill(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root);

/* ---- param ---- */

/* How a parameter of a request is read: what readers share, and those that are not in params.c. */

struct serve_param {
    const char *name;
    unsigned apis;             /* of SERVE_SET_... */
    /* false: the job's error says what is wrong */
    bool (*read)(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
    size_t offset;             /* of the value in struct serve_asks */
    double min, max;
};

/* False, and the error: "NAME WHAT", or that it must be a number of its range. */
bool serve_param_refuse(struct serve_job *job, const struct serve_param *p, const char *what);
bool serve_param_refuse_range(struct serve_job *job, const struct serve_param *p);
/* Whether it is a whole number of its range. */
bool serve_param_whole(double *out, const struct serve_param *p, yyjson_val *value);
/* Names once, in the answer's headers, what a request says and nothing is done with: it changes no answer. */
void serve_param_ignore(struct serve_job *job, const char *name);
/* An object with this one member, which is read as the parameter. */
struct serve_member {
    const char *name;
    bool (*read)(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
};
bool serve_param_member(struct serve_job *job, const struct serve_param *p, yyjson_val *value,
                        struct serve_member member);

/* A form of the answer: OpenAI's response_format, `text` of its responses, Anthropic's output_config, Ollama's. */
bool serve_read_format(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
bool serve_read_text_format(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
bool serve_read_output_config(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
bool serve_read_ollama_format(struct serve_job *job, const struct serve_param *p, yyjson_val *value);

/* Whether a model is to think, in the words of several servers. */
bool serve_read_effort(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
bool serve_read_think(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
bool serve_read_kwargs(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
bool serve_read_reasoning(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
bool serve_read_thinking(struct serve_job *job, const struct serve_param *p, yyjson_val *value);

/* Functions that the model may call, as OpenAI's and Anthropic's interfaces have them: lists, and which one it is. */
bool serve_read_tools(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
bool serve_read_tool_choice(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
bool serve_read_parallel(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
bool serve_read_anthropic_tools(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
/* Adds a tool of Anthropic's to a list of functions; false: memory is short. */
bool serve_add_anthropic_tool(yyjson_mut_doc *doc, yyjson_mut_val *list, yyjson_val *tool);
bool serve_read_anthropic_choice(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
/* Whether it is of a custom tool; of the namespace that its tool is in the name, or NULL. */
bool serve_is_custom(const struct serve_job *job, const struct serve_call *call);
yyjson_val *serve_namespace(const struct serve_job *job, const struct serve_call *call);
/* The text that a custom tool is called with; of a call that was cut, what is there of its arguments. */
yyjson_mut_val *serve_custom_input(yyjson_mut_doc *doc, const struct serve_call *call);
/* Once all is read: tools that may not be called stay in the prompt, whose beginning is in the cache. */
bool serve_check_tools(struct serve_job *job);

/* ---- tokens ---- */

/* The bytes that a token stands for within a text. */
void serve_put_piece(struct pd_buffer *out, const peridot_vocab *vocab, int32_t token);
/* Probabilities first .. end - 1 as chat completions have them; null where they were not asked for. */
yyjson_mut_val *serve_chat_logprobs(yyjson_mut_doc *doc, const struct serve_task *task, size_t first, size_t end);
/* The same as completions have them: lists side by side. With echo the first token of the prompt has none. */
yyjson_mut_val *serve_text_logprobs(yyjson_mut_doc *doc, struct serve_task *task, size_t first, size_t end);
yyjson_mut_val *serve_token_ids(yyjson_mut_doc *doc, const int32_t *ids, size_t n);
/* A vector as a list of numbers. */
yyjson_mut_val *serve_vector(yyjson_mut_doc *doc, const struct serve_task *task);
/* Its little-endian floats, as base64. */
yyjson_mut_val *serve_vector_base64(yyjson_mut_doc *doc, const struct serve_task *task);

/* ---- lark ---- */

/* Grammars of custom tools as regular expressions of ECMA-262: Lark's where their language is one, as no rule is in
 * itself and nothing is ignored between terminals, and expressions as Python and Rust have them. */

/* The expression of what such texts match as a whole, terminated. *budget, which grammars of a request share, bounds
 * what is read and written. False: it is not understood, has no such expression, or is too large; whether what it has
 * of regular expressions can be followed, who compiles the pattern says. */
#define SERVE_LARK_MAX 65536
#define SERVE_LARK_BUDGET 1000000
bool serve_lark_pattern(char out[SERVE_LARK_MAX], size_t *budget, const char *grammar, size_t size);
bool serve_regex_pattern(char out[SERVE_LARK_MAX], size_t *budget, const char *regex, size_t size);

/* ---- wire ollama ---- */

#define SERVE_LINES "application/x-ndjson"

/* {"model": ..., "created_at": ...} */
yyjson_mut_doc *serve_ollama_new(yyjson_mut_val **root, const struct serve_job *job);
/* Adds what it took: durations are in nanoseconds. */
void serve_ollama_add_costs(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct serve_job *job);
/* "2026-01-31T23:59:59Z" */
yyjson_mut_val *serve_time(yyjson_mut_doc *doc, int64_t seconds);

/* ---- wire openai ---- */

yyjson_mut_val *serve_openai_usage(yyjson_mut_doc *doc, const struct serve_job *job);
/* {"id": ..., "object": ..., "created": ..., "model": ..., "choices": []} */
void serve_completion_begin(yyjson_mut_doc *doc, yyjson_mut_val **root, yyjson_mut_val **choices,
                            const struct serve_job *job, const char *object);
yyjson_mut_doc *serve_completion_new(yyjson_mut_val **root, yyjson_mut_val **choices, const struct serve_job *job,
                                     const char *object);
/* The same with all choices; `add` writes what is in one of them. */
yyjson_mut_doc *serve_completion_whole(yyjson_mut_val **root, struct serve_job *job, const char *object,
                                       void (*add)(yyjson_mut_doc *doc, yyjson_mut_val *choice,
                                                   struct serve_task *task));
/* "stop", "length", "tool_calls", or null. */
yyjson_mut_val *serve_finish_reason(yyjson_mut_doc *doc, enum serve_finish finish);
/* The usage, where it was asked for, and the end of a stream. */
void serve_completion_end(struct serve_job *job, const char *object);

/* return_token_ids, as vLLM has it: the reply's since the last event; the prompt's stand beside the first of them, in a
 * chat beside its choices. The token that ends a text is not in it. */
void serve_add_ids(yyjson_mut_doc *doc, yyjson_mut_val *choice, struct serve_task *task);
void serve_add_prompt_ids(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct serve_task *task);
/* How many messages were left out, for those who asked with `full`. */
void serve_add_dropped(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct serve_job *job);

/* ---- neutral ---- */

/* Whether an interface of the set has such a parameter. */
bool serve_is_neutral(unsigned apis, const char *name);
/* Accepts its value, or says which ones are. null is always accepted. */
bool serve_neutral_read(struct serve_job *job, unsigned apis, const char *name, yyjson_val *value);

#endif
