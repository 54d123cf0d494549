/* The file beside the pipeline cache has a line for each kernel and use: "matvec_q8_0 <hash of its code> normed 2 64 32 1". It may
 * be damaged, or anybody's: a line counts only if it is, letter by letter, one that this Peridot would write for the device,
 * so that the worst it can do is to make a kernel slower. */
#include "ops/tuning.h"

#include "base/num.h"
#include "base/os.h"
#include "ops/kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKGROUP = 256, N_ROWS = 4, MAX_WIDTH = 2, FILE_MAX = 64 << 10, LINE_MAX_SIZE = 96 };

/* ---- what there is ---- */

/* Workgroups that norm x for themselves should be few and large: enough to fill the device. Four rows at a time spill nowhere
 * (tools/pipelines). Lanes of a CPU take rows of their own, in subgroups of their own where nothing is shared; what is shared it
 * reads lane by lane, for eight rows at a time rather than four. */
static const struct {
    uint32_t rows, invocations, subgroups;   /* workgroup: whichever is more */
} table[2][2][2] = {   /* [matvec, matvec_rows][GPU, CPU][plain, with norms] */
    {{{4, 64, 1}, {4, 256, 1}}, {{4, 64, 1}, {4, 64, 1}}},
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
    uint32_t subgroups = table[rows][cpu][norms].subgroups * device->subgroup_size;
    return (struct pd_tuning){table[rows][cpu][norms].rows, (uint32_t)pd_max(table[rows][cpu][norms].invocations, subgroups), 0, 1};
}

/* First all workgroups of such subgroups as the driver takes, as a search may end early; then a few for each size of subgroups that
 * it can be asked for. */
bool pd_tuning_at(struct pd_tuning *out, const peridot_device_info *device, uint32_t i)
{
    uint32_t rows = 1u << i % N_ROWS, layout = i / N_ROWS;
    for (uint32_t width = 1; width <= MAX_WIDTH; width++)
        for (uint32_t workgroup = device->subgroup_size; workgroup <= MAX_WORKGROUP; workgroup *= 2, layout--) {
            *out = (struct pd_tuning){rows, workgroup, 0, width};
            if (layout == 0) return true;
        }
    if (device->min_subgroup_size == device->max_subgroup_size) return false;
    for (uint32_t size = (uint32_t)pd_max(device->min_subgroup_size, 8); size <= pd_min(device->max_subgroup_size, 64); size *= 2)
        for (uint32_t workgroup = 64; workgroup <= MAX_WORKGROUP; workgroup *= 4, layout--) {
            *out = (struct pd_tuning){rows, workgroup, size, 1};
            if (layout == 0) return true;
        }
    return false;
}

/* Half of the rows are the gate's. */
bool pd_tuning_fits(struct pd_tuning tuning, enum pd_kernel_id id, enum pd_use use)
{
    return pd_is_tuned(id) && (use != PD_USE_GATED || tuning.rows > 1) && (!is_rows(id) || tuning.width == 1);
}

struct pd_tuning pd_tuning_get(const struct pd_tunings *tunings, const peridot_device_info *device, enum pd_kernel_id id,
                               enum pd_use use)
{
    struct pd_tuning none = {0}, t = tunings ? tunings->of[id][use] : none;
    return t.rows ? t : pd_tuning_default(device, id, use);
}

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

static const char first_line[] = "peridot: rows, workgroups, subgroups and widths of matvec as measured\n";

static char *tuning_path(const peridot_device_info *device, const char *directory)
{
    char name[64];
    snprintf(name, sizeof name, "tune-%s.txt", device->cache_key);
    return pd_path_join(directory, name);
}

static size_t make_line(char line[LINE_MAX_SIZE], enum pd_kernel_id id, enum pd_use use, struct pd_tuning t)
{
    return (size_t)snprintf(line, LINE_MAX_SIZE, "%s %016" PRIx64 " %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
                            pd_kernel_name(id), pd_kernel_hash(id), pd_use_name(use), t.rows, t.workgroup, t.subgroup, t.width);
}

/* Default tunings are measured too. */
static bool tuning_of(struct pd_tuning *out, const peridot_device_info *device, enum pd_kernel_id id, enum pd_use use, uint32_t at)
{
    *out = pd_tuning_default(device, id, use);
    return at == 0 || pd_tuning_at(out, device, at - 1);
}

static bool is_line(const char *text, size_t size, enum pd_kernel_id id, enum pd_use use, struct pd_tuning t)
{
    char line[LINE_MAX_SIZE];
    return pd_tuning_fits(t, id, use) && make_line(line, id, use, t) == size && memcmp(line, text, size) == 0;
}

static void take_line(struct pd_tunings *out, const peridot_device_info *device, const char *text, size_t size)
{
    struct pd_tuning t;
    for (int id = 0; id < PD_N_KERNELS; id++) {
        const char *name = pd_kernel_name((enum pd_kernel_id)id);
        if (size <= strlen(name) || memcmp(text, name, strlen(name)) != 0 || text[strlen(name)] != ' ') continue;
        for (int use = 0; use < PD_N_USES; use++)
            for (uint32_t at = 0; tuning_of(&t, device, (enum pd_kernel_id)id, (enum pd_use)use, at); at++)
                if (is_line(text, size, (enum pd_kernel_id)id, (enum pd_use)use, t)) out->of[id][use] = t;
    }
}

static void take_lines(struct pd_tunings *out, const peridot_device_info *device, const char *text, size_t size)
{
    size_t at = sizeof first_line - 1;
    if (size > FILE_MAX || size < at || memcmp(text, first_line, at) != 0) return;
    while (at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t line_size = end ? (size_t)(end - (text + at)) + 1 : size - at;
        take_line(out, device, text + at, line_size);
        at += line_size;
    }
}

void pd_tunings_read(struct pd_tunings *out, const peridot_device_info *device, const char *directory)
{
    struct pd_map map = {0};
    *out = (struct pd_tunings){0};
    char *path = directory ? tuning_path(device, directory) : NULL;
    if (path && pd_is_file(path) && pd_map_open(&map, path) == PERIDOT_OK)
        take_lines(out, device, (const char *)map.data, (size_t)map.size);
    pd_map_close(&map);
    free(path);
}

static peridot_status write_lines(struct pd_writer *w, const struct pd_tunings *tunings)
{
    char line[LINE_MAX_SIZE];
    PD_TRY(pd_writer_write(w, first_line, sizeof first_line - 1));
    for (int id = 0; id < PD_N_KERNELS; id++)
        for (int use = 0; use < PD_N_USES; use++) {
            struct pd_tuning t = tunings->of[id][use];
            if (t.rows) PD_TRY(pd_writer_write(w, line, make_line(line, (enum pd_kernel_id)id, (enum pd_use)use, t)));
        }
    return pd_writer_commit(w);
}

peridot_status pd_tunings_write(const struct pd_tunings *tunings, const peridot_device_info *device, const char *directory)
{
    struct pd_writer w;
    char *path = tuning_path(device, directory);
    if (!path) return pd_fail_alloc(strlen(directory), "path");
    peridot_status status = pd_make_directory(directory);
    if (status == PERIDOT_OK) status = pd_writer_open(&w, path);
    if (status == PERIDOT_OK) {
        status = write_lines(&w, tunings);
        pd_writer_abort(&w);
    }
    free(path);
    return status;
}
