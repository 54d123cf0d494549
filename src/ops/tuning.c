/* The file in the cache folder (gpu/gpu.h) has a line for each kernel and use: "matvec_q8_0 <hash of its code>
 * normed 2 64 32 1", or "matmul_dot_q8_0 <hash of its code> experts 8". It counts only if its lines are, letter by
 * letter, those that this Peridot would write for the device, so that the worst that a forged one can do is to make
 * a kernel slower. */
#include "ops/ops.h"

#include "base/base.h"
#include "gpu/gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WORKGROUP = 256, N_ROWS = 4, MAX_WIDTH = 2 };

/* ---- defaults and the range of a search ---- */

/* With a norm before the matrix each workgroup computes it for itself, so there are few and large ones, enough to fill
 * the device. Where there is none, eight rows at a time share the loads of x and, in matvec_dot, the work of packing
 * it; they spill on no GPU (tools/pipelines). Both are what is predicted to be best on GPUs, or nearly
 * (tests/reports/layouts.txt). In matvec_rows each lane has rows of its own: a workgroup is one subgroup, or four that
 * share a normed x. A CPU reads shared memory lane by lane, so that a lane takes eight rows at a time rather than four.
 * Adreno's core keeps twice as many subgroups of 64 lanes as of its usual 128. */
static const struct {
    uint32_t rows, invocations, subgroups;   /* workgroup: whichever is more */
} table[2][2][2] = {   /* [matvec, matvec_rows][GPU, CPU][plain, with norms] */
    {{{8, 64, 1}, {4, 256, 1}}, {{4, 64, 1}, {4, 64, 1}}},
    {{{4, 0, 1}, {4, 0, 4}}, {{8, 0, 1}, {8, 0, 4}}},
};

static bool is_rows(enum pd_kernel_id id) { return pd_kernel_kind_of(id) == PD_KERNELS_matvec_rows; }

bool pd_is_tuned(enum pd_kernel_id id)
{
    enum pd_kernel_kind kind = pd_kernel_kind_of(id);
    return kind == PD_KERNELS_matvec || kind == PD_KERNELS_matvec_rows || kind == PD_KERNELS_matvec_dot;
}

struct pd_tuning pd_tuning_default(const peridot_device_info *device, enum pd_kernel_id id, enum pd_use use)
{
    bool rows = is_rows(id), cpu = device->type == PERIDOT_DEVICE_CPU, norms = use != PD_USE_PLAIN;
    uint32_t subgroup = device->subgroup_size > 64 && device->min_subgroup_size <= 64 ? 64 : 0;
    uint32_t subgroups = table[rows][cpu][norms].subgroups * (subgroup ? subgroup : device->subgroup_size);
    return (struct pd_tuning){table[rows][cpu][norms].rows,
        (uint32_t)pd_max(table[rows][cpu][norms].invocations, subgroups), subgroup, 1};
}

/* First all workgroup sizes with subgroups as the driver chooses, as a search may end early; then a few for each
 * subgroup size that can be required. */
bool pd_tuning_at(struct pd_tuning *out, const peridot_device_info *device, uint32_t i)
{
    uint32_t rows = 1u << i % N_ROWS, layout = i / N_ROWS;
    for (uint32_t width = 1; width <= MAX_WIDTH; width++)
        for (uint32_t workgroup = device->subgroup_size; workgroup <= MAX_WORKGROUP; workgroup *= 2, layout--) {
            *out = (struct pd_tuning){rows, workgroup, 0, width};
            if (layout == 0) return true;
        }
    if (device->min_subgroup_size == device->max_subgroup_size) return false;
    uint32_t largest = (uint32_t)pd_min(device->max_subgroup_size, 64);
    for (uint32_t size = (uint32_t)pd_max(device->min_subgroup_size, 8); size <= largest; size *= 2)
        for (uint32_t workgroup = 64; workgroup <= MAX_WORKGROUP; workgroup *= 4, layout--) {
            *out = (struct pd_tuning){rows, workgroup, size, 1};
            if (layout == 0) return true;
        }
    return false;
}

/* Of a gated unit half of the rows are the gate's. */
bool pd_tuning_fits(struct pd_tuning tuning, enum pd_kernel_id id, enum pd_use use)
{
    return pd_is_tuned(id) && (use != PD_USE_GATED || tuning.rows > 1) && (!is_rows(id) || tuning.width == 1);
}

static bool tuning_is_same(struct pd_tuning a, struct pd_tuning b)
{
    return a.rows == b.rows && a.workgroup == b.workgroup && a.subgroup == b.subgroup && a.width == b.width;
}

/* Eight rows at a time of 2304 are 288 subgroups, from whose loads an Arc A770 is predicted to get a third of its
 * bandwidth (tests/reports/layouts.txt). Vulkan does not say how many subgroups a GPU can keep; discrete ones have
 * faster memory and need more. A compiler may take the smallest ones. */
static uint32_t fewer_rows(const peridot_device_info *device, uint32_t rows, uint32_t n_rows)
{
    uint32_t enough = device->type == PERIDOT_DEVICE_DISCRETE ? 16384 : 2048;   /* lanes */
    if (device->type == PERIDOT_DEVICE_CPU) return rows;
    while (rows > 2 && n_rows / rows * device->min_subgroup_size < enough) rows /= 2;
    return rows;
}

struct pd_tuning pd_tuning_get(const struct pd_tunings *tunings, const peridot_device_info *device,
                               enum pd_kernel_id id, enum pd_use use, uint32_t n_rows)
{
    struct pd_tuning usual = pd_tuning_default(device, id, use), t = tunings ? tunings->of[id][use] : usual;
    if (t.rows && !tuning_is_same(t, usual)) return t;
    if (use != PD_USE_GATED) usual.rows = fewer_rows(device, usual.rows, n_rows);
    return usual;
}

bool pd_makes_tiles(enum pd_kernel_id id)
{
    enum pd_kernel_kind kind = pd_kernel_kind_of(id);
    return kind == PD_KERNELS_matmul || kind == PD_KERNELS_matmul_coop || kind == PD_KERNELS_matmul_half
        || kind == PD_KERNELS_matmul_dot;
}

/* matvec multiplies eight tokens at a time. Twice that is nearly as fast by tiles, which first pack the tokens, and
 * of which a small matrix has few; experts are many matrices. */
uint32_t pd_few_get(const struct pd_tunings *tunings, enum pd_kernel_id id, enum pd_few few)
{
    static const uint32_t usual[PD_N_FEWS] = {[PD_FEW_TOKENS] = 16, [PD_FEW_OF_EXPERT] = 8};
    uint32_t measured = tunings ? tunings->few[id][few] : 0;
    return measured ? measured : usual[few];
}

const char *pd_few_name(enum pd_few few) { return few == PD_FEW_TOKENS ? "tokens" : "experts"; }

struct pd_tunings pd_tunings_of(struct pd_tuning t)
{
    struct pd_tunings all = {0};
    for (int id = 0; id < PD_N_KERNELS; id++)
        for (int use = 0; use < PD_N_USES; use++)
            if (pd_tuning_fits(t, (enum pd_kernel_id)id, (enum pd_use)use)) all.of[id][use] = t;
    return all;
}

const char *pd_use_name(enum pd_use use)
{
    static const char *const names[PD_N_USES] = {"plain", "normed", "gated"};
    return names[use];
}

/* ---- the file ---- */

static const struct pd_notes notes = {"tune", "peridot: how matrices are multiplied, as measured"};

struct reading {
    struct pd_tunings *out;
    const peridot_device_info *device;
};

static struct pd_note make_note(enum pd_kernel_id id, enum pd_use use, struct pd_tuning t)
{
    struct pd_note note = {.id = id};
    snprintf(note.text, sizeof note.text, " %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32, pd_use_name(use), t.rows,
             t.workgroup, t.subgroup, t.width);
    return note;
}

/* The default, which a search measures too, and then its range. */
static bool tuning_of(struct pd_tuning *out, const peridot_device_info *device, enum pd_kernel_id id, enum pd_use use,
                      uint32_t at)
{
    *out = pd_tuning_default(device, id, use);
    return at == 0 || pd_tuning_at(out, device, at - 1);
}

static struct pd_note make_few_note(enum pd_kernel_id id, enum pd_few few, uint32_t n)
{
    struct pd_note note = {.id = id};
    snprintf(note.text, sizeof note.text, " %s %" PRIu32, pd_few_name(few), n);
    return note;
}

static bool few_take(struct pd_tunings *out, const struct pd_note *note)
{
    for (int few = 0; few < PD_N_FEWS && pd_makes_tiles(note->id); few++)
        for (uint32_t n = 1; n <= PD_MAX_FEW; n *= 2) {
            if (strcmp(make_few_note(note->id, (enum pd_few)few, n).text, note->text) != 0) continue;
            out->few[note->id][few] = n;
            return true;
        }
    return false;
}

static bool tuning_take(void *user, const struct pd_note *note)
{
    const struct reading *r = user;
    if (few_take(r->out, note)) return true;
    struct pd_tuning said = {0}, t;
    char name[8] = "";
    sscanf(note->text, " %7s %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, name, &said.rows, &said.workgroup,
           &said.subgroup, &said.width);
    int use = 0;
    while (use < PD_N_USES && strcmp(pd_use_name((enum pd_use)use), name) != 0) use++;
    if (use == PD_N_USES || !pd_tuning_fits(said, note->id, (enum pd_use)use)
        || strcmp(make_note(note->id, (enum pd_use)use, said).text, note->text) != 0) return false;
    for (uint32_t at = 0; tuning_of(&t, r->device, note->id, (enum pd_use)use, at); at++)
        if (tuning_is_same(t, said)) r->out->of[note->id][use] = t;
    return tuning_is_same(r->out->of[note->id][use], said);
}

void pd_tunings_read(struct pd_tunings *out, const peridot_device_info *device, const char *directory)
{
    *out = (struct pd_tunings){0};
    if (!pd_notes_read(&notes, device, directory, tuning_take, &(struct reading){out, device}))
        *out = (struct pd_tunings){0};
}

peridot_status pd_tunings_write(const struct pd_tunings *tunings, const peridot_device_info *device,
                                const char *directory)
{
    struct pd_note list[PD_N_KERNELS * (PD_N_USES + PD_N_FEWS)];
    size_t n = 0;
    for (int id = 0; id < PD_N_KERNELS; id++) {
        for (int use = 0; use < PD_N_USES; use++) {
            struct pd_tuning t = tunings->of[id][use];
            if (t.rows) list[n++] = make_note((enum pd_kernel_id)id, (enum pd_use)use, t);
        }
        for (int few = 0; few < PD_N_FEWS; few++)
            if (tunings->few[id][few])
                list[n++] = make_few_note((enum pd_kernel_id)id, (enum pd_few)few, tunings->few[id][few]);
    }
    return pd_notes_write(&notes, device, directory, list, n);
}
