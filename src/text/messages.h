/* The messages of a conversation in one form, whatever they came in: a list of objects as chat templates read them,
 *   {"role": ..., "content": a string}, and where the message has them "reasoning_content", "name", "tool_call_id" and
 *   "tool_calls": [{"type": "function", "id": ..., "function": {"name": ..., "arguments": an object}}].
 * Roles are system, developer, user, assistant and tool. A tool's message has the name of the call that it answers. A
 * message with images has a list as content, as templates of models that see read it: {"type": "text", "text": ...} and
 * {"type": "image"}. */
#ifndef PD_TEXT_MESSAGES_H
#define PD_TEXT_MESSAGES_H

#include "base/json.h"

enum { PD_MARKED_ID = 8 };

struct pd_messages {
    yyjson_mut_doc *doc;
    yyjson_mut_val *list;
    bool has_calls;          /* some message has tool calls, or is a tool's */
    bool no_system;          /* the template takes none: what tells of tools goes to the user's first */
    size_t n_images;
    /* What stands for an image in pd_messages_to_array; before PD_MARKED_ID hexadecimal digits in a content, for the
     * control token of that id. Nobody who writes messages knows it. */
    char mark[40];
};

/* From an array; its strings stay the caller's, and must outlive *out. */
peridot_status pd_messages_from_array(struct pd_messages *out, const peridot_message *messages, size_t n);
/* From JSON of `size` bytes: a list of messages as OpenAI's chat completions have them. Content is a string, null, or a
 * list of parts of text, which are put together, and images; arguments of a call are an object, or JSON text of one. */
peridot_status pd_messages_from_json(struct pd_messages *out, const char *json, size_t size);
/* NULL members are allowed. */
void pd_messages_free(struct pd_messages *m);

/* Roles and contents, as long as *m is; *out goes back to free. In a message with images, texts are trimmed. */
peridot_status pd_messages_to_array(peridot_message **out, size_t *n, const struct pd_messages *m);

#endif
