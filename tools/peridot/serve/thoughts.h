/* Thoughts that go round: a client gives back, with the history, what a reply thought, and the chat template may read
 * it. What the server says of a thought is sealed, so that it is known again: its mark is a MAC (HMAC-SHA256) by a key
 * of this process, and the text stands behind it where the client is not shown it. A seal of another server, or of this
 * one before it was started anew, says nothing: a thought that comes without its text is left out then, and one that
 * comes with it is taken as it is, as other servers do that sign nothing. A thought whose seal is this process's and
 * does not fit is not what the model thought: it is left out. None of these is an error, as an agent's conversation
 * could never go on after it. A seal proves and does not hide. */
#ifndef PERIDOT_COMMAND_SERVE_THOUGHTS_H
#define PERIDOT_COMMAND_SERVE_THOUGHTS_H

#include "job.h"

struct serve_thoughts {
    unsigned char key[32];
    unsigned char name[8];     /* of the key, in each mark */
};

void serve_thoughts_init(struct serve_thoughts *thoughts);

/* Puts the seal of a text: its mark, and where `whole` the text: all of it is base64. Nothing where memory is short. */
void serve_thought_seal(struct serve_buffer *out, const struct serve_thoughts *thoughts, yyjson_mut_val *text,
                        bool whole);

/* The reply ended, for its length, before there was more than a thought. */
bool serve_thought_is_cut(const struct serve_task *task);

/* What clients give back, put behind what `out` has, with a line between them; nothing of what is left out. False: the
 * job's error says what is wrong with it. */

/* Anthropic's: {"type": "thinking", "thinking": ..., "signature": ...}, whose text may be empty. */
bool serve_thought_read_block(struct serve_buffer *out, struct serve_job *job, yyjson_val *block);
/* Responses': {"type": "reasoning", "summary": [...], "content": [...], "encrypted_content": ...}. */
bool serve_thought_read_item(struct serve_buffer *out, struct serve_job *job, yyjson_val *item);
/* OpenRouter's: a list of {"type": "reasoning.text", "text": ...}, summaries, and seals as "data". */
bool serve_thought_read_details(struct serve_buffer *out, struct serve_job *job, yyjson_val *list);

#endif
