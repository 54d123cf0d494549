/* A program whose kernel reads past the end of a buffer, for tools/check to see that the validation layers see it in
 * their GPU-assisted mode. */
#include "gpu/gpu.h"

#include <stdio.h>

enum { SIZE = 1 << 20, N = 64 };

static peridot_status plant(struct pd_gpu *gpu, struct pd_heap *heap, struct pd_commands *commands)
{
    static const uint32_t spec[] = {N, PD_GELU};
    const struct pd_kernel *kernel;
    struct pd_span span;
    PD_TRY(pd_kernel_get(&kernel, gpu, PD_KERNEL_glu, spec, 2));
    PD_TRY(pd_heap_alloc(&span, heap, SIZE, "planted"));
    /* of the N numbers at gate the first is the buffer's last */
    struct pd_glu_push push = {.gate = span.address + SIZE - sizeof(float), .up = span.address, .y = span.address,
        .n = N, .gate_stride = N, .up_stride = N, .y_stride = N};
    PD_TRY(pd_commands_begin(commands));
    pd_dispatch(commands, kernel, &push, 1, 1, 1);
    PD_TRY(pd_commands_end(commands));
    PD_TRY(pd_commands_run(commands));
    return pd_commands_run(commands);   /* the layers may look at what the last run did too late */
}

int main(void)
{
    struct pd_gpu *gpu = NULL;
    struct pd_heap *heap = NULL;
    struct pd_commands *commands = NULL;
    peridot_status status = pd_gpu_open(&gpu, NULL, NULL);
    if (status == PERIDOT_OK) status = pd_heap_create(&heap, gpu, PD_HEAP_DEVICE, SIZE);
    if (status == PERIDOT_OK) status = pd_commands_create(&commands, gpu);
    if (status == PERIDOT_OK) status = plant(gpu, heap, commands);
    if (status != PERIDOT_OK) fprintf(stderr, "plant_overrun: %s\n", pd_error());
    pd_commands_free(commands);
    pd_heap_free(heap);
    pd_gpu_close(gpu);
    return status != PERIDOT_OK;
}
