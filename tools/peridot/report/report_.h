/* A report in memory, and pages of several. */
#ifndef PERIDOT_COMMAND_REPORT_REPORT_PRIVATE_H
#define PERIDOT_COMMAND_REPORT_REPORT_PRIVATE_H

#include "report.h"

/* ---- data ---- */

/* A report as it was read, for the files that show it. Texts are checked: nothing in them moves a cursor. "" and 0
 * stand for what is not known, as in reports from before it was there. */

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
    double power_w, j_per_token; /* while it ran; 0: unknown */
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
    double link_gt_s, link_width, link_max_gt_s, link_max_width;   /* of PCIe */
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
        uint64_t heap_size, max_allocation_size, window_size;
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
    char meter[16];              /* what told the power of tests: "RAPL" */
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
    char draft[REPORT_NAME];     /* as --draft names it; "": drafts were not measured */
    struct report_draft {        /* a text that was written with and without drafts */
        uint32_t n_tokens, n_drafted, n_accepted;   /* n_tokens 0: not measured */
        double plain, drafted;   /* tokens/s */
    } drafts_story, drafts_list;
    struct {                     /* what a standard model went on with */
        uint32_t n_reference, n_agree;         /* n_reference 0: not taken, or with nothing to compare */
        uint64_t checksum;       /* of the ids that were drawn */
    } text;
    struct report_rank ranks[REPORT_RANKS];
    size_t n_ranks;              /* that held the layers; 0: one device did */
    struct report_test tests[REPORT_TESTS];
    size_t n_tests;
    struct report_score score;   /* of the whole set; no parts: it is in none */
    bool is_standard;            /* of the standard set */
    bool continues;              /* the set of the report before */
    bool made;                   /* invented, for trying pages */
    enum { REPORT_UNPROVEN, REPORT_PROVEN, REPORT_CHANGED } proof;   /* by its file's checksum; 0: it has none */
};

struct reports {
    struct report **at;          /* [n] */
    size_t n, capacity;
    bool skips;                  /* files that are no reports: each with its reason is in */
    char left_out[2048];
};

/* read.c: a new report at the end, all zero. */
peridot_status reports_append(struct report **out, struct reports *list);

/* read.c */
peridot_status report_read_test(struct report_test *out, const char *json, size_t size);

/* words.c: of the reports of one set; sets the score in all of them. */
void report_set_score(struct report **reports, size_t n);

/* write.c, write.c, html.c, words.c */
void report_write_md(FILE *file, const struct report *const *reports, size_t n);
void report_write_csv(FILE *file, const struct report *const *reports, size_t n);
peridot_status report_write_html(FILE *file, const struct report *const *reports, size_t n);
void report_write_lines(FILE *file, const struct report *const *reports, size_t n);

/* ---- words ---- */

/* "1234", "123.4", "12.34": what is worth reading of a speed. */
const char *report_number(double x);
/* "194.9 ± 9.8", tokens per second. */
const char *report_speed(const struct report_test *test);
/* "45.6" GFLOP/s, "-" where there is no such rate. */
const char *report_flop(double flop_per_s);
/* "63 % of bandwidth" of a generation, "31 % of fp32" of a prompt; with "(roof in doubt)" where a test is faster than
 * what was measured as the limit. */
const char *report_part(const struct report_test *test);
/* "12.3 GB/s, 63 % of bandwidth", "45.6 GFLOP/s, 31 % of fp32". */
const char *report_limit(const struct report_test *test);
/* "123 (prompt 100, generation 150, 8 sequences 120; shortened; 3 of 6 parts)". */
const char *report_score_text(const struct report *report);
/* "Ryzen 7 7840U, 16 processors, 32.1 GB; Debian 13, Linux 6.12" as far as known. */
const char *report_machine_text(const struct report *report);
/* "battery, balanced, 28 W at most, 54 to 71 °C, 2.7 GHz, PCIe 16 GT/s x16, ReBAR" as far as known. */
const char *report_conditions_text(const struct report *report);
/* "by RAPL: 25.1 W and 0.126 J per token in p512; 20.2 W ..." or "". */
const char *report_energy(const struct report *report);
/* "peridot 0.1.0 (0123456789ab), 2026-11-27T10:00:00Z; matmul=tile". */
const char *report_program(const struct report *report);
/* "31 of 32 tokens are the reference's", and whether that is WRONG; or "". */
const char *report_text_words(const struct report *report);
/* Most of them are: roundings change some. */
bool report_text_is_wrong(const struct report *report);
/* "the checksum is right", "THE REPORT WAS CHANGED: its checksum is another", or "". */
const char *report_proof_words(const struct report *report);
/* "gemma2-2b random weights" where it was made. */
const char *report_model_name(const struct report *report);
/* A sentence on kernels that failed in the self-test, with a space before it, or "". */
const char *report_verdict(const struct report *report);
/* "6 of 26 layers are in the host's memory: ..." or "". */
const char *report_placement(const struct report *report);
/* "12.3 ms between two tokens in the median, ..., while 512 tokens were read in 1.20 s" or "". */
const char *report_beside(const struct report *report);
/* "ngram: a story at 20.1 tokens/s, 0.99 times as fast as without, ...; a list ..." or "". */
const char *report_drafts(const struct report *report);
/* Device and driver. */
const char *report_device_name(const struct report *report);

/* The largest spread of the rates. */
double report_spread(const struct report *report);

/* ---- page ---- */

/* What the pages of one report and of many are made of: text without markup, tables, and plots that follow the width of
 * the window. */

/* html.c */
/* From the doctype to <main>; class is of the body. The page's policy allows no requests, and no script but the one
 * that report_page_end writes, if any. */
void report_page_begin(FILE *file, const char *title, const char *class);
void report_page_end(FILE *file, bool with_script);
/* Text with the characters that HTML gives a meaning written as references. */
void report_page_text(FILE *file, const char *text);
/* The text between two pieces of markup. */
void report_page_element(FILE *file, const char *open, const char *text, const char *close);
/* Cells of a row. `label` names the column where a narrow window stacks the cells; `small` is a second line, "" or NULL
 * for none. A number sorts by its value, 0 last. */
void report_page_cell(FILE *file, const char *label, const char *text, const char *small);
void report_page_number(FILE *file, const char *label, double value, const char *text, const char *small);
/* The test of a kind with the most tokens/s, or NULL; together: of several sequences. */
const struct report_test *report_fastest(const struct report *r, bool generation, bool together);
/* plot.c. Colours are CSS variables of the page, and every mark has its number as text as well. */
/* A dot on a logarithmic axis, and a line from the least to the most. */
struct report_row {
    size_t number;               /* before the name; 0: none */
    const char *name, *small;    /* small: beside the name, "" for none */
    double value, min, max;      /* rows without a value above 0 have no dot */
    char text[64], note[128];    /* the value, and what it means */
    size_t colour;
};
void report_plot_rows(FILE *file, const struct report_row *rows, size_t n, const char *unit);
/* Sets value to note from the test. */
void report_row_test(struct report_row *row, const struct report_test *t);
/* Tests of one report below what bandwidth and rates of arithmetic allow. */
void report_plot_roofline(FILE *file, const struct report *report);
/* Of each file's first report its best test of a kind, as a share of the measured limit: memory's of generation,
 * arithmetic's of prompts. */
void report_plot_limits(FILE *file, const struct report *const *reports, size_t n, bool generation);

/* predictions.c: tokens/s of n128 or p512 that the project expects of this device and model; 0: nothing. */
double report_predicted(const struct report *r, bool generation);

/* The number of the colour for devices of the report's vendor. */
size_t report_colour(const struct report *r);

/* compare.c */
peridot_status report_compare(FILE *file, const struct report *const *reports, size_t n);

/* kernels.c */
bool report_has_kernels(const struct report *const *reports, size_t n);
void report_plot_kernels(FILE *file, const struct report *const *reports, size_t n);
/* The same as tables, in <details>. */
void report_page_kernels(FILE *file, const struct report *const *reports, size_t n);

#endif
