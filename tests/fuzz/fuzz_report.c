/* A saved report of `peridot bench`, read, and shown in all forms beside itself. */
#define _POSIX_C_SOURCE 200809L
#include "harness.h"

#include "bench/bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bench_reports list = {0};
    FILE *nowhere = fopen("/dev/null", "w");
    FUZZ_CHECK(nowhere);
    if (fuzz_ok(bench_json_read(&list, fuzz_file("x.json", data, size)))) {
        const struct bench_report *const both[] = {list.at[0], list.at[list.n - 1]};
        bench_md(nowhere, both, 2);
        bench_csv(nowhere, both, 2);
        FUZZ_CHECK(bench_html(nowhere, both, 1) == PERIDOT_OK);
        FUZZ_CHECK(bench_html(nowhere, both, 2) == PERIDOT_OK);
        bench_quick_text(nowhere, both, 2);
        FUZZ_CHECK(bench_json_write(nowhere, &list) == PERIDOT_OK);
    }
    fclose(nowhere);
    bench_reports_free(&list);
    return 0;
}
