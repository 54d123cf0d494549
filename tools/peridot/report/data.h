/* A report as it was read, for the files that show it. Texts are checked: nothing in them moves a cursor. "" and 0
 * stand for what is not known, as in reports from before it was there. */
#ifndef PERIDOT_COMMAND_REPORT_DATA_H
#define PERIDOT_COMMAND_REPORT_DATA_H

#include "report.h"

struct report_kernel {
    char kernel[32];
    uint32_t n;                  /* dispatches */
    double seconds;
};

struct report_test {
    char name[48];               /* "p512", "n128 @ d4096", "n128 b8" */
    bool generation;             /* else a prompt */
    uint32_t n_tokens, depth;    /* depth: tokens in the cache before the first */
    uint32_t n_sequences;        /* that generate n_tokens each, together; 1 in older reports */
    uint32_t n_repeats;
    double speed[REPORT_REPEATS];   /* tokens/s of each repeat, of all sequences */
    double median, min, max, sd; /* of them */
    double bytes_per_s;          /* weights and cache read, at the median */
    double flop_per_s;           /* matrices and attention, at the median */
    double bandwidth_part;       /* bytes_per_s of the measured rate of reading */
    char arithmetic[8];          /* the rate that bounds a prompt: "matrix" or "fp32" */
    double arithmetic_part;      /* flop_per_s of that rate */
    uint64_t checksum;           /* of the last logits of the last repeat */
    bool finite, equal;          /* all logits of all repeats are numbers; the repeats' checksums agree */
    uint32_t top_token;
    double top_logit, rms;       /* for comparing devices, whose roundings differ */
    uint32_t n_profiled;         /* tokens of the pass in which kernels were timed; 0: no such times */
    struct report_kernel kernels[REPORT_KERNELS];
    size_t n_kernels;
};

/* At one moment; of the device, but for the first two. */
struct report_conditions {
    char power_source[16], power_profile[32];
    double power_limit_w, power_w, temperature_c, clock_hz, memory_clock_hz;
};

struct report_rates {            /* bytes/s, flop/s; in `spread` shares */
    double copy, read, fp32, fp16, matrix;
};

struct report_rank {
    char host[64], device[REPORT_NAME];
    uint32_t first_layer, n_layers;
    uint64_t memory;
    double busy, bandwidth, latency;
};

struct report {
    char label[128];             /* its file name; "" for what was just measured */
    char program[32], commit[48], date[32], note[REPORT_NOTE];
    char left_out[REPORT_NOTE];  /* tests that were not done, and why */
    struct {
        char name[REPORT_NAME], driver[REPORT_NAME], driver_info[REPORT_NAME], api_version[16];
        char type[16];           /* "discrete GPU" */
        char uuid[37], pci[16];
        uint32_t vendor_id, device_id, driver_version;
        uint64_t heap_size, max_allocation_size;
        uint32_t subgroup_size, max_workgroup_invocations, max_shared_size;
        bool unified_memory, fp16_arithmetic, int8_arithmetic, integer_dot, subgroup_size_control, cooperative_matrix,
            external_host_memory;
        char disabled[1024], broken[1024];   /* kernels that failed the self-test */
    } device;
    struct {
        char cpu[REPORT_WORDS], os[REPORT_WORDS], kernel[REPORT_WORDS];
        uint32_t n_processors;
        uint64_t memory;
    } machine;
    struct report_conditions before, after;    /* all tests */
    struct {
        char name[REPORT_NAME], family[32], types[REPORT_WORDS];
        bool random_weights;     /* made by peridot make, or for this run */
        uint32_t n_layers, d_model, ffn_dim, n_heads, n_kv_heads, head_dim, window, vocab_size;
        uint64_t n_params, size;
        uint64_t hash;           /* of metadata and the list of tensors, not of weights */
    } model;
    struct {                     /* of weights, in bytes */
        uint32_t n_far_layers;
        uint64_t far_size, decode_read_size, decode_far_size;
    } placement;
    uint32_t ctx, chunk;
    char kv[8], kernels[REPORT_WORDS];         /* kernels: variants taken, "matmul=tile" */
    char tuning[REPORT_NOTE];
    struct report_rates rates, spread;
    double load_s;               /* opening the model */
    double first_token_s;        /* opening, and the logits after one token */
    uint64_t device_memory, host_memory;       /* peaks, in bytes */
    uint32_t n_dispatches;       /* of a decode step */
    struct {                     /* a stream that wrote while a prompt was read: the gaps between its tokens */
        uint32_t n_prompt, n_gaps, n_slow;     /* n_prompt 0: not measured; n_slow: over 0.3 s */
        double prompt_s, median_s, p95_s, max_s;
    } beside;
    struct report_rank ranks[REPORT_RANKS];
    size_t n_ranks;              /* that held the layers; 0: one device did */
    struct report_test tests[REPORT_TESTS];
    size_t n_tests;
    struct report_score score;   /* of the whole set; no parts: it is in none */
    bool continues;              /* the set of the report before */
};

struct reports {
    struct report **at;          /* [n] */
    size_t n;
};

/* list.c: a new report at the end, all zero. */
peridot_status reports_append(struct report **out, struct reports *list);

/* read.c */
peridot_status report_read_test(struct report_test *out, const char *json, size_t size);

/* score.c: of the reports of one set, which are marked so; sets the score in all of them. */
void report_set_score(struct report **reports, size_t n);

/* md.c, csv.c, html.c, lines.c */
void report_write_md(FILE *file, const struct report *const *reports, size_t n);
void report_write_csv(FILE *file, const struct report *const *reports, size_t n);
peridot_status report_write_html(FILE *file, const struct report *const *reports, size_t n);
void report_write_lines(FILE *file, const struct report *const *reports, size_t n);

#endif
