/* Members of a document's objects and lists by hash. An object or a list is entered when it is first asked for, unless
 * it is short; what is asked then takes one step, however large it is. The work is charged. */
#include "grammar/grammar.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define SHORT 8                    /* members of what is looked at one by one */
#define COST 4                     /* of a value that is hashed or entered, in steps */

/* Of a value; equal values have the same. */
struct hash {
    uint64_t a, b;
};

struct pd_index_slot {
    const yyjson_val *container;   /* NULL: a free slot */
    yyjson_val *member;            /* of a list; the name of an object's; NULL: says that the container is entered */
    struct hash hash;
};

void pd_index_free(struct pd_index *x)
{
    free(x->slots);
    x->slots = NULL;
    x->n = x->mask = 0;
}

/* ---- hashes of values ---- */

static uint64_t mix(uint64_t h)
{
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

static struct hash add_word(struct hash h, uint64_t word)
{
    return (struct hash){mix(h.a ^ word), mix(h.b + 0x9e3779b97f4a7c15u * (word | 1)) ^ word};
}

static struct hash hash_bytes(uint64_t kind, const char *bytes, size_t size)
{
    struct hash h = add_word((struct hash){kind, ~kind}, size);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, pd_min(8, size - i));
        h = add_word(h, word);
    }
    return h;
}

static peridot_status hash_value(struct hash *out, struct pd_index *x, yyjson_val *value);

/* Members of an object are in any order. */
static peridot_status hash_members(struct hash *out, struct pd_index *x, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *key, *member;
    struct hash h = {yyjson_get_type(value), yyjson_get_len(value)}, of, name;
    if (yyjson_is_arr(value)) {
        yyjson_arr_foreach(value, i, n, member) {
            PD_TRY(hash_value(&of, x, member));
            h = add_word(add_word(h, of.a), of.b);
        }
    } else {
        yyjson_obj_foreach(value, i, n, key, member) {
            PD_TRY(hash_value(&name, x, key));
            PD_TRY(hash_value(&of, x, member));
            of = add_word(add_word(of, name.a), name.b);
            h.a += of.a;
            h.b += of.b;
        }
    }
    *out = add_word(h, 1);
    return PERIDOT_OK;
}

/* Of documents that nest to a limit. */
static peridot_status hash_value(struct hash *out, struct pd_index *x, yyjson_val *value)
{
    yyjson_type type = yyjson_get_type(value);
    PD_TRY(pd_work_spend(x->work, COST + (yyjson_is_str(value) ? yyjson_get_len(value) / 4 : 0)));
    if (yyjson_is_ctn(value)) return hash_members(out, x, value);
    if (type == YYJSON_TYPE_STR) *out = hash_bytes(type, yyjson_get_str(value), yyjson_get_len(value));
    else if (type == YYJSON_TYPE_NUM) {
        double number = yyjson_get_num(value) + 0.0;   /* of two zeros the one without a sign */
        *out = hash_bytes(type, (const char *)&number, sizeof number);
    } else {
        *out = hash_bytes(type, "t", yyjson_is_true(value));
    }
    return PERIDOT_OK;
}

static bool is_same_text(yyjson_val *a, const char *text, size_t size)
{
    return yyjson_get_len(a) == size && memcmp(yyjson_get_str(a), text, size) == 0;
}

/* Of values with the same hash: whether they are equal indeed. */
static bool is_equal(yyjson_val *a, yyjson_val *b)
{
    if (yyjson_is_ctn(a)) return true;
    if (yyjson_is_str(a)) return is_same_text(b, yyjson_get_str(a), yyjson_get_len(a));
    return !yyjson_is_int(a) || !yyjson_is_int(b) || yyjson_get_uint(a) == yyjson_get_uint(b);
}

static peridot_status compare_values(bool *same_hash, bool *equal, struct pd_index *x, yyjson_val *a, yyjson_val *b)
{
    struct hash of_a, of_b;
    *same_hash = *equal = false;
    if (yyjson_get_type(a) != yyjson_get_type(b)) return PERIDOT_OK;
    PD_TRY(hash_value(&of_a, x, a));
    PD_TRY(hash_value(&of_b, x, b));
    *same_hash = of_a.a == of_b.a && of_a.b == of_b.b && yyjson_get_type(a) == yyjson_get_type(b);
    *equal = *same_hash && is_equal(a, b);
    return PERIDOT_OK;
}

peridot_status pd_index_equals(bool *out, struct pd_index *x, yyjson_val *a, yyjson_val *b)
{
    bool same_hash;
    return compare_values(&same_hash, out, x, a, b);
}

peridot_status pd_index_may_equal(bool *out, struct pd_index *x, yyjson_val *a, yyjson_val *b)
{
    bool equal;
    return compare_values(out, &equal, x, a, b);
}

/* ---- the table ---- */

static const struct hash entered = {0, 0};

static size_t slot_of(const struct pd_index *x, const yyjson_val *container, struct hash h)
{
    return mix(h.a ^ mix((uintptr_t)container)) & x->mask;
}

static peridot_status reserve(struct pd_index *x, size_t more)
{
    if (x->slots && x->n + more <= x->mask / 2) return PERIDOT_OK;
    struct pd_index_slot *old = x->slots;
    size_t n_old = old ? x->mask + 1 : 0, size = 256;
    while (size / 2 <= x->n + more) size *= 2;
    PD_TRY(pd_work_spend(x->work, COST * x->n + size / 4));
    struct pd_index_slot *slots = calloc(size, sizeof *slots);
    if (!slots) return pd_fail_alloc(size * sizeof *slots, "an index of the schema");
    x->slots = slots;
    x->mask = size - 1;
    for (size_t i = 0; i < n_old; i++) {
        if (!old[i].container) continue;
        size_t to = slot_of(x, old[i].container, old[i].hash);
        while (slots[to].container) to = (to + 1) & x->mask;
        slots[to] = old[i];
    }
    free(old);
    return PERIDOT_OK;
}

/* A member with that hash: *at is its slot, or the free one where it would be. `exact`: one that is equal too. */
static peridot_status find_slot(bool *out, size_t *at, struct pd_index *x, const yyjson_val *container, struct hash h,
                                yyjson_val *exact)
{
    size_t slot = slot_of(x, container, h);
    for (*out = false; x->slots[slot].container; slot = (slot + 1) & x->mask) {
        const struct pd_index_slot *s = &x->slots[slot];
        PD_TRY(pd_work_spend(x->work, 1));
        *out = s->container == container && s->hash.a == h.a && s->hash.b == h.b &&
               (!exact || is_equal(s->member, exact));
        if (*out) break;
    }
    *at = slot;
    return pd_work_spend(x->work, COST);
}

/* Where equal members are, the first is entered. */
static peridot_status enter_member(struct pd_index *x, yyjson_val *container, yyjson_val *member)
{
    struct hash h;
    size_t at;
    bool found;
    PD_TRY(hash_value(&h, x, member));
    PD_TRY(find_slot(&found, &at, x, container, h, member));
    x->n += !found;
    if (!found) x->slots[at] = (struct pd_index_slot){container, member, h};
    return PERIDOT_OK;
}

static peridot_status enter(struct pd_index *x, yyjson_val *container)
{
    size_t i, n, at;
    yyjson_val *key, *member;
    bool found;
    PD_TRY(reserve(x, 1));
    PD_TRY(find_slot(&found, &at, x, container, entered, NULL));
    if (found) return PERIDOT_OK;
    PD_TRY(reserve(x, yyjson_get_len(container) + 1));
    PD_TRY(find_slot(&found, &at, x, container, entered, NULL));
    x->slots[at] = (struct pd_index_slot){container, NULL, entered};
    x->n++;
    if (yyjson_is_obj(container)) {
        yyjson_obj_foreach(container, i, n, key, member) PD_TRY(enter_member(x, container, key));
    } else {
        yyjson_arr_foreach(container, i, n, member) PD_TRY(enter_member(x, container, member));
    }
    return PERIDOT_OK;
}

peridot_status pd_index_get(yyjson_val **out, struct pd_index *x, yyjson_val *object, const char *name, size_t size)
{
    size_t i, n, at;
    yyjson_val *key, *member;
    bool found;
    *out = NULL;
    if (!yyjson_is_obj(object)) return PERIDOT_OK;
    PD_TRY(pd_work_spend(x->work, SHORT + size / 4));
    if (yyjson_obj_size(object) <= SHORT) {
        yyjson_obj_foreach(object, i, n, key, member) {
            if (!is_same_text(key, name, size)) continue;
            *out = member;
            break;
        }
        return PERIDOT_OK;
    }
    PD_TRY(enter(x, object));
    struct hash h = hash_bytes(YYJSON_TYPE_STR, name, size);
    PD_TRY(find_slot(&found, &at, x, object, h, NULL));
    if (found && is_same_text(x->slots[at].member, name, size)) *out = yyjson_obj_iter_get_val(x->slots[at].member);
    return PERIDOT_OK;
}

static peridot_status find_in_list(bool *out, struct pd_index *x, yyjson_val *list, yyjson_val *value, bool exact)
{
    size_t i, n, at;
    yyjson_val *member;
    struct hash h;
    *out = false;
    if (!yyjson_is_arr(list)) return PERIDOT_OK;
    if (yyjson_arr_size(list) <= SHORT) {
        yyjson_arr_foreach(list, i, n, member) {
            bool equal, same_hash;
            PD_TRY(compare_values(&same_hash, &equal, x, member, value));
            *out = *out || (exact ? equal : same_hash);
        }
        return PERIDOT_OK;
    }
    PD_TRY(enter(x, list));
    PD_TRY(hash_value(&h, x, value));
    return find_slot(out, &at, x, list, h, exact ? value : NULL);
}

peridot_status pd_index_has(bool *out, struct pd_index *x, yyjson_val *list, yyjson_val *value)
{
    return find_in_list(out, x, list, value, true);
}

peridot_status pd_index_may_have(bool *out, struct pd_index *x, yyjson_val *list, yyjson_val *value)
{
    return find_in_list(out, x, list, value, false);
}
