/* Operations that more than one kernel can do. The table in variants.c is the one list of an operation's variants:
 * their kernels, and which of them a device takes by default. */
#include "base/base.h"
#include "format/format.h"
#include "ops/ops_.h"

#include <stdio.h>
#include <string.h>

#define NO_VARIANT PD_N_VARIANTS

static const char *const operation_names[PD_N_VARIED] = {
    [PD_VARIED_MATMUL] = "matmul", [PD_VARIED_MATVEC] = "matvec", [PD_VARIED_ATTENTION] = "attention",
};

/* A CPU gains nothing from tiles in shared memory, as its caches do the same without barriers, nor from lanes that read
 * neighbouring addresses. */
static const struct row {
    enum pd_varied operation;
    const char *name;
    enum pd_kernel_kind kind;
    bool on_gpu, on_cpu;        /* meant for */
    enum pd_kernel_id pack;     /* the kernel that packs what these read; PD_N_KERNELS: none */
    bool exact;                 /* activations, products and sums are fp32 */
    /* what is taken for types that it has no kernel for, and on devices that it is not meant for, cannot run it or get
     * it wrong; NO_VARIANT: it has kernels for all types, which all devices run */
    enum pd_variant fallback;
} rows[PD_N_VARIANTS] = {
    [PD_VARIANT_MATMUL_COOP] = {PD_VARIED_MATMUL, "coop", PD_KERNELS_matmul_coop, true, false, PD_KERNEL_pack_f16,
        .fallback = PD_VARIANT_MATMUL_DOT},
    [PD_VARIANT_MATMUL_DOT] = {PD_VARIED_MATMUL, "dot", PD_KERNELS_matmul_dot, true, false, PD_KERNEL_pack_q16,
        .fallback = PD_VARIANT_MATMUL_HALF},
    [PD_VARIANT_MATMUL_HALF] = {PD_VARIED_MATMUL, "half", PD_KERNELS_matmul_half, true, false, PD_KERNEL_pack_half,
        .fallback = PD_VARIANT_MATMUL_TILE},
    [PD_VARIANT_MATMUL_TILE] = {PD_VARIED_MATMUL, "tile", PD_KERNELS_matmul, true, false, PD_N_KERNELS,
        .exact = true, .fallback = PD_VARIANT_MATMUL_MATVEC},
    [PD_VARIANT_MATMUL_MATVEC] = {PD_VARIED_MATMUL, "matvec", PD_KERNELS_matvec, false, true, PD_N_KERNELS,
        .exact = true, .fallback = NO_VARIANT},
    [PD_VARIANT_MATVEC_ROWS] = {PD_VARIED_MATVEC, "rows", PD_KERNELS_matvec_rows, false, true, PD_N_KERNELS,
        .exact = true, .fallback = PD_VARIANT_MATVEC_DOT},
    [PD_VARIANT_MATVEC_DOT] = {PD_VARIED_MATVEC, "dot", PD_KERNELS_matvec_dot, true, false, PD_N_KERNELS,
        .fallback = PD_VARIANT_MATVEC_COLUMNS},
    [PD_VARIANT_MATVEC_COLUMNS] = {PD_VARIED_MATVEC, "columns", PD_KERNELS_matvec, true, true, PD_N_KERNELS,
        .exact = true, .fallback = NO_VARIANT},
    [PD_VARIANT_ATTENTION_ROWS] = {PD_VARIED_ATTENTION, "rows", PD_KERNELS_attention_rows, false, true, PD_N_KERNELS,
        .exact = true, .fallback = PD_VARIANT_ATTENTION_COOP},
    [PD_VARIANT_ATTENTION_COOP] = {PD_VARIED_ATTENTION, "coop", PD_KERNELS_attention_coop, true, false, PD_N_KERNELS,
        .fallback = PD_VARIANT_ATTENTION_HALF},
    [PD_VARIANT_ATTENTION_HALF] = {PD_VARIED_ATTENTION, "half", PD_KERNELS_attention_half, true, false, PD_N_KERNELS,
        .fallback = PD_VARIANT_ATTENTION_TILE},
    [PD_VARIANT_ATTENTION_TILE] = {PD_VARIED_ATTENTION, "tile", PD_KERNELS_attention_tile, true, false, PD_N_KERNELS,
        .exact = true, .fallback = PD_VARIANT_ATTENTION_COLUMNS},
    [PD_VARIANT_ATTENTION_COLUMNS] = {PD_VARIED_ATTENTION, "columns", PD_KERNELS_attention, true, true, PD_N_KERNELS,
        .exact = true, .fallback = NO_VARIANT},
};

/* The first choice for each operation. */
static const enum pd_variant preferred[PD_N_VARIED] = {
    [PD_VARIED_MATMUL] = PD_VARIANT_MATMUL_COOP, [PD_VARIED_MATVEC] = PD_VARIANT_MATVEC_ROWS,
    [PD_VARIED_ATTENTION] = PD_VARIANT_ATTENTION_ROWS,
};

/* What the device lacks for it, or NULL. All kernels of a kind need the same. */
static const char *lacks(const peridot_device_info *device, enum pd_variant v)
{
    uint32_t type = 0;
    while (pd_kernel_of(rows[v].kind, type) == PD_N_KERNELS) type++;
    return pd_kernel_lacks(device, pd_kernel_of(rows[v].kind, type));
}

bool pd_variant_available(const peridot_device_info *device, enum pd_variant v) { return !lacks(device, v); }

/* Variants that the device can run, but more slowly than the next. Mesa lists cooperative matrices for Intel's
 * integrated GPUs before Lunar Lake (8 lanes), which have no matrix units: it emulates them, with some 160 spills on
 * most. Where an integer dot product is several instructions, it gains nothing over fp32 tiles, which are exact.
 * Intel's GPUs issue 16 halves like 8 floats, but halves that share a word must be moved apart first. */
static bool is_slow(const peridot_device_info *device, enum pd_variant v)
{
    return ((v == PD_VARIANT_MATMUL_COOP || v == PD_VARIANT_ATTENTION_COOP) && device->type == PERIDOT_DEVICE_INTEGRATED
            && device->matrix_subgroup_size < 16)
        || ((v == PD_VARIANT_MATMUL_DOT || v == PD_VARIANT_MATVEC_DOT) && !device->integer_dot_instruction)
        || ((v == PD_VARIANT_MATMUL_HALF || v == PD_VARIANT_ATTENTION_HALF) && device->vendor_id == INTEL);
}

static bool is_recommended(const peridot_device_info *device, enum pd_variant v)
{
    return device->type == PERIDOT_DEVICE_CPU ? rows[v].on_cpu : rows[v].on_gpu && !is_slow(device, v);
}

/* What is taken in v's place. Only an exact variant takes the place of an exact one. */
static enum pd_variant fallback_of(enum pd_variant v)
{
    enum pd_variant other = rows[v].fallback;
    while (rows[v].exact && other != NO_VARIANT && !rows[other].exact) other = rows[other].fallback;
    return other;
}

static struct pd_variants best_for(const peridot_device_info *device, bool exact)
{
    struct pd_variants variants = {.exact = exact};
    for (int operation = 0; operation < PD_N_VARIED; operation++) {
        enum pd_variant v = preferred[operation];
        while (!(is_recommended(device, v) && pd_variant_available(device, v) && (rows[v].exact || !exact)))
            v = rows[v].fallback;
        variants.of[operation] = v;
    }
    return variants;
}

struct pd_variants pd_variants_default(const peridot_device_info *device) { return best_for(device, false); }

void pd_variants_make_batch_invariant(struct pd_variants *variants)
{
    variants->batch_invariant = true;
    if (variants->of[PD_VARIED_MATVEC] == PD_VARIANT_MATVEC_DOT && !variants->forced[PD_VARIED_MATVEC])
        variants->of[PD_VARIED_MATVEC] = PD_VARIANT_MATVEC_COLUMNS;
}

void pd_variants_force(struct pd_variants *variants, enum pd_variant v)
{
    variants->of[rows[v].operation] = v;
    variants->forced[rows[v].operation] = true;
}

struct pd_row_layout pd_row_layout_of(const peridot_device_info *device, enum pd_dtype dtype, uint32_t n)
{
    bool lanes_take_rows = pd_variants_default(device).of[PD_VARIED_MATVEC] == PD_VARIANT_MATVEC_ROWS;
    return (struct pd_row_layout){dtype, n, pd_device_row_interleave(dtype, lanes_take_rows)};
}

enum pd_variant pd_variant_for_type(enum pd_variant v, uint32_t type)
{
    while (pd_variant_kernel(v, type) == PD_N_KERNELS) v = fallback_of(v);
    return v;
}

enum pd_kernel_id pd_variant_kernel(enum pd_variant v, uint32_t type) { return pd_kernel_of(rows[v].kind, type); }

enum pd_kernel_id pd_variant_pack(enum pd_variant v, uint32_t type)
{
    const struct pd_block_layout *l = &pd_block_layouts[pd_device_dtype((enum pd_dtype)type)];
    return rows[v].pack == PD_KERNEL_pack_q16 && PD_IS_COARSE(l->low, l->high) ? PD_KERNEL_pack_q8 : rows[v].pack;
}

static bool is_sound(const struct pd_gpu *gpu, enum pd_variant v, uint32_t type)
{
    enum pd_kernel_id id = pd_variant_kernel(v, type), pack = pd_variant_pack(v, type);
    return id != PD_N_KERNELS && pd_variant_available(pd_gpu_info(gpu), v) && !pd_kernel_is_wrong(gpu, id)
        && !(pack != PD_N_KERNELS && pd_kernel_is_wrong(gpu, pack));
}

enum pd_variant pd_variant_after(const struct pd_gpu *gpu, enum pd_variant v, uint32_t type)
{
    for (enum pd_variant other = fallback_of(v); other != NO_VARIANT; other = fallback_of(other))
        if (is_sound(gpu, other, type) && !is_slow(pd_gpu_info(gpu), other)) return other;
    return pd_variant_for_type(v, type);
}

enum pd_variant pd_variant_working(const struct pd_gpu *gpu, enum pd_variant v, uint32_t type)
{
    return is_sound(gpu, v, type) ? v : pd_variant_after(gpu, v, type);
}

bool pd_kernel_has_fallback(enum pd_kernel_id id)
{
    if (id == PD_KERNEL_sample) return true;      /* the host: steps are then not queued ahead */
    if (id == PD_KERNEL_rate_read) return true;   /* measure */
    if (id == PD_KERNEL_matmul_reduce || id == PD_KERNEL_pack_q8) return true;   /* no splits; as pack_q16 */
    for (int v = 0; v < PD_N_VARIANTS; v++) {
        bool here = pd_kernel_kind_of(id) == rows[v].kind || id == rows[v].pack;
        if (here && rows[v].fallback != NO_VARIANT) return true;
    }
    return false;
}

/* "matmul=coop, matmul=tile, ..." */
static const char *all_names(char *out, size_t size)
{
    size_t at = 0;
    for (int v = 0; v < PD_N_VARIANTS && at < size; v++)
        at += (size_t)snprintf(out + at, size - at, "%s%s=%s", v ? ", " : "", operation_names[rows[v].operation],
                               rows[v].name);
    return out;
}

static int variants_find(const char *text)
{
    char name[64], names[256];
    for (int v = 0; v < PD_N_VARIANTS; v++) {
        snprintf(name, sizeof name, "%s=%s", operation_names[rows[v].operation], rows[v].name);
        if (strcmp(name, text) == 0) return v;
    }
    pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no kernel variant %.64s; the variants are %s", text,
            all_names(names, sizeof names));
    return -1;
}

peridot_status pd_variants_choose(struct pd_variants *out, const peridot_device_info *device,
                                  peridot_precision precision, const char *const *list, size_t n)
{
    if (precision != PERIDOT_PRECISION_DEFAULT && precision != PERIDOT_PRECISION_EXACT)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no precision %d", (int)precision);
    *out = best_for(device, precision == PERIDOT_PRECISION_EXACT);
    for (size_t i = 0; i < n; i++) {
        int v = variants_find(list[i]);
        if (v < 0) return PERIDOT_ERROR_ARGUMENT;
        if (out->exact && !rows[v].exact)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s contradicts precision exact: it rounds what it multiplies",
                           list[i]);
        const char *lacking = lacks(device, (enum pd_variant)v);
        if (lacking)
            return pd_fail(PERIDOT_ERROR_DEVICE, "%s cannot do %s: it lacks %s", device->name, list[i], lacking);
        pd_variants_force(out, (enum pd_variant)v);
    }
    return PERIDOT_OK;
}

void pd_variants_text(char *out, size_t size, const struct pd_variants *variants)
{
    size_t at = 0;
    for (int o = 0; o < PD_N_VARIED && at < size; o++)
        at += (size_t)snprintf(out + at, size - at, "%s%s=%s", o ? ", " : "", operation_names[o],
                               rows[variants->of[o]].name);
}

bool pd_variants_at(peridot_variant *out, const peridot_device_info *device, size_t i)
{
    if (i >= PD_N_VARIANTS) return false;
    const struct row *row = &rows[i];
    struct pd_variants taken = pd_variants_default(device);
    *out = (peridot_variant){.operation = operation_names[row->operation], .name = row->name,
        .available = pd_variant_available(device, (enum pd_variant)i),
        .chosen = taken.of[row->operation] == (enum pd_variant)i, .exact = row->exact};
    return true;
}

/* ---- kernels ---- */

/* Ids plus 1, so that 0 is none. */
static const uint16_t ids[PD_N_KERNEL_KINDS][PD_N_DTYPES] = {
#define PD_KERNEL(name, source, defines, push, needs) [PD_KERNELS_##name][0] = 1 + PD_KERNEL_##name,
#define PD_TYPED(name, source, types, defines, push, needs) types(PD_OF_TYPE, name)
#define PD_OF_TYPE(type, enumerator, name) [PD_KERNELS_##name][enumerator] = 1 + PD_KERNEL_##name##_##type,
#include "kernels.def"
};

static const struct place {
    uint16_t kind, type;
} places[PD_N_KERNELS] = {
#define PD_KERNEL(name, source, defines, push, needs) [PD_KERNEL_##name] = {PD_KERNELS_##name, 0},
#define PD_TYPED(name, source, types, defines, push, needs) types(PD_OF_TYPE, name)
#define PD_OF_TYPE(type, enumerator, name) [PD_KERNEL_##name##_##type] = {PD_KERNELS_##name, enumerator},
#include "kernels.def"
};

enum pd_kernel_id pd_kernel_of(enum pd_kernel_kind kind, uint32_t type)
{
    uint32_t id = ids[kind][pd_device_dtype((enum pd_dtype)type)];   /* types of caches are their own */
    return id ? (enum pd_kernel_id)(id - 1) : PD_N_KERNELS;
}

enum pd_kernel_kind pd_kernel_kind_of(enum pd_kernel_id id) { return (enum pd_kernel_kind)places[id].kind; }
uint32_t pd_kernel_type_of(enum pd_kernel_id id) { return places[id].type; }
