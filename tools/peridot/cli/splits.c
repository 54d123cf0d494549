/* A model with experts between a device's memory and the host's: what would be where, what of it a token reads, and how
 * many tokens/s that allows at most, by the rates at which the device reads both. The reading of weights is all that is
 * counted: attention and the launches of kernels come on top, and experts are taken to be chosen anew for each token,
 * from wherever they lie. */
#include "cli.h"

#include "../base/base.h"

#include <inttypes.h>
#include <stdio.h>

/* Kernels read one matrix after the other, here or there. */
static double speed(const struct cmd_splits *s, const peridot_split *split)
{
    double seconds = (double)split->device_read / s->reads.device + (double)split->host_read / s->reads.host;
    return seconds > 0 ? 1 / seconds : 0;
}

static void add_split(struct cmd_splits *s, const peridot_file *file, uint32_t n_host)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->n_host[i] == n_host) return;
    s->n_host[s->n] = n_host;
    peridot_file_split(&s->at[s->n++], file, n_host);
}

peridot_status cmd_splits_find(struct cmd_splits *s, const peridot_file *file, const peridot_device_info *device,
                               uint64_t room)
{
    peridot_split split;
    uint32_t fewest = 0;
    *s = (struct cmd_splits){.device = device, .room = room, .n_layers = peridot_file_split(&split, file, 0)};
    if (!s->n_layers) return PERIDOT_OK;
    PD_TRY(peridot_measure_reads(&s->reads, device->uuid, cmd_cache_dir()));
    add_split(s, file, 0);
    if (device->unified_memory) return PERIDOT_OK;
    while (fewest < s->n_layers && split.device_size > room) peridot_file_split(&split, file, ++fewest);
    add_split(s, file, fewest);
    if (fewest < s->n_layers / 2) add_split(s, file, s->n_layers / 2);
    add_split(s, file, s->n_layers);
    return PERIDOT_OK;
}

void cmd_splits_print(const struct cmd_splits *s)
{
    if (!s->n) return;
    printf("experts (tokens/s at most on device %" PRIu32 ", which reads %s/s of its memory", s->device->index,
           cmd_size_text((uint64_t)s->reads.device));
    if (!s->device->unified_memory) printf(", %s/s of the host's", cmd_size_text((uint64_t)s->reads.host));
    puts(")\n  IN HOST MEMORY       SIZE   A TOKEN READS   ON DEVICE   A TOKEN READS   TOKENS/S");
    for (size_t i = 0; i < s->n; i++) {
        const peridot_split *split = &s->at[i];
        printf("  %3" PRIu32 " of %3" PRIu32 " layers  %9s       %9s   %9s       %9s   %8.3g%s\n", s->n_host[i],
               s->n_layers, cmd_size_text(split->host_size), cmd_size_text(split->host_read),
               cmd_size_text(split->device_size), cmd_size_text(split->device_read), speed(s, split),
               split->device_size > s->room ? "  does not fit" : "");
    }
}

void cmd_splits_write(const struct cmd_splits *s)
{
    printf(",\n \"experts\": {\"device\": %" PRIu32 ", \"device_read\": %.0f, \"host_read\": %.0f, \"room\": %" PRIu64
           ", \"n_layers\": %" PRIu32 ", \"splits\": [", s->device->index, s->reads.device, s->reads.host, s->room,
           s->n_layers);
    for (size_t i = 0; i < s->n; i++) {
        const peridot_split *split = &s->at[i];
        printf("%s\n  {\"n_host_layers\": %" PRIu32 ", \"host_size\": %" PRIu64 ", \"host_read\": %" PRIu64
               ", \"device_size\": %" PRIu64 ", \"device_read\": %" PRIu64 ", \"tokens_per_s\": %.6g, \"fits\": %s}",
               i ? "," : "", s->n_host[i], split->host_size, split->host_read, split->device_size, split->device_read,
               speed(s, split), split->device_size <= s->room ? "true" : "false");
    }
    fputs("]}", stdout);
}
