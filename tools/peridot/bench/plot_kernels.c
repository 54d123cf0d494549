/* The figure of time per kernel: a bar for every test, all as long, divided by share. The kernels with the largest
 * shares of all bars get a colour each; the others are one grey part. */
#include "bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 860, LEFT = 200, RIGHT = WIDTH - 130, BAR = 24, ROW = 34, COLOURS = 8, NAMES = 256, LEGEND_COLUMNS = 4 };

struct names {
    struct name {
        const char *text;
        double share;           /* summed over tests */
    } at[NAMES];
    size_t n;
};

static double total_of(const struct bench_test *t)
{
    double total = 0;
    for (size_t i = 0; i < t->n_kernels; i++) total += t->kernels[i].seconds;
    return total;
}

static void add_name(struct names *names, const char *text, double share)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->at[i].text, text) == 0) {
            names->at[i].share += share;
            return;
        }
    if (names->n < NAMES) names->at[names->n++] = (struct name){text, share};
}

static int compare(const void *left, const void *right)
{
    const struct name *a = left, *b = right;
    return a->share > b->share ? -1 : a->share < b->share;
}

static size_t count_tests(struct names *names, const struct bench_report *const *reports, size_t n)
{
    size_t n_tests = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) {
            const struct bench_test *t = &reports[i]->tests[k];
            double total = total_of(t);
            if (total <= 0) continue;
            n_tests++;
            for (size_t j = 0; j < t->n_kernels; j++)
                add_name(names, t->kernels[j].kernel, t->kernels[j].seconds / total);
        }
    qsort(names->at, names->n, sizeof *names->at, compare);
    return n_tests;
}

/* Seconds of the kernel with colour c, or of all that have none. */
static double seconds_of(const struct bench_test *t, const struct names *names, size_t c)
{
    double seconds = 0;
    for (size_t i = 0; i < t->n_kernels; i++) {
        size_t at = 0;
        while (at < names->n && at < COLOURS && strcmp(names->at[at].text, t->kernels[i].kernel) != 0) at++;
        if (at == c || (c == COLOURS && at >= names->n)) seconds += t->kernels[i].seconds;
    }
    return seconds;
}

/* A part of a bar. */
struct part {
    const char *name, *fill;
    double x, y, width, share;
};

static void draw_part(FILE *file, const struct part *p)
{
    fprintf(file, "<rect class=\"part\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"var(--%s)\"><title>",
            p->x, p->y, p->width, BAR, p->fill);
    bench_html_text(file, p->name);
    fprintf(file, ": %.1f %%</title></rect>\n", 100 * p->share);
    if (p->width > 38)
        fprintf(file, "<text class=\"inside\" x=\"%.1f\" y=\"%.1f\">%.0f %%</text>\n", p->x + p->width / 2,
                p->y + BAR / 2.0 + 5, 100 * p->share);
}

static void draw_label(FILE *file, const struct bench_report *r, const struct bench_test *t, double y, size_t n)
{
    bench_html_name(file, LEFT - 10, y + BAR / 2.0 + 5, n > 1 ? r->label : NULL, t->name);
    fprintf(file, "<text class=\"value\" x=\"%d\" y=\"%.1f\">%s ms</text>\n", RIGHT + 8, y + BAR / 2.0 + 5,
            bench_number(1e3 * total_of(t)));
}

static void draw_test(FILE *file, const struct bench_test *t, const struct names *names, double y)
{
    double x = LEFT, total = total_of(t);
    for (size_t c = 0; c <= COLOURS; c++) {
        char fill[8];
        double share = seconds_of(t, names, c) / total, width = share * (RIGHT - LEFT);
        if (share <= 0) continue;
        snprintf(fill, sizeof fill, c < COLOURS ? "c%zu" : "soft", c);
        draw_part(file, &(struct part){c < COLOURS ? names->at[c].text : "others", fill, x, y, width, share});
        x += width;
    }
}

static void draw_legend(FILE *file, const struct names *names, double y)
{
    size_t n = names->n < COLOURS ? names->n : COLOURS;
    for (size_t c = 0; c < n + (names->n > COLOURS); c++) {
        double x = (double)(c % LEGEND_COLUMNS) * WIDTH / LEGEND_COLUMNS, top = y + (double)(c / LEGEND_COLUMNS) * 22;
        if (c < n) fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\" "
                                 "fill=\"var(--c%zu)\"/>\n", x, top, c);
        else fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\" fill=\"var(--soft)\"/>\n",
                     x, top);
        fprintf(file, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">", x + 18, top + 11);
        bench_html_text(file, c < n ? names->at[c].text : "others");
        fputs("</text>\n", file);
    }
}

void bench_plot_kernels(FILE *file, const struct bench_report *const *reports, size_t n)
{
    struct names names = {.n = 0};
    size_t n_tests = count_tests(&names, reports, n);
    double y = 0;
    if (n_tests == 0) return;
    size_t legend = (cmd_min(names.n, COLOURS + 1) + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS;
    fprintf(file, "<svg viewBox=\"0 0 %d %zu\" role=\"img\" aria-label=\"share of each kernel in the time of a pass\">"
                  "\n", WIDTH,
            n_tests * ROW + legend * 22 + 8);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) {
            const struct bench_test *t = &reports[i]->tests[k];
            if (total_of(t) <= 0) continue;
            draw_label(file, reports[i], t, y, n);
            draw_test(file, t, &names, y);
            y += ROW;
        }
    draw_legend(file, &names, y + 4);
    fputs("</svg>\n", file);
}
