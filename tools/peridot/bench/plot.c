/* The figures of the page: SVG, with colours as variables (--c0 .. --c7 for reports and kernels, --ink, --soft, --line)
 * that the page sets for light and dark. Every mark has its number as text beside it or in its title, so that nothing
 * is told by colour alone. */
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 860, COLOURS = 8 };

void bench_html_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') fputs("&lt;", file);
        else if (*text == '>') fputs("&gt;", file);
        else if (*text == '&') fputs("&amp;", file);
        else if (*text == '"') fputs("&quot;", file);
        else fputc(*text, file);
    }
}

void bench_html_name(FILE *file, int right, double y, const char *report, const char *test)
{
    size_t length = strlen(test) + (report ? strlen(report) + 2 : 0);
    fprintf(file, "<text class=\"name\" x=\"%d\" y=\"%.1f\"", right, y);
    if (7.5 * (double)length > right) fprintf(file, " textLength=\"%d\" lengthAdjust=\"spacingAndGlyphs\"", right);
    fputs(">", file);
    if (report) {
        bench_html_text(file, report);
        fputs(*test ? ": " : "", file);
    }
    bench_html_text(file, test);
    fputs("</text>\n", file);
}

static void begin_figure(FILE *file, int height, const char *title)
{
    fprintf(file, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", WIDTH, height, title);
}

static void label(FILE *file, const char *class, double x, double y, const char *text)
{
    fprintf(file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    bench_html_text(file, text);
    fputs("</text>\n", file);
}

/* ---- tokens per second ---- */

enum { BAR_LEFT = 200, BAR_RIGHT = WIDTH - 240, BAR = 20, ROW = 30 };

static double fastest(const struct bench_report *const *reports, size_t n, bool generation)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++)
            if (reports[i]->tests[k].generation == generation)
                most = fmax(most, fmax(reports[i]->tests[k].max, reports[i]->tests[k].median));
    return most;
}

/* The bar of the median, and a line from the least to the most. */
static void draw_bar(FILE *file, const struct bench_test *t, size_t colour, double y, double scale)
{
    double middle = y + BAR / 2.0, low = BAR_LEFT + t->min * scale, high = BAR_LEFT + t->max * scale;
    fprintf(file, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"3\" fill=\"var(--c%zu)\"/>\n", BAR_LEFT,
            y, fmax(t->median * scale, 1), BAR, colour % COLOURS);
    if (high - low > 2)
        fprintf(file, "<path class=\"spread\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8\"/>\n", low, middle, high,
                low, middle - 4, high, middle - 4);
    label(file, "value", fmax(high, BAR_LEFT + t->median * scale) + 8, middle + 5, bench_speed(t));
}

static bool seen_before(const struct bench_report *const *reports, size_t i, size_t k)
{
    for (size_t before = 0; before < i; before++)
        if (bench_find(reports[before], reports[i]->tests[k].name)) return true;
    return false;
}

/* One report: a bar a test. Several: for each test its bars together, in the reports' order. */
static int draw_test(FILE *file, const struct bench_report *const *reports, size_t n, const char *name, int y,
                     double scale)
{
    if (n > 1) {
        label(file, "group", 0, y + 16, name);
        y += ROW - 4;
    }
    for (size_t i = 0; i < n; i++) {
        const struct bench_test *t = bench_find(reports[i], name);
        if (!t) continue;
        bench_html_name(file, BAR_LEFT - 10, y + BAR / 2.0 + 5, n > 1 ? reports[i]->label : NULL, n > 1 ? "" : name);
        draw_bar(file, t, i, y, scale);
        y += n > 1 ? BAR + 4 : ROW;
    }
    return y + (n > 1 ? 8 : 0);
}

static int bars_height(const struct bench_report *const *reports, size_t n, bool generation)
{
    int height = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) {
            if (reports[i]->tests[k].generation != generation) continue;
            height += n > 1 ? BAR + 4 : ROW;
            if (n > 1 && !seen_before(reports, i, k)) height += ROW + 4;
        }
    return height;
}

void bench_plot_speeds(FILE *file, const struct bench_report *const *reports, size_t n, bool generation)
{
    double most = fastest(reports, n, generation);
    int y = 0;
    if (most <= 0) return;
    begin_figure(file, bars_height(reports, n, generation), generation ? "tokens generated per second" : "tokens of "
                                                                                                         "prompts "
                                                                                                         "read per "
                                                                                                         "second");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++)
            if (reports[i]->tests[k].generation == generation && !seen_before(reports, i, k))
                y = draw_test(file, reports, n, reports[i]->tests[k].name, y, (BAR_RIGHT - BAR_LEFT) / most);
    fputs("</svg>\n", file);
}

/* ---- roofline ---- */

enum { LEFT = 70, RIGHT = WIDTH - 20, TOP = 14, BOTTOM = 340, ROOF_HEIGHT = 390, LABELS = 512 };

struct box {
    double x, y, width;
};

struct roofline {
    FILE *file;
    double x0, x1, y0, y1;       /* log10 of flop per byte, and of GFLOP/s, at the edges */
    struct box boxes[LABELS];    /* points, and labels so far */
    size_t n_boxes;
};

static double intensity(const struct bench_test *t)
{
    return t->bytes_per_s > 0 ? t->flop_per_s / t->bytes_per_s : 0;
}

static bool can_plot(const struct bench_test *t)
{
    double x = intensity(t), y = 1e-9 * t->flop_per_s;
    return x > 1e-6 && x < 1e9 && y > 1e-9 && y < 1e12;
}

/* A level of a roof; matrices and fp16 have theirs above that of fp32, mostly. */
enum { ROOFS = 3 };

static double roof(const struct bench_report *r, int i, const char **name)
{
    static const char *const names[ROOFS] = {"fp32", "fp16", "matrix"};
    const double rates[ROOFS] = {r->rates.fp32, r->rates.fp16, r->rates.matrix};
    *name = names[i];
    return 1e-9 * rates[i];
}

static double highest_roof(const struct bench_report *r)
{
    return 1e-9 * fmax(r->rates.fp32, fmax(r->rates.fp16, r->rates.matrix));
}

static bool has_roof(const struct bench_report *r)
{
    return r->rates.read > 1 && r->rates.fp32 > 1;
}

static double x_at(const struct roofline *p, double x)
{
    return LEFT + (RIGHT - LEFT) * (log10(x) - p->x0) / (p->x1 - p->x0);
}

static double y_at(const struct roofline *p, double y)
{
    return BOTTOM - (BOTTOM - TOP) * (log10(y) - p->y0) / (p->y1 - p->y0);
}

static void take_in(struct roofline *p, double x, double y)
{
    p->x0 = fmin(p->x0, log10(x) - 0.3), p->x1 = fmax(p->x1, log10(x) + 0.5);
    p->y0 = fmin(p->y0, log10(y) - 0.3), p->y1 = fmax(p->y1, log10(y) + 0.3);
}

/* False when there is nothing to show. */
static bool set_edges(struct roofline *p, const struct bench_report *const *reports, size_t n)
{
    size_t n_points = 0;
    p->x0 = p->y0 = INFINITY, p->x1 = p->y1 = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const struct bench_report *r = reports[i];
        if (has_roof(r)) take_in(p, 1e9 * highest_roof(r) / r->rates.read, highest_roof(r));
        for (size_t k = 0; k < r->n_tests; k++) {
            if (!can_plot(&r->tests[k])) continue;
            take_in(p, intensity(&r->tests[k]), 1e-9 * r->tests[k].flop_per_s);
            n_points++;
        }
    }
    return n_points > 0;
}

/* Lines at powers of ten. */
static void draw_grid(const struct roofline *p)
{
    char text[32];
    for (int e = (int)ceil(p->x0); e <= (int)floor(p->x1); e++) {
        double x = x_at(p, pow(10, e));
        fprintf(p->file, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", x, TOP, BOTTOM);
        snprintf(text, sizeof text, "%g", pow(10, e));
        label(p->file, "tick middle", x, BOTTOM + 18, text);
    }
    for (int e = (int)ceil(p->y0); e <= (int)floor(p->y1); e++) {
        double y = y_at(p, pow(10, e));
        fprintf(p->file, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, RIGHT);
        snprintf(text, sizeof text, "%g", pow(10, e));
        label(p->file, "tick end", LEFT - 8, y + 4, text);
    }
    label(p->file, "tick middle", (LEFT + RIGHT) / 2.0, BOTTOM + 40, "flop per byte of weights and cache read");
    fprintf(p->file, "<text class=\"tick middle\" transform=\"translate(16 %d) rotate(-90)\">GFLOP/s</text>\n",
            (TOP + BOTTOM) / 2);
}

static bool is_free(const struct roofline *p, const struct box *b)
{
    if (b->x < LEFT || b->x + b->width > RIGHT || b->y < TOP + 12 || b->y > BOTTOM - 4) return false;
    for (size_t i = 0; i < p->n_boxes; i++) {
        const struct box *o = &p->boxes[i];
        if (b->x < o->x + o->width && o->x < b->x + b->width && fabs(b->y - o->y) < 15) return false;
    }
    return true;
}

static void block(struct roofline *p, struct box box)
{
    if (p->n_boxes < LABELS) p->boxes[p->n_boxes++] = box;
}

/* Up the slope of the bandwidth from the left or lower edge, then level at the highest rate; the others are broken
 * lines. */
static void draw_roof(const struct roofline *p, const struct bench_report *r, size_t colour)
{
    double read = 1e-9 * r->rates.read, most = highest_roof(r), x = fmax(pow(10, p->x0), pow(10, p->y0) / read);
    const char *name;
    fprintf(p->file, "<path class=\"roof\" stroke=\"var(--c%zu)\" d=\"M%.1f %.1fL%.1f %.1fH%d\"/>\n", colour % COLOURS,
            x_at(p, x), y_at(p, x * read), x_at(p, most / read), y_at(p, most), RIGHT);
    for (int i = 0; i < ROOFS; i++) {
        double rate = roof(r, i, &name);
        if (rate <= pow(10, p->y0) || rate >= most) continue;
        fprintf(p->file, "<path class=\"roof low\" stroke=\"var(--c%zu)\" d=\"M%.1f %.1fH%d\"/>\n", colour % COLOURS,
                x_at(p, fmax(rate / read, x)), y_at(p, rate), RIGHT);
    }
}

/* For one report there is room to name the roof's parts: above each level where that is free, or below. */
static void name_roof(struct roofline *p, const struct bench_report *r)
{
    char text[64];
    const char *name;
    double read = 1e-9 * r->rates.read, ridge = highest_roof(r) / read,
        low = fmax(pow(10, p->x0), pow(10, p->y0) / read);
    double x = sqrt(low * ridge);   /* the middle of the slope, on its logarithmic axis */
    snprintf(text, sizeof text, "memory: %s GB/s", bench_number(read));
    label(p->file, "tick", x_at(p, x) + 10, y_at(p, x * read) + 14, text);
    for (int i = ROOFS - 1; i >= 0; i--) {
        double rate = roof(r, i, &name);
        if (rate <= pow(10, p->y0)) continue;
        snprintf(text, sizeof text, "%s: %s GFLOP/s", name, bench_number(rate));
        double width = 7 * (double)strlen(text), y = y_at(p, rate);
        for (int side = 0; side < 2; side++) {
            struct box box = {RIGHT - 4 - width, side ? y + 18 : y - 8, width};
            if (!is_free(p, &box)) continue;
            label(p->file, "tick end", RIGHT - 4, box.y, text);
            block(p, box);
            break;
        }
    }
}

/* Beside its point, on the first side that is free; in a crowd the point's title has to do. */
static void place_label(struct roofline *p, const struct bench_test *t)
{
    double x = x_at(p, intensity(t)), y = y_at(p, 1e-9 * t->flop_per_s), width = 9 * (double)strlen(t->name);
    const struct box places[] = {{x + 11, y + 4, width}, {x - 11 - width, y + 4, width}, {x - width / 2, y - 14, width},
                                 {x - width / 2, y + 24, width}, {x + 9, y - 12, width}, {x + 9, y + 20, width},
                                 {x - width - 9, y - 12, width}, {x - width - 9, y + 20, width}};
    for (size_t i = 0; i < CMD_COUNT(places); i++) {
        if (!is_free(p, &places[i])) continue;
        label(p->file, "point", places[i].x, places[i].y, t->name);
        block(p, places[i]);
        return;
    }
}

static void draw_point(struct roofline *p, const struct bench_report *r, const struct bench_test *t, size_t colour)
{
    double x = x_at(p, intensity(t)), y = y_at(p, 1e-9 * t->flop_per_s);
    fprintf(p->file, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"var(--c%zu)\"><title>", x, y,
            colour % COLOURS);
    bench_html_text(p->file, r->label);
    fputs(r->label[0] ? " " : "", p->file);
    bench_html_text(p->file, t->name);
    fprintf(p->file, ": %s flop per byte, %s</title></circle>\n", bench_number(intensity(t)), bench_limit(t));
    block(p, (struct box){x - 8, y + 4, 16});
}

/* Points first: labels keep off all of them. */
static void draw_points(struct roofline *p, const struct bench_report *const *reports, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++)
            if (can_plot(&reports[i]->tests[k])) draw_point(p, reports[i], &reports[i]->tests[k], i);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++)
            if (can_plot(&reports[i]->tests[k])) place_label(p, &reports[i]->tests[k]);
}

void bench_plot_roofline(FILE *file, const struct bench_report *const *reports, size_t n)
{
    struct roofline p = {.file = file};
    if (!set_edges(&p, reports, n)) return;
    begin_figure(file, ROOF_HEIGHT, "roofline: arithmetic of each test against what bandwidth and rates of arithmetic "
                                    "allow");
    draw_grid(&p);
    for (size_t i = 0; i < n; i++)
        if (has_roof(reports[i])) draw_roof(&p, reports[i], i);
    if (n == 1 && has_roof(reports[0])) name_roof(&p, reports[0]);
    draw_points(&p, reports, n);
    fputs("</svg>\n", file);
}
