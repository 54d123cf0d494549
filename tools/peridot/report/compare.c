/* Several reports as one page: a table to sort, and a plot for each test that reports have in common, which stay
 * readable with fifty of them. Files are numbered, and named by their number in plots. */
#include "report_.h"
#include "../base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table of machines ---- */

/* Titles of cells in narrow windows; the cells of a row come in this order. */
static const struct column {
    const char *title;
    bool number;
} columns[] = {
    {"#", true}, {"report", false}, {"device", false}, {"score", true}, {"model", false}, {"generation, tok/s", true},
    {"several, tok/s", true}, {"prompt, tok/s", true}, {"reads, GB/s", true}, {"fp32, GFLOP/s", true},
    {"fp16, GFLOP/s", true}, {"matrix, GFLOP/s", true}, {"first token, s", true}, {"device memory", true},
    {"machine", false}, {"conditions", false}, {"measured", false}, {"remarks", false},
};

/* The cells of one row, which take their titles in order. */
struct cells {
    FILE *file;
    const struct column *next;
};

static void text_cell(struct cells *c, const char *text, const char *small)
{
    report_page_cell(c->file, c->next++->title, text, small);
}

static void number_cell(struct cells *c, double value, const char *text, const char *small)
{
    report_page_number(c->file, c->next++->title, value, text, small);
}

/* The first report's of a file; those of the others, which are of other models, are in the table of tests. */
static void speed_cell(struct cells *c, const struct report *r, bool generation, bool together)
{
    char small[320];
    const struct report_test *t = report_fastest(r, generation, together);
    if (!t) {
        number_cell(c, 0, "-", NULL);
        return;
    }
    snprintf(small, sizeof small, "%s: %s", t->name, report_part(t));
    number_cell(c, t->median, report_number(t->median), small);
}

static void rate_cell(struct cells *c, double rate, double spread)
{
    char small[32] = "";
    if (rate > 0 && spread > 0) snprintf(small, sizeof small, "± %.1f %%", 100 * spread);
    number_cell(c, rate, report_flop(rate), small);
}

static void score_cell(struct cells *c, const struct report *r)
{
    const char *parts = strchr(report_score_text(r), '(');
    if (r->score.n_parts) number_cell(c, r->score.total, report_number(r->score.total), parts);
    else number_cell(c, 0, "-", NULL);
}

static void remark(char *text, size_t size, const char *format, const char *value)
{
    size_t at = strlen(text);
    if (value[0] && at + 1 < size) snprintf(text + at, size - at, format, at ? ". " : "", value);
}

static void remarks_cell(struct cells *c, const struct report *r)
{
    char text[4096] = "", session[768];
    remark(text, sizeof text, "%s%s", r->note);
    remark(text, sizeof text, "%sLeft out: %s", r->left_out);
    remark(text, sizeof text, "%s%s", report_placement(r));
    remark(text, sizeof text, "%sBeside a prompt: %s", report_beside(r));
    remark(text, sizeof text, "%s%s", report_verdict(r));
    remark(text, sizeof text, "%sPower %s", report_energy(r));
    remark(text, sizeof text, "%s%s", report_text_words(r));
    remark(text, sizeof text, "%s%s", r->proof == REPORT_CHANGED ? report_proof_words(r) : "");
    remark(text, sizeof text, "%s%s", r->made ? "Made up, and not measured" : "");
    remark(text, sizeof text, "%sTuned: %s", r->tuning);
    snprintf(session, sizeof session, "context %" PRIu32 ", chunk %" PRIu32 ", cache %s, %" PRIu32
             " dispatches per token%s%s", r->ctx, r->chunk, r->kv, r->n_dispatches, r->kernels[0] ? ", " : "",
             r->kernels);
    text_cell(c, text, session);
}

/* "2026-11-22" and what is after the T. */
static void date_cell(struct cells *c, const struct report *r)
{
    char date[32], small[128];
    size_t size = strcspn(r->date, "T");
    snprintf(date, sizeof date, "%.*s", (int)size, r->date);
    snprintf(small, sizeof small, "%s, %s%s%s", r->date[size] ? r->date + size + 1 : "", r->program,
             r->commit[0] ? " " : "", r->commit);
    text_cell(c, date, small);
}

/* Hardware above, system below. */
static void machine_cell(struct cells *c, const struct report *r)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", report_machine_text(r));
    char *system = strstr(text, "; ");
    if (system) *system = 0;
    text_cell(c, text, system ? system + 2 : "");
}

static void machine_row(FILE *file, const struct report *r, size_t number)
{
    struct cells c = {file, columns};
    char text[32], small[640];
    fputs("<tr>", file);
    snprintf(text, sizeof text, "%zu", number);
    number_cell(&c, (double)number, text, NULL);
    text_cell(&c, r->label, NULL);
    snprintf(small, sizeof small, "%s%s%s %s", r->device.type, r->device.type[0] ? ", " : "", r->device.driver,
             r->device.driver_info);
    text_cell(&c, r->device.name, small);
    score_cell(&c, r);
    snprintf(small, sizeof small, "%s, %s", r->model.types, cmd_size_text(r->model.size));
    text_cell(&c, report_model_name(r), small);
    speed_cell(&c, r, true, false);
    speed_cell(&c, r, true, true);
    speed_cell(&c, r, false, false);
    rate_cell(&c, r->rates.read, r->spread.read);
    rate_cell(&c, r->rates.fp32, r->spread.fp32);
    rate_cell(&c, r->rates.fp16, r->spread.fp16);
    rate_cell(&c, r->rates.matrix, r->spread.matrix);
    number_cell(&c, r->first_token_s, report_number(r->first_token_s), NULL);
    number_cell(&c, (double)r->device_memory, cmd_size_text(r->device_memory), NULL);
    machine_cell(&c, r);
    text_cell(&c, report_conditions_text(r), NULL);
    date_cell(&c, r);
    remarks_cell(&c, r);
    fputs("</tr>\n", file);
}

/* class: of its widths in page.html */
static void begin_table(FILE *file, const char *title, const char *class, const struct column *list, size_t n)
{
    fprintf(file, "<section><h2>%s</h2>\n<p class=\"sortby\" hidden><label>Sort by <select>", title);
    for (size_t i = 0; i < n; i++) fprintf(file, "<option value=\"%zu\">%s</option>", i, list[i].title);
    fprintf(file, "</select></label></p>\n<table class=\"sort %s\"><thead><tr>", class);
    for (size_t i = 0; i < n; i++) fprintf(file, "<th%s>%s</th>", list[i].number ? " class=\"n\"" : "", list[i].title);
    fputs("</tr></thead><tbody>\n", file);
}

static void end_table(FILE *file)
{
    fputs("</tbody></table></section>\n", file);
}

/* ---- plots of tests ---- */

/* A test of one report. Those with the same model, types and name are compared. */
struct entry {
    const struct report *report;
    const struct report_test *test;
    size_t number;               /* of the file */
};

static int same_test(const struct entry *a, const struct entry *b)
{
    int order = strcmp(a->report->model.name, b->report->model.name);
    if (!order) order = strcmp(a->report->model.types, b->report->model.types);
    if (!order) order = (a->test->generation > b->test->generation) - (a->test->generation < b->test->generation);
    if (!order) order = (a->test->n_sequences > b->test->n_sequences) - (a->test->n_sequences < b->test->n_sequences);
    return order ? order : strcmp(a->test->name, b->test->name);
}

static int by_test_and_speed(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = same_test(a, b);
    if (!order) order = (a->test->median < b->test->median) - (a->test->median > b->test->median);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static const struct entry *find_first(const struct entry *entries, size_t n)
{
    const struct entry *first = entries;
    for (size_t i = 1; i < n; i++)
        if (entries[i].number < first->number) first = &entries[i];
    return first;
}

static void fill_row(struct report_row *row, const struct entry *e, const struct report_test *first)
{
    *row = (struct report_row){.number = e->number, .name = e->report->label, .small = e->report->device.name,
                              .colour = report_colour(e->report)};
    report_row_test(row, e->test);
    size_t at = strlen(row->note);
    if (e->test != first && first->median > 0)
        snprintf(row->note + at, sizeof row->note - at, ", %s times", report_number(e->test->median / first->median));
    if (!e->test->finite || !e->test->equal)
        snprintf(row->text, sizeof row->text, "%s (logits %s)", report_number(e->test->median),
                 e->test->finite ? "differ" : "not finite");
}

static void test_plot(FILE *file, struct report_row *rows, const struct entry *entries, size_t n)
{
    const struct entry *first = find_first(entries, n);
    for (size_t i = 0; i < n; i++) fill_row(&rows[i], &entries[i], first->test);
    fputs("<h3>", file);
    report_page_text(file, report_model_name(first->report));
    report_page_element(file, " ", first->report->model.types, ": ");
    report_page_element(file, "", first->test->name, "</h3>\n");
    report_plot_rows(file, rows, n, "tokens/s, and times the first report's");
}

static int by_value(const void *left, const void *right)
{
    double a = ((const struct report_row *)left)->value, b = ((const struct report_row *)right)->value;
    return (a < b) - (a > b);
}

static void score_plot(FILE *file, struct report_row *rows, const struct report *const *reports, size_t n)
{
    size_t n_rows = 0, number = 0;
    for (size_t i = 0; i < n; i++) {
        const struct report *r = reports[i];
        number += !r->continues;
        if (!r->score.n_parts || r->continues) continue;
        struct report_row *row = &rows[n_rows++];
        *row = (struct report_row){.number = number, .name = r->label, .small = r->device.name, .value = r->score.total,
                                  .colour = report_colour(r)};
        snprintf(row->text, sizeof row->text, "%s", report_number(r->score.total));
        snprintf(row->note, sizeof row->note, "%s", strchr(report_score_text(r), '('));
    }
    if (!n_rows) return;
    qsort(rows, n_rows, sizeof *rows, by_value);
    fputs("<h3>Score of --quick</h3>\n", file);
    report_plot_rows(file, rows, n_rows, "100 is the reference");
}

static void plots(FILE *file, struct report_row *rows, struct entry *entries, size_t n)
{
    qsort(entries, n, sizeof *entries, by_test_and_speed);
    for (size_t begin = 0, end = 0; begin < n; begin = end) {
        while (end < n && same_test(&entries[begin], &entries[end]) == 0) end++;
        if (end - begin > 1) test_plot(file, rows, entries + begin, end - begin);
    }
}

/* ---- the table of tests ---- */

static const struct column test_columns[] = {
    {"#", true}, {"report", false}, {"model", false}, {"test", false}, {"tok/s", true}, {"± sd", true},
    {"least", true}, {"most", true}, {"GB/s", true}, {"% of bandwidth", true}, {"GFLOP/s", true},
    {"% of arithmetic", true}, {"logits", false},
};

static void entry_row(FILE *file, const struct entry *e)
{
    struct cells c = {file, test_columns};
    const struct report_test *t = e->test;
    const double speeds[] = {t->median, t->sd, t->min, t->max, 1e-9 * t->bytes_per_s, 100 * t->bandwidth_part,
                             1e-9 * t->flop_per_s, 100 * t->arithmetic_part};
    char text[32];
    snprintf(text, sizeof text, "%zu", e->number);
    fputs("<tr>", file);
    number_cell(&c, (double)e->number, text, NULL);
    text_cell(&c, e->report->label, NULL);
    text_cell(&c, report_model_name(e->report), e->report->model.types);
    text_cell(&c, t->name, NULL);
    for (size_t i = 0; i < PD_COUNT(speeds); i++)
        number_cell(&c, speeds[i], report_number(speeds[i]), i + 1 == PD_COUNT(speeds) ? t->arithmetic : NULL);
    snprintf(text, sizeof text, "%s, %s", t->finite ? "finite" : "not finite", t->equal ? "same" : "differ");
    text_cell(&c, text, NULL);
    fputs("</tr>\n", file);
}

static void test_table(FILE *file, const struct entry *entries, size_t n)
{
    begin_table(file, "All tests", "tests narrow", test_columns, PD_COUNT(test_columns));
    for (size_t i = 0; i < n; i++) entry_row(file, &entries[i]);
    end_table(file);
}

/* ---- page ---- */

static void limits(FILE *file, const struct report *const *reports, size_t n)
{
    fputs("<h2>How near to the limit</h2><p class=\"soft\">The fastest test of each file's first model, as a share of "
          "what its device was measured to do. Numbers are those of the table.</p>\n<div class=\"pair\">\n", file);
    report_plot_limits(file, reports, n, true);
    report_plot_limits(file, reports, n, false);
    fputs("</div>\n", file);
}

static void compare_body(FILE *file, const struct report *const *reports, size_t n, struct report_row *rows,
                         struct entry *entries)
{
    size_t n_entries = 0, number = 0;
    begin_table(file, "Reports", "machines narrow", columns, PD_COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        number += !reports[i]->continues;
        if (!reports[i]->continues) machine_row(file, reports[i], number);
        for (size_t k = 0; k < reports[i]->n_tests; k++)
            entries[n_entries++] = (struct entry){reports[i], &reports[i]->tests[k], number};
    }
    end_table(file);
    fputs("<h2>Speeds</h2><p class=\"soft\">Tests that several reports have in common: medians, fastest first; lines "
          "go from the least to the most of the repeats. The scales are logarithmic. Numbers before the names are "
          "those of the table, colours are vendors'.</p>\n", file);
    score_plot(file, rows, reports, n);
    plots(file, rows, entries, n_entries);
    limits(file, reports, n);
    if (report_has_kernels(reports, n)) {
        fputs("<h2>Time per kernel</h2>\n<details><summary>Shares of one pass over the tokens</summary>\n", file);
        report_plot_kernels(file, reports, n);
        fputs("</details>\n", file);
        report_page_kernels(file, reports, n);
    }
    test_table(file, entries, n_entries);
}

peridot_status report_compare(FILE *file, const struct report *const *reports, size_t n)
{
    size_t n_tests = n;
    for (size_t i = 0; i < n; i++) n_tests += reports[i]->n_tests;
    struct report_row *rows = calloc(n_tests, sizeof *rows);
    struct entry *entries = calloc(n_tests, sizeof *entries);
    if (rows && entries) {
        size_t n_files = 0;
        for (size_t i = 0; i < n; i++) n_files += !reports[i]->continues;
        report_page_begin(file, "reports compared", "many");
        fprintf(file, "<h1>%zu reports compared</h1>\n<p class=\"about\">Measured with peridot bench.</p>\n", n_files);
        compare_body(file, reports, n, rows, entries);
        report_page_end(file, true);
    }
    free(rows);
    free(entries);
    return rows && entries ? PERIDOT_OK : pd_fail_alloc(n_tests * sizeof *rows, "tests to compare");
}
