#include "cli.h"

int cmd_ranks_run(int argc, char **argv, int (*command)(int argc, char **argv)) { return command(argc, argv); }

void cmd_ranks_opened(const peridot_model *model) { (void)model; }

peridot_status cmd_ranks_divide(const peridot_link **link, const char **device, const struct cmd_model_args *args)
{
    (void)device, (void)args;
    *link = NULL;
    return PERIDOT_OK;
}

peridot_status cmd_ranks_report(struct cmd_rank *out, size_t *n)
{
    (void)out;
    *n = 0;
    return PERIDOT_OK;
}

struct cmd_part cmd_ranks_part(void) { return (struct cmd_part){.n = 1}; }

peridot_status cmd_ranks_broadcast(char **data, size_t *size)
{
    (void)data, (void)size;
    return PERIDOT_OK;
}

peridot_status cmd_ranks_collect(char **data, size_t *size)
{
    *data = NULL;
    *size = 0;
    return PERIDOT_OK;
}

uint32_t cmd_ranks_count(void) { return 1; }
