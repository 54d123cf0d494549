#include "report.h"
#include "../text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Links one after the other, as those of a machine share its memory. */
static peridot_status measure(struct cmd_rank *own, const struct mpi_place *place)
{
    struct mpi_speed link = {0}, unused;
    own->busy = mpi_busy();
    if (place->rank > 0) CMD_TRY(mpi_ping(&unused, place->rank - 1, false));
    if (place->rank + 1 < place->n_ranks) CMD_TRY(mpi_ping(&link, place->rank + 1, true));
    own->bandwidth = link.bandwidth;
    own->latency = link.latency;
    return PERIDOT_OK;
}

static void print(const struct cmd_rank *r, int rank)
{
    char range[32], link[64] = "";
    snprintf(range, sizeof range, "%" PRIu32 "-%" PRIu32, r->first_layer, r->first_layer + r->n_layers - 1);
    if (r->bandwidth > 0)
        snprintf(link, sizeof link, "%s/s, %.1f us", cmd_size_text((uint64_t)r->bandwidth), 1e6 * r->latency);
    fprintf(stderr, "%-5d %-16.16s %-32.32s %-8s %10s %4.0f %%  %s\n", rank, r->host, r->device, range,
            cmd_size_text(r->memory), 100 * r->busy, link);
}

peridot_status mpi_report_work(struct cmd_rank *own, const struct mpi_place *place)
{
    CMD_TRY(measure(own, place));
    return mpi_send(0, own, sizeof *own);
}

peridot_status mpi_report(struct cmd_rank *out, struct cmd_rank *own, const struct mpi_place *place)
{
    CMD_TRY(measure(own, place));
    out[0] = *own;
    for (int r = 1; r < place->n_ranks; r++) {
        char *data;
        size_t size;
        CMD_TRY(mpi_receive(&data, &size, r));
        out[r] = (struct cmd_rank){.n_layers = 1};
        memcpy(&out[r], data, cmd_min(size, sizeof *out));
        free(data);
    }
    fprintf(stderr, "%-5s %-16s %-32s %-8s %10s %6s  %s\n", "rank", "host", "device", "layers", "memory", "busy",
            "link to the next rank");
    for (int r = 0; r < place->n_ranks; r++) print(&out[r], r);
    return PERIDOT_OK;
}
