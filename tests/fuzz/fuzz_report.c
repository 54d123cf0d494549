/* A saved report of `peridot bench`, read, and shown in all forms beside itself. */
#define _POSIX_C_SOURCE 200809L
#include "harness.h"

#include "report/report.h"

static void show(const char *json, size_t size, int n_times)
{
    struct reports *list;
    FILE *nowhere = fopen("/dev/null", "w");
    FUZZ_CHECK(nowhere && reports_create(&list) == PERIDOT_OK);
    for (int i = 0; i < n_times; i++) FUZZ_CHECK(reports_add(list, json, size, "x.json") == PERIDOT_OK);
    for (int format = REPORT_MD; format <= REPORT_LINES; format++)
        FUZZ_CHECK(reports_write(list, nowhere, (enum report_format)format) == PERIDOT_OK);
    reports_free(list);
    fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reports *list;
    FUZZ_CHECK(reports_create(&list) == PERIDOT_OK);
    bool good = fuzz_ok(reports_add_file(list, fuzz_file("x.json", data, size)));
    reports_free(list);
    for (int n = 1; good && n <= 2; n++) show((const char *)data, size, n);
    return 0;
}
