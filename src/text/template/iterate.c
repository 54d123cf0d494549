#include "text/template/iterate.h"

#include "base/num.h"
#include "text/template/chars.h"

#include <string.h>

static peridot_status next_element(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    (void)r;
    *done = it->at >= it->source.list.n;
    if (!*done) *out = it->source.list.at[it->at++];
    return PERIDOT_OK;
}

static peridot_status previous_element(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    (void)r;
    *done = it->at == 0;
    if (!*done) *out = it->source.list.at[--it->at];
    return PERIDOT_OK;
}

static peridot_status next_key(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    (void)r;
    *done = it->at >= it->source.dict->n;
    if (!*done) *out = it->source.dict->at[it->at++].key;
    return PERIDOT_OK;
}

static peridot_status previous_key(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    (void)r;
    *done = it->at == 0;
    if (!*done) *out = it->source.dict->at[--it->at].key;
    return PERIDOT_OK;
}

static peridot_status next_character(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    (void)r;
    uint32_t code;
    const struct pd_chars text = it->source.text;
    *done = it->at >= text.size;
    if (*done) return PERIDOT_OK;
    size_t n = pd_chars_next(&code, text, it->at);
    *out = pd_value_text(pd_chars_part(text, it->at, n));
    it->at += n;
    return PERIDOT_OK;
}

static peridot_status next_character_back(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    (void)r;
    const struct pd_chars text = it->source.text;
    *done = it->at == 0;
    if (*done) return PERIDOT_OK;
    size_t at = pd_chars_previous(text, it->at);
    *out = pd_value_text(pd_chars_part(text, at, it->at - at));
    it->at = at;
    return PERIDOT_OK;
}

static peridot_status next_shared(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    return pd_iterator_next(out, done, it->from, r);
}

static peridot_status next_nothing(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    (void)out, (void)r, (void)it;
    *done = true;
    return PERIDOT_OK;
}

bool pd_is_iterable(const struct pd_value *v)
{
    return v->type == PD_UNDEFINED || v->type == PD_TEXT || (v->type >= PD_LIST && v->type <= PD_DICT) ||
           v->type == PD_LOOP;
}

peridot_status pd_iterate(struct pd_iterator *out, struct pd_render *r, const struct pd_value *v)
{
    *out = (struct pd_iterator){.source = *v, .next = next_nothing};
    if (v->type == PD_TEXT) out->next = next_character;
    else if (pd_is_listed(v)) out->next = next_element;
    else if (v->type == PD_DICT) out->next = next_key;
    else if (v->type == PD_ITERATOR) out->next = next_shared, out->from = v->iterator;
    else if (v->type != PD_UNDEFINED)
        return pd_render_fail(r, "a value of type %s cannot be iterated", pd_value_type_name(v));
    return PERIDOT_OK;
}

peridot_status pd_iterate_backwards(struct pd_iterator *out, struct pd_render *r, const struct pd_value *v)
{
    *out = (struct pd_iterator){.source = *v, .next = next_nothing};
    if (v->type == PD_TEXT) out->next = next_character_back, out->at = v->text.size;
    else if (pd_is_listed(v)) out->next = previous_element, out->at = v->list.n;
    else if (v->type == PD_DICT) out->next = previous_key, out->at = v->dict->n;
    else if (v->type != PD_UNDEFINED)
        return pd_render_fail(r, "a value of type %s cannot be reversed", pd_value_type_name(v));
    return PERIDOT_OK;
}

peridot_status pd_iterator_next(struct pd_value *out, bool *done, struct pd_iterator *it, struct pd_render *r)
{
    PD_TRY(pd_render_spend(r, 1));
    PD_TRY(pd_render_enter(r));
    peridot_status status = it->next(out, done, r, it);
    pd_render_leave(r);
    return status;
}

peridot_status pd_iterator_keep(struct pd_value *out, struct pd_render *r, const struct pd_iterator *it)
{
    *out = (struct pd_value){.type = PD_ITERATOR};
    PD_TRY(pd_render_alloc(&out->iterator, r, 1, sizeof *it));
    *out->iterator = *it;
    return PERIDOT_OK;
}

peridot_status pd_iterator_list(struct pd_value *out, struct pd_render *r, struct pd_iterator *it)
{
    struct pd_value *more, item;
    size_t capacity = 0;
    bool done = false;
    *out = (struct pd_value){.type = PD_LIST, .own = true};
    for (;;) {
        PD_TRY(pd_iterator_next(&item, &done, it, r));
        if (done) return PERIDOT_OK;
        if (out->list.n == capacity) {
            capacity = pd_max(8, 2 * capacity);
            PD_TRY(pd_render_alloc(&more, r, capacity, sizeof *more));
            if (out->list.n) memcpy(more, out->list.at, out->list.n * sizeof *more);
            out->list.at = more;
        }
        out->list.at[out->list.n++] = item;
    }
}

peridot_status pd_value_list(struct pd_value *out, struct pd_render *r, const struct pd_value *v)
{
    struct pd_iterator it;
    if (pd_is_listed(v)) {   /* which never change */
        *out = *v;
        out->type = PD_LIST;
        return PERIDOT_OK;
    }
    PD_TRY(pd_iterate(&it, r, v));
    return pd_iterator_list(out, r, &it);
}

size_t pd_value_length(bool *known, const struct pd_value *v)
{
    *known = v->type == PD_TEXT || pd_is_listed(v) || v->type == PD_DICT || v->type == PD_UNDEFINED;
    if (v->type == PD_TEXT) return pd_chars_count(v->text);
    if (v->type == PD_DICT) return v->dict->n;
    return pd_is_listed(v) ? v->list.n : 0;
}
