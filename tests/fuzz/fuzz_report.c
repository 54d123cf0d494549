/* A saved report of `peridot bench`, read, and shown in all forms beside itself. */
#define _POSIX_C_SOURCE 200809L
#include "harness.h"

#include "bench/bench.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bench_report *report = calloc(1, sizeof *report);
    FILE *nowhere = fopen("/dev/null", "w");
    FUZZ_CHECK(report && nowhere);
    if (fuzz_ok(bench_json_read(report, fuzz_file("x.json", data, size)))) {
        const struct bench_report *const both[] = {report, report};
        bench_md(nowhere, both, 2);
        bench_csv(nowhere, both, 2);
        bench_html(nowhere, both, 2);
        FUZZ_CHECK(bench_json_write(nowhere, report) == PERIDOT_OK);
    }
    fclose(nowhere);
    free(report);
    return 0;
}
