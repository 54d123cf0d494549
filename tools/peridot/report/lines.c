/* A --quick run as three lines to paste. */
#include "words.h"

static void write_tests(FILE *file, const struct report *r)
{
    const char *between = "";
    fprintf(file, "%s %s: ", report_model_name(r), r->model.types);
    for (size_t k = 0; k < r->n_tests; k++) {
        fprintf(file, "%s%s %s", between, r->tests[k].name, report_number(r->tests[k].median));
        between = ", ";
    }
}

void report_write_lines(FILE *file, const struct report *const *reports, size_t n)
{
    const struct report *r = reports[0];
    fprintf(file, "%s (%s): quick score %s on %s\n", r->program, r->commit, report_score_text(r),
            report_device_name(r));
    for (size_t i = 0; i < n; i++) {
        fputs(i ? "; " : "", file);
        write_tests(file, reports[i]);
    }
    fprintf(file, " tokens/s%s%s\n", r->left_out[0] ? "; left out: " : "", r->left_out);
    fprintf(file, "reads %s GB/s, %s GFLOP/s in fp32, %s in fp16, %s by matrices",
            report_number(1e-9 * r->rates.read), report_flop(r->rates.fp32), report_flop(r->rates.fp16),
            report_flop(r->rates.matrix));
    const char *machine = report_machine_text(r), *conditions = report_conditions_text(r);
    fprintf(file, "%s%s%s%s\n", machine[0] ? "; " : "", machine, conditions[0] ? "; " : "", conditions);
}
