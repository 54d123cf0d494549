/* Each candidate is tried on the model itself: a decode step in which every matvec has that tuning, timed dispatch by
 * dispatch, gives a time for each kernel and use. The fastest is taken where it beats the default by more than the
 * noise, and does so again when the two run alternately: what was fastest by chance is not then. Candidates that
 * change the step's logits are rejected. Chunks of a prompt then say from how many tokens on tiles are faster. */
#include "probe/probe.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_ROUNDS = 3, N_PAIRS = 9, MIN_PAIRS = 3, N_COMPILED = 8, N_FEW_ROUNDS = 2, MAX_CHUNK = 512 };
#define NOISE 0.97          /* of the default's time: anything slower is not worth a change */
#define LOGITS_TOLERANCE 1e-3   /* relative L2, as between any two kernels of an operation */

/* Shortest time of a kernel and use in a step, in seconds; 0: the step has none. */
struct times {
    double of[PD_N_KERNELS][PD_N_USES];
};

struct search {
    struct pd_model *model;
    const peridot_tune_params *params;
    struct pd_session *session;
    struct pd_sequence *sequence;
    struct pd_commands *commands;
    const peridot_device_info *device;
    double end;                /* pd_now when the search must end */
    uint64_t n_passes;         /* so far */
    float *logits, *expected;  /* [n_outputs]: of this pass, and of the first with defaults */
    struct pd_tunings *table;  /* the session's own: of the next pass */
    struct times by_default, by[PD_MAX_TUNINGS];
    struct times ratio;        /* time of the chosen tuning, relative to the default's */
    uint32_t few[PD_N_KERNELS][PD_N_FEWS];   /* as in pd_tunings */
};

/* Uses differ in matvec.comp's specialisation constants. */
static bool use_of(enum pd_use *out, const struct pd_kernel *k)
{
    uint32_t n;
    const uint32_t *spec = pd_kernel_spec(k, &n);
    if (!pd_is_tuned(pd_kernel_id_of(k))) return false;
    *out = spec[6] ? PD_USE_GATED : spec[3] ? PD_USE_NORMED : PD_USE_PLAIN;
    return true;
}

static void keep_least(struct times *least, const struct pd_dispatch_time *times, uint32_t n)
{
    struct times sums = {0};
    enum pd_use use;
    for (uint32_t i = 0; i < n; i++)
        if (use_of(&use, times[i].kernel)) sums.of[pd_kernel_id_of(times[i].kernel)][use] += times[i].seconds;
    for (int k = 0; k < PD_N_KERNELS; k++)
        for (int u = 0; u < PD_N_USES; u++) {
            double *to = &least->of[k][u];
            if (*to == 0 || (sums.of[k][u] < *to && !isinf(*to))) *to = sums.of[k][u];
        }
}

static double distance(const float *a, const float *b, size_t n)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        difference += d * d;
        size += (double)b[i] * (double)b[i];
    }
    return size > 0 ? sqrt(difference / size) : sqrt(difference);
}

static void reject(struct times *least)
{
    for (int k = 0; k < PD_N_KERNELS; k++)
        for (int u = 0; u < PD_N_USES; u++) least->of[k][u] = pd_is_tuned((enum pd_kernel_id)k) ? INFINITY : 0;
}

/* Of all passes, had they no end in time. */
static peridot_status show_progress(struct search *s)
{
    struct pd_tuning t;
    uint64_t n = 0;
    while (pd_tuning_at(&t, s->device, (uint32_t)n)) n++;
    uint64_t total = N_ROUNDS * (n + 1) + 2 * N_PAIRS + 2 * N_FEW_ROUNDS * 10, done = pd_min(s->n_passes++, total);
    if (!s->params->progress || s->params->progress(s->params->user, done, total)) return PERIDOT_OK;
    return pd_fail(PERIDOT_CANCELLED, "the search was stopped");
}

/* A decode step with *s->table. Where it gives other logits, its times become infinite. */
static peridot_status time_pass(struct search *s, struct times *least)
{
    const struct pd_dispatch_time *times;
    const struct pd_workspace *w = &s->session->workspace;
    uint64_t row = sizeof(float) * w->logits.stride * (uint64_t)pd_step_row(w, 0);
    uint32_t n, n_outputs = s->model->weights.n_outputs;
    PD_TRY(show_progress(s));
    PD_TRY(pd_session_measure(s->session, s->commands, &s->sequence, 1, 1));
    PD_TRY(pd_commands_times(&times, &n, s->commands));
    keep_least(least, times, n);
    PD_TRY(pd_span_read(s->model->gpu, s->logits, s->session->workspace.logits_span, row, n_outputs * sizeof(float)));
    if (isnan(s->expected[0])) memcpy(s->expected, s->logits, n_outputs * sizeof(float));
    if (!(distance(s->logits, s->expected, n_outputs) <= LOGITS_TOLERANCE)) reject(least);
    return PERIDOT_OK;
}

/* Compiles the next few on all processors, as compiling takes longer than a pass. What fails, fails again in
 * time_candidates. */
static peridot_status compile_candidates(struct search *s, uint32_t first)
{
    struct pd_tuning t;
    peridot_status status = PERIDOT_OK;
    pd_kernels_defer(s->model->gpu);
    for (uint32_t i = first; i < first + N_COMPILED && status == PERIDOT_OK && pd_tuning_at(&t, s->device, i); i++) {
        *s->table = pd_tunings_of(t);
        status = pd_session_prewarm(s->session);
    }
    pd_kernels_compile_deferred(s->model->gpu, NULL, NULL);
    return status;
}

static peridot_status time_candidates(struct search *s)
{
    struct pd_tuning t;
    /* as other load slows a machine for seconds */
    for (int round = 0; round < N_ROUNDS && !(round && pd_now() > s->end); round++) {
        *s->table = (struct pd_tunings){0};
        PD_TRY(time_pass(s, &s->by_default));
        for (uint32_t i = 0; pd_tuning_at(&t, s->device, i) && pd_now() < s->end; i++) {
            if (round == 0 && i % N_COMPILED == 0) PD_TRY(compile_candidates(s, i));
            *s->table = pd_tunings_of(t);
            peridot_status status = time_pass(s, &s->by[i]);
            if (status == PERIDOT_ERROR_DEVICE) reject(&s->by[i]);   /* the driver cannot compile it */
            else PD_TRY(status);
        }
    }
    return PERIDOT_OK;
}

/* Into *s->table; rows 0 where the default is best. */
static void tune_choose(struct search *s)
{
    struct pd_tuning t;
    *s->table = (struct pd_tunings){0};
    for (int k = 0; k < PD_N_KERNELS; k++)
        for (int u = 0; u < PD_N_USES; u++) {
            double least = NOISE * s->by_default.of[k][u];
            for (uint32_t i = 0; pd_tuning_at(&t, s->device, i); i++) {
                double seconds = s->by[i].of[k][u];
                if (!pd_tuning_fits(t, (enum pd_kernel_id)k, (enum pd_use)u) || seconds == 0 || seconds >= least)
                    continue;
                least = seconds;
                s->table->of[k][u] = t;
            }
        }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_size);
    return x[n / 2];
}

/* Alternately, so that other load slows both; the median of the ratios leaves out what it did not slow alike. */
static peridot_status confirm(struct search *s, struct times before[N_PAIRS], struct times after[N_PAIRS])
{
    struct pd_tunings chosen = *s->table;
    size_t n = 0;
    for (; n < N_PAIRS && !(n >= MIN_PAIRS && pd_now() > s->end); n++) {
        *s->table = (struct pd_tunings){0};
        PD_TRY(time_pass(s, &before[n]));
        *s->table = chosen;
        PD_TRY(time_pass(s, &after[n]));
    }
    for (int k = 0; k < PD_N_KERNELS; k++)
        for (int u = 0; u < PD_N_USES; u++) {
            double ratios[N_PAIRS];
            for (size_t pair = 0; pair < n; pair++) ratios[pair] = after[pair].of[k][u] / before[pair].of[k][u];
            s->ratio.of[k][u] = median(ratios, n);
            if (!(s->ratio.of[k][u] < NOISE)) s->table->of[k][u] = (struct pd_tuning){0};
        }
    return PERIDOT_OK;
}

/* ---- matvec or tiles ---- */

/* Seconds of a chunk's products, by the type of the matrix; 0: it has none. */
struct products {
    double of[PD_N_DTYPES][PD_N_FEWS];
};

/* What packs is for the product after it, and what adds splits or gates is of the one before. */
static struct products products_of(const struct pd_dispatch_time *times, uint32_t n)
{
    struct products sums = {0};
    double packing = 0, *last = NULL;
    for (uint32_t i = 0; i < n; i++) {
        enum pd_kernel_id id = pd_kernel_id_of(times[i].kernel);
        if (id == PD_KERNEL_pack_half || id == PD_KERNEL_pack_f16 || id == PD_KERNEL_pack_q8
            || id == PD_KERNEL_pack_q16)
            packing += times[i].seconds;
        if (last && (id == PD_KERNEL_matmul_reduce || id == PD_KERNEL_glu)) *last += times[i].seconds;
        if (!pd_is_tuned(id) && !pd_makes_tiles(id)) continue;
        uint32_t n_spec;
        const uint32_t *spec = pd_kernel_spec(times[i].kernel, &n_spec);
        bool experts = n_spec > PD_EXPERTS_ID && spec[PD_EXPERTS_ID];
        last = &sums.of[pd_kernel_type_of(id)][experts ? PD_FEW_OF_EXPERT : PD_FEW_TOKENS];
        *last += packing + times[i].seconds;
        packing = 0;
    }
    return sums;
}

/* The kernel that makes tiles of the model's matrices of a type; PD_N_KERNELS: none does. */
static enum pd_kernel_id tiles_of(const struct pd_model *m, uint32_t dtype)
{
    enum pd_variant v = pd_variant_working(m->gpu, m->variants.of[PD_VARIED_MATMUL], dtype);
    return v == PD_VARIANT_MATMUL_MATVEC || !m->weights.type_counts[dtype] ? PD_N_KERNELS : pd_variant_kernel(v, dtype);
}

static peridot_status time_products(struct search *s, struct products *least, uint32_t n, enum pd_variant v)
{
    const struct pd_dispatch_time *times;
    uint32_t n_times;
    s->session->workspace.variants.of[PD_VARIED_MATMUL] = v;
    for (int round = 0; round < N_FEW_ROUNDS; round++) {
        PD_TRY(show_progress(s));
        PD_TRY(pd_session_measure(s->session, s->commands, &s->sequence, 1, n));
        PD_TRY(pd_commands_times(&times, &n_times, s->commands));
        struct products now = products_of(times, n_times);
        for (int dtype = 0; dtype < PD_N_DTYPES; dtype++)
            for (int few = 0; few < PD_N_FEWS; few++) {
                double *to = &least->of[dtype][few];
                *to = round == 0 ? now.of[dtype][few] : fmin(*to, now.of[dtype][few]);
            }
    }
    return PERIDOT_OK;
}

/* Whether matvec is the faster for some type, at so many tokens and all before. */
static bool take_faster(struct search *s, const struct products *rows, const struct products *tiles, enum pd_few few,
                        uint32_t n_each)
{
    bool any = false;
    for (uint32_t dtype = 0; dtype < PD_N_DTYPES; dtype++) {
        enum pd_kernel_id id = tiles_of(s->model, dtype);
        if (id == PD_N_KERNELS || rows->of[dtype][few] == 0) continue;
        uint32_t *found = &s->few[id][few];
        if (!*found) *found = n_each / 2;
        if (*found != n_each / 2 || rows->of[dtype][few] > tiles->of[dtype][few]) continue;
        *found = n_each;
        any = true;
    }
    return any;
}

/* Twice as many tokens at a time, until tiles are faster. *s->table has few[] 1: two are not few. */
static peridot_status find_few(struct search *s, enum pd_few few)
{
    const struct pd_layer_sizes most = pd_layers_largest(&s->model->config);
    if (few == PD_FEW_OF_EXPERT && !most.n_experts) return PERIDOT_OK;
    for (uint32_t n_each = 2; n_each <= PD_MAX_FEW && pd_now() < s->end; n_each *= 2) {
        struct products rows, tiles;
        uint64_t n = few == PD_FEW_TOKENS ? n_each : pd_div_up((uint64_t)n_each * most.n_experts, most.n_experts_used);
        if (n > s->session->chunk) break;
        PD_TRY(time_products(s, &rows, (uint32_t)n, PD_VARIANT_MATMUL_MATVEC));
        PD_TRY(time_products(s, &tiles, (uint32_t)n, s->model->variants.of[PD_VARIED_MATMUL]));
        if (!take_faster(s, &rows, &tiles, few, n_each)) break;
    }
    return PERIDOT_OK;
}

static peridot_status open_session(struct search *s, uint32_t chunk)
{
    pd_session_free(s->session);
    s->session = NULL;
    PD_TRY(pd_session_create(&s->session, s->model, &(peridot_session_params){.ctx = chunk, .chunk = chunk}));
    s->table = &s->session->workspace.tunings;
    return pd_session_add(&s->sequence, s->session);
}

/* A user who has named a kernel for products has it for all. */
static peridot_status find_fews(struct search *s)
{
    const struct pd_variants *v = &s->model->variants;
    if (v->of[PD_VARIED_MATMUL] == PD_VARIANT_MATMUL_MATVEC || v->forced[PD_VARIED_MATMUL]) return PERIDOT_OK;
    PD_TRY(open_session(s, (uint32_t)pd_min(MAX_CHUNK, s->model->config.ctx_max)));
    for (int id = 0; id < PD_N_KERNELS; id++)
        for (int few = 0; few < PD_N_FEWS; few++) s->table->few[id][few] = 1;
    PD_TRY(find_few(s, PD_FEW_TOKENS));
    return find_few(s, PD_FEW_OF_EXPERT);
}

/* ---- what was found ---- */

static void report_fews(const struct search *s, peridot_tuned_call call, void *user)
{
    for (int id = 0; id < PD_N_KERNELS; id++)
        for (int few = 0; few < PD_N_FEWS; few++) {
            uint32_t usual = pd_few_get(NULL, (enum pd_kernel_id)id, (enum pd_few)few), n = s->few[id][few];
            if (!n) continue;
            call(user, &(peridot_tuned){.kernel = pd_kernel_name((enum pd_kernel_id)id),
                .use = pd_few_name((enum pd_few)few), .rows = n, .default_rows = usual, .changed = n != usual});
        }
}

static void report_found(const struct search *s, peridot_tuned_call call, void *user)
{
    for (int k = 0; k < PD_N_KERNELS; k++)
        for (int u = 0; u < PD_N_USES; u++) {
            struct pd_tuning t = s->table->of[k][u],
                usual = pd_tuning_default(s->device, (enum pd_kernel_id)k, (enum pd_use)u);
            double seconds = s->by_default.of[k][u];
            if (seconds == 0) continue;
            peridot_tuned tuned = {.kernel = pd_kernel_name((enum pd_kernel_id)k), .use = pd_use_name((enum pd_use)u),
                .width = usual.width, .rows = usual.rows, .workgroup = usual.workgroup, .default_rows = usual.rows,
                .default_workgroup = usual.workgroup, .seconds = seconds, .default_seconds = seconds,
                .changed = t.rows != 0};
            if (t.rows) {
                tuned.rows = t.rows, tuned.workgroup = t.workgroup, tuned.subgroup = t.subgroup, tuned.width = t.width;
                tuned.seconds = seconds * s->ratio.of[k][u];
            }
            call(user, &tuned);
        }
}

/* Whether the model has matrices that it multiplies with the kernel. */
static bool is_for(const struct pd_model *m, int k)
{
    for (uint32_t dtype = 0; dtype < PD_N_DTYPES; dtype++) {
        enum pd_variant v = pd_variant_for_type(m->variants.of[PD_VARIED_MATVEC], dtype);
        if (m->weights.type_counts[dtype] && (int)pd_variant_kernel(v, dtype) == k) return true;
    }
    return false;
}

/* Kernels that the model does not use keep what was known before. */
static void take_found(struct pd_tunings *to, const struct search *s)
{
    for (int k = 0; k < PD_N_KERNELS; k++)
        for (int u = 0; u < PD_N_USES && is_for(s->model, k); u++) {
            struct pd_tuning t = s->table->of[k][u],
                usual = pd_tuning_default(s->device, (enum pd_kernel_id)k, (enum pd_use)u);
            if (s->by_default.of[k][u] > 0 || !to->of[k][u].rows) to->of[k][u] = t.rows ? t : usual;
        }
    for (uint32_t dtype = 0; dtype < PD_N_DTYPES; dtype++) {
        enum pd_kernel_id id = tiles_of(s->model, dtype);
        for (int few = 0; few < PD_N_FEWS && id != PD_N_KERNELS; few++)
            to->few[id][few] = s->few[id][few] ? s->few[id][few] : pd_few_get(to, id, (enum pd_few)few);
    }
}

static peridot_status open_search(struct search *s)
{
    struct pd_model *m = s->model;
    if (!m->weights.n_outputs)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "a model without an output matrix cannot be tuned");
    s->device = pd_gpu_info(m->gpu);
    s->logits = malloc(m->weights.n_outputs * sizeof(float));
    s->expected = malloc(m->weights.n_outputs * sizeof(float));
    if (!s->logits || !s->expected) return pd_fail_alloc(m->weights.n_outputs * sizeof(float), "logits");
    s->expected[0] = NAN;
    PD_TRY(open_session(s, 1));
    PD_TRY(pd_commands_create(&s->commands, m->gpu));
    return pd_commands_time(s->commands, true);
}

static peridot_status find_tunings(struct search *s)
{
    struct times before[N_PAIRS] = {0}, after[N_PAIRS] = {0};
    PD_TRY(open_search(s));
    PD_TRY(time_candidates(s));
    tune_choose(s);
    PD_TRY(confirm(s, before, after));
    struct pd_tunings chosen = *s->table;
    PD_TRY(find_fews(s));
    *s->table = chosen;
    if (s->params->tuned) report_found(s, s->params->tuned, s->params->user);
    if (s->params->tuned) report_fews(s, s->params->tuned, s->params->user);
    take_found(&s->model->tunings, s);
    return PERIDOT_OK;
}

peridot_status pd_tune(struct pd_model *m, const peridot_tune_params *p)
{
    const char *dir = p->cache_dir;
    /* fails before the search, not after it */
    if (dir) PD_TRY(pd_tunings_write(&m->tunings, pd_gpu_info(m->gpu), dir));
    struct search *s = calloc(1, sizeof *s);
    if (!s) return pd_fail_alloc(sizeof *s, "search");
    s->model = m;
    s->params = p;
    s->end = p->max_s > 0 ? pd_now() + p->max_s : INFINITY;
    peridot_status status = find_tunings(s);
    pd_commands_free(s->commands);
    pd_session_free(s->session);
    free(s->logits);
    free(s->expected);
    free(s);
    if (status == PERIDOT_OK && dir) status = pd_tunings_write(&m->tunings, pd_gpu_info(m->gpu), dir);
    return status;
}

bool pd_tune_is_due(const struct pd_model *m)
{
    bool known = pd_gpu_info(m->gpu)->type == PERIDOT_DEVICE_CPU || !m->weights.n_outputs || !pd_gpu_can_time(m->gpu);
    for (int k = 0; k < PD_N_KERNELS; k++)
        for (int u = 0; u < PD_N_USES; u++)
            if (!known && is_for(m, k) && !m->tunings.of[k][u].rows) return true;
    for (uint32_t dtype = 0; dtype < PD_N_DTYPES && !known; dtype++) {
        enum pd_kernel_id id = tiles_of(m, dtype);
        if (id != PD_N_KERNELS && !m->tunings.few[id][PD_FEW_TOKENS]) return true;
    }
    return false;
}

void pd_tunings_text(char *out, size_t size, const struct pd_model *m)
{
    const peridot_device_info *device = pd_gpu_info(m->gpu);
    bool any = false;
    size_t at = 0;
    out[0] = 0;
    for (int k = 0; k < PD_N_KERNELS; k++)
        for (int u = 0; u < PD_N_USES && is_for(m, k); u++) {
            struct pd_tuning t = m->tunings.of[k][u],
                usual = pd_tuning_default(device, (enum pd_kernel_id)k, (enum pd_use)u);
            any = any || t.rows;
            if (!t.rows || memcmp(&t, &usual, sizeof t) == 0 || at >= size) continue;
            at += (size_t)snprintf(out + at, size - at, "%s%s %s %ux%u", at ? ", " : "",
                                   pd_kernel_name((enum pd_kernel_id)k), pd_use_name((enum pd_use)u), (unsigned)t.rows,
                                   (unsigned)t.workgroup);
            if (t.width > 1 && at < size) at += (size_t)snprintf(out + at, size - at, "x%u", (unsigned)t.width);
            if (t.subgroup && at < size) at += (size_t)snprintf(out + at, size - at, "/%u", (unsigned)t.subgroup);
        }
    if (any && !at) snprintf(out, size, "as by default");
}
