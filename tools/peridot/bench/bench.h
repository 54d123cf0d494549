/* What bench measures, and what it says of it. */
#ifndef PERIDOT_COMMAND_BENCH_BENCH_H
#define PERIDOT_COMMAND_BENCH_BENCH_H

#include "../base/base.h"
#include "../cli/cli.h"
#include "../report/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- machine ---- */

/* "" and 0: unknown. */
struct bench_machine {
    char cpu[128], os[128], kernel[128];
    uint32_t n_processors;
    uint64_t memory;             /* bytes */
};

/* At one moment. "" and 0: unknown. */
struct bench_conditions {
    char power_source[16];       /* "mains", "battery" */
    char power_profile[32];      /* ACPI's: "low-power", "balanced", "performance" */
    /* of the device: */
    double power_limit_w, power_w, temperature_c;
    double clock_hz, memory_clock_hz;
    double link_gt_s, link_width, link_max_gt_s, link_max_width;   /* of PCIe: transfers and lanes, now and at most */
};

/* root: what stands before "/proc" and "/sys"; "" but in tests. */
void bench_machine_read(struct bench_machine *out, const char *root);
/* pci: the device's address; is_cpu: it is a software device, and the host's processor is what counts. */
void bench_conditions_read(struct bench_conditions *out, const char *root, const char *pci, bool is_cpu);
/* Bytes of the device's memory that the host sees at once: the largest of its windows (BAR); 0: unknown. */
uint64_t bench_window_read(const char *root, const char *pci);

/* What a device draws over several stretches of time: by its counter of energy, or that of the package that it is part
 * of, and else by what its driver says at the end of each. Zero but for the first three members. */
struct bench_meter {
    const char *root, *pci;
    peridot_device_type type;
    const char *source;          /* "hwmon", "NVML", "RAPL"; NULL: nothing is known */
    double begin_j;              /* of the counter; 0: there is none */
    double joules, seconds;      /* of all stretches */
};
void bench_meter_begin(struct bench_meter *m);
void bench_meter_end(struct bench_meter *m, double seconds);
/* W; 0: unknown, or in all too short for a counter that some drivers renew ten times a second. */
double bench_meter_power(const struct bench_meter *m);

/* ---- bench ---- */

/* What `peridot bench` measures. measure.c does the tests of a plan, sets.c those of --quick and --standard, and json.c
 * makes a report of what they measured: from there on ../report has it, which reads it as it reads saved ones, and
 * shows it. */

enum {
    BENCH_LIST = 8,              /* entries of -p, -n, -b and -d */
    BENCH_TESTS = (2 + BENCH_LIST) * BENCH_LIST * BENCH_LIST + BENCH_LIST,
    BENCH_SEQUENCES = 8,         /* most of one test */
    BENCH_DRAFT_TEXTS = 2,       /* a story and a list */
    BENCH_TEXT = 32,             /* tokens of --standard's text, and of its prompt */
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
    uint32_t beside;             /* tokens of the prompt that is read beside a text; 0: none */
    struct cmd_draft_args draft; /* name NULL: drafts are not measured */
    uint32_t deep;               /* a depth for generations of one sequence alone; 0: none */
    bool tune;
    bool is_standard;            /* takes a text, and keeps what was measured until it was stopped */
    const int32_t *reference;    /* [BENCH_TEXT]: what the text should be; NULL: that is not known */
    uint64_t memory;             /* of the device: what takes more is refused; 0: what can be opened is */
    double budget_s;             /* of all that is done, opening included; 0: whatever it takes */
    const peridot_rates *rates;  /* measured before; NULL: measure them */
};

/* ---- what came of it ---- */

struct bench_test {
    char name[48];               /* "p512", "n128 @ d4096", "n128 b8" */
    bool generation;             /* else a prompt */
    uint32_t n_tokens, depth;    /* depth: tokens in the cache before the first */
    uint32_t n_sequences;        /* that generate n_tokens each, together */
    uint32_t n_repeats;
    double speed[REPORT_REPEATS];   /* tokens/s of each repeat, of all sequences */
    double median, min, max, sd; /* of them */
    double bytes_per_s;          /* weights and cache read, at the median */
    double flop_per_s;           /* matrices and attention, at the median */
    double bandwidth_part;       /* bytes_per_s of the measured rate of reading */
    const char *arithmetic;      /* the rate that bounds a prompt: "matrix" where matrices multiplied it, else "fp32" */
    double arithmetic_part;      /* flop_per_s of that rate */
    double power_w;              /* while it ran; 0: unknown */
    uint64_t checksum;           /* of the last logits of the last repeat */
    bool finite, equal;          /* all logits of all repeats are numbers; the repeats' checksums agree */
    uint32_t top_token;
    double top_logit, rms;       /* for comparing devices, whose roundings differ */
    uint32_t n_profiled;         /* tokens of the pass in which kernels were timed; 0: no such times */
    peridot_kernel_time kernels[REPORT_KERNELS];
    size_t n_kernels;
};

/* A stream that writes while a prompt is read in the same session: the gaps between its tokens, in seconds. */
struct bench_beside {
    uint32_t n_prompt;           /* tokens; 0: it was not measured */
    double prompt_s;             /* from the prompt's arrival to its end */
    uint32_t n_gaps, n_slow;     /* n_slow: longer than BENCH_SLOW_S */
    double median_s, p95_s, max_s;
};

/* What drafts gain in one text that is written with and without them. */
struct bench_draft_text {
    uint32_t n_tokens, n_drafted, n_accepted;   /* n_tokens: written; 0: not measured */
    double plain, drafted;       /* tokens/s; 0: there was one token at most */
};

struct bench_drafts {
    struct bench_draft_text texts[BENCH_DRAFT_TEXTS];
};

/* What a model goes on with. */
struct bench_text {
    uint32_t n, n_reference, n_agree;   /* n 0: not taken; n_reference 0: there is none */
    int32_t tokens[BENCH_TEXT];
};

/* What a plan measured, beside its tests. */
struct bench_run {
    const struct bench_plan *plan;
    const peridot_model_info *model;           /* as long as it is open */
    uint64_t model_hash;         /* of metadata and the list of tensors, not of weights */
    char left_out[REPORT_NOTE];  /* tests that were not done, and why; "" */
    struct bench_conditions before, after;     /* all tests */
    const char *meter;           /* what told the power of tests; NULL: nothing did */
    uint32_t ctx, chunk;
    peridot_rates rates;
    double load_s;               /* opening the model */
    double first_token_s;        /* opening, and the logits after one token */
    uint64_t device_memory, host_memory;       /* peaks, in bytes */
    uint32_t n_dispatches;       /* of a decode step */
    struct bench_beside beside;
    struct bench_drafts drafts;
    struct bench_text text;
};

/* measure.c. Measures all tests of the plan, on a model that it opens and closes, and fills the report, an empty
 * object. *rates are those of the device, for other plans. */
peridot_status bench_measure(peridot_rates *rates, yyjson_mut_doc *doc, yyjson_mut_val *report,
                             const struct bench_plan *plan);

/* measure.c. Of the device, by a model that it opens and closes: its rates, and what of its memory is free. */
peridot_status bench_probe(peridot_rates *rates, uint64_t *memory, const struct bench_plan *plan);
/* measure.c. As peridot inspect says it. */
peridot_status bench_check_fits(uint64_t need, uint64_t memory);

/* measure.c: a peridot_text that goes on until Ctrl-C; texts are written to be timed. */
bool bench_go_on(void *user, int32_t token, const char *text, size_t size);

/* beside.c. In a session of its own. */
#define BENCH_SLOW_S 0.3         /* what peridot_session_run wants to keep */
peridot_status bench_measure_beside(struct bench_beside *out, peridot_model *model, const struct bench_plan *plan);

/* beside.c. In sessions of its own, with the drafts that the plan names. */
peridot_status bench_measure_drafts(struct bench_drafts *out, peridot_model *model, const struct bench_plan *plan);

/* stats.c: n that are always the same, as a model's speed does not depend on them. */
peridot_status bench_make_tokens(int32_t **out, size_t n, uint32_t vocab_size);

/* sets.c. Measures a fixed set in about BENCH_QUICK_S seconds into a list of reports; what does not fit the device's
 * memory is left out. */
peridot_status bench_quick(yyjson_mut_doc *doc, yyjson_mut_val *reports, const struct bench_plan *plan);
/* sets.c. The same of the standard set, however long it takes, and says that first. When it is stopped the list has
 * what was measured until then, if anything was. */
peridot_status bench_standard(yyjson_mut_doc *doc, yyjson_mut_val *reports, const struct bench_plan *plan);
/* sets.c. In a session of its own. */
peridot_status bench_take_text(struct bench_text *out, peridot_model *model, const int32_t *reference);

/* stats.c */
/* Multiplications and additions of a test, of one sequence; the output matrix is for the last token of a prompt, and
 * for each of a generation. */
double bench_flop_of(const peridot_session *session, const struct bench_test *t);

/* stats.c */
/* Fills median, min, max and sd from the repeats' speeds. */
void bench_summarise(struct bench_test *test);
/* Looks at the logits of one repeat. */
void bench_look_at_logits(struct bench_test *test, const float *logits, size_t n, bool first);

/* stats.c: of metadata and the list of tensors: files of the same shape and type have the same. */
peridot_status bench_hash_file(uint64_t *hash, const char *path);

/* json.c. What comes from files and drivers is cut and made printable, as readers take no other texts. */
void bench_json_text(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *text, size_t size);
/* The test as a new entry of the list. */
yyjson_mut_val *bench_json_test(yyjson_mut_doc *doc, yyjson_mut_val *tests, const struct bench_test *test);
/* All but ranks and tests, which come after it, in this order. */
void bench_json_run(yyjson_mut_doc *doc, yyjson_mut_val *report, const struct bench_run *run);
void bench_json_ranks(yyjson_mut_doc *doc, yyjson_mut_val *report, const struct cmd_rank *ranks, size_t n);
void bench_json_score(yyjson_mut_doc *doc, yyjson_mut_val *score, const struct report_score *from);

#endif
