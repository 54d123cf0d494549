/* A board of reports as a folder of pages that need nothing else: index.html has a row for each, with filters, and each
 * has its own page beside it, by its number. What a report says is text there, whatever it says. */
#include "report_.h"
#include "../base/base.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- filters ---- */

static const char *vendor(const struct report *r)
{
    static const struct { uint32_t id; const char *name; } vendors[] = {
        {0x1002, "AMD"}, {0x10de, "NVIDIA"}, {0x8086, "Intel"}, {0x106b, "Apple"}, {0x5143, "Qualcomm"},
        {0x13b5, "Arm"}, {0x10005, "none (CPU)"},
    };
    for (size_t i = 0; i < PD_COUNT(vendors); i++)
        if (vendors[i].id == r->device.vendor_id) return vendors[i].name;
    return "another";
}

static const char *driver(const struct report *r) { return r->device.driver; }
static const char *type(const struct report *r) { return r->device.type[0] ? r->device.type : "unknown"; }
static const char *model(const struct report *r) { return report_model_name(r); }
static const char *weights(const struct report *r) { return r->model.types; }

static const struct filter {
    const char *title;
    const char *(*of)(const struct report *);
} filters[] = {
    {"vendor", vendor}, {"driver", driver}, {"device", type}, {"model", model}, {"weights", weights},
};

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* A list of the values that reports have, in order. */
static peridot_status write_filter(FILE *file, const struct reports *list, size_t f)
{
    char **values = calloc(list->n, sizeof *values);
    bool is_whole = values != NULL;
    for (size_t i = 0; is_whole && i < list->n; i++) {
        const char *text = filters[f].of(list->at[i]);
        values[i] = malloc(strlen(text) + 1);
        if (values[i]) strcpy(values[i], text);
        is_whole = values[i] != NULL;
    }
    if (is_whole) {
        qsort(values, list->n, sizeof *values, by_text);
        fprintf(file, "<label>%s <select data-f=\"%zu\"><option value=\"\">all</option>", filters[f].title, f);
        for (size_t i = 0; i < list->n; i++)
            if (i == 0 || strcmp(values[i], values[i - 1]) != 0)
                report_page_element(file, "<option>", values[i], "</option>");
        fputs("</select></label>\n", file);
    }
    for (size_t i = 0; values && i < list->n; i++) free(values[i]);
    free(values);
    return is_whole ? PERIDOT_OK : pd_fail_alloc(list->n * sizeof *values, "list of filters");
}

/* ---- rows ---- */

/* Columns of tests come by their names, which the standard set's have. */
static const struct column {
    const char *title, *test;
    bool number;
} columns[] = {
    {"device", NULL, false}, {"model", NULL, false}, {"p512", "p512", true}, {"p2048", "p2048", true},
    {"n128", "n128", true}, {"n128 @ d8192", "n128 @ d8192", true}, {"n128 b8", "n128 b8", true},
    {"% of predicted", NULL, true}, {"J per token", NULL, true}, {"reads, GB/s", NULL, true},
    {"TFLOP/s", NULL, true}, {"text", NULL, true}, {"checks", NULL, false}, {"measured", NULL, false},
};

static const struct report_test *find_test(const struct report *r, const char *name)
{
    for (size_t i = 0; i < r->n_tests; i++)
        if (strcmp(r->tests[i].name, name) == 0) return &r->tests[i];
    return NULL;
}

static void number_cell(FILE *file, const char *title, double value, const char *small)
{
    report_page_number(file, title, value, value > 0 ? report_number(value) : "-", small);
}

static void test_cell(FILE *file, const struct column *c, const struct report *r)
{
    char small[64] = "";
    const struct report_test *t = find_test(r, c->test);
    bool is_plain = strcmp(c->test, "n128") == 0;
    double predicted = is_plain || strcmp(c->test, "p512") == 0 ? report_predicted(r, is_plain) : 0;
    if (predicted > 0) snprintf(small, sizeof small, "predicted %s", report_number(predicted));
    number_cell(file, c->title, t ? t->median : 0, small);
}

static void text_cell(FILE *file, const char *title, const struct report *r)
{
    char text[48] = "-";
    if (r->text.n_reference)
        snprintf(text, sizeof text, "%" PRIu32 "/%" PRIu32, r->text.n_agree, r->text.n_reference);
    fprintf(file, "<td class=\"n%s\" data-l=\"%s\" data-v=\"%s%.0f\">%s</td>", report_text_is_wrong(r) ? " bad" : "",
            title, r->text.n_reference ? "" : "-", (double)r->text.n_agree, text);
}

/* Where there is something wrong it stands out. */
static void checks_cell(FILE *file, const char *title, const struct report *r)
{
    static const char *const proofs[] = {"no checksum", "checksum right", "CHECKSUM WRONG"};
    bool finite = true, equal = true;
    for (size_t k = 0; k < r->n_tests; k++) {
        finite = finite && r->tests[k].finite;
        equal = equal && r->tests[k].equal;
    }
    bool bad = r->proof == REPORT_CHANGED || !finite || !equal || r->device.broken[0];
    fprintf(file, "<td data-l=\"%s\"%s>%s%s%s%s%s</td>", title, bad ? " class=\"bad\"" : "", proofs[r->proof],
            finite ? "" : "; logits not finite", equal ? "" : "; logits differ",
            r->device.broken[0] ? "; kernels failed" : "", r->made ? "<small>made up</small>" : "");
}

static void row(FILE *file, const struct report *r, size_t number)
{
    const struct column *c = columns;
    const struct report_test *generation = find_test(r, "n128");
    const double predicted = report_predicted(r, true), flops = fmax(r->rates.fp32, r->rates.matrix);
    char small[640];
    fputs("<tr", file);
    for (size_t f = 0; f < PD_COUNT(filters); f++) {
        fprintf(file, " data-f%zu=\"", f);
        report_page_element(file, "", filters[f].of(r), "\"");
    }
    fprintf(file, "><td data-l=\"%s\"><a href=\"report-%zu.html\">", c++->title, number);
    report_page_element(file, "", r->device.name, "</a>");
    snprintf(small, sizeof small, "%s %s", r->device.driver, r->device.driver_info);
    report_page_element(file, "<small>", small, "</small></td>");
    snprintf(small, sizeof small, "%s, %s", r->model.types, cmd_size_text(r->model.size));
    report_page_cell(file, c++->title, report_model_name(r), small);
    for (; c->test; c++) test_cell(file, c, r);
    number_cell(file, c++->title, generation && predicted > 0 ? 100 * generation->median / predicted : 0, NULL);
    number_cell(file, c++->title, generation ? generation->j_per_token : 0, generation ? r->meter : NULL);
    number_cell(file, c++->title, 1e-9 * r->rates.read, NULL);
    number_cell(file, c++->title, 1e-12 * flops, r->rates.matrix > r->rates.fp32 ? "matrix" : "fp32");
    text_cell(file, c++->title, r);
    checks_cell(file, c++->title, r);
    snprintf(small, sizeof small, "%s %s: %s", r->program, r->commit, r->label);
    char date[11];
    snprintf(date, sizeof date, "%.10s", r->date);
    report_page_cell(file, c->title, date, small);
    fputs("</tr>\n", file);
}

/* ---- pages ---- */

static void write_table(FILE *file, const struct reports *list)
{
    fputs("<p class=\"sortby\" hidden><label>Sort by <select>", file);
    for (size_t i = 0; i < PD_COUNT(columns); i++)
        fprintf(file, "<option value=\"%zu\">%s</option>", i, columns[i].title);
    fputs("</select></label></p>\n<table class=\"sort board\"><thead><tr>", file);
    for (size_t i = 0; i < PD_COUNT(columns); i++)
        fprintf(file, "<th%s>%s</th>", columns[i].number ? " class=\"n\"" : "", columns[i].title);
    fputs("</tr></thead><tbody>\n", file);
    for (size_t i = 0; i < list->n; i++) row(file, list->at[i], i + 1);
    fputs("</tbody></table>\n", file);
}

static peridot_status write_index(FILE *file, const struct reports *list)
{
    peridot_status status = PERIDOT_OK;
    size_t n_made = 0;
    for (size_t i = 0; i < list->n; i++) n_made += list->at[i]->made;
    report_page_begin(file, "GPUs compared", "many");
    fprintf(file, "<h1>GPUs compared</h1>\n<p class=\"about\">%zu report%s of peridot bench. Speeds are tokens per "
            "second: prompts of 512 and 2048 tokens (p), 128 tokens written (n), after 8192 others (d), for 8 "
            "sequences at once (b). Predictions are made from compiled kernels and data sheets, before anybody "
            "measured. Text: tokens that are the reference's. ", list->n, PD_S(list->n));
    if (n_made) fprintf(file, "<b class=\"bad\">%zu of them %s made up, and not measured.</b>", n_made,
                        n_made > 1 ? "are" : "is");
    fputs("</p>\n<p class=\"filters\" hidden>\n", file);
    for (size_t f = 0; status == PERIDOT_OK && f < PD_COUNT(filters); f++) status = write_filter(file, list, f);
    fputs("<output></output></p>\n<section>\n", file);
    write_table(file, list);
    fputs("</section>\n", file);
    if (list->left_out[0])
        report_page_element(file, "<p class=\"bad\">Files that are no reports: ", list->left_out, "</p>\n");
    report_page_end(file, true);
    return status;
}

/* number 0: the index. */
static peridot_status write_page(const struct reports *list, const char *folder, size_t number)
{
    char path[4096], name[40] = "index.html";
    if (number) snprintf(name, sizeof name, "report-%zu.html", number);
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = size > 0 && (size_t)size < sizeof path ? fopen(path, "wb") : NULL;
    if (!file) return pd_fail(PERIDOT_ERROR_IO, "%s/%s: cannot be written: %s", folder, name, strerror(errno));
    const struct report *const *reports = (const struct report *const *)list->at;
    peridot_status status = number ? report_write_html(file, reports + number - 1, 1) : write_index(file, list);
    bool failed = ferror(file) != 0;
    failed = fclose(file) != 0 || failed;
    if (status == PERIDOT_OK && failed) return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be written whole", path);
    return status;
}

peridot_status reports_write_site(const struct reports *list, const char *folder)
{
    pd_make_one_directory(folder);   /* where it is there already, or cannot be made, writing tells */
    for (size_t number = 0; number <= list->n; number++) PD_TRY(write_page(list, folder, number));
    return PERIDOT_OK;
}
