/* A session of one sequence, for tests of one timeline. */
#ifndef SEQUENCE_FIXTURE_H
#define SEQUENCE_FIXTURE_H

#include "peridot.h"

static inline peridot_status open_sequence(peridot_sequence **out, peridot_model *model,
                                           const peridot_session_params *params)
{
    peridot_session *session;
    *out = NULL;
    peridot_status status = peridot_session_create(&session, model, params);
    return status == PERIDOT_OK ? peridot_sequence_create(out, session) : status;
}

static inline void close_sequence(peridot_sequence *sequence)
{
    if (sequence) peridot_session_free(peridot_sequence_session(sequence));
}

static inline void reset_sequence(peridot_sequence *sequence) { peridot_sequence_truncate(sequence, 0, NULL); }

#endif
