/* Reports as Markdown and as CSV, and the words that all forms share. */
#include "bench.h"
#include "../text.h"

#include <inttypes.h>
#include <string.h>

/* ---- words ---- */

enum { TURNS = 8, TURN_SIZE = 2400 };

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

const char *bench_limit(const struct bench_test *t)
{
    char *text = next_buffer();
    double rate = 1e-9 * (t->generation ? t->bytes_per_s : t->flop_per_s),
        part = t->generation ? t->bandwidth_part : t->arithmetic_part;
    snprintf(text, TURN_SIZE, "%.*f %s, %.0f %% of %s", digits(rate), rate, t->generation ? "GB/s" : "GFLOP/s",
             100 * part, t->generation ? "bandwidth" : t->arithmetic);
    return text;
}

const struct bench_test *bench_find(const struct bench_report *report, const char *name)
{
    for (size_t i = 0; i < report->n_tests; i++)
        if (strcmp(report->tests[i].name, name) == 0) return &report->tests[i];
    return NULL;
}

const char *bench_model_name(const struct bench_report *r)
{
    char *text = next_buffer();
    size_t size = strlen(r->model.name);
    bool said = size > 7 && strcmp(r->model.name + size - 7, " random") == 0;   /* as peridot make names them */
    snprintf(text, TURN_SIZE, "%s%s", r->model.name, !r->model.random_weights ? "" : said ? " weights" : ", random "
                                                                                                         "weights");
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

static void md_summary(FILE *file, const struct bench_report *r)
{
    const char *placement = bench_placement(r);
    fprintf(file, "\n"
                  "The device reads %s GB/s, copies %s GB/s and does %s GFLOP/s in fp32, %s in fp16 and %s by "
                  "matrices. ",
            bench_number(1e-9 * r->rates.read), bench_number(1e-9 * r->rates.copy), bench_flop(r->rates.fp32),
            bench_flop(r->rates.fp16), bench_flop(r->rates.matrix));
    fprintf(file, "Loaded in %.2f s, first token after %.2f s; at most %s on the device, %s on the host; %" PRIu32
            " dispatches per token. ", r->load_s, r->first_token_s, cmd_size_text(r->device_memory),
            cmd_size_text(r->host_memory),
            r->n_dispatches);
    fprintf(file, "The logits are %s, and %s in all repeats.", all_logits(r, false) ? "finite" : "NOT FINITE",
            all_logits(r, true) ? "the same" : "NOT THE SAME");
    if (r->tuning[0]) {
        fputs(" Tuned: ", file);
        md_text(file, r->tuning);
        fputc('.', file);
    }
    if (placement[0]) fprintf(file, " Of the weights, %s.", placement);
    md_text(file, bench_verdict(r));
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
    fprintf(file, "%" PRIu32 ",%.6g,%.6g\n", t->top_token, t->top_logit, t->rms);
}

void bench_csv(FILE *file, const struct bench_report *const *reports, size_t n)
{
    fputs("report,date,device,driver,driver_info,model,family,types,random_weights,n_params,size,hash,ctx,chunk,kv,"
          "read,copy,fp32,fp16,matrix,n_far_layers,far_size,decode_read_size,decode_far_size,load_s,first_token_s,"
          "device_memory,host_memory,dispatches_per_token,test,kind,n_tokens,depth,n_sequences,n_repeats,median,min,"
          "max,sd,bytes_per_s,flop_per_s,bandwidth_part,arithmetic,arithmetic_part,checksum,finite,repeats_equal,"
          "top_token,top_logit,rms\n", file);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) csv_row(file, reports[i], &reports[i]->tests[k]);
}
