/* Which layers each rank holds: by what its device has free, and how fast it reads. */
#include "mpi_.h"
#include "../base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define USABLE 0.9   /* of free memory: the cache and activations need some */

/* ---- sizes ---- */

/* The layer whose tensor it is: "blk.3.ffn_up.weight", "model.layers.3.mlp.up_proj.weight"; UINT32_MAX: none's. */
static uint32_t layer_of(const char *name)
{
    const char *at = strstr(name, "blk."), *layers = strstr(name, "layers.");
    char *end;
    if (!at && !layers) return UINT32_MAX;
    at = at ? at + strlen("blk.") : layers + strlen("layers.");
    unsigned long i = strtoul(at, &end, 10);
    return end > at && *end == '.' && i < UINT32_MAX ? (uint32_t)i : UINT32_MAX;
}

static void add_tensor(struct mpi_sizes *sizes, const peridot_tensor_info *t)
{
    uint32_t layer = layer_of(t->name);
    sizes->sum += t->size;
    if (layer < sizes->n_layers) sizes->layers[layer] += t->size;
    else if (strstr(t->name, "embd") || strstr(t->name, "embed_tokens")) sizes->embedding += t->size;
    else sizes->output += t->size;
}

peridot_status mpi_sizes_read(struct mpi_sizes *out, const char *path)
{
    peridot_file *file;
    *out = (struct mpi_sizes){0};
    PD_TRY(peridot_file_open(&file, path));
    const peridot_model_info *info = peridot_file_model(file);
    peridot_status status = info ? PERIDOT_OK : PERIDOT_ERROR_UNSUPPORTED;
    if (info) out->layers = calloc(info->n_layers, sizeof *out->layers);
    if (info && !out->layers) status = pd_fail_alloc(info->n_layers * sizeof *out->layers, "layers");
    if (status == PERIDOT_OK) {
        bool has_output = false;
        out->n_layers = info->n_layers;
        out->last_division = info->last_division;
        for (size_t i = 0; i < peridot_file_n_tensors(file); i++) {
            const peridot_tensor_info *t = peridot_file_tensor(file, i);
            has_output = has_output || strcmp(t->name, "output.weight") == 0 || strcmp(t->name, "lm_head.weight") == 0;
            add_tensor(out, t);
        }
        if (!has_output && info->head == PERIDOT_HEAD_LANGUAGE) out->output += out->embedding;   /* they are one */
    }
    peridot_file_close(file);
    return status;
}

/* ---- dividing ---- */

/* Bytes of layers begin .. end - 1 on a rank. */
static uint64_t size_of(const struct mpi_sizes *sizes, uint32_t begin, uint32_t end)
{
    uint64_t size = (begin == 0 ? sizes->embedding : 0) + (end == sizes->n_layers ? sizes->output : 0);
    for (uint32_t i = begin; i < end; i++) size += sizes->layers[i];
    return size;
}

/* What a token reads of them: of the embedding a row. */
static uint64_t read_of(const struct mpi_sizes *sizes, uint32_t begin, uint32_t end)
{
    return size_of(sizes, begin, end) - (begin == 0 ? sizes->embedding : 0);
}

static bool divide_fits(const struct mpi_sizes *sizes, const struct mpi_device *d, uint32_t begin, uint32_t end,
                        double seconds)
{
    return (double)size_of(sizes, begin, end) <= USABLE * (double)d->free
        && (double)read_of(sizes, begin, end) <= seconds * (d->read > 0 ? d->read : 1);
}

uint32_t mpi_first_too_small(const struct mpi_sizes *sizes, const struct mpi_device *devices, uint32_t n_ranks)
{
    uint32_t r = 0;
    while (r < n_ranks && (double)sizes->sum <= USABLE * (double)devices[r].free) r++;
    return r;
}

/* Each rank takes as many layers as fit, and leaves one to each of those behind it. */
static bool divide_within(uint32_t *n_layers, const struct mpi_sizes *sizes, const struct mpi_device *devices,
                          uint32_t n_ranks, double seconds)
{
    uint32_t begin = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        uint32_t end = begin + 1, most = sizes->last_division + 1 - (n_ranks - 1 - r);
        if (r + 1 == n_ranks) end = most = sizes->n_layers;
        if (!divide_fits(sizes, &devices[r], begin, end, seconds)) return false;
        while (end < most && divide_fits(sizes, &devices[r], begin, end + 1, seconds)) end++;
        n_layers[r] = end - begin;
        begin = end;
    }
    return begin == sizes->n_layers;
}

peridot_status mpi_divide(uint32_t *n_layers, const struct mpi_sizes *sizes, const struct mpi_device *devices,
                          uint32_t n_ranks)
{
    double low = 0, high = 0;
    uint64_t all_free = 0;
    if (sizes->last_division + 1 < n_ranks)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%" PRIu32 " ranks are more than the model's %" PRIu32 " layers",
                       n_ranks, sizes->last_division + 1);
    for (uint32_t r = 0; r < n_ranks; r++) {
        double all = (double)size_of(sizes, 0, sizes->n_layers) / (devices[r].read > 0 ? devices[r].read : 1);
        high = all > high ? all : high;
        all_free += devices[r].free;
    }
    if (!divide_within(n_layers, sizes, devices, n_ranks, high))
        return pd_fail(PERIDOT_ERROR_MEMORY, "the model's %s do not fit the %s that %" PRIu32 " ranks have free",
                       cmd_size_text(size_of(sizes, 0, sizes->n_layers)), cmd_size_text(all_free), n_ranks);
    for (int i = 0; i < 50; i++) {
        double middle = (low + high) / 2;
        if (divide_within(n_layers, sizes, devices, n_ranks, middle)) high = middle;
        else low = middle;
    }
    divide_within(n_layers, sizes, devices, n_ranks, high);
    return PERIDOT_OK;
}

peridot_status mpi_divide_as(uint32_t *n_layers, const char *text, uint32_t n_ranks, uint32_t n)
{
    uint32_t begin = 0, r = 0;
    const char *at = text;
    for (; *at && r < n_ranks; r++) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        if (end == at || (*end && *end != ',') || first != begin || last < first || last >= n) break;
        n_layers[r] = (uint32_t)(last + 1 - first);
        begin = (uint32_t)last + 1;
        at = *end ? end + 1 : end;
    }
    if (*at == 0 && r == n_ranks && begin == n) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT,
                   "--layers %s: %" PRIu32 " ranks need a range each, which together are 0-%" PRIu32, cmd_shown(text),
                   n_ranks, n - 1);
}

void mpi_print_division(const uint32_t *n_layers, const struct mpi_sizes *sizes, const struct mpi_device *devices,
                        uint32_t n_ranks)
{
    uint32_t begin = 0;
    fprintf(stderr, "%-5s %-16s %-32s %-8s %10s %10s %12s\n", "rank", "host", "device", "layers", "weights", "free",
            "reads");
    for (uint32_t r = 0; r < n_ranks; r++) {
        char range[32], rate[32] = "-";
        uint32_t end = begin + n_layers[r];
        snprintf(range, sizeof range, "%" PRIu32 "-%" PRIu32, begin, end - 1);
        if (devices[r].read > 0) snprintf(rate, sizeof rate, "%s/s", cmd_size_text((uint64_t)devices[r].read));
        fprintf(stderr, "%-5" PRIu32 " %-16.16s %-32.32s %-8s %10s %10s %12s\n", r, devices[r].host, devices[r].name,
                range, cmd_size_text(size_of(sizes, begin, end)), cmd_size_text(devices[r].free), rate);
        begin = end;
    }
}
