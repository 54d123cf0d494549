/* One report as a page that needs nothing else, and the choice between it and the page of many. */
#include "../base/base.h"
#include "report_.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* ---- head ---- */

static void tile(FILE *file, const char *value, const char *unit, const char *what)
{
    report_page_element(file, "<div class=\"tile\"><b>", value, "");
    report_page_element(file, " ", unit, "</b>");
    report_page_element(file, "<span>", what, "</span></div>\n");
}

static void speed_tile(FILE *file, const struct report *r, bool generation, bool together)
{
    char what[160];
    const struct report_test *t = report_fastest(r, generation, together);
    if (!t) return;
    snprintf(what, sizeof what, "%s (%s): %s", generation ? "generation" : "prompt", t->name, report_part(t));
    tile(file, report_number(t->median), "tok/s", what);
}

static void heading(FILE *file, const struct report *r)
{
    report_page_element(file, "<h1>", report_model_name(r), "");
    report_page_element(file, " on ", r->device.name, "</h1>\n");
    report_page_element(file, "<p class=\"about\">Measured with ", r->program, "");
    report_page_element(file, ", ", r->date, ". Driver: ");
    report_page_text(file, r->device.driver);
    report_page_element(file, " ", r->device.driver_info, ".");
    report_page_text(file, report_verdict(r));
    if (r->made) fputs(" <b class=\"bad\">MADE UP, and not measured.</b>", file);
    if (r->proof == REPORT_CHANGED) report_page_element(file, " <b class=\"bad\">", report_proof_words(r), ".</b>");
    if (report_text_is_wrong(r)) report_page_element(file, " <b class=\"bad\">", report_text_words(r), ".</b>");
    if (r->left_out[0]) report_page_element(file, " Left out: ", r->left_out, ".");
    if (r->note[0]) report_page_element(file, " Note: ", r->note, "");
    fputs("</p>\n<div class=\"tiles\">\n", file);
    speed_tile(file, r, true, false);
    speed_tile(file, r, true, true);
    speed_tile(file, r, false, false);
    tile(file, report_number(r->first_token_s), "s", "to the first token, from opening the model");
    tile(file, cmd_size_text(r->device_memory), "", "on the device at most");
    fputs("</div>\n", file);
}

/* ---- figures ---- */

static void begin_figure(FILE *file, const char *title, const char *text)
{
    fprintf(file, "<h2>%s</h2><p class=\"soft\">%s</p>\n", title, text);
}

static void speeds(FILE *file, const struct report *r)
{
    struct report_row rows[REPORT_TESTS];
    begin_figure(file, "Tokens per second", "Median of the repeats; the line goes from the least to the most. The "
                                            "scale is logarithmic.");
    for (size_t k = 0; k < r->n_tests; k++) {
        const struct report_test *t = &r->tests[k];
        rows[k] = (struct report_row){.name = t->name, .small = t->generation ? "generation" : "prompt", .colour = k};
        report_row_test(&rows[k], t);
    }
    report_plot_rows(file, rows, r->n_tests, "tokens/s");
}

static void figures(FILE *file, const struct report *r)
{
    if (r->n_tests) speeds(file, r);
    begin_figure(file, "How near to the limit", "Each point is a test. Memory's rate bounds what is on the left, "
                 "arithmetic what is on the right; both were measured in the same run.");
    report_plot_roofline(file, r);
    if (!report_has_kernels(&r, 1)) return;
    begin_figure(file, "Time per kernel", "Shares of one pass over the tokens, by the device's own timestamps; its "
                                          "length is beside it.");
    report_plot_kernels(file, &r, 1);
}

/* ---- tables ---- */

static void test_row(FILE *file, const struct report_test *t)
{
    fputs("<tr>", file);
    report_page_cell(file, "test", t->name, NULL);
    report_page_number(file, "median", t->median, report_number(t->median), NULL);
    report_page_number(file, "± sd", t->sd, report_number(t->sd), NULL);
    report_page_number(file, "least", t->min, report_number(t->min), NULL);
    report_page_number(file, "most", t->max, report_number(t->max), NULL);
    report_page_cell(file, "of the device", report_limit(t), NULL);
    fprintf(file, "<td data-l=\"logits\" class=\"%s\">%s, %s</td></tr>\n", t->finite && t->equal ? "" : "bad",
            t->finite ? "finite" : "not finite", t->equal ? "same" : "differ");
}

static void test_table(FILE *file, const struct report *r)
{
    fputs("<h2>Numbers</h2><table class=\"cards\"><caption>Tokens per second, over the repeats of each test"
          "</caption><thead><tr><th>test</th><th class=\"n\">median</th><th class=\"n\">± sd</th><th class=\"n\">least"
          "</th><th class=\"n\">most</th><th>of the device</th><th>logits</th></tr></thead><tbody>\n", file);
    for (size_t k = 0; k < r->n_tests; k++) test_row(file, &r->tests[k]);
    fputs("</tbody></table>\n", file);
}

static void fact(FILE *file, const char *name, const char *format, ...) PD_PRINTF(3, 4);

/* A line of the table, unless it is empty. */
static void fact(FILE *file, const char *name, const char *format, ...)
{
    char text[2400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!text[0]) return;
    fprintf(file, "<tr><th scope=\"row\">%s</th>", name);
    report_page_element(file, "<td>", text, "</td></tr>\n");
}

static void rate(FILE *file, const char *name, const char *text, const char *unit, double spread)
{
    char varies[48] = "";
    if (spread > 0) snprintf(varies, sizeof varies, ", varies by %.1f %%", 100 * spread);
    fact(file, name, "%s %s%s", text, unit, varies);
}

static void report_table(FILE *file, const struct report *r)
{
    const struct report_rates *rates = &r->rates, *spread = &r->spread;
    fputs("<h2>Device and model</h2><table><tbody>\n", file);
    fact(file, "device, driver", "%s", report_device_name(r));
    if (r->device.vendor_id)
        fact(file, "identity", "%s%s%04" PRIx32 ":%04" PRIx32 "%s%s, driver version %08" PRIx32 ", UUID %s",
             r->device.type, r->device.type[0] ? ", " : "", r->device.vendor_id, r->device.device_id,
             r->device.pci[0] ? ", PCI " : "", r->device.pci, r->device.driver_version, r->device.uuid);
    fact(file, "machine", "%s", report_machine_text(r));
    fact(file, "conditions", "%s", report_conditions_text(r));
    fact(file, "model", "%s", report_model_name(r));
    fact(file, "weights", "%s, %s", r->model.types, cmd_size_text(r->model.size));
    fact(file, "parameters", "%.4g million", 1e-6 * (double)r->model.n_params);
    fact(file, "metadata", "%016" PRIx64, r->model.hash);
    rate(file, "memory, read", report_number(1e-9 * rates->read), "GB/s", spread->read);
    rate(file, "memory, copied", report_number(1e-9 * rates->copy), "GB/s", spread->copy);
    rate(file, "fp32", report_flop(rates->fp32), "GFLOP/s", spread->fp32);
    rate(file, "fp16", report_flop(rates->fp16), "GFLOP/s", spread->fp16);
    rate(file, "matrices, fp16", report_flop(rates->matrix), "GFLOP/s", spread->matrix);
    fact(file, "loaded in", "%.2f s", r->load_s);
    fact(file, "first token after", "%.2f s", r->first_token_s);
    fact(file, "device memory", "%s", cmd_size_text(r->device_memory));
    fact(file, "host memory", "%s", cmd_size_text(r->host_memory));
    fact(file, "placement", "%s", report_placement(r));
    fact(file, "dispatches per token", "%" PRIu32, r->n_dispatches);
    fact(file, "context, chunk, cache", "%" PRIu32 ", %" PRIu32 ", %s", r->ctx, r->chunk, r->kv);
    fact(file, "beside a prompt", "%s", report_beside(r));
    fact(file, "drafts", "%s", report_drafts(r));
    fact(file, "text", "%s", report_text_words(r));
    fact(file, "checksum", "%s", report_proof_words(r));
    fact(file, "power", "%s", report_energy(r));
    fact(file, "kernels", "%s", r->kernels);
    fact(file, "tuned", "%s", r->tuning);
    fact(file, "self-test", "%s", report_verdict(r));
    fact(file, "commit", "%s", r->commit);
    fact(file, "date", "%s", r->date);
    fact(file, "note", "%s", r->note);
    fputs("</tbody></table>\n", file);
}

/* ---- page ---- */

peridot_status report_write_html(FILE *file, const struct report *const *reports, size_t n)
{
    if (n > 1) return report_compare(file, reports, n);
    report_page_begin(file, report_model_name(reports[0]), "one");
    heading(file, reports[0]);
    figures(file, reports[0]);
    test_table(file, reports[0]);
    report_table(file, reports[0]);
    if (report_has_kernels(reports, n)) report_page_kernels(file, reports, n);
    report_page_end(file, false);
    return PERIDOT_OK;
}

/* ---- page ---- */

/* page.html: a <style>, and a <script> that sorts tables; their hashes are for Content-Security-Policy. */
extern const unsigned char report_page[];
extern const char report_page_hashes[];

static const char *find_script(void)
{
    return strstr((const char *)report_page, "<script>");
}

void report_page_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') fputs("&lt;", file);
        else if (*text == '>') fputs("&gt;", file);
        else if (*text == '&') fputs("&amp;", file);
        else if (*text == '"') fputs("&quot;", file);
        else fputc(*text, file);
    }
}

void report_page_element(FILE *file, const char *open, const char *text, const char *close)
{
    fputs(open, file);
    report_page_text(file, text);
    fputs(close, file);
}

void report_page_begin(FILE *file, const char *title, const char *class)
{
    fprintf(file, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; %sstyle-src-attr "
            "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n", report_page_hashes);
    report_page_element(file, "<title>Peridot: ", title, "</title>\n");
    fwrite(report_page, 1, (size_t)(find_script() - (const char *)report_page), file);
    fprintf(file, "</head>\n<body class=\"%s\">\n<main>\n", class);
}

void report_page_end(FILE *file, bool with_script)
{
    fprintf(file, "</main>\n%s</body>\n</html>\n", with_script ? find_script() : "");
}

static void small_line(FILE *file, const char *small)
{
    if (small && *small) report_page_element(file, "<small>", small, "</small>");
    fputs("</td>", file);
}

void report_page_cell(FILE *file, const char *label, const char *text, const char *small)
{
    fprintf(file, "<td data-l=\"%s\">", label);
    report_page_text(file, text);
    small_line(file, small);
}

void report_page_number(FILE *file, const char *label, double value, const char *text, const char *small)
{
    fprintf(file, "<td class=\"n\" data-l=\"%s\" data-v=\"", label);
    if (value > 0) fprintf(file, "%.6g", value);
    fputs("\">", file);
    report_page_text(file, text);
    small_line(file, small);
}

const struct report_test *report_fastest(const struct report *r, bool generation, bool together)
{
    const struct report_test *best = NULL;
    for (size_t i = 0; i < r->n_tests; i++) {
        const struct report_test *t = &r->tests[i];
        if (t->generation == generation && (t->n_sequences > 1) == together && (!best || t->median > best->median))
            best = t;
    }
    return best;
}
