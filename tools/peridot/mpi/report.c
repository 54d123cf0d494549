#include "report.h"
#include "../text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Links one after the other, as those of a machine share its memory. */
static peridot_status measure(struct mpi_report *own, const struct mpi_place *place)
{
    struct mpi_speed unused;
    own->busy = mpi_busy();
    if (place->rank > 0) CMD_TRY(mpi_ping(&unused, place->rank - 1, false));
    return place->rank + 1 < place->n_ranks ? mpi_ping(&own->link, place->rank + 1, true) : PERIDOT_OK;
}

static void print(const struct mpi_report *r, int rank, bool is_last)
{
    char range[32], link[64] = "";
    snprintf(range, sizeof range, "%" PRIu32 "-%" PRIu32, r->first_layer, r->first_layer + r->n_layers - 1);
    if (!is_last)
        snprintf(link, sizeof link, "%s/s, %.1f us", cmd_size_text((uint64_t)r->link.bandwidth), 1e6 * r->link.latency);
    fprintf(stderr, "%-5d %-16.16s %-32.32s %-8s %10s %4.0f %%  %s\n", rank, r->host, r->device, range,
            cmd_size_text(r->memory), 100 * r->busy, link);
}

peridot_status mpi_report_work(struct mpi_report *own, const struct mpi_place *place)
{
    CMD_TRY(measure(own, place));
    return mpi_send(0, own, sizeof *own);
}

peridot_status mpi_report(struct mpi_report *own, const struct mpi_place *place)
{
    CMD_TRY(measure(own, place));
    fprintf(stderr, "%-5s %-16s %-32s %-8s %10s %6s  %s\n", "rank", "host", "device", "layers", "memory", "busy",
            "link to the next rank");
    print(own, 0, false);
    for (int r = 1; r < place->n_ranks; r++) {
        struct mpi_report other = {.n_layers = 1};
        char *data;
        size_t size;
        CMD_TRY(mpi_receive(&data, &size, r));
        memcpy(&other, data, cmd_min(size, sizeof other));
        free(data);
        print(&other, r, r + 1 == place->n_ranks);
    }
    return PERIDOT_OK;
}
