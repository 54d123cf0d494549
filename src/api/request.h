/* Requests of peridot.h: a request of the engine, and the text that its tokens become. */
#ifndef PD_API_REQUEST_H
#define PD_API_REQUEST_H

#include "api/handles.h"
#include "api/reply.h"
#include "text/tokenizer.h"

struct peridot_request {
    struct pd_request r;               /* the first member: the engine's callback gets it */
    peridot_session *session;
    struct peridot_request *next;      /* of the session's */
    struct pd_stream stream;
    struct pd_text_buffer buffer;
    struct pd_chain *chain;            /* whose stop texts these are */
    struct pd_stop stop;
    peridot_text text, thought;
    struct pd_thinking thinking;
    struct pd_calling calling;
    struct pd_image **images;          /* [n_images] of the prompt, which stay with it */
    size_t n_images;
};

#endif
