/* The words that all formats share: numbers, speeds, names. Each result points into one of sixteen buffers used in
 * turn. */
#ifndef PERIDOT_COMMAND_REPORT_WORDS_H
#define PERIDOT_COMMAND_REPORT_WORDS_H

#include "data.h"

/* "1234", "123.4", "12.34": what is worth reading of a speed. */
const char *report_number(double x);
/* "194.9 ± 9.8", tokens per second. */
const char *report_speed(const struct report_test *test);
/* "45.6" GFLOP/s, "-" where there is no such rate. */
const char *report_flop(double flop_per_s);
/* "63 % of bandwidth" of a generation, "31 % of fp32" of a prompt; with "(roof in doubt)" where a test is faster than
 * what was measured as the limit. */
const char *report_part(const struct report_test *test);
/* "12.3 GB/s, 63 % of bandwidth", "45.6 GFLOP/s, 31 % of fp32". */
const char *report_limit(const struct report_test *test);
/* "123 (prompt 100, generation 150, 8 sequences 120; shortened; 3 of 6 parts)". */
const char *report_score_text(const struct report *report);
/* "Ryzen 7 7840U, 16 processors, 32.1 GB; Debian 13, Linux 6.12" as far as known. */
const char *report_machine_text(const struct report *report);
/* "battery, balanced, 28 W at most, 54 to 71 °C, 2.7 GHz" as far as known. */
const char *report_conditions_text(const struct report *report);
/* "gemma2-2b random weights" where it was made. */
const char *report_model_name(const struct report *report);
/* A sentence on kernels that failed in the self-test, with a space before it, or "". */
const char *report_verdict(const struct report *report);
/* "6 of 26 layers are in the host's memory: ..." or "". */
const char *report_placement(const struct report *report);
/* "12.3 ms between two tokens in the median, ..., while 512 tokens were read in 1.20 s" or "". */
const char *report_beside(const struct report *report);
/* Device and driver. */
const char *report_device_name(const struct report *report);

/* The largest spread of the rates. */
double report_spread(const struct report *report);

#endif
