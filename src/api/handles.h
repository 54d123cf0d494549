/* The handles of peridot.h: models, sessions, sequences and images. A request's is in request.c, a vocabulary's is in
 * vocab.h, a file's in file.c. */
#ifndef PD_API_HANDLES_H
#define PD_API_HANDLES_H

#include "api/vocab.h"
#include "arch/recommended.h"
#include "base/log.h"
#include "engine/schedule.h"

struct peridot_model {
    struct pd_model m;
    struct pd_refs refs;               /* the program's handle, sessions, and drafters */
    struct peridot_model *target;      /* a drafter's, whose device it uses */
    struct peridot_vocab *vocab;       /* NULL: the files hold none */
    char vocab_error[512];             /* why */
    struct pd_tower_config tower_config;   /* NONE: it sees no images, */
    char tower_error[512];                 /* and why */
    struct pd_recommended recommended;
    struct pd_observed *observed;      /* NULL: nothing is (peridot_imatrix_begin) */
    struct pd_log log;
    peridot_model_info info;
    char types[128], kernels[128], tuning[512];
};

struct peridot_session {
    struct pd_session *s;
    peridot_model *model;
    struct pd_schedule schedule;
    struct peridot_request *requests;  /* a list of all, the latest first */
    peridot_model *drafter;            /* NULL: there is none */
    peridot_vocab *draft_vocab;        /* of a draft model: it was found to be the model's; NULL: none yet */
};

struct peridot_sequence {
    struct pd_sequence *q;             /* whose `owner` this is */
    peridot_session *session;
};

/* The ids of all parts follow each other: those of the whole picture, and then those of its crops. */
struct peridot_image {
    struct pd_refs refs;
    size_t n_parts, n_rows;
    struct pd_image *parts[1 + PD_TOWER_MOST_CROPS];
    int32_t *ids;                      /* [n_rows] */
};

#endif
