/* The words that all formats share: numbers, speeds, names. Each result points into one of sixteen buffers used in
 * turn. */
#include "../base/base.h"
#include "report_.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { TURNS = 16, TURN_SIZE = 2400 };

static char *next_buffer(void)
{
    static char buffers[TURNS][TURN_SIZE];
    static unsigned turn;
    return buffers[turn++ % TURNS];
}

/* Behind the point: four digits in all, or as many as there are before it. */
static int digits(double x)
{
    return x >= 999.5 ? 0 : x >= 99.95 ? 1 : 2;
}

const char *report_number(double x)
{
    char *text = next_buffer();
    snprintf(text, TURN_SIZE, "%.*f", digits(x), x);
    return text;
}

const char *report_speed(const struct report_test *t)
{
    char *text = next_buffer();
    snprintf(text, TURN_SIZE, "%.*f ± %.*f", digits(t->median), t->median, digits(t->median), t->sd);
    return text;
}

const char *report_flop(double flop_per_s)
{
    return flop_per_s > 0 ? report_number(1e-9 * flop_per_s) : "-";
}

static void write_part(char *out, size_t size, const struct report_test *t)
{
    double part = t->generation ? t->bandwidth_part : t->arithmetic_part;
    snprintf(out, size, "%.0f %% of %s%s", 100 * part, t->generation ? "bandwidth" : t->arithmetic,
             part > 1.05 ? " (roof in doubt)" : "");
}

const char *report_part(const struct report_test *t)
{
    char *text = next_buffer();
    write_part(text, TURN_SIZE, t);
    return text;
}

const char *report_limit(const struct report_test *t)
{
    char *text = next_buffer();
    double rate = 1e-9 * (t->generation ? t->bytes_per_s : t->flop_per_s);
    int size = snprintf(text, TURN_SIZE, "%.*f %s, ", digits(rate), rate, t->generation ? "GB/s" : "GFLOP/s");
    write_part(text + size, TURN_SIZE - (size_t)size, t);
    return text;
}

static const char random_suffix[] = " random";   /* of the names that peridot make gives */

bool report_is_made(const char *name)
{
    const char *shape;
    for (size_t i = 0; (shape = peridot_shape_name(i)) != NULL; i++) {
        size_t size = strlen(shape);
        if (strncmp(name, shape, size) == 0 && strcmp(name + size, random_suffix) == 0) return true;
    }
    return false;
}

const char *report_model_name(const struct report *r)
{
    char *text = next_buffer();
    const char *mark = report_is_made(r->model.name) ? " weights" : ", random weights";
    snprintf(text, TURN_SIZE, "%s%s", r->model.name, r->model.random_weights ? mark : "");
    return text;
}

const char *report_device_name(const struct report *r)
{
    char *text = next_buffer();
    /* "llvmpipe (LLVM 19)" needs no "llvmpipe" after it */
    bool named = strstr(r->device.name, r->device.driver) != NULL;
    snprintf(text, TURN_SIZE, "%s, %s%s%s", r->device.name, named ? "" : r->device.driver, named ? "" : " ",
             r->device.driver_info);
    return text;
}

const char *report_verdict(const struct report *r)
{
    char *text = next_buffer();
    const char *disabled = r->device.disabled, *broken = r->device.broken;
    text[0] = 0;
    if (disabled[0]) snprintf(text, TURN_SIZE, " Switched off, as they failed in peridot selftest: %s.", disabled);
    size_t at = strlen(text);
    if (broken[0])
        snprintf(text + at, TURN_SIZE - at, " WRONG on this device and driver, by peridot selftest: %s.", broken);
    return text;
}

/* Speeds are not to be taken for those of the GPU alone. */
const char *report_placement(const struct report *r)
{
    char *text = next_buffer();
    uint64_t size = r->placement.decode_read_size;
    text[0] = 0;
    if (r->placement.far_size)
        snprintf(text, TURN_SIZE, "%" PRIu32 " of %" PRIu32 " layers are in the host's memory: a step reads %s on the "
                 "GPU and %s across the bus", r->placement.n_far_layers, r->model.n_layers,
                 cmd_size_text(size - pd_min(size, r->placement.decode_far_size)),
                 cmd_size_text(r->placement.decode_far_size));
    return text;
}

/* Adds to a text in a buffer; `between` stands before all but the first part. */
static void append_words(char *text, const char *between, const char *format, ...)
{
    size_t at = strlen(text);
    va_list args;
    if (at) at += (size_t)snprintf(text + at, TURN_SIZE - at, "%s", between);
    va_start(args, format);
    vsnprintf(text + at, TURN_SIZE - at, format, args);
    va_end(args);
}

const char *report_machine_text(const struct report *r)
{
    char *text = next_buffer();
    text[0] = 0;
    if (r->machine.cpu[0]) append_words(text, "", "%s", r->machine.cpu);
    uint32_t n = r->machine.n_processors;
    if (n) append_words(text, ", ", "%" PRIu32 " processor%s", n, PD_S(n));
    if (r->machine.memory) append_words(text, ", ", "%s", cmd_size_text(r->machine.memory));
    if (r->machine.os[0]) append_words(text, "; ", "%s", r->machine.os);
    if (r->machine.kernel[0]) append_words(text, r->machine.os[0] ? ", " : "; ", "%s", r->machine.kernel);
    return text;
}

/* "54 °C", "54 to 71 °C" */
static void append_change(char *text, double before, double after, const char *unit)
{
    if (before > 0 && after > 0 && before != after)
        append_words(text, ", ", "%s to %s %s", report_number(before), report_number(after), unit);
    else if (before > 0 || after > 0) append_words(text, ", ", "%s %s", report_number(fmax(before, after)), unit);
}

/* "PCIe 16 GT/s x8 of 16 GT/s x16, no ReBAR (268 MB)". An idle device slows its link down: the faster moment counts. */
static void append_link(char *text, const struct report *r)
{
    const struct report_conditions *c = r->after.link_gt_s > r->before.link_gt_s ? &r->after : &r->before;
    const uint64_t size = r->device.window_size;
    if (c->link_gt_s > 0 && c->link_width > 0) {
        append_words(text, ", ", "PCIe %.3g GT/s x%.3g", c->link_gt_s, c->link_width);
        if (c->link_max_gt_s > c->link_gt_s || c->link_max_width > c->link_width)
            append_words(text, "", " of %.3g GT/s x%.3g", c->link_max_gt_s, c->link_max_width);
    }
    if (!size || strcmp(r->device.type, "discrete GPU") != 0) return;
    /* a part of the memory is the driver's own */
    if (size >= r->device.heap_size - r->device.heap_size / 8) append_words(text, ", ", "ReBAR");
    else append_words(text, ", ", "no ReBAR (%s)", cmd_size_text(size));
}

const char *report_conditions_text(const struct report *r)
{
    char *text = next_buffer();
    const struct report_conditions *b = &r->before, *a = &r->after;
    text[0] = 0;
    if (b->power_source[0]) append_words(text, "", "%s", b->power_source);
    if (a->power_source[0] && strcmp(a->power_source, b->power_source) != 0)
        append_words(text, " to ", "%s", a->power_source);
    if (b->power_profile[0]) append_words(text, ", ", "%s", b->power_profile);
    if (b->power_limit_w > 0) append_words(text, ", ", "%s W at most", report_number(b->power_limit_w));
    append_change(text, b->power_w, a->power_w, "W");
    append_change(text, b->temperature_c, a->temperature_c, "°C");
    append_change(text, 1e-9 * b->clock_hz, 1e-9 * a->clock_hz, "GHz");
    append_change(text, 1e-9 * b->memory_clock_hz, 1e-9 * a->memory_clock_hz, "GHz of memory");
    append_link(text, r);
    return text;
}

const char *report_energy(const struct report *r)
{
    char *text = next_buffer();
    text[0] = 0;
    for (size_t k = 0; k < r->n_tests && strlen(text) < TURN_SIZE / 2; k++) {
        const struct report_test *t = &r->tests[k];
        if (t->power_w <= 0) continue;
        if (!text[0]) append_words(text, "", "by %s:", r->meter[0] ? r->meter : "means that are not known");
        append_words(text, strchr(text, 'J') ? "; " : " ", "%.3g W and %.3g J per token in %s", t->power_w,
                     t->j_per_token, t->name);
    }
    return text;
}

/* Roundings change some tokens, kernels that are wrong almost all. */
bool report_text_is_wrong(const struct report *r)
{
    return r->text.n_agree < r->text.n_reference - r->text.n_reference / 4;
}

const char *report_text_words(const struct report *r)
{
    char *text = next_buffer();
    text[0] = 0;
    if (r->text.n_reference)
        snprintf(text, TURN_SIZE, "%s%" PRIu32 " of %" PRIu32 " tokens are the reference's",
                 report_text_is_wrong(r) ? "WRONG: only " : "", r->text.n_agree, r->text.n_reference);
    return text;
}

const char *report_proof_words(const struct report *r)
{
    static const char *const words[] = {[REPORT_UNPROVEN] = "", [REPORT_PROVEN] = "the checksum is right",
        [REPORT_CHANGED] = "THE REPORT WAS CHANGED: its checksum is another"};
    return words[r->proof];
}

const char *report_program(const struct report *r)
{
    char *text = next_buffer();
    snprintf(text, TURN_SIZE, "%s%s%s%s, %s%s%s", r->program, r->commit[0] ? " (" : "", r->commit,
             r->commit[0] ? ")" : "", r->date, r->kernels[0] ? "; " : "", r->kernels);
    return text;
}

const char *report_beside(const struct report *r)
{
    char *text = next_buffer();
    const double ms[] = {1e3 * r->beside.median_s, 1e3 * r->beside.p95_s, 1e3 * r->beside.max_s};
    text[0] = 0;
    if (r->beside.n_gaps)
        snprintf(text, TURN_SIZE, "%.*f ms between two tokens in the median, %.*f ms at the 95th percentile, %.*f ms "
                 "at most, %" PRIu32 " of %" PRIu32 " gaps over 0.3 s, while %" PRIu32 " tokens were read in %.2f s",
                 digits(ms[0]), ms[0], digits(ms[1]), ms[1], digits(ms[2]), ms[2], r->beside.n_slow, r->beside.n_gaps,
                 r->beside.n_prompt, r->beside.prompt_s);
    return text;
}

static void write_draft(char *text, const char *name, const struct report_draft *d)
{
    size_t size = strlen(text);
    if (d->plain > 0)
        snprintf(text + size, TURN_SIZE - size, "%s %s at %.1f tokens/s, %.2f times as fast as without, with %" PRIu32
                 " of %" PRIu32 " guesses accepted", strchr(text, ':') ? ";" : ":", name, d->drafted,
                 d->drafted / d->plain, d->n_accepted, d->n_drafted);
}

const char *report_drafts(const struct report *r)
{
    char *text = next_buffer();
    snprintf(text, TURN_SIZE, "%s", r->draft);
    write_draft(text, "a story", &r->drafts_story);
    write_draft(text, "a list", &r->drafts_list);
    return text;
}

const char *report_score_text(const struct report *r)
{
    char *text = next_buffer();
    const struct report_score *s = &r->score;
    text[0] = 0;
    append_words(text, "", "%s (prompt %s, generation %s, 8 sequences %s", report_number(s->total),
                 report_flop(1e9 * s->prompt), report_flop(1e9 * s->generation), report_flop(1e9 * s->batch));
    if (s->shortened) append_words(text, "; ", "shortened");
    if (s->n_parts < REPORT_PARTS) append_words(text, "; ", "%" PRIu32 " of %d parts", s->n_parts, REPORT_PARTS);
    append_words(text, "", ")");
    return text;
}

double report_spread(const struct report *r)
{
    const double all[] = {r->spread.read, r->spread.copy, r->spread.fp32, r->spread.fp16, r->spread.matrix};
    double most = 0;
    for (size_t i = 0; i < PD_COUNT(all); i++) most = fmax(most, all[i]);
    return most;
}

/* ---- lines ---- */

/* A set as three lines to paste. */

static void write_tests(FILE *file, const struct report *r)
{
    const char *between = "";
    fprintf(file, "%s %s: ", report_model_name(r), r->model.types);
    for (size_t k = 0; k < r->n_tests; k++) {
        fprintf(file, "%s%s %s", between, r->tests[k].name, report_number(r->tests[k].median));
        between = ", ";
    }
}

void report_write_lines(FILE *file, const struct report *const *reports, size_t n)
{
    const struct report *r = reports[0];
    fprintf(file, "%s (%s): ", r->program, r->commit);
    if (r->is_standard) fputs("standard set", file);
    else fprintf(file, "quick score %s", report_score_text(r));
    fprintf(file, " on %s\n", report_device_name(r));
    for (size_t i = 0; i < n; i++) {
        fputs(i ? "; " : "", file);
        write_tests(file, reports[i]);
    }
    fprintf(file, " tokens/s%s%s\n", r->left_out[0] ? "; left out: " : "", r->left_out);
    fprintf(file, "reads %s GB/s, %s GFLOP/s in fp32, %s in fp16, %s by matrices",
            report_number(1e-9 * r->rates.read), report_flop(r->rates.fp32), report_flop(r->rates.fp16),
            report_flop(r->rates.matrix));
    const char *const texts[] = {report_machine_text(r), report_conditions_text(r), r->kernels, r->date};
    for (size_t i = 0; i < PD_COUNT(texts); i++) fprintf(file, "%s%s", texts[i][0] ? "; " : "", texts[i]);
    for (size_t i = 0; i < n; i++) {
        const char *energy = report_energy(reports[i]), *text = report_text_words(reports[i]);
        if (energy[0]) fprintf(file, "; %s %s", reports[i]->model.name, energy);
        if (text[0]) fprintf(file, "; %s: %s", reports[i]->model.name, text);
    }
    fputc('\n', file);
}

/* ---- score ---- */

/* The score of a --quick run, from its tests: bench/sets.c measures the set that is its reference's. */

enum kind { PROMPT, GENERATION, BATCH, N_KINDS };

enum { PROMPT_TOKENS = 512, LENGTH = 128, SEQUENCES = 8 };

/* The score's reference: speeds that a device might have which reads some 90 GB/s. They are fixed, as scores of all
 * versions are to compare: another set or another reference needs another name. */
static const struct model {
    const char *shape, *type;
    double reference[N_KINDS];   /* tokens/s */
} models[] = {
    {"gemma3-1b", "q8_0", {1000, 80, 400}},
    {"gemma2-2b", "q4_k", {400, 50, 200}},
};

static const struct model *find_model(const struct report *r)
{
    for (size_t i = 0; i < PD_COUNT(models); i++) {
        size_t size = strlen(models[i].shape);
        if (strncmp(r->model.name, models[i].shape, size) == 0 && r->model.name[size] == ' '
            && strcmp(r->model.types, models[i].type) == 0) return &models[i];
    }
    return NULL;
}

static enum kind kind_of(const struct report_test *t)
{
    if (t->depth || !(t->median > 0)) return N_KINDS;
    if (t->n_sequences == 1) return t->generation ? GENERATION : PROMPT;
    return t->generation && t->n_sequences == SEQUENCES ? BATCH : N_KINDS;
}

static bool is_shortened(const struct report_test *t)
{
    return t->n_tokens < (t->generation ? LENGTH : PROMPT_TOKENS);
}

static double mean(double logs, uint32_t n)
{
    return n ? 100 * exp(logs / n) : 0;
}

void report_set_score(struct report **reports, size_t n)
{
    struct report_score score = {0};
    double logs[N_KINDS] = {0};
    uint32_t counts[N_KINDS] = {0};
    bool seen[PD_COUNT(models)][N_KINDS] = {{0}};
    for (size_t i = 0; i < n; i++) {
        const struct model *model = find_model(reports[i]);
        for (size_t k = 0; model && k < reports[i]->n_tests; k++) {
            const struct report_test *t = &reports[i]->tests[k];
            enum kind kind = kind_of(t);
            if (kind == N_KINDS || seen[model - models][kind]) continue;
            seen[model - models][kind] = true;
            logs[kind] += log(t->median / model->reference[kind]);
            counts[kind]++;
            score.shortened = score.shortened || is_shortened(t);
        }
    }
    score.n_parts = counts[PROMPT] + counts[GENERATION] + counts[BATCH];
    score.total = mean(logs[PROMPT] + logs[GENERATION] + logs[BATCH], score.n_parts);
    score.prompt = mean(logs[PROMPT], counts[PROMPT]);
    score.generation = mean(logs[GENERATION], counts[GENERATION]);
    score.batch = mean(logs[BATCH], counts[BATCH]);
    for (size_t i = 0; i < n; i++) reports[i]->score = score;
}
