/* What `peridot bench` measures, saves and shows. A report is one run: a device, a model, and tests; a file holds one,
 * or those of a --quick run with their score (../report/README.md says what the keys mean). measure.c and quick.c fill
 * reports, json.c saves them and reads them back, ../report shows one report or several beside each other. */
#ifndef PERIDOT_COMMAND_BENCH_H
#define PERIDOT_COMMAND_BENCH_H

#include "../ranks.h"
#include "machine.h"

#include <stdio.h>

enum {
    BENCH_SCHEMA = 2,            /* of a report; 1 is read too: see json.c */
    BENCH_SET_SCHEMA = 3,        /* of several reports with a score */
    BENCH_LIST = 8,              /* entries of -p, -n, -b and -d */
    BENCH_TESTS = (2 + BENCH_LIST) * BENCH_LIST * BENCH_LIST,
    BENCH_SEQUENCES = 8,         /* most of one test */
    BENCH_REPEATS = 100,
    BENCH_KERNELS = 64,
    BENCH_SET = 8,               /* reports of one file */
    BENCH_QUICK_S = 60           /* that --quick takes on most devices */
};

/* ---- what to measure ---- */

struct bench_list {
    uint32_t at[BENCH_LIST];
    size_t n;
};

struct bench_plan {
    const struct cmd_model_args *model;
    const char *shape, *type;    /* shape NULL: model->path; else a file of random weights, made for this run */
    const char *note;            /* NULL: none */
    struct bench_list prompts, lengths, batches, depths;
    uint32_t n_repeats, ctx, chunk, kv;
    bool tune;
    double budget_s;             /* of all that is done, opening included; 0: whatever it takes */
    const peridot_rates *rates;  /* measured before; NULL: measure them */
};

/* ---- what came of it ---- */

struct bench_test {
    char name[48];               /* "p512", "n128 @ d4096", "n128 b8" */
    bool generation;             /* else a prompt */
    uint32_t n_tokens, depth;    /* depth: tokens in the cache before the first */
    uint32_t n_sequences;        /* that generate n_tokens each, together; 1 in older reports */
    uint32_t n_repeats;
    double speed[BENCH_REPEATS]; /* tokens/s of each repeat, of all sequences */
    double median, min, max, sd; /* of them */
    double bytes_per_s;          /* weights and cache read, at the median */
    double flop_per_s;           /* matrices and attention, at the median */
    double bandwidth_part;       /* bytes_per_s of the measured rate of reading */
    char arithmetic[8];          /* the rate that bounds a prompt: "matrix" where matrices multiplied it, else "fp32" */
    double arithmetic_part;      /* flop_per_s of that rate */
    uint64_t checksum;           /* of the last logits of the last repeat */
    bool finite, equal;          /* all logits of all repeats are numbers; the repeats' checksums agree */
    uint32_t top_token;
    double top_logit, rms;       /* for comparing devices, whose roundings differ */
    uint32_t n_profiled;         /* tokens of the pass in which kernels were timed; 0: no such times */
    peridot_kernel_time kernels[BENCH_KERNELS];
    size_t n_kernels;
};

/* Of a --quick run: 100 times the geometric mean of its speeds relative to those of quick.c's reference: of all six,
 * and of the two of each kind. */
struct bench_score {
    double total, prompt, generation, batch;   /* 0: there is none */
    uint32_t n_parts;            /* speeds that were measured, of BENCH_PARTS */
    bool shortened;              /* some of fewer tokens than the reference's */
};

enum { BENCH_PARTS = 6 };

struct bench_report {
    char label[128];             /* of a saved report: its file name; "" for what was just measured */
    char program[32], commit[48], date[32], note[512];
    char left_out[512];          /* tests that were not done, and why; "" */
    char device_type[16];        /* "discrete GPU"; "" in older reports */
    peridot_device_info device;
    struct bench_machine machine;              /* unknown in older reports, as are: */
    struct bench_conditions before, after;     /* all tests */
    peridot_verdict verdict;     /* of the device's self-test; "" in older reports */
    struct {
        char name[256], family[32], types[128];
        bool random_weights;     /* made by peridot make, or for this run */
        uint32_t n_layers, d_model, ffn_dim, n_heads, n_kv_heads, head_dim, window, vocab_size;
        uint64_t n_params, size;
        uint64_t hash;           /* of metadata and the list of tensors, not of weights */
    } model;
    struct {                     /* of weights, as in peridot_model_info; all 0 in older reports */
        uint32_t n_far_layers;
        uint64_t far_size, decode_read_size, decode_far_size;
    } placement;
    uint32_t ctx, chunk;
    char kv[8], kernels[128];    /* kernels: variants taken, "matmul=tile"; "" in older reports */
    char tuning[512];            /* as in peridot_model_info; "" in older reports */
    peridot_rates rates;         /* fp16 and matrix: 0 in older reports */
    double load_s;               /* opening the model */
    double first_token_s;        /* opening, and the logits after one token */
    uint64_t device_memory, host_memory;   /* peaks, in bytes */
    uint32_t n_dispatches;       /* of a decode step */
    struct cmd_rank ranks[CMD_RANKS_MAX];
    size_t n_ranks;              /* that held the layers; 0: one device did */
    struct bench_test tests[BENCH_TESTS];
    size_t n_tests;
    struct bench_score score;    /* of the whole file; no parts: it is no --quick run */
    bool continues;              /* the file of the report before */
};

/* Reports in the order of their files. */
struct bench_reports {
    struct bench_report **at;    /* [n]; bench_reports_free */
    size_t n;
};

/* ../report/reports.c */
/* A new report at the end, all zero. */
peridot_status bench_reports_add(struct bench_report **out, struct bench_reports *list);
/* Without its last report. */
void bench_reports_drop(struct bench_reports *list);
void bench_reports_free(struct bench_reports *list);

/* ../report/folder.c */
/* Reads a file, or all *.json of a folder, in the order of their names. */
peridot_status bench_reports_read(struct bench_reports *list, const char *path);

/* measure.c. Measures all tests of the plan, on a model that it opens and closes. */
peridot_status bench_measure(struct bench_report *out, const struct bench_plan *plan);

/* describe.c */
/* Of metadata and the list of tensors: files of the same shape and type have the same. */
peridot_status bench_hash_file(uint64_t *hash, const char *path);
/* Everything but what is measured, and the sizes of the session. */
void bench_describe(struct bench_report *out, const peridot_model_info *model, const struct bench_plan *plan);

/* quick.c */
/* Measures a fixed set in about BENCH_QUICK_S seconds; what does not fit the device's memory is left out. */
peridot_status bench_quick(struct bench_reports *out, const struct bench_plan *plan);
/* Of the reports of one file, which are marked so; sets the score in all of them. */
void bench_quick_score(struct bench_report **reports, size_t n);
/* The three lines to paste. */
void bench_quick_text(FILE *file, const struct bench_report *const *reports, size_t n);
/* "shortened from p512" where a test is shorter than the set has it; else "". */
const char *bench_quick_shortened(const struct bench_test *test);

/* cost.c */
/* Multiplications and additions of a test, of one sequence; the output matrix is for the last token of a prompt, and
 * for each of a generation. */
double bench_flop_of(const peridot_session *session, const struct bench_test *t);

/* stats.c */
/* Fills median, min, max and sd from the repeats' speeds. */
void bench_summarise(struct bench_test *test);
/* Looks at the logits of one repeat. */
void bench_look_at_logits(struct bench_test *test, const float *logits, size_t n, bool first);

/* json.c */
/* One report, or those of a --quick run. */
peridot_status bench_json_write(FILE *file, const struct bench_reports *list);
peridot_status bench_json_save(const char *path, const struct bench_reports *list);
/* Adds the reports of a file. Checks everything that it reads: the file may come from anywhere. */
peridot_status bench_json_read(struct bench_reports *list, const char *path);

/* ../report: n reports, of which the first is what others are compared with. */
void bench_md(FILE *file, const struct bench_report *const *reports, size_t n);
void bench_csv(FILE *file, const struct bench_report *const *reports, size_t n);
peridot_status bench_html(FILE *file, const struct bench_report *const *reports, size_t n);

/* "1234", "123.4", "12.34": what is worth reading of a speed. The result points into one of sixteen buffers used in
 * turn. */
const char *bench_number(double x);
/* "194.9 ± 9.8", tokens per second. In turn, as above. */
const char *bench_speed(const struct bench_test *test);
/* "45.6" GFLOP/s, "-" where there is no such rate. In turn. */
const char *bench_flop(double flop_per_s);
/* "63 % of bandwidth" of a generation, "31 % of fp32" of a prompt; with "(roof in doubt)" where a test is faster than
 * what was measured as the limit. In turn. */
const char *bench_part(const struct bench_test *test);
/* "12.3 GB/s, 63 % of bandwidth", "45.6 GFLOP/s, 31 % of fp32". In turn. */
const char *bench_limit(const struct bench_test *test);
/* The test of that name in a report that is to be compared with, or NULL. */
const struct bench_test *bench_find(const struct bench_report *report, const char *name);
/* "123 (prompt 100, generation 150, 8 sequences 120; shortened; 3 of 6 parts)". In turn. */
const char *bench_score_text(const struct bench_report *report);
/* The test's name, from its numbers. */
void bench_test_name(struct bench_test *test);
/* Whether this is the name of a model that peridot make wrote. */
bool bench_is_made(const char *name);
/* "Ryzen 7 7840U, 16 processors, 32.1 GB; Debian 13, Linux 6.12" as far as known. In turn. */
const char *bench_machine_text(const struct bench_report *report);
/* "battery, balanced, 28 W at most, 54 to 71 °C, 2.7 GHz" as far as known. In turn. */
const char *bench_conditions_text(const struct bench_report *report);
/* The largest spread of the rates. */
double bench_spread(const struct bench_report *report);
/* "gemma2-2b random weights" where it was made. In turn. */
const char *bench_model_name(const struct bench_report *report);
/* A sentence on kernels that failed in the self-test, with a space before it, or "". In turn. */
const char *bench_verdict(const struct bench_report *report);
/* "6 of 26 layers are in the host's memory: ..." or "". In turn. */
const char *bench_placement(const struct bench_report *report);
/* Device and driver, in turn. */
const char *bench_device_name(const struct bench_report *report);

#endif
