/* Conversations that no longer fit the context: the rule by which chat and serve leave out the oldest turns. A turn is
 * a message of the user's with what follows it; messages of the system's belong to none. When the prompt and a reply do
 * not fit, turns are left out until the prompt takes at most half of the context, so that the next ones only add to
 * what the cache has. */
#ifndef PERIDOT_COMMAND_TURNS_H
#define PERIDOT_COMMAND_TURNS_H

#include "util.h"

struct cmd_turns {
    const peridot_vocab *vocab;
    const char *template_name;
    uint32_t think;                    /* see peridot_chat */
    uint32_t ctx, reserve;             /* reserve: positions that a reply should have */
    const peridot_message *messages;   /* [n]; what follows a message of the user's belongs to its turn */
    size_t n;
    bool json;                         /* contents are whole messages as JSON: see peridot_chat */
    struct peridot_image *const *images;   /* of all messages, in their order; */
    const size_t *n_images;            /* [n]: how many each message has. NULL: none has any */
    const char *tools, *variables;     /* see peridot_chat; NULL: none */
    const int32_t *ids;                /* [n_ids]: what cmd_turns_encode goes on from; see peridot_chat */
    size_t n_ids;
    peridot_encode_limit *limit;       /* of all that is encoded: see peridot.h; NULL: none */
};

/* The prompt of all messages but those of the n_left_out oldest turns, which peridot_free frees; *n_kept: messages. */
peridot_status cmd_turns_encode(int32_t **ids, size_t *n_ids, size_t *n_kept, const struct cmd_turns *t,
                                size_t n_left_out);
/* Turns to leave out where all do not fit, never the last. What was left out is not remembered where `stateless`, but
 * found again: the rule is followed from the first turn on. */
peridot_status cmd_turns_leave_out(size_t *n_left_out, const struct cmd_turns *t, bool stateless);

#endif
