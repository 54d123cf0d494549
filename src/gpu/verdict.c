/* What the last self-test on a device and driver found: the kernels that give wrong answers there, in a small text file
 * beside the pipeline cache. A line is the name of a kernel and the hash of its code: it says nothing of a kernel that has
 * changed since. The file may be damaged, or anybody's: what is no such line is skipped, and the worst that a line can do
 * is that a slower kernel is taken. */
#include "gpu/vk.h"

#include "base/num.h"
#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char first_line[] = "peridot: kernels that a self-test found wrong\n";

enum { FILE_MAX = 64 << 10, LINE_MAX_SIZE = 64 };

static char *verdict_path(const peridot_device_info *device, const char *directory)
{
    char name[64];
    snprintf(name, sizeof name, "wrong-%s.txt", device->cache_key);
    return pd_path_join(directory, name);
}

static int make_line(char line[LINE_MAX_SIZE], enum pd_kernel_id id)
{
    return snprintf(line, LINE_MAX_SIZE, "%s %016" PRIx64 "\n", pd_kernel_name(id), pd_kernel_hash(id));
}

static void take_line(bool wrong[PD_N_KERNELS], const char *line, size_t size)
{
    char known[LINE_MAX_SIZE];
    for (int id = 0; id < PD_N_KERNELS; id++)
        if (make_line(known, (enum pd_kernel_id)id) == (int)size && memcmp(known, line, size) == 0) wrong[id] = true;
}

static void take_lines(bool wrong[PD_N_KERNELS], const char *text, size_t size)
{
    size_t at = sizeof first_line - 1;
    if (size > FILE_MAX || size < at || memcmp(text, first_line, at) != 0) return;
    while (at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t line_size = end ? (size_t)(end - (text + at)) + 1 : size - at;
        take_line(wrong, text + at, line_size);
        at += line_size;
    }
}

void pd_verdict_read(bool wrong[PD_N_KERNELS], const peridot_device_info *device, const char *directory)
{
    struct pd_map map = {0};
    memset(wrong, 0, sizeof *wrong * PD_N_KERNELS);
    char *path = directory ? verdict_path(device, directory) : NULL;
    if (path && pd_is_file(path) && pd_map_open(&map, path) == PERIDOT_OK)
        take_lines(wrong, (const char *)map.data, (size_t)map.size);
    pd_map_close(&map);
    free(path);
}

static peridot_status write_lines(struct pd_writer *w, const bool wrong[PD_N_KERNELS])
{
    char line[LINE_MAX_SIZE];
    PD_TRY(pd_writer_write(w, first_line, sizeof first_line - 1));
    for (int id = 0; id < PD_N_KERNELS; id++)
        if (wrong[id]) PD_TRY(pd_writer_write(w, line, (size_t)make_line(line, (enum pd_kernel_id)id)));
    return pd_writer_commit(w);
}

static peridot_status remember(const char *path, const char *directory, const bool wrong[PD_N_KERNELS])
{
    struct pd_writer w;
    bool any = false;
    for (int id = 0; id < PD_N_KERNELS; id++) any = any || wrong[id];
    if (!any && (!pd_is_file(path) || remove(path) == 0)) return PERIDOT_OK;
    if (!any) return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be removed", path);
    PD_TRY(pd_make_directory(directory));
    PD_TRY(pd_writer_open(&w, path));
    peridot_status status = write_lines(&w, wrong);
    pd_writer_abort(&w);
    return status;
}

peridot_status pd_verdict_set(struct pd_gpu *gpu, const char *directory, const bool wrong[PD_N_KERNELS])
{
    memcpy(gpu->wrong, wrong, sizeof gpu->wrong);
    char *path = directory ? verdict_path(&gpu->info, directory) : NULL;
    if (!path) return directory ? pd_fail_alloc(strlen(directory), "path") : PERIDOT_OK;
    peridot_status status = remember(path, directory, wrong);
    free(path);
    return status;
}

bool pd_kernel_is_wrong(const struct pd_gpu *gpu, enum pd_kernel_id id) { return gpu->wrong[id]; }
