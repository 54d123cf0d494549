#include "page.h"

#include <string.h>

/* page.html: a <style>, and a <script> that sorts tables; their hashes are for Content-Security-Policy. */
extern const unsigned char bench_page[];
extern const char bench_page_hashes[];

static const char *find_script(void)
{
    return strstr((const char *)bench_page, "<script>");
}

void bench_page_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') fputs("&lt;", file);
        else if (*text == '>') fputs("&gt;", file);
        else if (*text == '&') fputs("&amp;", file);
        else if (*text == '"') fputs("&quot;", file);
        else fputc(*text, file);
    }
}

void bench_page_element(FILE *file, const char *open, const char *text, const char *close)
{
    fputs(open, file);
    bench_page_text(file, text);
    fputs(close, file);
}

void bench_page_begin(FILE *file, const char *title, const char *class)
{
    fprintf(file, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; %sstyle-src-attr "
            "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n", bench_page_hashes);
    bench_page_element(file, "<title>Peridot: ", title, "</title>\n");
    fwrite(bench_page, 1, (size_t)(find_script() - (const char *)bench_page), file);
    fprintf(file, "</head>\n<body class=\"%s\">\n<main>\n", class);
}

void bench_page_end(FILE *file, bool with_script)
{
    fprintf(file, "</main>\n%s</body>\n</html>\n", with_script ? find_script() : "");
}

static void small_line(FILE *file, const char *small)
{
    if (small && *small) bench_page_element(file, "<small>", small, "</small>");
    fputs("</td>", file);
}

void bench_page_cell(FILE *file, const char *label, const char *text, const char *small)
{
    fprintf(file, "<td data-l=\"%s\">", label);
    bench_page_text(file, text);
    small_line(file, small);
}

void bench_page_number(FILE *file, const char *label, double value, const char *text, const char *small)
{
    fprintf(file, "<td class=\"n\" data-l=\"%s\" data-v=\"", label);
    if (value > 0) fprintf(file, "%.6g", value);
    fputs("\">", file);
    bench_page_text(file, text);
    small_line(file, small);
}

const struct bench_test *bench_fastest(const struct bench_report *r, bool generation, bool together)
{
    const struct bench_test *best = NULL;
    for (size_t i = 0; i < r->n_tests; i++) {
        const struct bench_test *t = &r->tests[i];
        if (t->generation == generation && (t->n_sequences > 1) == together && (!best || t->median > best->median))
            best = t;
    }
    return best;
}
