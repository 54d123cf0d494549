/* What the pages of one report and of many are made of: text without markup, tables, and plots that follow the width of
 * the window. */
#ifndef PERIDOT_COMMAND_REPORT_PAGE_H
#define PERIDOT_COMMAND_REPORT_PAGE_H

#include "words.h"

/* page.c */
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
