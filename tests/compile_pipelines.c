/* compile_pipelines: the command, of which `devices --pipelines` compiles the pipelines that standard input has rows of
 * list_pipelines for, instead of all: those of which tools/pipelines knows nothing yet. */
#include "gpu/gpu_.h"
#include "probe/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

peridot_status __wrap_pd_pipelines_compile(struct pd_gpu *gpu);

static peridot_status compile(struct pd_gpu *gpu, const char *name, const char *constants)
{
    const struct pd_kernel *kernel;
    uint32_t spec[PD_MAX_SPEC], n = 0;
    for (const char *at = constants; *at && *at != '-' && n < PD_MAX_SPEC; at += *at == ',') {
        char *end;
        spec[n++] = (uint32_t)strtoul(at, &end, 10);
        at = end;
    }
    for (enum pd_kernel_id id = 0; id < PD_N_KERNELS; id++)
        if (strcmp(pd_kernel_name(id), name) == 0) return pd_kernel_get(&kernel, gpu, id, spec, n);
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no kernel %s", name);
}

peridot_status __wrap_pd_pipelines_compile(struct pd_gpu *gpu)
{
    char name[64], constants[192];
    while (scanf("%63s %191s %*s", name, constants) == 2) PD_TRY(compile(gpu, name, constants));
    return PERIDOT_OK;
}
