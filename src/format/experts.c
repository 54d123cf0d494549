/* Experts that a file has one by one, PREFIX.experts.7.up_proj.weight in Hugging Face directories and
 * blk.0.ffn_up.7.weight in old GGUF files, as one tensor of all of them: PREFIX.experts.up_proj.weight and
 * blk.0.ffn_up_exps.weight. So nothing above knows of the difference, and a model with 18,000 of them has lists of a
 * few hundred. Nothing is copied: such a tensor knows where each of its matrices is (pd_tensor.experts).
 *
 * And of gpt-oss's experts, which Hugging Face directories have with gate and up row by row in turn, as MXFP4 in two
 * tensors (_blocks, _scales) or as plain numbers with rows in the place of columns, PREFIX.experts.gate_proj, up_proj
 * and down_proj, which know where each weight is (pd_tensor.stride); and those of Qwen 3.5, whose gates come before
 * what they multiply in one tensor of all, under the names that they have where they are one by one. */
#include "format/format_.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* A tensor that is one expert's. */
struct member {
    const char *name;              /* of the tensor of all */
    uint64_t expert;
    const struct pd_tensor *tensor;
};

/* The name without the number, and that; false: it is no expert's. */
struct parsed {
    size_t head;                   /* bytes of the name before the number, */
    const char *middle, *tail;     /* what is between, and the rest of the name */
    uint64_t expert;
};

static bool parse_number(uint64_t *out, const char **end, const char *at)
{
    enum { MOST_DIGITS = 6 };
    size_t n = strspn(at, "0123456789");
    if (n == 0 || n > MOST_DIGITS || (n > 1 && at[0] == '0')) return false;
    *out = strtoul(at, NULL, 10);
    *end = at + n;
    return true;
}

static bool parse_hf(struct parsed *out, const char *name)
{
    static const char experts[] = ".experts.";
    const char *at = strstr(name, experts), *end;
    if (!at || !parse_number(&out->expert, &end, at + strlen(experts)) || *end != '.') return false;
    *out = (struct parsed){(size_t)(at - name) + strlen(experts), "", end + 1, out->expert};
    return true;
}

static bool parse_gguf(struct parsed *out, const char *name)
{
    static const char *const units[] = {".ffn_gate.", ".ffn_up.", ".ffn_down."};
    const char *end;
    if (strncmp(name, "blk.", 4) != 0) return false;
    for (size_t i = 0; i < PD_COUNT(units); i++) {
        const char *at = strstr(name, units[i]);
        if (!at || !parse_number(&out->expert, &end, at + strlen(units[i]))) continue;
        *out = (struct parsed){(size_t)(at - name) + strlen(units[i]) - 1, "_exps", end, out->expert};
        return true;
    }
    return false;
}

static bool parse(struct parsed *out, const struct pd_tensor *t)
{
    if (t->n_dims != 2 || !(parse_hf(out, t->name) || parse_gguf(out, t->name))) return false;
    size_t n = strlen(out->tail), end = strlen("weight");
    return n >= end && strcmp(out->tail + n - end, "weight") == 0;
}

static int compare(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->expert < y->expert ? -1 : x->expert > y->expert;
}

static peridot_status name_member(struct member *m, struct pd_arena *arena, const struct parsed *p)
{
    size_t middle = strlen(p->middle), tail = strlen(p->tail);
    char *name = pd_arena_alloc(arena, p->head + middle + tail + 1);
    if (!name) return pd_fail_alloc(p->head + middle + tail + 1, "name of a tensor");
    memcpy(name, m->tensor->name, p->head);
    memcpy(name + p->head, p->middle, middle);
    memcpy(name + p->head + middle, p->tail, tail + 1);
    m->name = name;
    m->expert = p->expert;
    return PERIDOT_OK;
}

/* Of n experts' tensors, in order. */
static peridot_status experts_join(struct pd_tensor *out, struct pd_arena *arena, const struct member *m, size_t n)
{
    const struct pd_tensor *first = m[0].tensor;
    const uint8_t **experts = pd_arena_array(arena, n, sizeof *experts);
    if (!experts) return pd_fail_alloc(n * sizeof *experts, "experts");
    for (size_t i = 0; i < n; i++) {
        const struct pd_tensor *t = m[i].tensor;
        if (m[i].expert != i)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " is there, but not that of expert %zu", t->file,
                           t->name, i);
        if (t->dtype != first->dtype || t->shape[0] != first->shape[0] || t->shape[1] != first->shape[1])
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " has not the type and shape of " PD_NAME,
                           t->file, t->name, first->name);
        experts[i] = t->data;
    }
    *out = *first;
    out->name = m[0].name;
    out->n_dims = 3;
    out->shape[0] = n;
    out->shape[1] = first->shape[0];
    out->shape[2] = first->shape[1];
    out->size = first->size * n;   /* no more than the files have */
    out->experts = experts;
    return PERIDOT_OK;
}

static size_t group_size(const struct member *m, size_t n)
{
    size_t same = 1;
    while (same < n && strcmp(m[same].name, m[0].name) == 0) same++;
    return same;
}

static peridot_status join_all(struct pd_tensor_list *list, struct pd_arena *arena, struct member *members, size_t n)
{
    struct pd_tensor_list joined;
    size_t n_groups = 0, at = 0;
    qsort(members, n, sizeof *members, compare);
    for (size_t i = 0; i < n; i += group_size(members + i, n - i)) n_groups++;
    PD_TRY(pd_tensor_list_alloc(&joined, arena, list->n - n + n_groups));
    for (size_t i = 0; i < list->n; i++) {
        struct parsed p;
        if (!parse(&p, &list->items[i])) joined.items[at++] = list->items[i];
    }
    for (size_t i = 0, size; i < n; i += size) {
        size = group_size(members + i, n - i);
        PD_TRY(experts_join(&joined.items[at++], arena, members + i, size));
    }
    PD_TRY(pd_tensor_list_index(&joined, arena));
    *list = joined;
    return PERIDOT_OK;
}

peridot_status pd_experts_join(struct pd_tensor_list *list, struct pd_arena *arena)
{
    struct member *members = NULL;
    struct parsed p;
    size_t n = 0, capacity = 0;
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; i < list->n && status == PERIDOT_OK; i++) {
        if (!parse(&p, &list->items[i])) continue;
        status = pd_array_reserve(&members, &capacity, n, 1, sizeof *members, "experts");
        if (status != PERIDOT_OK) break;
        members[n] = (struct member){.tensor = &list->items[i]};
        status = name_member(&members[n++], arena, &p);
    }
    if (status == PERIDOT_OK && n) status = join_all(list, arena, members, n);
    free(members);
    return status;
}

/* ---- gpt-oss ---- */

/* Tensors that are taken apart: in blocks, one for each expert, or plain. */
static const struct packed {
    const char *end, *names[2];    /* after ".experts."; what comes of it: rows in turn, or all */
    enum { PLAIN, BLOCKS, BIASES, HALVES } form;
} packed[] = {
    {"gate_up_proj", {"gate_proj", "up_proj"}, PLAIN}, {"down_proj", {"down_proj"}, PLAIN},
    {"gate_up_proj_blocks", {"gate_proj", "up_proj"}, BLOCKS}, {"down_proj_blocks", {"down_proj"}, BLOCKS},
    {"gate_up_proj_bias", {"gate_proj_bias", "up_proj_bias"}, BIASES},
}, halves[] = {
    {"gate_up_proj", {"gate_proj.weight", "up_proj.weight"}, HALVES},
    {"down_proj", {"down_proj.weight"}, HALVES},
};

/* What stands after ".experts.", or nothing. */
static const char *name_of_expert(const struct pd_tensor *t)
{
    static const char experts[] = ".mlp.experts.";
    const char *at = strstr(t->name, experts);
    return at ? at + strlen(experts) : "";
}

static const struct packed *packed_find(const struct pd_tensor *t, bool in_turn)
{
    const struct packed *all = in_turn ? packed : halves;
    for (size_t i = 0; i < (in_turn ? PD_COUNT(packed) : PD_COUNT(halves)); i++)
        if (strcmp(name_of_expert(t), all[i].end) == 0) return &all[i];
    return NULL;
}

/* The scales of a tensor of blocks; NULL: there are none of its shape. */
static const struct pd_tensor *find_scales(const struct pd_tensor_list *list, const struct pd_tensor *blocks)
{
    char name[256];
    size_t n = strlen(blocks->name) - strlen("blocks");
    if (n + sizeof "scales" > sizeof name) return NULL;
    memcpy(name, blocks->name, n);
    memcpy(name + n, "scales", sizeof "scales");
    const struct pd_tensor *t = pd_tensor_list_find(list, name);
    bool fits = t && t->n_dims == 3 && strcmp(t->type, "u8") == 0 && t->shape[0] == blocks->shape[0]
        && t->shape[1] == blocks->shape[1] && t->shape[2] == blocks->shape[2];
    return fits ? t : NULL;
}

/* One with all rows of the experts' matrices. */
static peridot_status unpack(struct pd_tensor *out, const struct pd_tensor_list *list, const struct pd_tensor *t,
                             const struct packed *p)
{
    bool is_blocks = p->form == BLOCKS;
    static const uint32_t n_dims[] = {[PLAIN] = 3, [BLOCKS] = 4, [BIASES] = 2, [HALVES] = 3};
    *out = *t;
    if (t->n_dims != n_dims[p->form] || (is_blocks && (t->shape[3] != 16 || strcmp(t->type, "u8") != 0))
        || (p->names[1] && t->shape[p->form == PLAIN ? 2 : 1] % 2 != 0))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " has not the shape or type of one of experts",
                       t->file, t->name);
    if (is_blocks) {
        const struct pd_tensor *scales = find_scales(list, t);
        if (!scales)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: there are no scales for the blocks of tensor " PD_NAME, t->file,
                           t->name);
        out->block_scales = scales->data;
        out->dtype = PD_MXFP4;
        out->type = pd_dtypes[PD_MXFP4].name;
        out->n_dims = 3;
        out->shape[2] *= 32;
        out->shape[3] = 1;
    }
    if (p->form == PLAIN) {
        out->shape[1] = t->shape[2];
        out->shape[2] = t->shape[1];
    }
    if (p->form == HALVES && !p->names[1]) return PERIDOT_OK;   /* as it is */
    out->stride[0] = out->shape[1] * out->shape[2];
    out->stride[1] = p->form == PLAIN ? 1 : out->shape[2];
    out->stride[2] = p->form == PLAIN ? out->shape[1] : 1;
    return PERIDOT_OK;
}

static peridot_status add_unpacked(struct pd_tensor_list *list, struct pd_arena *arena, const struct pd_tensor *whole,
                                   const struct packed *p)
{
    uint32_t n_parts = p->names[1] ? 2 : 1;
    size_t head = (size_t)(name_of_expert(whole) - whole->name);
    for (uint32_t i = 0; i < n_parts; i++) {
        struct pd_tensor *t = &list->items[list->n++];
        size_t n = strlen(p->names[i]) + 1;
        char *name = pd_arena_alloc(arena, head + n);
        if (!name) return pd_fail_alloc(head + n, "name of a tensor");
        memcpy(name, whole->name, head);
        memcpy(name + head, p->names[i], n);
        *t = *whole;
        t->name = name;
        t->shape[1] /= n_parts;
        t->first = i * (p->form == HALVES ? t->shape[1] : 1) * t->stride[1];
        if (p->form != HALVES) t->stride[1] *= n_parts;
        PD_TRY(pd_tensor_set_size(t));
    }
    return PERIDOT_OK;
}

peridot_status pd_experts_unpack(struct pd_tensor_list *list, struct pd_arena *arena)
{
    struct pd_tensor_list all;
    struct pd_tensor whole;
    bool in_turn = false, any = false;
    for (size_t i = 0; i < list->n; i++) {
        in_turn = in_turn || strcmp(name_of_expert(&list->items[i]), "gate_up_proj_bias") == 0;
        any = any || packed_find(&list->items[i], false);
    }
    if (!in_turn && !any) return PERIDOT_OK;
    PD_TRY(pd_tensor_list_alloc(&all, arena, 2 * list->n));
    all.n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct pd_tensor *t = &list->items[i];
        const struct packed *p = packed_find(t, in_turn);
        bool is_scales = strcmp(t->type, "u8") == 0 && strstr(name_of_expert(t), "_proj_scales");
        if (p) {
            PD_TRY(unpack(&whole, list, t, p));
            PD_TRY(add_unpacked(&all, arena, &whole, p));
        } else if (!is_scales) all.items[all.n++] = *t;
    }
    PD_TRY(pd_tensor_list_index(&all, arena));
    *list = all;
    return PERIDOT_OK;
}
