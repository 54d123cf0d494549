/* peridot-report: the same reports without the rest of the command. It shows that this folder needs nothing of what
 * measured them; `peridot bench FILE.json...` does the same. */
#include "report.h"
#include "../base/base.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: peridot-report [-o md|csv|html] FILE.json|FOLDER|-...\n\n"
    "Shows reports that peridot bench saved, beside the first of them: one as a table or a page, several compared.\n"
    "A FOLDER stands for all *.json in it, - for standard input. Results go to standard output.\n";

static peridot_status add_input(struct reports *list)
{
    char *text;
    size_t size;
    PD_TRY(cmd_read_all(&text, &size, stdin, "standard input"));
    peridot_status status = reports_add(list, text, size, "standard input");
    free(text);
    return status;
}

static peridot_status write_reports(struct reports *list, enum report_format format, char **paths, int n)
{
    for (int i = 0; i < n; i++)
        PD_TRY(strcmp(paths[i], "-") == 0 ? add_input(list) : reports_add_folder(list, paths[i]));
    PD_TRY(reports_write(list, stdout, format));
    return fflush(stdout) == 0 && !ferror(stdout) ? PERIDOT_OK
                                                  : pd_fail(PERIDOT_ERROR_IO, "standard output cannot be written");
}

static bool find_format(enum report_format *out, const char *name)
{
    static const char *const names[] = {[REPORT_MD] = "md", [REPORT_CSV] = "csv", [REPORT_HTML] = "html"};
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        *out = (enum report_format)i;
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    enum report_format format = REPORT_MD;
    struct reports *list;
    int first = 1;
    bool is_right = true;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return fputs(help, stdout) < 0;
    if (argc > 2 && strcmp(argv[1], "-o") == 0) {
        is_right = find_format(&format, argv[2]);
        first = 3;
    }
    if (!is_right || first >= argc || (argv[first][0] == '-' && argv[first][1])) {
        fputs(help, stderr);
        return 2;
    }
    peridot_status status = reports_create(&list);
    if (status == PERIDOT_OK) status = write_reports(list, format, argv + first, argc - first);
    if (status != PERIDOT_OK) fprintf(stderr, "peridot-report: %s\n", cmd_shown(peridot_last_error()));
    reports_free(list);
    return status != PERIDOT_OK;
}
