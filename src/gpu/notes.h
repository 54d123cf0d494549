/* Text files in the cache folder that say something of kernels, one file of each sort for each device and driver. A
 * line is the name of a kernel, the hash of its SPIR-V, and a text: it says nothing of a kernel that has changed since.
 * The files are untrusted input: one with a line that nobody wrote so says nothing at all. */
#ifndef PD_GPU_NOTES_H
#define PD_GPU_NOTES_H

#include "gpu/gpu.h"

/* A sort of file. */
struct pd_notes {
    const char *name;    /* NAME-<device and driver>.txt */
    const char *title;   /* the first line */
};

struct pd_note {
    enum pd_kernel_id id;
    char text[64];       /* what follows the hash: " normed 2 64 32 1" */
};

/* Calls take, which is false for a text that nobody wrote, for each line of the file; directory NULL: none. False:
 * there is none, or it is damaged, and what was taken is not to be kept. */
bool pd_notes_read(const struct pd_notes *notes, const peridot_device_info *device, const char *directory,
                   bool (*take)(void *user, const struct pd_note *note), void *user);
/* Replaces the file. */
peridot_status pd_notes_write(const struct pd_notes *notes, const peridot_device_info *device, const char *directory,
                              const struct pd_note *list, size_t n);
peridot_status pd_notes_remove(const struct pd_notes *notes, const peridot_device_info *device, const char *directory);

#endif
