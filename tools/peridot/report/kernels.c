/* The figure of time per kernel: a bar for every test, all as long, divided by share. The kernels with the largest
 * shares of all bars get a colour each; the others are one grey part. Tables have all numbers. */
#include "report_.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { COLOURS = 8, NAMES = 256 };

struct names {
    struct name {
        const char *text;
        double share;           /* summed over tests */
    } at[NAMES];
    size_t n;
};

static double total_of(const struct report_test *t)
{
    double total = 0;
    for (size_t i = 0; i < t->n_kernels; i++) total += t->kernels[i].seconds;
    return total;
}

static void kernels_add_name(struct names *names, const char *text, double share)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->at[i].text, text) == 0) {
            names->at[i].share += share;
            return;
        }
    if (names->n < NAMES) names->at[names->n++] = (struct name){text, share};
}

static int by_share(const void *left, const void *right)
{
    const struct name *a = left, *b = right;
    return a->share > b->share ? -1 : a->share < b->share;
}

static size_t count_tests(struct names *names, const struct report *const *reports, size_t n)
{
    size_t n_tests = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) {
            const struct report_test *t = &reports[i]->tests[k];
            double total = total_of(t);
            if (total <= 0) continue;
            n_tests++;
            for (size_t j = 0; j < t->n_kernels; j++)
                kernels_add_name(names, t->kernels[j].kernel, t->kernels[j].seconds / total);
        }
    qsort(names->at, names->n, sizeof *names->at, by_share);
    return n_tests;
}

/* Seconds of the kernel with colour c, or of all that have none. */
static double seconds_of(const struct report_test *t, const struct names *names, size_t c)
{
    double seconds = 0;
    for (size_t i = 0; i < t->n_kernels; i++) {
        size_t at = 0;
        while (at < names->n && at < COLOURS && strcmp(names->at[at].text, t->kernels[i].kernel) != 0) at++;
        if (at == c || (c == COLOURS && at >= names->n)) seconds += t->kernels[i].seconds;
    }
    return seconds;
}

/* Colour c, or that of others. */
static void write_colour(FILE *file, size_t c)
{
    if (c < COLOURS) fprintf(file, "var(--c%zu)", c);
    else fputs("var(--soft)", file);
}

static void draw_test(FILE *file, const char *label, const struct report_test *t, const struct names *names)
{
    double total = total_of(t);
    report_page_element(file, "<div class=\"row\"><span class=\"name\">", t->name, "");
    if (label[0]) report_page_element(file, " <small>", label, "</small>");
    fputs("</span><span class=\"whole\">", file);
    for (size_t c = 0; c <= COLOURS; c++) {
        double share = seconds_of(t, names, c) / total;
        if (share <= 0) continue;
        fprintf(file, "<span style=\"flex:%.4f 0 0;background:", share);
        write_colour(file, c);
        report_page_element(file, "\" title=\"", c < COLOURS ? names->at[c].text : "others", "");
        fprintf(file, ": %.1f %%\">", 100 * share);
        if (share > 0.09) fprintf(file, "%.0f %%", 100 * share);
        fputs("</span>", file);
    }
    fprintf(file, "</span><span class=\"value\"><b>%s ms</b></span></div>\n", report_number(1e3 * total));
}

static void draw_legend(FILE *file, const struct names *names)
{
    size_t n = names->n < COLOURS ? names->n : COLOURS;
    fputs("<ol class=\"key\">", file);
    for (size_t c = 0; c < n + (names->n > COLOURS); c++) {
        fputs("<li><b style=\"background:", file);
        write_colour(file, c < n ? c : COLOURS);
        report_page_element(file, "\">&nbsp;</b>", c < n ? names->at[c].text : "others", "</li>\n");
    }
    fputs("</ol>", file);
}

void report_plot_kernels(FILE *file, const struct report *const *reports, size_t n)
{
    struct names names = {.n = 0};
    if (count_tests(&names, reports, n) == 0) return;
    fputs("<figure class=\"parts\">\n", file);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++)
            if (total_of(&reports[i]->tests[k]) > 0)
                draw_test(file, n > 1 ? reports[i]->label : "", &reports[i]->tests[k], &names);
    draw_legend(file, &names);
    fputs("</figure>\n", file);
}

/* ---- tables ---- */

static void table(FILE *file, const struct report *r, const struct report_test *t)
{
    double total = total_of(t);
    if (total <= 0) return;
    report_page_element(file, "<table><caption>", r->label, r->label[0] ? ": " : "");
    report_page_text(file, t->name);
    fprintf(file, ", in a pass of %" PRIu32 "</caption><thead><tr><th>kernel</th><th class=\"n\">dispatches</th><th "
            "class=\"n\">ms</th><th class=\"n\">share</th></tr></thead><tbody>\n", t->n_profiled);
    for (size_t i = 0; i < t->n_kernels; i++) {
        report_page_element(file, "<tr><td>", t->kernels[i].kernel, "</td>");
        fprintf(file, "<td class=\"n\">%" PRIu32 "</td><td class=\"n\">%.3f</td><td class=\"n\">%.1f %%</td></tr>\n",
                t->kernels[i].n, 1e3 * t->kernels[i].seconds, 100 * t->kernels[i].seconds / total);
    }
    fputs("</tbody></table>\n", file);
}

void report_page_kernels(FILE *file, const struct report *const *reports, size_t n)
{
    fputs("<details><summary>Times of kernels as tables</summary>\n", file);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) table(file, reports[i], &reports[i]->tests[k]);
    fputs("</details>\n", file);
}

bool report_has_kernels(const struct report *const *reports, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++)
            if (total_of(&reports[i]->tests[k]) > 0) return true;
    return false;
}
