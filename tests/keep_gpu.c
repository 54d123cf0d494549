/* Keeps a device that is closed for the next one that is opened, in peridot_tests: most of what hundreds of openings of
 * small models take is making the device and the same pipelines anew. Only one without a cache of its own, that works
 * and has no memory allocated; what a test has changed of it is put right. Tests of opening itself are programs by
 * themselves, or give a cache. The build replaces pd_gpu_open and pd_gpu_close by these (--wrap). */
#include "keep_gpu.h"

#include "gpu/gpu_.h"

#include <pthread.h>
#include <string.h>

peridot_status __real_pd_gpu_open(struct pd_gpu **out, const char *selector, const char *cache_dir);
void __real_pd_gpu_close(struct pd_gpu *gpu);
peridot_status __wrap_pd_gpu_open(struct pd_gpu **out, const char *selector, const char *cache_dir);
void __wrap_pd_gpu_close(struct pd_gpu *gpu);

enum { MAX_KEPT = 8, MAX_PIPELINES = 300 };

static struct kept {
    struct pd_gpu *gpu;   /* NULL: none */
    struct pd_gpu opened; /* what it was then */
    char selector[64];
    bool busy;
} all[MAX_KEPT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

peridot_status __wrap_pd_gpu_open(struct pd_gpu **out, const char *selector, const char *cache_dir)
{
    const char *name = selector ? selector : "";
    struct kept *of = NULL;
    if (cache_dir || strlen(name) >= sizeof of->selector) return __real_pd_gpu_open(out, selector, cache_dir);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_KEPT && !of; i++)
        if (all[i].gpu && !all[i].busy && strcmp(all[i].selector, name) == 0) of = &all[i];
    if (of) of->busy = true;
    pthread_mutex_unlock(&lock);
    if (of) {
        *out = of->gpu;
        return PERIDOT_OK;
    }
    peridot_status status = __real_pd_gpu_open(out, selector, cache_dir);
    if (status != PERIDOT_OK) return status;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_KEPT && !of; i++)
        if (!all[i].gpu) of = &all[i];
    if (of) {
        *of = (struct kept){.gpu = *out, .opened = **out, .busy = true};
        strcpy(of->selector, name);
    }
    pthread_mutex_unlock(&lock);
    return PERIDOT_OK;
}

void __wrap_pd_gpu_close(struct pd_gpu *gpu)
{
    bool keep = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; gpu && i < MAX_KEPT; i++)
        if (all[i].gpu == gpu) {
            keep = pd_gpu_check(gpu) == PERIDOT_OK && pd_gpu_allocated(gpu) == 0
                && pd_gpu_n_pipelines(gpu) < MAX_PIPELINES;
            gpu->info = all[i].opened.info;
            gpu->vk = all[i].opened.vk;
            gpu->import_alignment = all[i].opened.import_alignment;
            gpu->max_block = all[i].opened.max_block;
            if (keep) all[i].busy = false;
            else all[i] = (struct kept){0};
        }
    pthread_mutex_unlock(&lock);
    if (!keep) __real_pd_gpu_close(gpu);
}

void close_kept_gpus(void)
{
    for (int i = 0; i < MAX_KEPT; i++)
        if (all[i].gpu && !all[i].busy) __real_pd_gpu_close(all[i].gpu);
}
