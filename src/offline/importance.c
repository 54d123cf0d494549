/* The importance of a matrix's columns: the mean squares of what they multiply on a text ("imatrix"). In llama.cpp's
 * two forms of files: GGUF, with tensors NAME.in_sum2 [n_matrices][n_cols] and NAME.counts [n_matrices], and the older
 * imatrix.dat: little-endian i32 n, then n times i32 size of a name, the name, i32 calls, i32 n, f32 [n], which are
 * calls times the means of the columns of a matrix, or of several; of an expert that no token took they are all 1. */
#include "offline/offline_.h"

#include "base/base.h"
#include "format/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *name;              /* of the matrix */
    float *means;            /* [n_matrices][n_cols] */
    bool *seen;              /* [n_matrices]; NULL until it is asked for */
    uint64_t n_matrices, n_cols;   /* 1 and all numbers, where the file does not say of how many matrices they are */
};

struct pd_importance {
    const char *path;        /* the caller's */
    struct entry *entries;   /* [n] */
    uint32_t n, capacity, n_found, n_unseen;
};

/* ---- entries ---- */

static peridot_status add_entry(struct pd_importance *m, struct entry **out, const char *name, size_t size,
                                uint64_t n_matrices, uint64_t n_cols)
{
    if (m->n == m->capacity) {
        uint32_t capacity = m->capacity ? 2 * m->capacity : 64;
        struct entry *entries = realloc(m->entries, capacity * sizeof *entries);
        if (!entries) return pd_fail_alloc(capacity * sizeof *entries, "importances");
        m->entries = entries;
        m->capacity = capacity;
    }
    struct entry *e = *out = &m->entries[m->n];
    *e = (struct entry){.name = malloc(size + 1), .means = malloc(n_matrices * n_cols * sizeof(float)),
        .n_matrices = n_matrices, .n_cols = n_cols};
    m->n++;
    if (!e->name || !e->means) return pd_fail_alloc(n_matrices * n_cols * sizeof(float), "importances");
    memcpy(e->name, name, size);
    e->name[size] = 0;
    return PERIDOT_OK;
}

/* Sums become means. */
static peridot_status divide(const struct pd_importance *m, struct entry *e, uint64_t matrix, double count)
{
    float *means = e->means + matrix * e->n_cols;
    for (uint64_t i = 0; i < e->n_cols; i++) {
        if (!(means[i] >= 0 && isfinite(means[i])))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: column %llu of " PD_NAME " has the sum of squares %g", m->path,
                           (unsigned long long)i, e->name, (double)means[i]);
        means[i] = count > 0 ? (float)(means[i] / count) : 0;
    }
    return PERIDOT_OK;
}

/* A column that nothing went through still counts a little; a matrix that nothing went through, that of an expert that
 * no token took, was not seen. */
static void find_seen(struct entry *e, uint64_t matrix)
{
    float *means = e->means + matrix * e->n_cols;
    double total = 0;
    bool is_told = false;
    for (uint64_t i = 0; i < e->n_cols; i++) {
        total += (double)means[i];
        is_told = is_told || means[i] != 1;
    }
    e->seen[matrix] = total > 0 && is_told;
    float least = total > 0 ? (float)(1e-4 * total / (double)e->n_cols) : 1;
    for (uint64_t i = 0; i < e->n_cols; i++) means[i] = fmaxf(means[i], fmaxf(least, 1e-30f));
}

/* ---- GGUF ---- */

static peridot_status read_sums(struct pd_importance *m, const struct pd_checkpoint *c, const struct pd_tensor *t,
                                size_t name_size)
{
    char name[256];
    struct entry *e;
    uint64_t n_cols = t->n_dims ? t->shape[t->n_dims - 1] : 0, n_all = t->size / sizeof(float);
    if (name_size + sizeof ".counts" > sizeof name || t->dtype != PD_F32 || n_cols == 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " is not f32 of a matrix's columns", m->path,
                       t->name);
    uint64_t n_matrices = n_all / n_cols;
    snprintf(name, sizeof name, "%.*s.counts", (int)name_size, t->name);
    const struct pd_tensor *counts = pd_checkpoint_find(c, name);
    if (!counts || counts->dtype != PD_F32 || counts->size / sizeof(float) != n_matrices)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: there is no tensor " PD_NAME " of f32 [%llu]", m->path, name,
                       (unsigned long long)n_matrices);
    PD_TRY(add_entry(m, &e, t->name, name_size, n_matrices, n_cols));
    memcpy(e->means, t->data, t->size);
    for (uint64_t i = 0; i < n_matrices; i++) {
        float count;
        memcpy(&count, counts->data + i * sizeof count, sizeof count);
        PD_TRY(divide(m, e, i, (double)count));
    }
    return PERIDOT_OK;
}

static peridot_status read_gguf(struct pd_importance *m)
{
    static const char ending[] = ".in_sum2";
    struct pd_checkpoint *c;
    PD_TRY(pd_checkpoint_open(&c, m->path, true));
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; status == PERIDOT_OK && i < pd_checkpoint_n_tensors(c); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        size_t n = strlen(t->name), size = sizeof ending - 1;
        if (n > size && strcmp(t->name + n - size, ending) == 0) status = read_sums(m, c, t, n - size);
    }
    status = pd_checkpoint_check(status, c);
    pd_checkpoint_close(c);
    return status;
}

/* ---- the older form ---- */

struct bytes {
    const uint8_t *at;
    uint64_t left;
};

static bool importance_take(void *out, struct bytes *b, uint64_t size)
{
    if (b->left < size) return false;
    memcpy(out, b->at, size);
    b->at += size;
    b->left -= size;
    return true;
}

static peridot_status read_entry(struct pd_importance *m, struct bytes *b)
{
    int32_t size, calls, n_cols;
    char name[256];
    struct entry *e;
    if (!importance_take(&size, b, sizeof size) || size <= 0 || (size_t)size >= sizeof name
        || !importance_take(name, b, (uint64_t)size)
        || !importance_take(&calls, b, sizeof calls) || !importance_take(&n_cols, b, sizeof n_cols) || n_cols <= 0
        || b->left / sizeof(float) < (uint64_t)n_cols)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: as an imatrix.dat its entry %u is cut or damaged", m->path, m->n);
    PD_TRY(add_entry(m, &e, name, (size_t)size, 1, (uint64_t)n_cols));
    importance_take(e->means, b, (uint64_t)n_cols * sizeof(float));
    return divide(m, e, 0, calls > 0 ? calls : 1);
}

static peridot_status read_old(struct pd_importance *m, struct bytes b)
{
    int32_t n = 0;
    if (!importance_take(&n, &b, sizeof n) || n <= 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: is neither a GGUF file nor an imatrix.dat", m->path);
    for (int32_t i = 0; i < n; i++) PD_TRY(read_entry(m, &b));
    return PERIDOT_OK;   /* what follows says how the file was made */
}

static peridot_status read_file(struct pd_importance *m)
{
    struct pd_map map;
    PD_TRY(pd_map_read(&map, m->path));
    bool is_gguf = map.size >= 4 && memcmp(map.data, "GGUF", 4) == 0;
    peridot_status status = is_gguf ? read_gguf(m) : read_old(m, (struct bytes){map.data, map.size});
    pd_map_close(&map);
    return status;
}

/* ---- all ---- */

peridot_status pd_importance_open(struct pd_importance **out, const char *path)
{
    struct pd_importance *m = *out = calloc(1, sizeof *m);
    if (!m) return pd_fail_alloc(sizeof *m, "importances");
    m->path = path;
    peridot_status status = read_file(m);
    if (status == PERIDOT_OK && m->n == 0)
        status = pd_fail(PERIDOT_ERROR_FORMAT, "%s: has no tensor whose name ends in .in_sum2", path);
    if (status == PERIDOT_OK) return PERIDOT_OK;
    pd_importance_close(m);
    *out = NULL;
    return status;
}

void pd_importance_close(struct pd_importance *m)
{
    if (!m) return;
    for (uint32_t i = 0; i < m->n; i++) {
        free(m->entries[i].name);
        free(m->entries[i].means);
        free(m->entries[i].seen);
    }
    free(m->entries);
    free(m);
}

static struct entry *find_entry(const struct pd_importance *m, const char *name)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (strcmp(m->entries[i].name, name) == 0) return &m->entries[i];
    return NULL;
}

/* An expert's gate and up multiply the same columns, and are one matrix in some files and two in others. */
static struct entry *find_other_form(const struct pd_importance *m, const char *name)
{
    static const struct { const char *name, *other; } forms[] = {
        {"ffn_gate_up_exps", "ffn_gate_exps"},
        {"ffn_gate_exps", "ffn_gate_up_exps"},
        {"ffn_up_exps", "ffn_gate_up_exps"},
    };
    char other[128];
    for (size_t i = 0; i < PD_COUNT(forms); i++) {
        const char *at = strstr(name, forms[i].name);
        if (!at) continue;
        int n = snprintf(other, sizeof other, "%.*s%s%s", (int)(at - name), name, forms[i].other,
                         at + strlen(forms[i].name));
        return n > 0 && (size_t)n < sizeof other ? find_entry(m, other) : NULL;
    }
    return NULL;
}

peridot_status pd_importance_find(struct pd_column_importance *out, struct pd_importance *m, const char *name,
                                  uint64_t n_matrices, uint64_t n_cols)
{
    struct entry *e = find_entry(m, name);
    *out = (struct pd_column_importance){NULL, NULL};
    if (!e) e = find_other_form(m, name);
    if (!e) return PERIDOT_OK;
    if (e->n_matrices == 1 && e->n_cols == n_matrices * n_cols) {
        e->n_matrices = n_matrices;
        e->n_cols = n_cols;
    }
    if (e->n_matrices != n_matrices || e->n_cols != n_cols)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: " PD_NAME " has %llu x %llu columns, but in the model %llu x "
                       "%llu", m->path, e->name, (unsigned long long)e->n_matrices, (unsigned long long)e->n_cols,
                       (unsigned long long)n_matrices, (unsigned long long)n_cols);
    if (!e->seen) {
        e->seen = calloc(n_matrices, sizeof *e->seen);
        if (!e->seen) return pd_fail_alloc(n_matrices * sizeof *e->seen, "importances");
        for (uint64_t k = 0; k < n_matrices; k++) find_seen(e, k);
    }
    *out = (struct pd_column_importance){e->means, e->seen};
    for (uint64_t k = 0; k < n_matrices; k++) m->n_unseen += !e->seen[k];
    m->n_found++;
    return PERIDOT_OK;
}

uint32_t pd_importance_n_found(const struct pd_importance *m) { return m->n_found; }

uint32_t pd_importance_n_unseen(const struct pd_importance *m) { return m->n_unseen; }
