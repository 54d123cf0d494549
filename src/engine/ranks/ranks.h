/* What the ranks of a model that is divided among several tell each other, and the chain of steps that they are in the
 * middle of. What they do by it is in pass (the stage of a rank) and rounds (the worker that serves the first). */
#ifndef PD_ENGINE_RANKS_RANKS_H
#define PD_ENGINE_RANKS_RANKS_H

#include "base/base.h"
#include "grammar/grammar.h"

/* ---- link ---- */

enum pd_op {
    PD_OP_OPEN,            /* compares versions, files and the division of layers; adds up sizes */
    PD_OP_CLOSE,           /* the model: no message follows */
    PD_OP_CREATE_SESSION,
    PD_OP_FREE_SESSION,
    PD_OP_PASS,            /* rows through all layers, then the output */
    PD_OP_HEAD,            /* logits of rows of the last pass */
    PD_OP_READ_LOGITS,
    PD_OP_READ_HIDDEN,
    PD_OP_COPY_PAGE,       /* of the cache, in all layers of a kind */
    PD_OP_KEEP_PAGE,       /* to the host's memory */
    PD_OP_RESTORE_PAGE,    /* and back */
    PD_OP_DROP_PAGE,
    PD_OP_FAILED,          /* on the rank that sends this: the body is the sentence */
    PD_OP_REPLY,           /* from the last rank to rank 0 */
    PD_N_OPS
};

struct pd_message {
    uint32_t op, size;     /* bytes of the body that follows */
    uint32_t args[6];
};

/* What rank 0 waits for; in the caller's memory until it is done. */
struct pd_reply {
    void *data;
    uint32_t size;
    bool done;
    struct pd_reply *next;
};

struct pd_link {
    peridot_link host;
    uint32_t *n_layers;            /* [n_ranks] */
    char name[128];
    uint32_t first_layer;          /* of this rank */
    struct pd_reply *replies;      /* that rank 0 waits for, the first one first */
    uint8_t *body;                 /* of the message that was received last */
    uint32_t capacity;
    bool is_open;                  /* all ranks have loaded their layers */
    bool told;                     /* the others know that this rank has failed */
    peridot_status status;         /* of the first failure, which stands */
    char error[512];
};

/* NULL where one rank holds all layers. */
peridot_status pd_link_create(struct pd_link **out, const peridot_link *host);
/* Fails where the division is not one of n_layers. */
peridot_status pd_link_check_division(const struct pd_link *l, uint32_t n_layers);
void pd_link_free(struct pd_link *l);
/* Rank 0 of several. */
bool pd_link_leads(const struct pd_link *l);
bool pd_link_is_last(const struct pd_link *l);

/* To the next rank; from the last one to rank 0. The body has m->size bytes. */
peridot_status pd_link_send(struct pd_link *l, const struct pd_message *m, const void *body);
/* A message without a body. */
peridot_status pd_link_tell(struct pd_link *l, enum pd_op op, uint32_t a, uint32_t b, uint32_t c);
/* From the rank before; the body is in l->body. */
peridot_status pd_link_receive(struct pd_link *l, struct pd_message *m);
/* Rows of a pass, after its message. */
peridot_status pd_link_send_rows(struct pd_link *l, const void *rows, uint64_t size);
peridot_status pd_link_receive_rows(struct pd_link *l, void *rows, uint64_t size);

/* Rank 0, after it sent what is replied to. */
void pd_link_expect(struct pd_link *l, struct pd_reply *reply, void *data, uint32_t size);
peridot_status pd_link_wait(struct pd_link *l, struct pd_reply *reply);
/* pd_link_send, and the reply to it. */
peridot_status pd_link_ask(struct pd_link *l, const struct pd_message *m, const void *body, void *data, uint32_t size);
/* The last rank, to rank 0. */
peridot_status pd_link_reply(struct pd_link *l, const void *data, uint32_t size);
/* Tells the ranks behind this one of the present failure, once, which they tell rank 0. */
void pd_link_tell_failure(struct pd_link *l, peridot_status status);
/* Hands on what another rank told: a failure, with its sentence. */
peridot_status pd_link_pass_failure(struct pd_link *l, const struct pd_message *m);

/* ---- chain ---- */

struct pd_chain {
    struct pd_refs refs;
    peridot_sampling p;        /* points to what follows it in memory */
};

/* *out is NULL where the chain points to nothing. */
peridot_status pd_chain_create(struct pd_chain **out, const peridot_sampling *p);
/* Another owner. NULL is allowed, here and below. */
struct pd_chain *pd_chain_ref(struct pd_chain *chain);
/* Gives up an ownership; the last owner frees it. */
void pd_chain_free(struct pd_chain *chain);

#endif
