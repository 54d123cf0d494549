/* What bodies of requests say, by interface, and answers in the words of each: OpenAI's, Anthropic's, Ollama's and
 * llama-server's. */
#ifndef PERIDOT_COMMAND_SERVE_WIRE_WIRE_H
#define PERIDOT_COMMAND_SERVE_WIRE_WIRE_H

#include "../job/job.h"

/* ---- wire ollama models ---- */

/* The pages of Ollama's interface: what GET answers, as http.c calls them. */

int serve_get_tags(struct pd_buffer *out, struct serve_server *server, const char *path);
int serve_get_ps(struct pd_buffer *out, struct serve_server *server, const char *path);
int serve_get_version(struct pd_buffer *out, struct serve_server *server, const char *path);
/* Whatever would change which models there are. */
int serve_refuse_models(struct pd_buffer *out, struct serve_server *server, const char *path);

/* ---- wire llama ---- */

/* What GET answers as llama.cpp's server does. */

/* As pages.c calls them. */
int serve_get_props(struct pd_buffer *out, struct serve_server *server, const char *path);
int serve_get_slots(struct pd_buffer *out, struct serve_server *server, const char *path);

/* ---- params ---- */

/* Puts what the body says into the job, but for texts; false: the job's error says what is wrong. */
bool serve_params_read(struct serve_job *job, yyjson_val *root);
/* A string without a NUL in it, or NULL and the error. */
const char *serve_param_text(struct serve_job *job, const char *name, yyjson_val *value);

#define WIRE(ID, name) extern const struct serve_interface serve_wire_##name;
SERVE_INTERFACES(WIRE)
#undef WIRE

/* ---- thoughts ---- */

struct serve_thoughts {
    unsigned char key[32];
    unsigned char name[8];     /* of the key, in each mark */
};

void serve_thoughts_init(struct serve_thoughts *thoughts);

/* Puts the seal of a text: its mark, and where `whole` the text: all of it is base64. Nothing where memory is short. */
void serve_thought_seal(struct pd_buffer *out, const struct serve_thoughts *thoughts, yyjson_mut_val *text,
                        bool whole);

/* The reply ended, for its length, before there was more than a thought. */
bool serve_thought_is_cut(const struct serve_task *task);

/* What clients give back, put behind what `out` has, with a line between them; nothing of what is left out. False: the
 * job's error says what is wrong with it. */

/* Anthropic's: {"type": "thinking", "thinking": ..., "signature": ...}, whose text may be empty. */
bool serve_thought_read_block(struct pd_buffer *out, struct serve_job *job, yyjson_val *block);
/* Responses': {"type": "reasoning", "summary": [...], "content": [...], "encrypted_content": ...}. */
bool serve_thought_read_item(struct pd_buffer *out, struct serve_job *job, yyjson_val *item);
/* OpenRouter's: a list of {"type": "reasoning.text", "text": ...}, summaries, and seals as "data". */
bool serve_thought_read_details(struct pd_buffer *out, struct serve_job *job, yyjson_val *list);

#endif
