/* Reports as Markdown and as CSV, and the words that all forms share. */
#include "../bench/bench.h"
#include "../text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* ---- words ---- */

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

const char *bench_number(double x)
{
    char *text = next_buffer();
    snprintf(text, TURN_SIZE, "%.*f", digits(x), x);
    return text;
}

const char *bench_speed(const struct bench_test *t)
{
    char *text = next_buffer();
    snprintf(text, TURN_SIZE, "%.*f ± %.*f", digits(t->median), t->median, digits(t->median), t->sd);
    return text;
}

const char *bench_flop(double flop_per_s)
{
    return flop_per_s > 0 ? bench_number(1e-9 * flop_per_s) : "-";
}

static void write_part(char *out, size_t size, const struct bench_test *t)
{
    double part = t->generation ? t->bandwidth_part : t->arithmetic_part;
    snprintf(out, size, "%.0f %% of %s%s", 100 * part, t->generation ? "bandwidth" : t->arithmetic,
             part > 1.05 ? " (roof in doubt)" : "");
}

const char *bench_part(const struct bench_test *t)
{
    char *text = next_buffer();
    write_part(text, TURN_SIZE, t);
    return text;
}

const char *bench_limit(const struct bench_test *t)
{
    char *text = next_buffer();
    double rate = 1e-9 * (t->generation ? t->bytes_per_s : t->flop_per_s);
    int size = snprintf(text, TURN_SIZE, "%.*f %s, ", digits(rate), rate, t->generation ? "GB/s" : "GFLOP/s");
    write_part(text + size, TURN_SIZE - (size_t)size, t);
    return text;
}

void bench_test_name(struct bench_test *t)
{
    int size = snprintf(t->name, sizeof t->name, "%c%" PRIu32, t->generation ? 'n' : 'p', t->n_tokens);
    if (t->n_sequences > 1)
        size += snprintf(t->name + size, sizeof t->name - (size_t)size, " b%" PRIu32, t->n_sequences);
    if (t->depth) snprintf(t->name + size, sizeof t->name - (size_t)size, " @ d%" PRIu32, t->depth);
}

const struct bench_test *bench_find(const struct bench_report *report, const char *name)
{
    for (size_t i = 0; i < report->n_tests; i++)
        if (strcmp(report->tests[i].name, name) == 0) return &report->tests[i];
    return NULL;
}

static const char random_suffix[] = " random";   /* of the names that peridot make gives */

bool bench_is_made(const char *name)
{
    const char *shape;
    for (size_t i = 0; (shape = peridot_shape_name(i)) != NULL; i++) {
        size_t size = strlen(shape);
        if (strncmp(name, shape, size) == 0 && strcmp(name + size, random_suffix) == 0) return true;
    }
    return false;
}

const char *bench_model_name(const struct bench_report *r)
{
    char *text = next_buffer();
    const char *mark = bench_is_made(r->model.name) ? " weights" : ", random weights";
    snprintf(text, TURN_SIZE, "%s%s", r->model.name, r->model.random_weights ? mark : "");
    return text;
}

const char *bench_device_name(const struct bench_report *r)
{
    char *text = next_buffer();
    /* "llvmpipe (LLVM 19)" needs no "llvmpipe" after it */
    bool named = strstr(r->device.name, r->device.driver) != NULL;
    snprintf(text, TURN_SIZE, "%s, %s%s%s", r->device.name, named ? "" : r->device.driver, named ? "" : " ",
             r->device.driver_info);
    return text;
}

const char *bench_verdict(const struct bench_report *r)
{
    char *text = next_buffer();
    const peridot_verdict *v = &r->verdict;
    text[0] = 0;
    if (v->disabled[0])
        snprintf(text, TURN_SIZE, " Switched off, as they failed in peridot selftest: %s.", v->disabled);
    size_t at = strlen(text);
    if (v->broken[0])
        snprintf(text + at, TURN_SIZE - at, " WRONG on this device and driver, by peridot selftest: %s.", v->broken);
    return text;
}

/* Speeds are not to be taken for those of the GPU alone. */
const char *bench_placement(const struct bench_report *r)
{
    char *text = next_buffer();
    uint64_t size = r->placement.decode_read_size;
    text[0] = 0;
    if (r->placement.far_size)
        snprintf(text, TURN_SIZE, "%" PRIu32 " of %" PRIu32 " layers are in the host's memory: a step reads %s on the "
                 "GPU and %s across the bus", r->placement.n_far_layers, r->model.n_layers,
                 cmd_size_text(size - cmd_min(size, r->placement.decode_far_size)),
                 cmd_size_text(r->placement.decode_far_size));
    return text;
}

/* Adds to a text in a buffer; `between` stands before all but the first part. */
static void append(char *text, const char *between, const char *format, ...)
{
    size_t at = strlen(text);
    va_list args;
    if (at) at += (size_t)snprintf(text + at, TURN_SIZE - at, "%s", between);
    va_start(args, format);
    vsnprintf(text + at, TURN_SIZE - at, format, args);
    va_end(args);
}

const char *bench_machine_text(const struct bench_report *r)
{
    char *text = next_buffer();
    const struct bench_machine *m = &r->machine;
    text[0] = 0;
    if (m->cpu[0]) append(text, "", "%s", m->cpu);
    if (m->n_processors) append(text, ", ", "%" PRIu32 " processor%s", m->n_processors, m->n_processors > 1 ? "s" : "");
    if (m->memory) append(text, ", ", "%s", cmd_size_text(m->memory));
    if (m->os[0]) append(text, "; ", "%s", m->os);
    if (m->kernel[0]) append(text, m->os[0] ? ", " : "; ", "%s", m->kernel);
    return text;
}

/* "54 °C", "54 to 71 °C" */
static void append_change(char *text, double before, double after, const char *unit)
{
    if (before > 0 && after > 0 && before != after)
        append(text, ", ", "%s to %s %s", bench_number(before), bench_number(after), unit);
    else if (before > 0 || after > 0) append(text, ", ", "%s %s", bench_number(fmax(before, after)), unit);
}

const char *bench_conditions_text(const struct bench_report *r)
{
    char *text = next_buffer();
    const struct bench_conditions *b = &r->before, *a = &r->after;
    text[0] = 0;
    if (b->power_source[0]) append(text, "", "%s", b->power_source);
    if (a->power_source[0] && strcmp(a->power_source, b->power_source) != 0)
        append(text, " to ", "%s", a->power_source);
    if (b->power_profile[0]) append(text, ", ", "%s", b->power_profile);
    if (b->power_limit_w > 0) append(text, ", ", "%s W at most", bench_number(b->power_limit_w));
    append_change(text, b->power_w, a->power_w, "W");
    append_change(text, b->temperature_c, a->temperature_c, "°C");
    append_change(text, 1e-9 * b->clock_hz, 1e-9 * a->clock_hz, "GHz");
    append_change(text, 1e-9 * b->memory_clock_hz, 1e-9 * a->memory_clock_hz, "GHz of memory");
    return text;
}

const char *bench_score_text(const struct bench_report *r)
{
    char *text = next_buffer();
    const struct bench_score *s = &r->score;
    text[0] = 0;
    append(text, "", "%s (prompt %s, generation %s, 8 sequences %s", bench_number(s->total),
           bench_flop(1e9 * s->prompt), bench_flop(1e9 * s->generation), bench_flop(1e9 * s->batch));
    if (s->shortened) append(text, "; ", "shortened");
    if (s->n_parts < BENCH_PARTS) append(text, "; ", "%" PRIu32 " of %d parts", s->n_parts, BENCH_PARTS);
    append(text, "", ")");
    return text;
}

double bench_spread(const struct bench_report *r)
{
    const double all[] = {r->rates.spread.read, r->rates.spread.copy, r->rates.spread.fp32, r->rates.spread.fp16,
                          r->rates.spread.matrix};
    double most = 0;
    for (size_t i = 0; i < CMD_COUNT(all); i++) most = fmax(most, all[i]);
    return most;
}

/* ---- Markdown ---- */

/* A cell: what would end it, begin markup or be taken as HTML loses its meaning. */
static void md_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (strchr("|\\`*_[]<>", *text)) fputc('\\', file);
        fputc(*text, file);
    }
}

static void md_row(FILE *file, const struct bench_report *r, const struct bench_test *t,
                   const struct bench_report *first)
{
    fputs("| ", file);
    if (first) {
        md_text(file, r->label);
        fputs(" | ", file);
    }
    md_text(file, bench_device_name(r));
    fputs(" | ", file);
    md_text(file, bench_model_name(r));
    fputs(" | ", file);
    md_text(file, r->model.types);
    fprintf(file, " | %s | ", cmd_size_text(r->model.size));
    md_text(file, t->name);
    fprintf(file, " | %s | %s |", bench_speed(t), bench_limit(t));
    if (first) {
        const struct bench_test *base = bench_find(first, t->name);
        if (base && base->median > 0) fprintf(file, " %s |", bench_number(t->median / base->median));
        else fputs(" |", file);
    }
    fputc('\n', file);
}

static void md_table(FILE *file, const struct bench_report *const *reports, size_t n)
{
    bool many = n > 1;
    fprintf(file, "|%s device, driver | model | weights | size | test | tokens/s | of the device |%s\n",
            many ? " report |" : "", many ? " times the first |" : "");
    fprintf(file, "|%s---|---|---|--:|---|--:|---|%s\n", many ? "---|" : "", many ? "--:|" : "");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++)
            md_row(file, reports[i], &reports[i]->tests[k], many ? reports[0] : NULL);
}

static bool all_logits(const struct bench_report *r, bool equal)
{
    for (size_t i = 0; i < r->n_tests; i++)
        if (equal ? !r->tests[i].equal : !r->tests[i].finite) return false;
    return true;
}

/* What surrounds the device, as far as it is known. */
static void md_machine(FILE *file, const struct bench_report *r)
{
    const char *machine = bench_machine_text(r), *conditions = bench_conditions_text(r);
    if (bench_spread(r) > 0) fprintf(file, "These rates vary by %.1f %% at most. ", 100 * bench_spread(r));
    if (machine[0]) {
        fputs("Machine: ", file);
        md_text(file, machine);
        fputs(". ", file);
    }
    if (conditions[0]) {
        fputs("Conditions: ", file);
        md_text(file, conditions);
        fputs(". ", file);
    }
}

static void md_summary(FILE *file, const struct bench_report *r)
{
    const char *placement = bench_placement(r);
    fprintf(file, "\n"
                  "The device reads %s GB/s, copies %s GB/s and does %s GFLOP/s in fp32, %s in fp16 and %s by "
                  "matrices. ",
            bench_number(1e-9 * r->rates.read), bench_number(1e-9 * r->rates.copy), bench_flop(r->rates.fp32),
            bench_flop(r->rates.fp16), bench_flop(r->rates.matrix));
    md_machine(file, r);
    fprintf(file, "Loaded in %.2f s, first token after %.2f s; at most %s on the device, %s on the host; %" PRIu32
            " dispatches per token. ", r->load_s, r->first_token_s, cmd_size_text(r->device_memory),
            cmd_size_text(r->host_memory), r->n_dispatches);
    fprintf(file, "The logits are %s, and %s in all repeats.", all_logits(r, false) ? "finite" : "NOT FINITE",
            all_logits(r, true) ? "the same" : "NOT THE SAME");
    if (r->tuning[0]) {
        fputs(" Tuned: ", file);
        md_text(file, r->tuning);
        fputc('.', file);
    }
    if (placement[0]) fprintf(file, " Of the weights, %s.", placement);
    md_text(file, bench_verdict(r));
    if (r->left_out[0]) {
        fputs(" Left out: ", file);
        md_text(file, r->left_out);
        fputc('.', file);
    }
    fputc('\n', file);
    if (r->note[0]) {
        fputs("\nNote: ", file);
        md_text(file, r->note);
        fputc('\n', file);
    }
}

static void md_kernels(FILE *file, const struct bench_test *t)
{
    double total = 0;
    for (size_t i = 0; i < t->n_kernels; i++) total += t->kernels[i].seconds;
    if (total <= 0) return;
    fputs("\n| ", file);
    md_text(file, t->name);
    fprintf(file, ": kernel, in a pass of %" PRIu32 " | dispatches | ms | share |\n|---|--:|--:|--:|\n", t->n_profiled);
    for (size_t i = 0; i < t->n_kernels; i++) {
        const peridot_kernel_time *k = &t->kernels[i];
        fputs("| ", file);
        md_text(file, k->kernel);
        fprintf(file, " | %" PRIu32 " | %.3f | %.1f %% |\n", k->n, 1e3 * k->seconds, 100 * k->seconds / total);
    }
}

void bench_md(FILE *file, const struct bench_report *const *reports, size_t n)
{
    md_table(file, reports, n);
    if (n > 1) return;
    md_summary(file, reports[0]);
    for (size_t k = 0; k < reports[0]->n_tests; k++) md_kernels(file, &reports[0]->tests[k]);
}

/* ---- CSV (RFC 4180, with plain newlines) ---- */

/* A text that a spreadsheet would take as a formula begins with an apostrophe. */
static void csv_text(FILE *file, const char *text)
{
    fputc('"', file);
    if (*text && strchr("=+-@", *text)) fputc('\'', file);
    for (; *text; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputs("\",", file);
}

/* The end of a line: what identifies the machine. */
static void csv_machine(FILE *file, const struct bench_report *r)
{
    const char *const texts[] = {r->commit, r->device_type, r->device.uuid, r->device.pci, r->machine.cpu,
                                 r->machine.os, r->machine.kernel, r->before.power_source, r->before.power_profile,
                                 r->left_out};
    const double numbers[] = {r->before.power_limit_w, r->before.temperature_c, r->after.temperature_c,
                              r->before.clock_hz, r->after.clock_hz, r->score.total};
    fprintf(file, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",", r->device.vendor_id, r->device.device_id,
            r->device.driver_version, r->machine.memory);
    for (size_t i = 0; i < CMD_COUNT(texts); i++) csv_text(file, texts[i]);
    fprintf(file, "%.4f", bench_spread(r));
    for (size_t i = 0; i < CMD_COUNT(numbers); i++) {
        if (numbers[i] > 0) fprintf(file, ",%.6g", numbers[i]);
        else fputs(",-", file);
    }
    fputc('\n', file);
}

static void csv_row(FILE *file, const struct bench_report *r, const struct bench_test *t)
{
    const char *const texts[] = {r->label, r->date, r->device.name, r->device.driver, r->device.driver_info,
                                 r->model.name, r->model.family, r->model.types};
    for (size_t i = 0; i < CMD_COUNT(texts); i++) csv_text(file, texts[i]);
    fprintf(file, "%d,%" PRIu64 ",%" PRIu64 ",%016" PRIx64 ",", r->model.random_weights, r->model.n_params,
            r->model.size, r->model.hash);
    fprintf(file, "%" PRIu32 ",%" PRIu32 ",", r->ctx, r->chunk);
    csv_text(file, r->kv);
    fprintf(file, "%.6g,%.6g,", r->rates.read, r->rates.copy);
    const double flops[] = {r->rates.fp32, r->rates.fp16, r->rates.matrix};
    for (size_t i = 0; i < CMD_COUNT(flops); i++) {
        if (flops[i] > 0) fprintf(file, "%.6g,", flops[i]);
        else fputs("-,", file);
    }
    fprintf(file, "%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", r->placement.n_far_layers, r->placement.far_size,
            r->placement.decode_read_size, r->placement.decode_far_size);
    fprintf(file, "%.4f,%.4f,%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",", r->load_s, r->first_token_s, r->device_memory,
            r->host_memory, r->n_dispatches);
    csv_text(file, t->name);
    fprintf(file, "%s,%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",", t->generation ? "generation" : "prompt",
            t->n_tokens, t->depth, t->n_sequences, t->n_repeats);
    fprintf(file, "%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,", t->median, t->min, t->max, t->sd, t->bytes_per_s, t->flop_per_s);
    fprintf(file, "%.4f,%s,%.4f,%016" PRIx64 ",%d,%d,", t->bandwidth_part, t->arithmetic, t->arithmetic_part,
            t->checksum, t->finite, t->equal);
    fprintf(file, "%" PRIu32 ",%.6g,%.6g,", t->top_token, t->top_logit, t->rms);
    csv_machine(file, r);
}

void bench_csv(FILE *file, const struct bench_report *const *reports, size_t n)
{
    fputs("report,date,device,driver,driver_info,model,family,types,random_weights,n_params,size,hash,ctx,chunk,kv,"
          "read,copy,fp32,fp16,matrix,n_far_layers,far_size,decode_read_size,decode_far_size,load_s,first_token_s,"
          "device_memory,host_memory,dispatches_per_token,test,kind,n_tokens,depth,n_sequences,n_repeats,median,min,"
          "max,sd,bytes_per_s,flop_per_s,bandwidth_part,arithmetic,arithmetic_part,checksum,finite,repeats_equal,"
          "top_token,top_logit,rms,vendor_id,device_id,driver_version,machine_memory,commit,device_type,uuid,pci,cpu,"
          "os,kernel,power_source,power_profile,left_out,rates_spread,power_limit_w,temperature_before_c,"
          "temperature_after_c,clock_before_hz,clock_after_hz,score\n", file);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) csv_row(file, reports[i], &reports[i]->tests[k]);
}
