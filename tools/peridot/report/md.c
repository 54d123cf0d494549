/* Reports as Markdown: a table to paste, and, of one report, what it says of the device and its kernels. */
#include "words.h"
#include "../text.h"

#include <inttypes.h>
#include <string.h>

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
    fprintf(file, "The logits are %s, and %s in all repeats.", all_logits(r, false) ? "finite" : "NOT FINITE",
            all_logits(r, true) ? "the same" : "NOT THE SAME");
    if (r->tuning[0]) {
        fputs(" Tuned: ", file);
        md_text(file, r->tuning);
        fputc('.', file);
    }
    if (placement[0]) fprintf(file, " Of the weights, %s.", placement);
    md_text(file, report_verdict(r));
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
