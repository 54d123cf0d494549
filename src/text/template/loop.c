#include "text/template/loop.h"

#include "base/num.h"

static peridot_status peek(struct pd_loop *l, struct pd_render *r)
{
    bool done;
    if (l->has_after) return PERIDOT_OK;
    l->has_after = true;
    PD_TRY(pd_iterator_next(&l->after, &done, &l->it, r));
    if (done) l->after = (struct pd_value){.type = PD_UNSET};
    return PERIDOT_OK;
}

peridot_status pd_loop_next(bool *done, struct pd_loop *l, struct pd_render *r)
{
    PD_TRY(peek(l, r));
    *done = l->after.type == PD_UNSET;
    l->has_after = false;
    if (*done) return PERIDOT_OK;
    l->index0++;
    l->before = l->current;
    l->current = l->after;
    return PERIDOT_OK;
}

/* What has none of its own is read to its end. */
static peridot_status find_length(struct pd_loop *l, struct pd_render *r)
{
    struct pd_value rest;
    if (l->has_length) return PERIDOT_OK;
    l->length = pd_value_length(&l->has_length, &l->iterated);
    if (l->has_length) return PERIDOT_OK;
    PD_TRY(pd_iterator_list(&rest, r, &l->it));
    PD_TRY(pd_iterate(&l->it, r, &rest));
    l->has_length = true;
    l->length = rest.list.n + (size_t)l->index0 + 1 + (l->has_after && l->after.type != PD_UNSET);
    return PERIDOT_OK;
}

static struct pd_value own_bool(bool b) { return (struct pd_value){.type = PD_BOOL, .own = true, .b = b}; }

static struct pd_value or_undefined(struct pd_value v, struct pd_chars name)
{
    return v.type == PD_UNSET ? pd_value_undefined(name) : v;
}

peridot_status pd_loop_member(struct pd_value *out, bool *found, struct pd_loop *l, struct pd_render *r,
                              struct pd_chars name)
{
    static const struct { const char *name; char kind; int64_t add; } members[] = {
        {"index", 'i', 1}, {"index0", 'i', 0}, {"revindex", 'r', 0}, {"revindex0", 'r', -1}, {"length", 'n', 0},
        {"first", 'f', 0}, {"last", 'l', 0}, {"previtem", 'p', 0}, {"nextitem", 'x', 0}, {"depth", 'd', 1},
        {"depth0", 'd', 0}};
    size_t i = 0;
    while (i < PD_COUNT(members) && !pd_chars_are(name, members[i].name)) i++;
    *found = i < PD_COUNT(members);
    if (!*found) return PERIDOT_OK;
    if (members[i].kind == 'r' || members[i].kind == 'n') PD_TRY(find_length(l, r));
    if (members[i].kind == 'l' || members[i].kind == 'x') PD_TRY(peek(l, r));
    switch (members[i].kind) {
    case 'i': *out = pd_value_int(l->index0 + members[i].add, true); break;
    case 'r': *out = pd_value_int((int64_t)l->length - l->index0 + members[i].add, true); break;
    case 'n': *out = pd_value_int((int64_t)l->length, true); break;
    case 'f': *out = own_bool(l->index0 == 0); break;
    case 'l': *out = own_bool(l->after.type == PD_UNSET); break;
    case 'p': *out = or_undefined(l->index0 ? l->before : (struct pd_value){.type = PD_UNSET}, name); break;
    case 'x': *out = or_undefined(l->after, name); break;
    default: *out = pd_value_int(l->depth0 + members[i].add, true); break;
    }
    return PERIDOT_OK;
}
