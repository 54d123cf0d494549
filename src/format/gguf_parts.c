/* A model in one GGUF file, or in parts as gguf-split writes them: NAME-00001-of-00003.gguf and so on. All metadata is
 * in the first, and tensors may be in any; each says which part it is (split.no, from 0) of how many (split.count).
 * Tensors in NVFP4 get their scales, which are tensors, too. */
#include "format/format_.h"

#include "base/base.h"

#include <stdio.h>

typedef unsigned long long ull;

/* A number of the file that is one part of a model; `otherwise` where the file does not say. */
static uint64_t number_of(const struct pd_gguf *g, const char *key, uint64_t otherwise)
{
    const struct pd_meta *m = pd_gguf_find_meta(g, key);
    uint64_t value;
    return m && m->type != PD_META_ARRAY && pd_meta_uint(&value, m, 0) ? value : otherwise;
}

static peridot_status gguf_parts_alloc(struct pd_gguf_parts *p, size_t n)
{
    p->maps = pd_arena_array(&p->arena, n, sizeof *p->maps);
    p->paths = pd_arena_array(&p->arena, n, sizeof *p->paths);
    p->parts = pd_arena_array(&p->arena, n, sizeof *p->parts);
    return p->maps && p->paths && p->parts ? PERIDOT_OK : pd_fail_alloc(n * sizeof *p->parts, "list of files");
}

static peridot_status open_next(struct pd_gguf_parts *p, const char *path)
{
    size_t i = p->n;
    p->paths[i] = pd_arena_string(&p->arena, path, strlen(path));
    if (!p->paths[i]) return pd_fail_alloc(strlen(path), "path");
    PD_TRY(pd_map_open(&p->maps[i], p->paths[i]));
    p->n++;
    return pd_gguf_parse(&p->parts[i], p->maps[i].data, p->maps[i].size, p->paths[i]);
}

/* "-00001-of-00003.gguf" */
static void name_end(char out[48], uint64_t part, uint64_t n)
{
    snprintf(out, 48, "-%05llu-of-%05llu.gguf", (ull)part + 1, (ull)n);
}

static peridot_status open_part(struct pd_gguf_parts *p, uint64_t part, uint64_t n)
{
    char end[48], path[4096];
    name_end(end, part, n);
    size_t size = strlen(p->paths[0]), end_size = strlen(end);
    if (size >= sizeof path) return pd_fail(PERIDOT_ERROR_IO, "%s: its name is too long", p->paths[0]);
    memcpy(path, p->paths[0], size - end_size);
    memcpy(path + size - end_size, end, end_size + 1);
    PD_TRY(open_next(p, path));
    uint64_t number = number_of(&p->parts[part], "split.no", 0), count = number_of(&p->parts[part], "split.count", 1);
    if (number == part && count == n) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT,
                   "%s: says that it is part %llu of %llu (split.no, split.count), not %llu of %llu", p->paths[part],
                   (ull)number + 1, (ull)count, (ull)part + 1, (ull)n);
}

/* Of all parts, as one. */
static peridot_status join_tensors(struct pd_gguf_parts *p)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < p->n; i++) n += p->parts[i].tensors.n;
    uint64_t want = number_of(&p->parts[0], "split.tensors.count", n);
    if (n != want)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: its parts have %zu tensors, but split.tensors.count is %llu",
                       p->paths[0], n, (ull)want);
    PD_TRY(pd_tensor_list_alloc(&p->tensors, &p->arena, n));
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->parts[i].tensors.n; k++) p->tensors.items[at++] = p->parts[i].tensors.items[k];
    return pd_tensor_list_index(&p->tensors, &p->arena);
}

static peridot_status open_others(struct pd_gguf_parts *p)
{
    const struct pd_gguf_parts first = *p;
    uint64_t n = number_of(&p->parts[0], "split.count", 1), part = number_of(&p->parts[0], "split.no", 0);
    const char *path = p->paths[0];
    char end[48];
    name_end(end, 0, n);
    if (part)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: is part %llu of a model in %llu files: give the first, ...%s", path,
                       (ull)part + 1, (ull)n, end);
    if (strlen(path) < strlen(end) || strcmp(path + strlen(path) - strlen(end), end) != 0 || n > 99999)
        return pd_fail(PERIDOT_ERROR_FORMAT,
                       "%s: is the first of %llu files (split.count), but its name does not end in %s", path, (ull)n,
                       end);
    PD_TRY(gguf_parts_alloc(p, (size_t)n));
    p->maps[0] = first.maps[0];
    p->paths[0] = first.paths[0];
    p->parts[0] = first.parts[0];
    for (uint64_t i = 1; i < n; i++) PD_TRY(open_part(p, i, n));
    return join_tensors(p);
}

/* ---- scales of NVFP4, as llama.cpp writes them: BASE.weight is multiplied by BASE.scale ---- */

/* NULL: none. */
static struct pd_tensor *find_beside(const struct pd_gguf_parts *p, const struct pd_tensor *t, const char *ending)
{
    static const char weight[] = ".weight";
    char name[256];
    size_t size = strlen(t->name), base = size - strlen(weight);
    if (size < strlen(weight) || strcmp(t->name + base, weight) != 0 || size + strlen(ending) >= sizeof name)
        return NULL;
    memcpy(name, t->name, base);
    strcpy(name + base, ending);
    const struct pd_tensor *found = pd_tensor_list_find(&p->tensors, name);
    return found ? &p->tensors.items[found - p->tensors.items] : NULL;
}

/* Gemma 4 has tensors by such names whatever the types of the matrices: scales of the router's input and of experts. */
static bool has_own_scale(const struct pd_gguf_parts *p, const struct pd_tensor *t)
{
    const struct pd_meta *m = pd_gguf_find_meta(&p->parts[0], "general.architecture");
    struct pd_string family;
    return (strstr(t->name, ".ffn_gate_inp.") || strstr(t->name, ".ffn_down_exps.")) && m
        && pd_meta_string(&family, m, 0) && family.size == 6 && memcmp(family.data, "gemma4", 6) == 0;
}

static peridot_status set_scales(struct pd_gguf_parts *p, struct pd_tensor *t)
{
    struct pd_tensor *scale = find_beside(p, t, ".scale"), *input_scale = find_beside(p, t, ".input_scale");
    if (input_scale) input_scale->is_scale = true;   /* for activations of 4 bits */
    if (!scale || has_own_scale(p, t)) return PERIDOT_OK;
    uint64_t n = scale->size / sizeof(float), n_experts = t->n_dims == 3 ? t->shape[0] : 1;
    if (scale->dtype != PD_F32 || (n != 1 && n != n_experts))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " has %llu bytes of type %s, but a scale of " PD_NAME
                       " must be f32, one or one for each of its matrices (%llu)", scale->file, scale->name,
                       (ull)scale->size, scale->type, t->name, (ull)n_experts);
    scale->is_scale = true;
    t->scales = scale->data;
    t->n_scales = n;
    return PERIDOT_OK;
}

static peridot_status find_scales(struct pd_gguf_parts *p)
{
    for (size_t i = 0; i < p->tensors.n; i++)
        if (p->tensors.items[i].dtype == PD_NVFP4) PD_TRY(set_scales(p, &p->tensors.items[i]));
    return PERIDOT_OK;
}

peridot_status pd_gguf_parts_open(struct pd_gguf_parts *out, const char *path)
{
    *out = (struct pd_gguf_parts){0};
    PD_TRY(gguf_parts_alloc(out, 1));
    PD_TRY(open_next(out, path));
    out->tensors = out->parts[0].tensors;
    if (number_of(&out->parts[0], "split.count", 1) > 1) PD_TRY(open_others(out));
    PD_TRY(pd_experts_join(&out->tensors, &out->arena));
    return find_scales(out);
}

peridot_status pd_gguf_parts_check(peridot_status status, const struct pd_gguf_parts *p)
{
    for (size_t i = 0; i < p->n; i++) status = pd_map_check(status, &p->maps[i], p->paths[i]);
    return status;
}

void pd_gguf_parts_close(struct pd_gguf_parts *p)
{
    for (size_t i = 0; i < p->n; i++) {
        pd_gguf_free(&p->parts[i]);
        pd_map_close(&p->maps[i]);
    }
    pd_arena_free(&p->arena);
    *p = (struct pd_gguf_parts){0};
}
