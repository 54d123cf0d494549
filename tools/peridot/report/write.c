/* A list of reports in one of the formats, which have a file each. */
#include "../base/base.h"
#include "report_.h"

#include <inttypes.h>
#include <string.h>

peridot_status reports_write(const struct reports *list, FILE *file, enum report_format format)
{
    const struct report *const *reports = (const struct report *const *)list->at;
    switch (format) {
    case REPORT_MD: report_write_md(file, reports, list->n); break;
    case REPORT_CSV: report_write_csv(file, reports, list->n); break;
    case REPORT_LINES: report_write_lines(file, reports, list->n); break;
    case REPORT_HTML: return report_write_html(file, reports, list->n);
    }
    return PERIDOT_OK;
}

peridot_status report_test_line(FILE *file, const char *json, size_t size)
{
    struct report_test test = {.n_tokens = 0};
    PD_TRY(report_read_test(&test, json, size));
    fprintf(file, "%s: %s tokens/s, %s\n", test.name, report_speed(&test), report_limit(&test));
    return PERIDOT_OK;
}

/* ---- csv ---- */

/* Reports as CSV (RFC 4180, with plain newlines): a line for each test. */

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

/* What identifies the machine. */
static void csv_machine(FILE *file, const struct report *r)
{
    const char *const texts[] = {r->commit, r->device.type, r->device.uuid, r->device.pci, r->machine.cpu,
                                 r->machine.os, r->machine.kernel, r->before.power_source, r->before.power_profile,
                                 r->left_out};
    const double numbers[] = {r->before.power_limit_w, r->before.temperature_c, r->after.temperature_c,
                              r->before.clock_hz, r->after.clock_hz, r->score.total};
    fprintf(file, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",", r->device.vendor_id, r->device.device_id,
            r->device.driver_version, r->machine.memory);
    for (size_t i = 0; i < PD_COUNT(texts); i++) csv_text(file, texts[i]);
    fprintf(file, "%.4f", report_spread(r));
    for (size_t i = 0; i < PD_COUNT(numbers); i++) {
        if (numbers[i] > 0) fprintf(file, ",%.6g", numbers[i]);
        else fputs(",-", file);
    }
}

/* The gaps between a stream's tokens while a prompt was read. */
static void csv_beside(FILE *file, const struct report *r)
{
    if (r->beside.n_gaps)
        fprintf(file, ",%" PRIu32 ",%.6g,%" PRIu32 ",%" PRIu32 ",%.6g,%.6g,%.6g\n", r->beside.n_prompt,
                r->beside.prompt_s, r->beside.n_gaps, r->beside.n_slow, r->beside.median_s, r->beside.p95_s,
                r->beside.max_s);
    else fputs(",-,-,-,-,-,-,-\n", file);
}

static void csv_row(FILE *file, const struct report *r, const struct report_test *t)
{
    const char *const texts[] = {r->label, r->date, r->device.name, r->device.driver, r->device.driver_info,
                                 r->model.name, r->model.family, r->model.types};
    for (size_t i = 0; i < PD_COUNT(texts); i++) csv_text(file, texts[i]);
    fprintf(file, "%d,%" PRIu64 ",%" PRIu64 ",%016" PRIx64 ",", r->model.random_weights, r->model.n_params,
            r->model.size, r->model.hash);
    fprintf(file, "%" PRIu32 ",%" PRIu32 ",", r->ctx, r->chunk);
    csv_text(file, r->kv);
    fprintf(file, "%.6g,%.6g,", r->rates.read, r->rates.copy);
    const double flops[] = {r->rates.fp32, r->rates.fp16, r->rates.matrix};
    for (size_t i = 0; i < PD_COUNT(flops); i++) {
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
    csv_beside(file, r);
}

void report_write_csv(FILE *file, const struct report *const *reports, size_t n)
{
    fputs("report,date,device,driver,driver_info,model,family,types,random_weights,n_params,size,hash,ctx,chunk,kv,"
          "read,copy,fp32,fp16,matrix,n_far_layers,far_size,decode_read_size,decode_far_size,load_s,first_token_s,"
          "device_memory,host_memory,dispatches_per_token,test,kind,n_tokens,depth,n_sequences,n_repeats,median,min,"
          "max,sd,bytes_per_s,flop_per_s,bandwidth_part,arithmetic,arithmetic_part,checksum,finite,repeats_equal,"
          "top_token,top_logit,rms,vendor_id,device_id,driver_version,machine_memory,commit,device_type,uuid,pci,cpu,"
          "os,kernel,power_source,power_profile,left_out,rates_spread,power_limit_w,temperature_before_c,"
          "temperature_after_c,clock_before_hz,clock_after_hz,score,beside_n_prompt,beside_prompt_s,"
          "beside_n_gaps,beside_n_slow,beside_median_s,beside_p95_s,beside_max_s\n", file);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) csv_row(file, reports[i], &reports[i]->tests[k]);
}

/* ---- md ---- */

/* Reports as Markdown: a table to paste, and, of one report, what it says of the device and its kernels. */

/* A cell: what would end it, begin markup or be taken as HTML loses its meaning. */
static void md_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (strchr("|\\`*_[]<>", *text)) fputc('\\', file);
        fputc(*text, file);
    }
}

/* The test of that name in a report that is to be compared with, or NULL. */
static const struct report_test *find_test(const struct report *report, const char *name)
{
    for (size_t i = 0; i < report->n_tests; i++)
        if (strcmp(report->tests[i].name, name) == 0) return &report->tests[i];
    return NULL;
}

static void md_row(FILE *file, const struct report *r, const struct report_test *t,
                   const struct report *first)
{
    fputs("| ", file);
    if (first) {
        md_text(file, r->label);
        fputs(" | ", file);
    }
    md_text(file, report_device_name(r));
    fputs(" | ", file);
    md_text(file, report_model_name(r));
    fputs(" | ", file);
    md_text(file, r->model.types);
    fprintf(file, " | %s | ", cmd_size_text(r->model.size));
    md_text(file, t->name);
    fprintf(file, " | %s | %s |", report_speed(t), report_limit(t));
    if (first) {
        const struct report_test *base = find_test(first, t->name);
        if (base && base->median > 0) fprintf(file, " %s |", report_number(t->median / base->median));
        else fputs(" |", file);
    }
    fputc('\n', file);
}

static void md_table(FILE *file, const struct report *const *reports, size_t n)
{
    bool many = n > 1;
    fprintf(file, "|%s device, driver | model | weights | size | test | tokens/s | of the device |%s\n",
            many ? " report |" : "", many ? " times the first |" : "");
    fprintf(file, "|%s---|---|---|--:|---|--:|---|%s\n", many ? "---|" : "", many ? "--:|" : "");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++)
            md_row(file, reports[i], &reports[i]->tests[k], many ? reports[0] : NULL);
}

static bool all_logits(const struct report *r, bool equal)
{
    for (size_t i = 0; i < r->n_tests; i++)
        if (equal ? !r->tests[i].equal : !r->tests[i].finite) return false;
    return true;
}

/* What surrounds the device, as far as it is known. */
static void md_machine(FILE *file, const struct report *r)
{
    const char *machine = report_machine_text(r), *conditions = report_conditions_text(r);
    if (report_spread(r) > 0) fprintf(file, "These rates vary by %.1f %% at most. ", 100 * report_spread(r));
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

static void md_summary(FILE *file, const struct report *r)
{
    const char *placement = report_placement(r);
    fprintf(file, "\n"
                  "The device reads %s GB/s, copies %s GB/s and does %s GFLOP/s in fp32, %s in fp16 and %s by "
                  "matrices. ",
            report_number(1e-9 * r->rates.read), report_number(1e-9 * r->rates.copy), report_flop(r->rates.fp32),
            report_flop(r->rates.fp16), report_flop(r->rates.matrix));
    md_machine(file, r);
    fprintf(file, "Loaded in %.2f s, first token after %.2f s; at most %s on the device, %s on the host; %" PRIu32
            " dispatches per token. ", r->load_s, r->first_token_s, cmd_size_text(r->device_memory),
            cmd_size_text(r->host_memory), r->n_dispatches);
    const char *beside = report_beside(r);
    if (beside[0]) fprintf(file, "Beside a prompt: %s. ", beside);
    if (r->draft[0]) {
        fputs("Drafts by ", file);
        md_text(file, report_drafts(r));
        fputs(". ", file);
    }
    fprintf(file, "The logits are %s, and %s in all repeats.", all_logits(r, false) ? "finite" : "NOT FINITE",
            all_logits(r, true) ? "the same" : "NOT THE SAME");
    if (r->tuning[0]) {
        fputs(" Tuned: ", file);
        md_text(file, r->tuning);
        fputc('.', file);
    }
    if (placement[0]) fprintf(file, " Of the weights, %s.", placement);
    if (report_energy(r)[0]) fprintf(file, " Power %s.", report_energy(r));
    md_text(file, report_verdict(r));
    if (r->left_out[0]) {
        fputs(" Left out: ", file);
        md_text(file, r->left_out);
        fputc('.', file);
    }
    if (report_text_words(r)[0]) fprintf(file, " Of its text, %s.", report_text_words(r));
    fputs(" Measured by ", file);
    md_text(file, report_program(r));
    fprintf(file, "%s%s.\n", r->proof ? "; " : "", report_proof_words(r));
    if (r->note[0]) {
        fputs("\nNote: ", file);
        md_text(file, r->note);
        fputc('\n', file);
    }
}

static void md_kernels(FILE *file, const struct report_test *t)
{
    double total = 0;
    for (size_t i = 0; i < t->n_kernels; i++) total += t->kernels[i].seconds;
    if (total <= 0) return;
    fputs("\n| ", file);
    md_text(file, t->name);
    fprintf(file, ": kernel, in a pass of %" PRIu32 " | dispatches | ms | share |\n|---|--:|--:|--:|\n", t->n_profiled);
    for (size_t i = 0; i < t->n_kernels; i++) {
        const struct report_kernel *k = &t->kernels[i];
        fputs("| ", file);
        md_text(file, k->kernel);
        fprintf(file, " | %" PRIu32 " | %.3f | %.1f %% |\n", k->n, 1e3 * k->seconds, 100 * k->seconds / total);
    }
}

void report_write_md(FILE *file, const struct report *const *reports, size_t n)
{
    md_table(file, reports, n);
    if (n > 1) return;
    md_summary(file, reports[0]);
    for (size_t k = 0; k < reports[0]->n_tests; k++) md_kernels(file, &reports[0]->tests[k]);
}
