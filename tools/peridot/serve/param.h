/* How a parameter of a request is read: what readers share, and those that are not in params.c. */
#ifndef PERIDOT_COMMAND_SERVE_PARAM_H
#define PERIDOT_COMMAND_SERVE_PARAM_H

#include "params.h"

struct serve_param {
    const char *name;
    unsigned apis;             /* a set of wire.h */
    /* false: the job's error says what is wrong */
    bool (*read)(struct serve_job *job, const struct serve_param *p, yyjson_val *value);
    size_t offset;             /* of the value in the job */
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
bool serve_param_member(struct serve_job *job, const struct serve_param *p, yyjson_val *value, const char *name,
                        bool (*read)(struct serve_job *job, const struct serve_param *p, yyjson_val *value));

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
/* Once all is read: tools that may not be called stay in the prompt, whose beginning is in the cache. */
bool serve_check_tools(struct serve_job *job);

#endif
