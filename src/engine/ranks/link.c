/* Messages between the ranks that hold the layers of one model. Rank 0 sends what is to be done to the next rank, which
 * hands it on, and so do all; so every rank does the same things in the same order. Rows of hidden states follow a
 * pass's message. The last rank sends replies to rank 0, in the order of what they reply to. The host moves the bytes:
 * see peridot_link. */
#include "engine/ranks/ranks.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BODY (64u << 20)   /* far more than any message that a rank sends */

peridot_status pd_link_check_division(const struct pd_link *l, uint32_t n_layers)
{
    const peridot_link *host = &l->host;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < host->n_ranks; i++) {
        sum += host->n_layers[i];
        if (host->n_layers[i] == 0)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "rank %u of %u has no layers: each rank needs one of the model's %u",
                           i, host->n_ranks, n_layers);
    }
    if (sum == n_layers) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "the ranks have %llu layers, and the model has %u", (unsigned long long)sum,
                   n_layers);
}

peridot_status pd_link_create(struct pd_link **out, const peridot_link *host)
{
    *out = NULL;
    if (!host || host->n_ranks <= 1) return PERIDOT_OK;
    if (host->rank >= host->n_ranks || !host->n_layers || !host->send || !host->receive)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the link has no rank %u of %u, or lacks a member", host->rank,
                       host->n_ranks);
    struct pd_link *l = calloc(1, sizeof *l);
    uint32_t *copy = malloc(host->n_ranks * sizeof *copy);
    if (!l || !copy) {
        free(l);
        free(copy);
        return pd_fail_alloc(sizeof *l, "link");
    }
    memcpy(copy, host->n_layers, host->n_ranks * sizeof *copy);
    l->host = *host;
    l->host.n_layers = l->n_layers = copy;
    if (host->name) snprintf(l->name, sizeof l->name, "%s", host->name);
    else snprintf(l->name, sizeof l->name, "rank %u", host->rank);
    l->host.name = l->name;
    for (uint32_t i = 0; i < host->rank; i++) l->first_layer += copy[i];
    *out = l;
    return PERIDOT_OK;
}

void pd_link_free(struct pd_link *l)
{
    if (!l) return;
    free(l->n_layers);
    free(l->body);
    free(l);
}

bool pd_link_leads(const struct pd_link *l) { return l && l->host.rank == 0; }
bool pd_link_is_last(const struct pd_link *l) { return !l || l->host.rank + 1 == l->host.n_ranks; }

/* ---- messages ---- */

static peridot_status check(const struct pd_link *l)
{
    return l->status == PERIDOT_OK ? PERIDOT_OK : pd_fail(l->status, "%s", l->error);
}

static peridot_status link_fail(struct pd_link *l, peridot_status status)
{
    if (l->status == PERIDOT_OK) {
        l->status = status;
        snprintf(l->error, sizeof l->error, "%s", pd_error());
        l->replies = NULL;
    }
    return status;
}

peridot_status pd_link_send_rows(struct pd_link *l, const void *rows, uint64_t size)
{
    PD_TRY(check(l));
    peridot_status status = l->host.send(l->host.user, rows, size);
    return status == PERIDOT_OK ? status : link_fail(l, status);
}

peridot_status pd_link_receive_rows(struct pd_link *l, void *rows, uint64_t size)
{
    PD_TRY(check(l));
    peridot_status status = l->host.receive(l->host.user, rows, size);
    return status == PERIDOT_OK ? status : link_fail(l, status);
}

peridot_status pd_link_send(struct pd_link *l, const struct pd_message *m, const void *body)
{
    PD_TRY(pd_link_send_rows(l, m, sizeof *m));
    return m->size ? pd_link_send_rows(l, body, m->size) : PERIDOT_OK;
}

peridot_status pd_link_tell(struct pd_link *l, enum pd_op op, uint32_t a, uint32_t b, uint32_t c)
{
    return pd_link_send(l, &(struct pd_message){.op = op, .args = {a, b, c}}, NULL);
}

static peridot_status receive_body(struct pd_link *l, const struct pd_message *m)
{
    if (m->op >= PD_N_OPS || m->size > MAX_BODY)
        return link_fail(l, pd_fail(PERIDOT_ERROR_LINK, "rank %u received an unknown message", l->host.rank));
    if (m->size > l->capacity) {
        uint8_t *body = realloc(l->body, m->size);
        if (!body) return link_fail(l, pd_fail_alloc(m->size, "a message"));
        l->body = body;
        l->capacity = m->size;
    }
    return m->size ? pd_link_receive_rows(l, l->body, m->size) : PERIDOT_OK;
}

peridot_status pd_link_receive(struct pd_link *l, struct pd_message *m)
{
    PD_TRY(pd_link_receive_rows(l, m, sizeof *m));
    return receive_body(l, m);
}

/* What another rank says of its failure, which is the body. */
static peridot_status fail_told(const struct pd_link *l, const struct pd_message *m)
{
    if (m->size == 0 || !l->body[0]) return pd_fail(PERIDOT_ERROR_LINK, "another rank failed, and did not say why");
    return pd_fail(PERIDOT_ERROR_LINK, "%.*s", (int)m->size, (const char *)l->body);
}

/* ---- replies ---- */

void pd_link_expect(struct pd_link *l, struct pd_reply *reply, void *data, uint32_t size)
{
    struct pd_reply **at = &l->replies;
    while (*at) at = &(*at)->next;
    *at = reply;
    *reply = (struct pd_reply){.data = data, .size = size};
}

/* The first of those that are waited for. */
static peridot_status receive_reply(struct pd_link *l)
{
    struct pd_reply *reply = l->replies;
    struct pd_message m;
    PD_TRY(pd_link_receive_rows(l, &m, sizeof m));
    if (m.op == PD_OP_FAILED) {
        PD_TRY(receive_body(l, &m));
        return link_fail(l, fail_told(l, &m));
    }
    if (m.op != PD_OP_REPLY || m.size != reply->size)
        return link_fail(l, pd_fail(PERIDOT_ERROR_LINK, "rank %u replied with %u bytes, and %u were expected",
                                    l->host.n_ranks - 1, m.size, reply->size));
    if (m.size) PD_TRY(pd_link_receive_rows(l, reply->data, m.size));
    l->replies = reply->next;
    reply->done = true;
    return PERIDOT_OK;
}

peridot_status pd_link_wait(struct pd_link *l, struct pd_reply *reply)
{
    PD_TRY(check(l));
    while (!reply->done) PD_TRY(receive_reply(l));
    return PERIDOT_OK;
}

peridot_status pd_link_ask(struct pd_link *l, const struct pd_message *m, const void *body, void *data, uint32_t size)
{
    struct pd_reply reply;
    PD_TRY(pd_link_send(l, m, body));
    pd_link_expect(l, &reply, data, size);
    return pd_link_wait(l, &reply);
}

peridot_status pd_link_reply(struct pd_link *l, const void *data, uint32_t size)
{
    return pd_link_send(l, &(struct pd_message){.op = PD_OP_REPLY, .size = size}, data);
}

void pd_link_tell_failure(struct pd_link *l, peridot_status status)
{
    char sentence[512], named[768];
    if (l->told) return;
    l->told = true;
    snprintf(sentence, sizeof sentence, "%s", pd_error());
    int size = snprintf(named, sizeof named, "%s: %s", l->name, sentence);
    pd_link_send(l, &(struct pd_message){.op = PD_OP_FAILED, .size = (uint32_t)size}, named);
    pd_fail(status, "%s", sentence);
}

peridot_status pd_link_pass_failure(struct pd_link *l, const struct pd_message *m)
{
    if (!l->told) pd_link_send(l, m, l->body);
    l->told = true;
    return fail_told(l, m);
}
