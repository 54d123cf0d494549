/* What the last self-test on a device and driver found: the kernels that give wrong answers there. The worst that a
 * forged line can do is that a slower kernel is taken. */
#include "gpu/notes.h"
#include "gpu/vk.h"

#include <string.h>

static const struct pd_notes notes = {"wrong", "peridot: kernels that a self-test found wrong"};

static bool take_note(void *user, const struct pd_note *note)
{
    bool *wrong = user;
    wrong[note->id] = true;
    return !note->text[0];
}

void pd_verdict_read(bool wrong[PD_N_KERNELS], const peridot_device_info *device, const char *directory)
{
    memset(wrong, 0, sizeof *wrong * PD_N_KERNELS);
    if (!pd_notes_read(&notes, device, directory, take_note, wrong)) memset(wrong, 0, sizeof *wrong * PD_N_KERNELS);
}

peridot_status pd_verdict_set(struct pd_gpu *gpu, const char *directory, const bool wrong[PD_N_KERNELS])
{
    struct pd_note list[PD_N_KERNELS];
    size_t n = 0;
    memcpy(gpu->wrong, wrong, sizeof gpu->wrong);
    for (int id = 0; id < PD_N_KERNELS; id++)
        if (wrong[id]) list[n++] = (struct pd_note){.id = (enum pd_kernel_id)id};
    if (!directory) return PERIDOT_OK;
    return n ? pd_notes_write(&notes, &gpu->info, directory, list, n) : pd_notes_remove(&notes, &gpu->info, directory);
}

bool pd_kernel_is_wrong(const struct pd_gpu *gpu, enum pd_kernel_id id) { return gpu->wrong[id]; }
