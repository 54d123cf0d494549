/* Devices that are kept for the tests that open them next: keep_gpu.c. */
#ifndef KEEP_GPU_H
#define KEEP_GPU_H

/* Before main returns: what atexit calls comes after drivers and layers have ended. */
void close_kept_gpus(void);

#endif
