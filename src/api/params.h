/* Structs of peridot.h that begin with their size, so that programs and libraries of different versions understand each
 * other. When one grows after a release, its size in that release is what 0 stands for. */
#ifndef PD_API_PARAMS_H
#define PD_API_PARAMS_H

#include "base/status.h"

/* A program's params as this library has them: what the program does not know is 0, and all of it where `from` is NULL.
 * Fails where the program sets what this library does not know; `name` is the struct's. */
peridot_status pd_params_read(void *to, size_t to_size, const void *from, const char *name);
/* The reverse, of results: writes what the program knows. `to` may be NULL. */
void pd_result_write(void *to, const void *from, size_t from_size);

#define PD_PARAMS_READ(to, from) pd_params_read(&(to), sizeof(to), from, #from)

#endif
