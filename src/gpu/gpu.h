/* A device, through Vulkan: which there are, memory, kernels, command buffers, and what was noted of a driver. No Vk
 * type or call appears outside this folder. */
#ifndef PD_GPU_GPU_H
#define PD_GPU_GPU_H

#include "base/base.h"
#include "params.h"
#include "peridot_tools.h"

/* ---- gpu ---- */

/* The GPU as the layers above see it: devices, memory in heaps, kernels, and recorded commands. No Vulkan type appears
 * here. Memory is addressed by 64-bit device addresses that go to kernels in push constants; kernels are the rows of
 * shaders/kernels.def. One queue, one timeline: work submitted later sees what was submitted before. A pd_gpu and
 * what is made of it is one thread's at a time; different ones share nothing, so that threads may use them at once. */

struct pd_gpu;

/* ---- devices: gpu.c, device.c ---- */

/* Every Vulkan device; *out (malloc) belongs to the caller. */
peridot_status pd_gpu_list(peridot_device_info **out, size_t *n);
/* Which of them pd_gpu_open opens, and why. */
peridot_status pd_gpu_choose(uint32_t *out, char reason[256], const peridot_device_info *infos, uint32_t n,
                             const char *selector);
/* selector: index, part of the name, UUID, PCI address; NULL: the fastest real GPU. cache_dir: NULL or where pipelines
 * are kept between runs. */
peridot_status pd_gpu_open(struct pd_gpu **out, const char *selector, const char *cache_dir);
/* Waits for the device, writes the pipeline cache. Heaps and commands must be gone. */
void pd_gpu_close(struct pd_gpu *gpu);
/* Opens a device to inspect what its compiler makes of kernels: without a cache, and with statistics where the driver
 * has them. */
peridot_status pd_gpu_open_compiler(struct pd_gpu **out, const char *selector);
const peridot_device_info *pd_gpu_info(const struct pd_gpu *gpu);
/* PERIDOT_ERROR_DEVICE_LOST once a submit has found the device lost, for good. */
peridot_status pd_gpu_check(const struct pd_gpu *gpu);
/* Why this device was chosen: "the only device". Borrowed until close. */
const char *pd_gpu_reason(const struct pd_gpu *gpu);

/* ---- memory: heap.c ---- */

/* A piece of device memory. host is its mapping, or NULL when the host cannot see it. Plain value, freed with its
 * heap. */
struct pd_span {
    uint64_t address;       /* device address, 256-byte aligned */
    uint64_t size;
    void *host;
    struct pd_block *block; /* private */
    uint64_t offset;        /* private: in the block */
};

enum pd_heap_kind {
    PD_HEAP_DEVICE,   /* fast for the GPU; mapped too on unified memory */
    PD_HEAP_HOST,     /* always mapped, coherent, cached where possible: results, staging */
    /* always mapped, coherent, the device's own where possible: what the host writes, and kernels read often */
    PD_HEAP_INPUT,
    PD_HEAP_HOST_RESIDENT   /* the host's memory, for what the host writes once and the GPU reads across the bus */
};

struct pd_heap;
/* Blocks of up to block_size bytes (0: the device's limit, at most 1 GiB) are allocated as spans need them. */
peridot_status pd_heap_create(struct pd_heap **out, struct pd_gpu *gpu, enum pd_heap_kind kind, uint64_t block_size);
void pd_heap_free(struct pd_heap *heap);
/* `size` must not exceed pd_gpu_max_span. Contents are undefined. `what` names it in the error sentence. */
peridot_status pd_heap_alloc(struct pd_span *out, struct pd_heap *heap, uint64_t size, const char *what);
/* Makes host memory (a file mapping: it is only read) visible to kernels where it is, without a copy. It must stay
 * mapped until the heap is freed. PERIDOT_ERROR_UNSUPPORTED when the device cannot: on unified memory most can. */
peridot_status pd_heap_import(struct pd_span *out, struct pd_heap *heap, const void *host, uint64_t size);
/* Whether pd_heap_import of such memory may succeed. */
bool pd_gpu_can_import(const struct pd_gpu *gpu);

/* Fails, with the numbers, when the device's free memory (of its heap, or of all heaps on unified memory) is smaller
 * than `size`. */
peridot_status pd_gpu_check_budget(struct pd_gpu *gpu, uint64_t size, const char *what);
uint64_t pd_gpu_max_span(const struct pd_gpu *gpu);
/* Bytes of the device's own memory that are allocated, through all heaps. */
uint64_t pd_gpu_allocated(const struct pd_gpu *gpu);

/* ---- copies between the host and spans: transfer.c ---- */

/* Fills a span from the host in pieces. begin returns memory for `size` bytes (at most PD_UPLOAD_MAX) to be written
 * before the matching end; where the span is mapped this is the span itself, else staging. */
#define PD_UPLOAD_MAX (16u << 20)
peridot_status pd_upload_begin(void **out, struct pd_gpu *gpu, struct pd_span span, uint64_t offset, uint64_t size);
peridot_status pd_upload_end(struct pd_gpu *gpu);
/* Copies host data into the span, or out of it; synchronous. */
peridot_status pd_span_write(struct pd_gpu *gpu, struct pd_span span, uint64_t offset, const void *data, uint64_t size);
peridot_status pd_span_read(struct pd_gpu *gpu, void *data, struct pd_span span, uint64_t offset, uint64_t size);
peridot_status pd_span_zero(struct pd_gpu *gpu, struct pd_span span);

/* ---- kernels: gpu.c, kernel.c ---- */

enum pd_kernel_id {
#define PD_KERNEL(name, source, defines, push, needs) PD_KERNEL_##name,
#include "kernels.def"
    PD_N_KERNELS
};

/* The last column of kernels.def: what a kernel needs beyond the baseline. Every such kernel that models use has a
 * fallback that needs nothing more and computes the same. */
enum pd_needs {
    PD_NEEDS_baseline,
    PD_NEEDS_wide,     /* 64-bit integers, and subgroups of a required size (4 to 32) with ballot operations */
    PD_NEEDS_half,     /* fp16 arithmetic */
    PD_NEEDS_dot,      /* dot products of four signed bytes; peridot_device_info.integer_dot */
    PD_NEEDS_coop      /* cooperative matrices of fp16 with fp32 sums; peridot_device_info.cooperative_matrix */
};
/* What a device, or this build, lacks for the kernel; NULL: nothing. */
const char *pd_kernel_lacks(const peridot_device_info *device, enum pd_kernel_id id);

#define PD_MAX_SPEC 15

/* A kernel with its specialisation constants: spec[i] is constant_id i, constant 0 the workgroup size of kernels that
 * take one, and constant PD_SUBGROUP_ID a size of subgroups that divides it. Compiled at the first call, looked up at
 * later ones; owned by the gpu. */
struct pd_kernel;
peridot_status pd_kernel_get(const struct pd_kernel **out, struct pd_gpu *gpu, enum pd_kernel_id id,
                             const uint32_t *spec, uint32_t n_spec);
/* After pd_kernels_defer, pd_kernel_get only queues new kernels; pd_kernels_compile_deferred compiles them all, on all
 * processors. Nothing may be dispatched in between. progress (NULL: none) is called with numbers of kernels, from this
 * thread; of a software device by pd_kernels_warm. */
void pd_kernels_defer(struct pd_gpu *gpu);
peridot_status pd_kernels_compile_deferred(struct pd_gpu *gpu, peridot_progress progress, void *user);
/* Has a software device, which would do so when they first run, compile the kernels that there are, on all
 * processors: warm.c. */
peridot_status pd_kernels_warm(struct pd_gpu *gpu, peridot_progress progress, void *user);
/* From now on pd_kernel_get finds what was compiled of the kernel, and returns PERIDOT_CANCELLED, without a sentence,
 * for what was not. PD_N_KERNELS: it compiles again. */
void pd_kernel_freeze(struct pd_gpu *gpu, enum pd_kernel_id id);
/* Frees the kernel's pipelines. Nothing that was recorded with them may be submitted any more. PD_N_KERNELS: of all. */
void pd_kernel_release(struct pd_gpu *gpu, enum pd_kernel_id id);
const char *pd_kernel_name(enum pd_kernel_id id);
/* Hash of its SPIR-V. */
uint64_t pd_kernel_hash(enum pd_kernel_id id);
/* Number of pipelines compiled since open, for tests that a step compiles none. */
uint32_t pd_gpu_n_pipelines(const struct pd_gpu *gpu);
/* The kernels compiled so far: NULL gives the first one, and comes after the last. */
const struct pd_kernel *pd_kernel_next(const struct pd_gpu *gpu, const struct pd_kernel *kernel);
enum pd_kernel_id pd_kernel_id_of(const struct pd_kernel *kernel);
/* constant_id 0 .. *n - 1; borrowed until the gpu is closed. */
const uint32_t *pd_kernel_spec(const struct pd_kernel *kernel, uint32_t *n);

/* ---- statistics: statistics.c ---- */

/* An executable that the driver made of a kernel: usually one, none where the driver does not report them. */
struct pd_executable {
    char name[256];
    uint32_t subgroup_size, n_statistics;
    peridot_statistic *statistics;   /* [n_statistics], of the executable */
    char *assembly;                  /* NULL: none */
};

/* *out (pd_executables_free) has *n entries. The gpu must be one of pd_gpu_open_compiler. */
peridot_status pd_kernel_executables(struct pd_executable **out, uint32_t *n, struct pd_gpu *gpu,
                                     const struct pd_kernel *kernel);
void pd_executables_free(struct pd_executable *executables, uint32_t n);

/* ---- what a self-test found: gpu.c ---- */

/* Whether the last self-test on this device and driver found the kernel, as it is now, to give wrong answers. */
bool pd_kernel_is_wrong(const struct pd_gpu *gpu, enum pd_kernel_id id);
/* Sets which kernels are wrong: for this gpu, and in cache_dir for the next time it is opened (NULL: not there). */
peridot_status pd_verdict_set(struct pd_gpu *gpu, const char *cache_dir, const bool wrong[PD_N_KERNELS]);
/* Reads what cache_dir holds of a device: no kernel is wrong where there is no such file, or a damaged one. */
void pd_verdict_read(bool wrong[PD_N_KERNELS], const peridot_device_info *device, const char *cache_dir);

/* ---- commands: command.c ---- */

struct pd_commands;
peridot_status pd_commands_create(struct pd_commands **out, struct pd_gpu *gpu);
/* Waits for them first. */
void pd_commands_free(struct pd_commands *commands);

/* Recording: between begin and end calls cannot fail; the first error is kept and end returns it. */
peridot_status pd_commands_begin(struct pd_commands *c);
peridot_status pd_commands_end(struct pd_commands *c);
/* `push` must be the struct that kernels.def names for the kernel. */
void pd_dispatch(struct pd_commands *c, const struct pd_kernel *kernel, const void *push, uint32_t x, uint32_t y,
                 uint32_t z);
/* The grid is read from the span when the commands run: three uint32 at `offset`. */
void pd_dispatch_indirect(struct pd_commands *c, const struct pd_kernel *kernel, const void *push,
                          struct pd_span grid, uint64_t offset);
/* All that was recorded before is finished and visible to what follows. */
void pd_barrier(struct pd_commands *c);
void pd_copy(struct pd_commands *c, struct pd_span to, uint64_t to_offset, struct pd_span from, uint64_t from_offset,
             uint64_t size);
void pd_fill(struct pd_commands *c, struct pd_span span, uint64_t size, uint32_t word);
/* What follows is another piece of the recording, which can be submitted by itself. */
void pd_commands_cut(struct pd_commands *c);
uint32_t pd_commands_n_pieces(const struct pd_commands *c);
uint32_t pd_commands_n_dispatches(const struct pd_commands *c);
/* Whether a dispatch of the kernel was recorded. */
bool pd_commands_has(const struct pd_commands *c, enum pd_kernel_id id);

/* GPU time of each dispatch: ask before begin, read after run. Dispatches that no barrier separates share their
 * time. */
#define PD_MAX_TIMES 4096   /* dispatches of one recording that are timed; later ones are not */
struct pd_dispatch_time {
    const struct pd_kernel *kernel;
    double seconds;
};
peridot_status pd_commands_time(struct pd_commands *c, bool on);
bool pd_gpu_can_time(const struct pd_gpu *gpu);
/* *out is borrowed until the next begin. */
peridot_status pd_commands_times(const struct pd_dispatch_time **out, uint32_t *n, struct pd_commands *c);

/* Submits recorded commands and returns at once; they can be submitted again when their last submission is done. They
 * see what was submitted before, and what the host wrote. PERIDOT_ERROR_DEVICE_LOST when the device was lost, now or
 * before. */
peridot_status pd_commands_submit(struct pd_commands *c);
/* The same for one piece; all others are submitted in turn, before or after. */
peridot_status pd_commands_submit_piece(struct pd_commands *c, uint32_t piece);
/* Waits until their last submission is done and its results visible to the host. PERIDOT_ERROR_DEVICE_LOST as above. */
peridot_status pd_commands_wait(struct pd_commands *c);
/* Both. */
peridot_status pd_commands_run(struct pd_commands *c);

/* ---- notes ---- */

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
