/* Reports as one page that needs nothing else: no script, no other file. The figures are in plot.c and plot_kernels.c;
 * what they show is in tables too. */
#include "bench.h"
#include "../text.h"

#include <inttypes.h>

/* Eight colours that are told apart without red and green (after Okabe and Ito), as light on dark and dark on light. */
static const char style[] =
    ":root{color-scheme:light dark;--paper:#fcfcfa;--card:#fff;--ink:#1d2320;--soft:#69736d;--line:#dfe3df;"
    "--c0:#3f7d20;--c1:#0072b2;--c2:#c05a00;--c3:#8a4f9e;--c4:#00806a;--c5:#b8860b;--c6:#b03060;--c7:#4a5a9a;"
    "--on:#fff}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#14181a;--card:#1c2224;--ink:#e8ece9;--soft:#98a39d;"
    "--line:#333c3d;--c0:#a5d46a;--c1:#6fbdf0;--c2:#f0a35e;--c3:#cfa0e0;--c4:#52cdb0;--c5:#e8c855;--c6:#f08cb0;"
    "--c7:#a3b3f5;--on:#14181a}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 "
    "system-ui,sans-serif}\n"
    "main{max-width:60rem;margin:0 auto;padding:2rem 1.25rem}h1{font-size:1.75rem;line-height:1.25;margin:0}\n"
    "h2{font-size:1.15rem;margin:2rem 0 .25rem}p{margin:.25rem 0 .75rem}.about,.soft{color:var(--soft)}\n"
    "figure{margin:.5rem 0 0;padding:1.1rem;background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "overflow-x:auto}\n"
    "svg{display:block;width:100%;min-width:34rem;height:auto}svg text{fill:var(--ink);font:14px "
    "system-ui,sans-serif}\n"
    "svg .name,svg .end{text-anchor:end}svg .middle{text-anchor:middle}svg .tick{fill:var(--soft);font-size:13px}\n"
    "svg .group{font-weight:600}svg .value{font-variant-numeric:tabular-nums}svg .point{font-size:13px;"
    "font-weight:600}\n"
    "svg .inside{text-anchor:middle;fill:var(--on);font-size:12px}svg .spread{stroke:var(--ink);stroke-width:1.5;"
    "fill:none}\n"
    "svg .grid{stroke:var(--line);fill:none}svg .roof{stroke-width:2.5;fill:none;stroke-linejoin:round}svg "
    ".low{stroke-width:1.5;stroke-dasharray:7 5}\n"
    "svg .tick,svg .point{paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round}\n"
    "svg .dot,svg .part{stroke:var(--card);stroke-width:1.5}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.75rem;margin:1.25rem 0}\n"
    ".tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.8rem 1rem}\n"
    ".tile b{display:block;font-size:1.6rem;line-height:1.2;font-variant-numeric:tabular-nums}.tile "
    "span{color:var(--soft);font-size:.85rem}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;width:100%}caption{text-align:left;"
    "font-weight:600;padding:.4rem 0}\n"
    "th,td{padding:.35rem 1.25rem .35rem 0;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}\n"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}thead th{color:var(--soft);"
    "font-weight:500}\n"
    ".key{display:inline-block;width:.75rem;height:.75rem;border-radius:2px;margin-right:.4rem}\n"
    "details{margin:.75rem 0}summary{cursor:pointer;color:var(--soft)}.bad{color:var(--c6);font-weight:600}\n";

static void element(FILE *file, const char *open, const char *text, const char *close)
{
    fputs(open, file);
    bench_html_text(file, text);
    fputs(close, file);
}

static void cell(FILE *file, const char *text)
{
    element(file, "<td>", text, "</td>");
}

static void number(FILE *file, const char *text)
{
    element(file, "<td class=\"n\">", text, "</td>");
}

/* ---- head ---- */

static void tile(FILE *file, const char *value, const char *unit, const char *what)
{
    element(file, "<div class=\"tile\"><b>", value, "");
    element(file, " ", unit, "</b>");
    element(file, "<span>", what, "</span></div>\n");
}

/* together: of several sequences */
static const struct bench_test *fastest(const struct bench_report *r, bool generation, bool together)
{
    const struct bench_test *best = NULL;
    for (size_t i = 0; i < r->n_tests; i++) {
        const struct bench_test *t = &r->tests[i];
        if (t->generation == generation && (t->n_sequences > 1) == together && (!best || t->median > best->median))
            best = t;
    }
    return best;
}

static void speed_tile(FILE *file, const struct bench_report *r, bool generation, bool together)
{
    char what[160];
    const struct bench_test *t = fastest(r, generation, together);
    if (!t) return;
    snprintf(what, sizeof what, "%s (%s): %.0f %% of %s", generation ? "generation" : "prompt", t->name,
             100 * (generation ? t->bandwidth_part : t->arithmetic_part), generation ? "bandwidth" : t->arithmetic);
    tile(file, bench_number(t->median), "tok/s", what);
}

static void tiles(FILE *file, const struct bench_report *r)
{
    fputs("<div class=\"tiles\">\n", file);
    speed_tile(file, r, true, false);
    speed_tile(file, r, true, true);
    speed_tile(file, r, false, false);
    tile(file, bench_number(r->first_token_s), "s", "to the first token, from opening the model");
    tile(file, cmd_size_text(r->device_memory), "", "on the device at most");
    fputs("</div>\n", file);
}

static void heading(FILE *file, const struct bench_report *const *reports, size_t n)
{
    const struct bench_report *r = reports[0];
    if (n > 1) {
        fprintf(file, "<h1>%zu reports compared</h1>\n<p class=\"about\">Measured with peridot bench.</p>\n", n);
        return;
    }
    element(file, "<h1>", bench_model_name(r), "");
    element(file, " on ", r->device.name, "</h1>\n");
    element(file, "<p class=\"about\">Measured with ", r->program, "");
    element(file, ", ", r->date, ". Driver: ");
    bench_html_text(file, r->device.driver);
    element(file, " ", r->device.driver_info, ".");
    bench_html_text(file, bench_verdict(r));
    if (r->note[0]) element(file, " Note: ", r->note, "");
    fputs("</p>\n", file);
    tiles(file, r);
}

/* ---- tables ---- */

static void test_row(FILE *file, const struct bench_report *const *reports, size_t n, size_t i,
                     const struct bench_test *t)
{
    const struct bench_test *base = bench_find(reports[0], t->name);
    fputs("<tr>", file);
    if (n > 1) cell(file, reports[i]->label);
    cell(file, t->name);
    number(file, bench_number(t->median));
    number(file, bench_number(t->sd));
    number(file, bench_number(t->min));
    number(file, bench_number(t->max));
    cell(file, bench_limit(t));
    if (n > 1) number(file, base && base->median > 0 ? bench_number(t->median / base->median) : "");
    fprintf(file, "<td class=\"%s\">%s, %s</td>", t->finite && t->equal ? "" : "bad", t->finite ? "finite" : "not "
                                                                                                             "finite",
            t->equal ? "same" : "differ");
    fputs("</tr>\n", file);
}

static void test_table(FILE *file, const struct bench_report *const *reports, size_t n)
{
    fprintf(file, "<h2>Numbers</h2><div class=\"wide\"><table><caption>Tokens per second, over the repeats of each "
            "test</caption><thead><tr>%s<th>test</th><th class=\"n\">median</th><th class=\"n\">± sd</th><th "
            "class=\"n\">least</th><th class=\"n\">most</th><th>of the "
            "device</th>%s<th>logits</th></tr></thead><tbody>\n", n > 1 ? "<th>report</th>" : "",
            n > 1 ? "<th class=\"n\">times the first</th>" : "");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) test_row(file, reports, n, i, &reports[i]->tests[k]);
    fputs("</tbody></table></div>\n", file);
}

/* A line of the table of reports: what is asked, and each report's answer. */
static const char *fact(const struct bench_report *r, int row, const char **name)
{
    static char text[1024];
    *name = NULL;
    switch (row) {
    case 0: *name = "device, driver"; return bench_device_name(r);
    case 1: *name = "model"; return bench_model_name(r);
    case 2: *name = "weights";
        snprintf(text, sizeof text, "%s, %s", r->model.types, cmd_size_text(r->model.size));
        return text;
    case 3: *name = "parameters";
        snprintf(text, sizeof text, "%.4g million", 1e-6 * (double)r->model.n_params);
        return text;
    case 4: *name = "metadata"; snprintf(text, sizeof text, "%016" PRIx64, r->model.hash); return text;
    case 5: *name = "memory, read";
        snprintf(text, sizeof text, "%s GB/s", bench_number(1e-9 * r->rates.read));
        return text;
    case 6: *name = "memory, copied";
        snprintf(text, sizeof text, "%s GB/s", bench_number(1e-9 * r->rates.copy));
        return text;
    case 7: *name = "fp32"; snprintf(text, sizeof text, "%s GFLOP/s", bench_flop(r->rates.fp32)); return text;
    case 8: *name = "fp16"; snprintf(text, sizeof text, "%s GFLOP/s", bench_flop(r->rates.fp16)); return text;
    case 9: *name = "matrices, fp16";
        snprintf(text, sizeof text, "%s GFLOP/s", bench_flop(r->rates.matrix));
        return text;
    case 10: *name = "loaded in"; snprintf(text, sizeof text, "%.2f s", r->load_s); return text;
    case 11: *name = "first token after"; snprintf(text, sizeof text, "%.2f s", r->first_token_s); return text;
    case 12: *name = "device memory"; return cmd_size_text(r->device_memory);
    case 13: *name = "host memory"; return cmd_size_text(r->host_memory);
    case 14: *name = "placement"; return bench_placement(r);
    case 15: *name = "dispatches per token"; snprintf(text, sizeof text, "%" PRIu32, r->n_dispatches); return text;
    case 16: *name = "context, chunk, cache";
        snprintf(text, sizeof text, "%" PRIu32 ", %" PRIu32 ", %s", r->ctx, r->chunk, r->kv);
        return text;
    case 17: *name = "date"; return r->date;
    case 18: *name = "note"; return r->note;
    case 19: *name = "self-test"; return bench_verdict(r);
    case 20: *name = "tuned"; return r->tuning;
    default: return "";
    }
}

static bool known(const struct bench_report *const *reports, size_t n, int row)
{
    const char *name;
    for (size_t i = 0; i < n; i++)
        if (fact(reports[i], row, &name)[0]) return true;
    return false;
}

static void report_table(FILE *file, const struct bench_report *const *reports, size_t n)
{
    const char *name;
    fputs("<h2>Device and model</h2><div class=\"wide\"><table>\n", file);
    if (n > 1) fputs("<thead><tr><th></th>", file);
    for (size_t i = 0; n > 1 && i < n; i++) {
        fprintf(file, "<th><span class=\"key\" style=\"background:var(--c%zu)\"></span>", i % 8);
        element(file, "", reports[i]->label, "</th>");
    }
    if (n > 1) fputs("</tr></thead>", file);
    fputs("<tbody>\n", file);
    for (int row = 0; fact(reports[0], row, &name), name; row++) {
        if (!known(reports, n, row)) continue;
        element(file, "<tr><th scope=\"row\">", name, "</th>");
        for (size_t i = 0; i < n; i++) cell(file, fact(reports[i], row, &name));
        fputs("</tr>\n", file);
    }
    fputs("</tbody></table></div>\n", file);
}

static void kernel_table(FILE *file, const struct bench_report *r, const struct bench_test *t)
{
    double total = 0;
    for (size_t i = 0; i < t->n_kernels; i++) total += t->kernels[i].seconds;
    if (total <= 0) return;
    element(file, "<div class=\"wide\"><table><caption>", r->label, r->label[0] ? ": " : "");
    bench_html_text(file, t->name);
    fprintf(file, ", in a pass of %" PRIu32 "</caption><thead><tr><th>kernel</th><th class=\"n\">dispatches</th><th "
            "class=\"n\">ms</th><th class=\"n\">share</th></tr></thead><tbody>\n", t->n_profiled);
    for (size_t i = 0; i < t->n_kernels; i++) {
        element(file, "<tr>", "", "");
        cell(file, t->kernels[i].kernel);
        fprintf(file, "<td class=\"n\">%" PRIu32 "</td><td class=\"n\">%.3f</td><td class=\"n\">%.1f %%</td></tr>\n",
                t->kernels[i].n, 1e3 * t->kernels[i].seconds, 100 * t->kernels[i].seconds / total);
    }
    fputs("</tbody></table></div>\n", file);
}

static void kernel_tables(FILE *file, const struct bench_report *const *reports, size_t n)
{
    fputs("<details><summary>Times of kernels as tables</summary>\n", file);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++) kernel_table(file, reports[i], &reports[i]->tests[k]);
    fputs("</details>\n", file);
}

/* ---- page ---- */

static bool has(const struct bench_report *const *reports, size_t n, bool generation)
{
    for (size_t i = 0; i < n; i++)
        if (fastest(reports[i], generation, false) || fastest(reports[i], generation, true)) return true;
    return false;
}

static bool has_kernels(const struct bench_report *const *reports, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < reports[i]->n_tests; k++)
            if (reports[i]->tests[k].n_kernels) return true;
    return false;
}

static void begin_figure(FILE *file, const char *title, const char *text)
{
    fprintf(file, "<h2>%s</h2><p class=\"soft\">%s</p><figure>\n", title, text);
}

static void figures(FILE *file, const struct bench_report *const *reports, size_t n)
{
    for (int generation = 1; generation >= 0; generation--) {
        if (!has(reports, n, generation)) continue;
        begin_figure(file, generation ? "Generation, tokens per second" : "Prompts, tokens per second",
                     "Median of the repeats; the line goes from the least to the most.");
        bench_plot_speeds(file, reports, n, generation);
        fputs("</figure>\n", file);
    }
    begin_figure(file, "How near to the limit", "Each point is a test. Memory's rate bounds what is on the left, "
                 "arithmetic what is on the right; both were measured in the same run.");
    bench_plot_roofline(file, reports, n);
    fputs("</figure>\n", file);
    if (!has_kernels(reports, n)) return;
    begin_figure(file, "Time per kernel", "Shares of one pass over the tokens, by the device's own timestamps; its "
                                          "length is on the right.");
    bench_plot_kernels(file, reports, n);
    fputs("</figure>\n", file);
}

void bench_html(FILE *file, const struct bench_report *const *reports, size_t n)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n", file);
    element(file, "<title>Peridot: ", n > 1 ? "reports compared" : bench_model_name(reports[0]), "</title>\n");
    fprintf(file, "<style>\n%s</style>\n</head>\n<body>\n<main>\n", style);
    heading(file, reports, n);
    if (n > 1) report_table(file, reports, n);
    figures(file, reports, n);
    test_table(file, reports, n);
    if (n == 1) report_table(file, reports, n);
    if (has_kernels(reports, n)) kernel_tables(file, reports, n);
    fputs("</main>\n</body>\n</html>\n", file);
}
