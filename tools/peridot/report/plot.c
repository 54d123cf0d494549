/* Plots as boxes placed in per cent of the width of their figure, so that they follow the window and their text keeps
 * its size; only lines are SVG. Axes are logarithmic: devices differ by factors of a hundred. */
#include "report_.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLOURS = 8 };

/* ---- axes ---- */

/* In log10. */
struct axis {
    double low, high;
};

static void take_in(struct axis *a, double value)
{
    a->low = fmin(a->low, log10(value));
    a->high = fmax(a->high, log10(value));
}

static const struct axis nothing = {INFINITY, -INFINITY};

/* Values within these can be drawn; the rest of what a file may hold is in the tables only. */
static bool is_drawable(double value)
{
    return value > 1e-9 && value < 1e18;
}

static const double steps[] = {1, 2, 5};

static double tick(int i)
{
    int decade = i >= 0 ? i / 3 : -((2 - i) / 3);
    return steps[i - 3 * decade] * pow(10, decade);
}

/* Widens the axis to the next values of 1, 2 and 5 times powers of ten. */
static void round_out(struct axis *a)
{
    int low = (int)floor(3 * a->low) - 1, high = (int)ceil(3 * a->high) + 1;
    while (log10(tick(low + 1)) < a->low - 0.02) low++;
    while (log10(tick(high - 1)) > a->high + 0.02) high--;
    a->low = log10(tick(low));
    a->high = log10(tick(high));
}

/* Per cent of the axis. */
static double place(const struct axis *a, double value)
{
    return 100 * (log10(value) - a->low) / (a->high - a->low);
}

/* Calls with the values that deserve a line: powers of ten, with 2 and 5 times them where those are few. */
static void each_tick(const struct axis *a, void (*call)(void *user, double at, double value), void *user)
{
    int step = a->high - a->low > 2.5 ? 3 : 1;
    for (int i = 3 * (int)floor(a->low); i <= 3 * (int)ceil(a->high); i += step) {
        double at = place(a, tick(i));
        if (at > -0.1 && at < 100.1) call(user, at, tick(i));
    }
}

static const char *tick_text(double value)
{
    static char text[32];
    const char *unit = value >= 1e9 ? "G" : value >= 1e6 ? "M" : value >= 1e4 ? "k" : "";
    double scale = value >= 1e9 ? 1e9 : value >= 1e6 ? 1e6 : value >= 1e4 ? 1e3 : 1;
    snprintf(text, sizeof text, "%g%s", value / scale, unit);
    return text;
}

/* ---- rows ---- */

static void grid_line(void *file, double at, double value)
{
    (void)value;
    fprintf(file, ",linear-gradient(var(--line),var(--line)) %.2f%% 0/1px 100%% no-repeat", at);
}

static void row_tick(void *file, double at, double value)
{
    fprintf(file, "<i style=\"left:%.2f%%\">%s</i>", at, tick_text(value));
}

static void draw_dot(FILE *file, const struct report_row *row, const struct axis *axis)
{
    if (!is_drawable(row->value)) return;
    double at = place(axis, row->value);
    if (is_drawable(row->min) && is_drawable(row->max) && row->max > row->min) {
        double low = place(axis, row->min), high = place(axis, row->max);
        fprintf(file, "<u style=\"left:%.2f%%;width:%.2f%%\"></u>", low, high - low);
    }
    fprintf(file, "<b style=\"left:%.2f%%;background:var(--c%zu)\"></b>", at, row->colour % COLOURS);
}

static void draw_row(FILE *file, const struct report_row *row, const struct axis *axis)
{
    fputs("<div class=\"row\"><span class=\"name\">", file);
    if (row->number) fprintf(file, "<b>%zu</b>", row->number);
    report_page_text(file, row->name);
    if (row->small[0]) report_page_element(file, " <small>", row->small, "</small>");
    fputs("</span><span class=\"track\">", file);
    draw_dot(file, row, axis);
    report_page_element(file, "</span><span class=\"value\"><b>", row->text, "</b>");
    if (row->note[0]) report_page_element(file, " <small>", row->note, "</small>");
    fputs("</span></div>\n", file);
}

void report_row_test(struct report_row *row, const struct report_test *t)
{
    row->value = t->median;
    row->min = t->min;
    row->max = t->max;
    snprintf(row->text, sizeof row->text, "%s", report_speed(t));
    snprintf(row->note, sizeof row->note, "%s", report_limit(t));
}

void report_plot_rows(FILE *file, const struct report_row *rows, size_t n, const char *unit)
{
    struct axis axis = nothing;
    for (size_t i = 0; i < n; i++) {
        const double values[] = {rows[i].value, rows[i].min, rows[i].max};
        for (size_t k = 0; k < PD_COUNT(values); k++)
            if (is_drawable(values[k])) take_in(&axis, values[k]);
    }
    if (axis.low > axis.high) axis = (struct axis){0, 1};
    round_out(&axis);
    fputs("<figure style=\"--grid:linear-gradient(transparent,transparent)", file);
    each_tick(&axis, grid_line, file);
    fputs("\">\n<div class=\"row axis\"><span></span><span class=\"track\">", file);
    each_tick(&axis, row_tick, file);
    fprintf(file, "</span><span class=\"value\"><small>%s</small></span></div>\n", unit);
    for (size_t i = 0; i < n; i++) draw_row(file, &rows[i], &axis);
    fputs("</figure>\n", file);
}

/* ---- two axes ---- */

struct plot {
    FILE *file;
    struct axis x, y;
};

static void line_across(void *user, double at, double value)
{
    (void)value;
    fprintf(((struct plot *)user)->file, "<path d=\"M0 %.2fH100\"/>", 100 - at);
}

static void line_up(void *user, double at, double value)
{
    (void)value;
    fprintf(((struct plot *)user)->file, "<path d=\"M%.2f 0V100\"/>", at);
}

static void text_x(void *user, double at, double value)
{
    fprintf(((struct plot *)user)->file, "<i class=\"x\" style=\"left:%.2f%%\">%s</i>", at, tick_text(value));
}

static void text_y(void *user, double at, double value)
{
    fprintf(((struct plot *)user)->file, "<i class=\"y\" style=\"bottom:%.2f%%\">%s</i>", at, tick_text(value));
}

/* Opens the plot and its lines, which end_lines closes. */
static void begin_plot(struct plot *p, const char *title)
{
    round_out(&p->x);
    round_out(&p->y);
    fprintf(p->file, "<figure><div class=\"plot\" role=\"img\" aria-label=\"%s\">\n<svg viewBox=\"0 0 100 100\" "
            "preserveAspectRatio=\"none\">", title);
    each_tick(&p->x, line_up, p);
    each_tick(&p->y, line_across, p);
}

static void end_lines(struct plot *p, const char *x_title, const char *y_title)
{
    fputs("</svg>\n", p->file);
    each_tick(&p->x, text_x, p);
    each_tick(&p->y, text_y, p);
    fprintf(p->file, "<i class=\"xt\">%s</i><i class=\"yt\">%s</i>\n", x_title, y_title);
}

/* The line y = factor * x, from the lower or left edge to y_end or the right one. */
static void draw_slope(struct plot *p, double factor, double y_end)
{
    double f = log10(factor), x0 = fmax(p->x.low, p->y.low - f), x1 = fmin(p->x.high, log10(y_end) - f);
    if (x0 >= x1) return;
    fprintf(p->file, "<path class=\"roof\" d=\"M%.2f %.2fL%.2f %.2f\"/>", place(&p->x, pow(10, x0)),
            100 - place(&p->y, pow(10, x0 + f)), place(&p->x, pow(10, x1)), 100 - place(&p->y, pow(10, x1 + f)));
}

/* ---- roofline ---- */

enum { ROOFS = 3 };

struct roof {
    const char *name;
    double rate;                 /* GFLOP/s */
};

static int by_rate(const void *left, const void *right)
{
    double a = ((const struct roof *)left)->rate, b = ((const struct roof *)right)->rate;
    return a < b ? 1 : a > b ? -1 : 0;
}

/* From the highest; 0 where there is none. */
static void get_roofs(struct roof *out, const struct report *r)
{
    out[0] = (struct roof){"fp32", 1e-9 * r->rates.fp32};
    out[1] = (struct roof){"fp16", 1e-9 * r->rates.fp16};
    out[2] = (struct roof){"matrix", 1e-9 * r->rates.matrix};
    qsort(out, ROOFS, sizeof *out, by_rate);
}

static double intensity(const struct report_test *t)
{
    return t->bytes_per_s > 0 ? t->flop_per_s / t->bytes_per_s : 0;
}

static bool can_plot(const struct report_test *t)
{
    return is_drawable(intensity(t)) && is_drawable(1e-9 * t->flop_per_s);
}

/* False when there is nothing to show. */
static bool set_edges(struct plot *p, const struct report *r, const struct roof *roofs)
{
    double read = 1e-9 * r->rates.read;
    size_t n_points = 0;
    p->x = p->y = nothing;
    for (size_t k = 0; k < r->n_tests; k++) {
        if (!can_plot(&r->tests[k])) continue;
        take_in(&p->x, intensity(&r->tests[k]));
        take_in(&p->y, 1e-9 * r->tests[k].flop_per_s);
        n_points++;
    }
    if (n_points == 0 || !is_drawable(read) || !is_drawable(roofs[0].rate / read)) return false;
    take_in(&p->x, 2 * roofs[0].rate / read);
    take_in(&p->y, 1.4 * roofs[0].rate);
    return true;
}

/* Up the slope of the bandwidth, then level at the highest rate; the others are broken lines. */
static void draw_roofs(struct plot *p, const struct report *r, const struct roof *roofs)
{
    double read = 1e-9 * r->rates.read;
    draw_slope(p, read, roofs[0].rate);
    for (int i = 0; i < ROOFS; i++) {
        double ridge = roofs[i].rate / read;
        if (!is_drawable(roofs[i].rate) || log10(roofs[i].rate) < p->y.low || !is_drawable(ridge)) continue;
        fprintf(p->file, "<path class=\"%s\" d=\"M%.2f %.2fH100\"/>", i ? "low" : "roof",
                fmax(0, place(&p->x, ridge)), 100 - place(&p->y, roofs[i].rate));
    }
}

/* At the right end of each level, on it or under it, where the label before leaves room. */
static void name_roofs(struct plot *p, const struct roof *roofs)
{
    double lowest = 200;
    for (int i = 0; i < ROOFS; i++) {
        if (!is_drawable(roofs[i].rate) || log10(roofs[i].rate) < p->y.low) continue;
        double at = place(&p->y, roofs[i].rate);
        bool under = at + 6 > lowest;
        if (under && at > lowest + 1) at = lowest;
        fprintf(p->file, "<i class=\"%s\" style=\"left:99%%;bottom:%.2f%%\">%s: %s GFLOP/s</i>\n",
                under ? "under" : "on", at, roofs[i].name, report_number(roofs[i].rate));
        lowest = under ? at - 6 : at;
    }
}

struct point {
    double x, y;
    size_t number, colour;
};

static void draw_point(struct plot *p, const struct point *point, const char *title)
{
    fprintf(p->file, "<b style=\"left:%.2f%%;bottom:%.2f%%;background:var(--c%zu)\" title=\"", place(&p->x, point->x),
            place(&p->y, point->y), point->colour % COLOURS);
    report_page_text(p->file, title);
    fprintf(p->file, "\">%zu</b>\n", point->number);
}

void report_plot_roofline(FILE *file, const struct report *r)
{
    struct plot p = {.file = file};
    struct roof roofs[ROOFS];
    get_roofs(roofs, r);
    if (!set_edges(&p, r, roofs)) return;
    begin_plot(&p, "roofline: arithmetic of each test against what bandwidth and rates of arithmetic allow");
    draw_roofs(&p, r, roofs);
    end_lines(&p, "flop per byte of weights and cache read", "GFLOP/s");
    name_roofs(&p, roofs);
    for (size_t k = 0; k < r->n_tests; k++) {
        struct point point = {intensity(&r->tests[k]), 1e-9 * r->tests[k].flop_per_s, k + 1, k};
        if (can_plot(&r->tests[k])) draw_point(&p, &point, r->tests[k].name);
    }
    fprintf(file, "</div>\n<p class=\"soft\">The slope is memory's %s GB/s.</p><ol class=\"key\">\n",
            report_number(1e-9 * r->rates.read));
    for (size_t k = 0; k < r->n_tests; k++) {
        const struct report_test *t = &r->tests[k];
        fprintf(file, "<li><b style=\"background:var(--c%zu)\">%zu</b>", k % COLOURS, k + 1);
        report_page_element(file, "", t->name, ": ");
        fprintf(file, "%s flop per byte, ", report_number(intensity(t)));
        report_page_element(file, "", report_limit(t), "</li>\n");
    }
    fputs("</ol></figure>\n", file);
}

/* ---- limits of many ---- */

size_t report_colour(const struct report *r)
{
    static const uint32_t vendors[] = {0x10de, 0x8086, 0x106b, 0x5143, 0x10005, 0x13b5, 0x1002};
    size_t i = 0;
    while (i < PD_COUNT(vendors) && vendors[i] != r->device.vendor_id) i++;
    return i;
}

/* What the device can do, in 1e9 per second, and the per cent of it that the test did. */
static bool get_limit(struct point *out, const struct report *r, bool generation)
{
    const struct report_test *t = report_fastest(r, generation, false);
    if (!t) return false;
    double arithmetic = strcmp(t->arithmetic, "matrix") == 0 ? r->rates.matrix : r->rates.fp32;
    out->x = 1e-9 * (generation ? r->rates.read : arithmetic);
    out->y = 100 * (generation ? t->bandwidth_part : t->arithmetic_part);
    return is_drawable(out->x) && is_drawable(out->y);
}

void report_plot_limits(FILE *file, const struct report *const *reports, size_t n, bool generation)
{
    struct plot p = {.file = file, .x = nothing, .y = {2, 2}};
    struct point point;
    for (size_t i = 0; i < n; i++) {
        if (reports[i]->continues || !get_limit(&point, reports[i], generation)) continue;
        take_in(&p.x, point.x);
        take_in(&p.y, point.y);
    }
    if (p.x.low > p.x.high) return;
    begin_plot(&p, generation ? "generation's share of the measured bandwidth"
                              : "prompts' share of the measured rate of arithmetic");
    fprintf(file, "<path class=\"roof\" d=\"M0 %.2fH100\"/>", 100 - place(&p.y, 100));
    end_lines(&p, generation ? "GB/s that the device reads" : "GFLOP/s that the device does",
              generation ? "% of bandwidth in generation" : "% of arithmetic in prompts");
    for (size_t i = 0, number = 0; i < n; i++) {
        char title[512];
        number += !reports[i]->continues;
        if (reports[i]->continues || !get_limit(&point, reports[i], generation)) continue;
        snprintf(title, sizeof title, "%s, %s: %s", reports[i]->label, reports[i]->device.name,
                 report_limit(report_fastest(reports[i], generation, false)));
        point.number = number;
        point.colour = report_colour(reports[i]);
        draw_point(&p, &point, title);
    }
    fputs("</div></figure>\n", file);
}
