/* What the pages of one report and of many are made of: text without markup, tables, and plots that follow the width of
 * the window. */
#ifndef PERIDOT_COMMAND_BENCH_PAGE_H
#define PERIDOT_COMMAND_BENCH_PAGE_H

#include "../bench/bench.h"

/* page.c */
/* From the doctype to <main>; class is of the body. The page's policy allows no requests, and no script but the one
 * that bench_page_end writes, if any. */
void bench_page_begin(FILE *file, const char *title, const char *class);
void bench_page_end(FILE *file, bool with_script);
/* Text with the characters that HTML gives a meaning written as references. */
void bench_page_text(FILE *file, const char *text);
/* The text between two pieces of markup. */
void bench_page_element(FILE *file, const char *open, const char *text, const char *close);
/* Cells of a row. `label` names the column where a narrow window stacks the cells; `small` is a second line, "" or NULL
 * for none. A number sorts by its value, 0 last. */
void bench_page_cell(FILE *file, const char *label, const char *text, const char *small);
void bench_page_number(FILE *file, const char *label, double value, const char *text, const char *small);
/* The test of a kind with the most tokens/s, or NULL; together: of several sequences. */
const struct bench_test *bench_fastest(const struct bench_report *r, bool generation, bool together);
/* plot.c. Colours are CSS variables of the page, and every mark has its number as text as well. */
/* A dot on a logarithmic axis, and a line from the least to the most. */
struct bench_row {
    size_t number;               /* before the name; 0: none */
    const char *name, *small;    /* small: beside the name, "" for none */
    double value, min, max;      /* rows without a value above 0 have no dot */
    char text[64], note[128];    /* the value, and what it means */
    size_t colour;
};
void bench_plot_rows(FILE *file, const struct bench_row *rows, size_t n, const char *unit);
/* Sets value to note from the test. */
void bench_row_test(struct bench_row *row, const struct bench_test *t);
/* Tests of one report below what bandwidth and rates of arithmetic allow. */
void bench_plot_roofline(FILE *file, const struct bench_report *report);
/* Of each file's first report its best test of a kind, as a share of the measured limit: memory's of generation,
 * arithmetic's of prompts. */
void bench_plot_limits(FILE *file, const struct bench_report *const *reports, size_t n, bool generation);

/* The number of the colour for devices of the report's vendor. */
size_t bench_colour(const struct bench_report *r);

/* compare.c */
peridot_status bench_compare(FILE *file, const struct bench_report *const *reports, size_t n);

/* kernels.c */
bool bench_has_kernels(const struct bench_report *const *reports, size_t n);
void bench_plot_kernels(FILE *file, const struct bench_report *const *reports, size_t n);
/* The same as tables, in <details>. */
void bench_page_kernels(FILE *file, const struct bench_report *const *reports, size_t n);

#endif
