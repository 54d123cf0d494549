/* A program with two mistakes, for tools/check to see that the validation layers see: a fill whose size is no multiple
 * of four (core validation) and two fills of the same bytes with no barrier between them (synchronisation validation).
 * Both are reported while recording, and nothing is run. */
#include "gpu/gpu.h"

#include <stdio.h>

static peridot_status plant(struct pd_gpu *gpu, struct pd_heap *heap, struct pd_commands *commands)
{
    struct pd_span span;
    PD_TRY(pd_heap_alloc(&span, heap, 4096, "planted"));
    PD_TRY(pd_commands_begin(commands));
    pd_fill(commands, span, 1023, 0);
    pd_fill(commands, span, 4096, 1);
    PD_TRY(pd_commands_end(commands));
    return pd_gpu_info(gpu) ? PERIDOT_OK : PERIDOT_ERROR_DEVICE;
}

int main(void)
{
    struct pd_gpu *gpu = NULL;
    struct pd_heap *heap = NULL;
    struct pd_commands *commands = NULL;
    peridot_status status = pd_gpu_open(&gpu, NULL, NULL);
    if (status == PERIDOT_OK) status = pd_heap_create(&heap, gpu, PD_HEAP_DEVICE, 1 << 20);
    if (status == PERIDOT_OK) status = pd_commands_create(&commands, gpu);
    if (status == PERIDOT_OK) status = plant(gpu, heap, commands);
    if (status != PERIDOT_OK) fprintf(stderr, "plant_hazard: %s\n", pd_error());
    pd_commands_free(commands);
    pd_heap_free(heap);
    pd_gpu_close(gpu);
    return status != PERIDOT_OK;
}
