/* Peridot's tools: what the command `peridot` needs beyond peridot.h. Conversion and synthetic models, measuring and
 * tuning, the kernels that a device takes, their compiled form and their self-test. What peridot.h says of errors,
 * threads and memory holds here as well; what it says of versions does not: these structs have no size, and may change
 * with every version. */
#ifndef PERIDOT_TOOLS_H
#define PERIDOT_TOOLS_H

#include "peridot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kernels of a device ---------------------------------------------------------------------------------------- */

/* Some operations can be done by one of several kernels, their variants. All compute the same, some with less
 * precision: matmul=coop rounds to fp16; matmul=dot and matvec=dot round to 16 bits the activations that are multiplied
 * with quantised matrices, matmul=dot to 8 bits where the weights have at most five. tests/reports/precision.txt has
 * what that changes. */
typedef struct peridot_variant {
    const char *operation, *name;   /* "matmul", "coop" */
    bool available;                 /* the device, and this build, can do it */
    bool chosen;                    /* it is used, unless peridot_model_params.kernels names another */
    bool exact;                     /* it may be used where peridot_model_params.precision is exact */
} peridot_variant;

/* Row i of the list of variants, as a device has them; false past the last. */
PERIDOT_API bool peridot_device_variant(peridot_variant *out, const peridot_device_info *device, size_t i);

/* What the last self-test on a device and driver found, as the cache folder remembers it: names of kernels with ", "
 * between them, "" where there are none (or no self-test has run, or the kernels have changed since). */
typedef struct peridot_verdict {
    char disabled[1024];   /* failed, and others that do the same are taken */
    char broken[1024];     /* failed, and no other does the same: answers that need them are wrong */
} peridot_verdict;

PERIDOT_API peridot_verdict peridot_device_verdict(const peridot_device_info *device, const char *cache_dir);

/* ---- conversion ------------------------------------------------------------------------------------------------- */

typedef struct peridot_convert_params {
    const char *type;          /* of matrices: peridot_convert_type */
    peridot_progress progress; /* bytes written */
    void *user;
    /* A file of the importance of columns, as peridot_imatrix or llama.cpp writes it: errors of the types of 1
     * to 6 bits count by it. NULL: all columns count alike, and the smallest types are refused. */
    const char *imatrix;
    /* [n_adapters], up to 32: merged into the matrices before these get their type. Their names do not matter. */
    const peridot_adapter_file *adapters;
    size_t n_adapters;
} peridot_convert_params;

typedef struct peridot_convert_stats {
    uint32_t n_tensors;        /* written */
    /* of them: matrices of another type than the mix says, as their rows are not whole blocks */
    uint32_t n_replaced;
    uint32_t n_weighted;       /* tensors of matrices that the imatrix told of */
    uint32_t n_unseen;         /* matrices of them, of experts that no token took, that got their type without it */
    uint32_t n_ignored;        /* tensors of the source that text does not need: those of vision */
    /* false: the directory had no tokenizer.model or tokenizer.json; the file can only take ids */
    bool has_tokenizer;
    uint64_t size;             /* bytes of all tensors */
} peridot_convert_stats;

/* Writes a Hugging Face directory or a GGUF file as a GGUF file. Matrices get the type; of types below 6 bits a
 * weight, embeddings and output matrix get "q6_k". Of a mix ("q4_k_m", "q2_k", "iq4_xs") each matrix gets what
 * llama-quantize gives it; of the smallest types only those that an imatrix tells of. What projects the embedding to
 * the inputs of Gemma 4's layers is bf16 of any type but f32; routers, norms and other vectors are f32. Where rows are
 * not whole blocks of the type, the matrix gets one of smaller blocks and as many bits, or more ("q5_0" for "q4_k"). A
 * GGUF file's metadata is copied as it is. Weights that are not finite numbers are refused. Needs some 50 MB of memory
 * whatever the model's size, and all processors. On failure and when cancelled nothing stays. PERIDOT_ERROR_IO where
 * dst_path is a file of the source. stats may be NULL. */
PERIDOT_API peridot_status peridot_convert(const char *dst_path, const char *src_path,
                                           const peridot_convert_params *params, peridot_convert_stats *stats);
/* The types that can be written, and mixes of them: name i, or NULL past the last. */
PERIDOT_API const char *peridot_convert_type(size_t i);
/* Of these the one that a name in whatever case stands for: "q4_k_m" for "Q4_K_M", and "q4_k" for "Q4_K_XL", a mix that
 * is not there. NULL: none. */
PERIDOT_API const char *peridot_convert_type_find(const char *name);
/* The type that a name in whatever case stands for, as options and as names of files have them: "q4_k" for "Q4_K", and
 * for "Q4_K_M", a mix of which that is the most common type. NULL: it is not known. */
PERIDOT_API const char *peridot_type_find(const char *name);

/* How much the columns of a model's matrices count: the mean squares of what they multiply on a text. From begin on,
 * all that the model's sessions evaluate is added up; the model has none yet, and all its layers are here. It is slower
 * then. Each expert has its own means, of the tokens that took it. */
PERIDOT_API peridot_status peridot_imatrix_begin(peridot_model *model);

typedef struct peridot_imatrix_text {
    const char *name;          /* of the text, for readers of the file; may be NULL */
    uint32_t n_windows, ctx;   /* the text went through in so many windows, of so many positions */
} peridot_imatrix_text;

/* As llama.cpp's GGUF files of the kind "imatrix", for its tools and peridot_convert. The file appears only when it is
 * complete. No session of the model may evaluate meanwhile. */
PERIDOT_API peridot_status peridot_imatrix_write(const peridot_model *model, const char *path,
                                                 const peridot_imatrix_text *text);

/* ---- measuring -------------------------------------------------------------------------------------------------- */

/* What the device does at best, measured by kernels that do nothing else. */
typedef struct peridot_rates {
    double copy;   /* bytes/s, read plus written */
    double read;   /* bytes/s, only read */
    double fp32;   /* flop/s of fp32 multiply-adds, two each */
    double fp16;   /* the same in fp16, two multiply-adds at a time; 0: the device has none */
    double matrix; /* the same by cooperative matrices of fp16 with fp32 sums; 0: the device has none */
    /* How far the three best runs of each differ: 0.02 is two per cent. More than that: it never became stable. */
    struct {
        double copy, read, fp32, fp16, matrix;
    } spread;
} peridot_rates;

/* Each rate is measured until the three best runs agree, for 0.6 s at most; two seconds in all. */
PERIDOT_API peridot_status peridot_measure(peridot_rates *out, peridot_model *model);

/* What the device reads at best, in bytes/s, of its own memory and of the host's, as it reads weights that were left
 * there (peridot_model_params.gpu_memory); the same memory where it is unified. device: as in peridot_device_find;
 * cache_dir: as in peridot_model_params. One or two seconds. */
typedef struct peridot_reads {
    double device, host;
} peridot_reads;
PERIDOT_API peridot_status peridot_measure_reads(peridot_reads *out, const char *device, const char *cache_dir);

/* Where the weights of a model with experts are when the experts of the last n_host layers that have some, and tables
 * that are only looked up, are in the host's memory: bytes in the file, and of them what a token reads. */
typedef struct peridot_split {
    uint64_t device_size, host_size, device_read, host_read;
} peridot_split;
/* The number of layers that have experts; 0 also where peridot_file_check fails. */
PERIDOT_API uint32_t peridot_file_split(peridot_split *out, const peridot_file *file, uint32_t n_host);
/* What peridot_file_model, peridot_file_cache_size and peridot_file_split say of a published model's text weights,
 * in a type that peridot_convert writes, without a file: it has neither tensors nor metadata. shape: of
 * peridot_shape_name. */
PERIDOT_API peridot_status peridot_file_of_shape(peridot_file **out, const char *shape, const char *type);

/* How a kernel of decode steps is laid out: rows of the matrix that a subgroup takes at a time (a lane, in
 * "matvec_rows_..."), and invocations of a workgroup. */
typedef struct peridot_tuned {
    /* use: "plain", "normed" (with norms before the matrix), "gated" (and a gated unit behind it). Of a kernel of
     * prompts that makes tiles "tokens" or "experts": up to `rows` tokens of a matrix, or of each expert in the mean, a
     * decode step's kernel takes its place; workgroup and seconds are 0. */
    const char *kernel, *use;
    uint32_t rows, workgroup, default_rows, default_workgroup;
    uint32_t subgroup;             /* size asked for; 0: what the driver takes, as by default */
    uint32_t width;                /* loads of a row that a lane has under way at a time; 1 by default */
    double seconds, default_seconds;   /* of all such dispatches of a step */
    bool changed;                  /* another than the default is faster by more than the noise, and is taken */
} peridot_tuned;

/* Borrowed for the call. */
typedef void (*peridot_tuned_call)(void *user, const peridot_tuned *tuned);

typedef struct peridot_tune_params {
    const char *cache_dir;        /* NULL: what is found is not kept on disk */
    double max_s;                 /* after so many seconds what has not been tried is left out; 0: never */
    peridot_tuned_call tuned;     /* gets each kernel and use at the end; may be NULL */
    peridot_progress progress;    /* of decode steps */
    void *user;                   /* passed to both */
} peridot_tune_params;

/* Tunes the layout of matrix kernels for the device, by some hundred decode steps of the model; logits stay the same,
 * but for rounding. What it finds is taken by sessions that are created afterwards, and, remembered in cache_dir for
 * device and driver, by models with matrices of the same types that are opened with that cache_dir; when cancelled
 * nothing changes. params may be NULL. PERIDOT_ERROR_UNSUPPORTED where the device has no timestamps, or the model no
 * output matrix. */
PERIDOT_API peridot_status peridot_tune(peridot_model *model, const peridot_tune_params *params);

typedef struct peridot_kernel_time {
    char kernel[32];
    uint32_t n;          /* dispatches */
    double seconds;      /* GPU time of all of them */
} peridot_kernel_time;

/* GPU time by kernel, longest first, of one pass at the present positions, which are not advanced: of n_tokens 1 a
 * decode step of all n_sequences, of more a chunk of the first one. *out (peridot_free) has *n entries. */
PERIDOT_API peridot_status peridot_profile(peridot_kernel_time **out, size_t *n, peridot_sequence *const *sequences,
                                           size_t n_sequences, uint32_t n_tokens);
/* Bytes of weights and cache that a decode step reads of n_sequences sequences, each at position `pos`. */
PERIDOT_API uint64_t peridot_session_step_size(const peridot_session *session, uint32_t n_sequences, uint32_t pos);
/* Multiplications and additions of a token at position `pos`, those of its logits included where they are wanted. */
PERIDOT_API double peridot_session_token_flop(const peridot_session *session, uint32_t pos, bool logits);
/* Kernel dispatches of one decode step. */
PERIDOT_API uint32_t peridot_session_n_dispatches(const peridot_session *session);

/* ---- compiled kernels ------------------------------------------------------------------------------------------- */

/* A number that a driver gives about a compiled kernel, under the driver's own name for it: "VGPRs", "Spill Count".
 * Whole numbers are exact up to 2^53. */
typedef struct peridot_statistic {
    char name[256];
    double value;
} peridot_statistic;

/* A kernel as compiled for one set of specialisation constants. Most drivers make one executable of it. */
typedef struct peridot_pipeline {
    const char *kernel;                    /* its name in shaders/kernels.def */
    /* false: no model takes this kernel on this device, and nothing below is set */
    bool used;
    const uint32_t *spec;                  /* [n_spec]: values of constant_id 0, 1, ... */
    uint32_t n_spec;
    const char *executable;                /* the driver's name; "" when it says nothing of what it compiled */
    uint32_t subgroup_size;                /* 0: not said */
    const peridot_statistic *statistics;   /* [n_statistics] */
    uint32_t n_statistics;
    const char *assembly;                  /* text of the driver's own, many lines; NULL when it gives none */
} peridot_pipeline;

/* Everything behind the pointer is borrowed for the call. Return false to stop. */
typedef bool (*peridot_pipeline_call)(void *user, const peridot_pipeline *pipeline);

/* Compiles what models need of the kernels on a device, and reports each: all shapes of peridot_shape_name in one
 * weight type, and two of them, which differ in all that matters to kernels, in all types. The device allocates and
 * runs nothing, so that a driver suffices that only compiles, for hardware that is absent. Kernels that are not used
 * come last. device: as in peridot_model_params. info (may be NULL) receives what the device is, before the first call.
 * PERIDOT_OK when the call stops it. */
PERIDOT_API peridot_status peridot_pipelines(const char *device, peridot_device_info *info,
                                             peridot_pipeline_call call, void *user);

/* ---- self-test -------------------------------------------------------------------------------------------------- */

typedef struct peridot_kernel_check {
    const char *kernel;     /* its name, as in peridot_kernel_time */
    const char *lacks;      /* not tried, as the device (or this build) lacks this; NULL: nothing */
    bool passed;
    bool has_fallback;      /* another kernel can do the same, and does when this one failed */
    uint32_t n_cases;
    /* the worst, beside its tolerance: of a number, relative to the magnitude of what it is made of */
    double error;
    double tolerance;
    const char *failure;    /* the first case that failed, and where; "" */
} peridot_kernel_check;

/* Called once per kernel; what `check` points to is borrowed for the call. Return false to cancel. */
typedef bool (*peridot_kernel_checked)(void *user, const peridot_kernel_check *check);

/* How far the self-test is: kernels, and the part of the work (0 .. 1) that they were. False cancels it. */
typedef bool (*peridot_selftest_progress)(void *user, uint32_t n_done, uint32_t n_kernels, double part);

typedef struct peridot_selftest_params {
    const char *device;      /* as for a model */
    const char *cache_dir;   /* where compiled pipelines are kept, and what was found is remembered; NULL: it is not */
    peridot_kernel_checked checked;
    peridot_selftest_progress progress;   /* several times a second; NULL: none */
    void *user;
    /* Every case on a software device, too, which compiles for minutes; else some of each kernel's, as many as share a
     * few pipelines. GPUs run them all. */
    bool all;
    /* Kernels whose names begin so, PERIDOT_ERROR_ARGUMENT where there is none; NULL: every one. */
    const char *only;
} peridot_selftest_params;

typedef struct peridot_selftest_result {
    peridot_device_info device;
    uint32_t n_kernels, n_cases;   /* that were tried */
    peridot_verdict verdict;       /* both "": all passed */
} peridot_selftest_result;

/* Runs every kernel that the device can run against plain C on the host, and remembers in cache_dir which are wrong on
 * this device and driver; a pass clears what was remembered. Seconds on a GPU, a minute or two on a CPU. PERIDOT_OK
 * also when kernels failed: look at the verdict. What was found before it was cancelled is remembered. On
 * PERIDOT_ERROR_DEVICE_LOST the kernel that lost the device is remembered as wrong, and what comes after it was not
 * tried. */
PERIDOT_API peridot_status peridot_selftest(peridot_selftest_result *out, const peridot_selftest_params *params);

/* ---- synthetic models ------------------------------------------------------------------------------------------- */

typedef struct peridot_make_params {
    const char *shape;       /* "gemma2-2b", ...: peridot_shape_name */
    const char *type;        /* matrices: any weight type, "f32", "q8_0", "q4_k", "iq4_xs"...; norms are always f32 */
    uint64_t seed;
    peridot_progress progress;
    void *user;
} peridot_make_params;

/* Writes a GGUF file of a real shape with random weights and a synthetic vocabulary of the right size, for benchmarks
 * and tests. On failure and when cancelled nothing stays. */
PERIDOT_API peridot_status peridot_make(const char *path, const peridot_make_params *params);
/* The known shapes: name i, or NULL past the last. */
PERIDOT_API const char *peridot_shape_name(size_t i);

#ifdef __cplusplus
}
#endif
#endif
