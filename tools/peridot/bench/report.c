/* peridot report: a board of saved reports. Reading and showing them is ../report's. */
#include "bench.h"

#include <string.h>

struct report_args {
    const char *site;
    struct cmd_texts reports;
};

static const struct cmd_option options[] = {
    {.name = "site", .metavar = "FOLDER", .kind = CMD_TEXT, .offset = offsetof(struct report_args, site),
     .help = "Where the pages go; made where it is not there. Pages of before are written over."},
    {.metavar = "REPORT.json", .kind = CMD_TEXTS, .offset = offsetof(struct report_args, reports),
     .help = "Saved reports, or folders of them (*.json)."},
};

static peridot_status write_site(struct reports *list, const struct report_args *args)
{
    reports_skip_bad(list);
    for (size_t i = 0; i < args->reports.n; i++) PD_TRY(reports_add_folder(list, args->reports.at[i]));
    const char *left_out = reports_left_out(list);
    if (left_out[0]) fprintf(stderr, "left out: %s\n", left_out);
    return reports_write_site(list, args->site);
}

static int run_report(const struct cmd_command *command, const void *arguments)
{
    const struct report_args *args = arguments;
    struct reports *list;
    if (!args->site) return cmd_usage(command, "--site FOLDER says where the board goes");
    if (!args->reports.n) return cmd_usage(command, "reports that peridot bench --save kept are missing");
    peridot_status status = reports_create(&list);
    if (status == PERIDOT_OK) status = write_site(list, args);
    reports_free(list);
    return cmd_exit(status);
}

const struct cmd_command cmd_report = {
    .name = "report",
    .summary = "make a board of saved reports of bench",
    .description =
        "Makes a folder of pages that any web server can hand out, and that need nothing else: index.html with a row "
        "for each model of each report, to sort by every column and to filter by vendor, driver, device, model and "
        "weights, and a page for each. What the project predicted of a GPU is shown beside what was measured.\n\n"
        "A report says itself how far it can be trusted: a checksum shows that it was not changed since it was "
        "measured, though not who measured it; and of reports of peridot bench --standard, whose models are the same "
        "on every machine, how many tokens of a text are those of a reference. What is wrong is marked. Files that "
        "are no reports are left out, and named at the end of the board.",
    .examples = "peridot bench --standard --save reports/my-gpu.json\n"
                "peridot report --site board reports",
    CMD_ARGUMENTS(options, struct report_args),
    .run = run_report,
};
