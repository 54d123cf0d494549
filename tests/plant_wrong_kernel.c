/* plant_wrong_kernel CACHE KERNEL...: a self-test of these kernels with their results spoilt, remembered in the folder
 * CACHE: how tests of the command come by a device that gives wrong answers. */
#include "damage.h"
#include "selftest/selftest.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    struct pd_gpu *gpu;
    if (argc < 3) return 2;
    peridot_status status = pd_gpu_open(&gpu, NULL, argv[1]);
    for (int i = 2; i < argc && status == PERIDOT_OK; i++) {
        struct pd_selftest test = {.only = argv[i], .after_run = damage_numbers};
        status = pd_selftest(gpu, argv[1], &test);
    }
    if (status != PERIDOT_OK) fprintf(stderr, "plant_wrong_kernel: %s\n", pd_error());
    pd_gpu_close(gpu);
    return status != PERIDOT_OK;
}
