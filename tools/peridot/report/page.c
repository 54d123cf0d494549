#include "page.h"

#include <string.h>

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
