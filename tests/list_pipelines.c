/* list_pipelines [SUBGROUP_SIZE [baseline]]: every pipeline that models take on the device, with its constants and the
 * hash of its SPIR-V, as peridot devices --pipelines would compile them, and without compiling any. With an operand, on
 * an integrated GPU with such subgroups that is like the device otherwise, or has no fp16, integer dot products and
 * cooperative matrices. tools/pipelines tells by it whether there is anything new. */
#include "gpu/gpu_.h"
#include "probe/probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_kernel(const struct pd_kernel *kernel)
{
    uint32_t n;
    const uint32_t *spec = pd_kernel_spec(kernel, &n);
    enum pd_kernel_id id = pd_kernel_id_of(kernel);
    printf("%s %s", pd_kernel_name(id), n ? "" : "-");
    for (uint32_t i = 0; i < n; i++) printf("%s%" PRIu32, i ? "," : "", spec[i]);
    printf(" %016" PRIx64 "\n", pd_kernel_hash(id));
}

int main(int argc, char **argv)
{
    struct pd_gpu *gpu;
    peridot_status status = pd_gpu_open(&gpu, NULL, NULL);
    if (argc > 1 && status == PERIDOT_OK) {
        gpu->info.type = PERIDOT_DEVICE_INTEGRATED;
        gpu->info.subgroup_size = gpu->info.matrix_subgroup_size = (uint32_t)strtoul(argv[1], NULL, 10);
        if (argc > 2)
            gpu->info.fp16_arithmetic = gpu->info.integer_dot = gpu->info.integer_dot_instruction
                = gpu->info.cooperative_matrix = false;
    }
    if (status == PERIDOT_OK) {
        pd_kernels_defer(gpu);
        status = pd_pipelines_compile(gpu);
    }
    if (status == PERIDOT_OK)
        for (const struct pd_kernel *k = pd_kernel_next(gpu, NULL); k; k = pd_kernel_next(gpu, k)) print_kernel(k);
    else fprintf(stderr, "list_pipelines: %s\n", pd_error());
    pd_gpu_close(gpu);
    return status != PERIDOT_OK;
}
