/* A list of reports in one of the formats, which have a file each. */
#include "words.h"

peridot_status reports_write(const struct reports *list, FILE *file, enum report_format format)
{
    const struct report *const *reports = (const struct report *const *)list->at;
    switch (format) {
    case REPORT_MD: report_write_md(file, reports, list->n); break;
    case REPORT_CSV: report_write_csv(file, reports, list->n); break;
    case REPORT_LINES: report_write_lines(file, reports, list->n); break;
    case REPORT_HTML: return report_write_html(file, reports, list->n);
    }
    return PERIDOT_OK;
}

peridot_status report_test_line(FILE *file, const char *json, size_t size)
{
    struct report_test test = {.n_tokens = 0};
    CMD_TRY(report_read_test(&test, json, size));
    fprintf(file, "%s: %s tokens/s, %s\n", test.name, report_speed(&test), report_limit(&test));
    return PERIDOT_OK;
}
