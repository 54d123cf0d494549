#include "ranks.h"

int cmd_ranks_run(int argc, char **argv, int (*command)(int argc, char **argv)) { return command(argc, argv); }

void cmd_ranks_opened(const peridot_model *model) { (void)model; }

peridot_status cmd_ranks_divide(const peridot_link **link, const char **device, const struct cmd_model_args *args)
{
    (void)device, (void)args;
    *link = NULL;
    return PERIDOT_OK;
}
