/* Calls tools as a conversation does, for test_command_tools.sh: call_tools SOURCE... -- [NAME ARGUMENTS]...
 * Standard output gets the result of each call, and a line "." after it; or the list of functions, if there is no call.
 * With CALL_TOOLS_SEES in the environment images follow a result. A name "tools" with the arguments "" is the list for
 * a person. Where standard input is a terminal it asks. */
#include "toolbox/toolbox.h"
#include "cli/cli.h"
#include "console/console.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void complete(struct cmd_completions *out, void *user, const char *line) { (void)out, (void)user, (void)line; }

static void print_tools(const struct cmd_toolbox *t)
{
    struct cmd_notice m;
    if (!cmd_notice_begin(&m)) return;
    cmd_toolbox_print(m.file, t);
    cmd_notice_end(&m);
}

static peridot_status call(struct cmd_toolbox *t, const char *name, const char *arguments, struct cmd_editor *editor)
{
    struct cmd_tool_result result;
    bool changed;
    if (strcmp(name, "tools") == 0 && !*arguments) {
        PD_TRY(cmd_toolbox_refresh(&changed, t));
        printf("%s\n", changed ? "changed" : "as before");
        print_tools(t);
        return PERIDOT_OK;
    }
    const struct cmd_tool_call one = {name, arguments, getenv("CALL_TOOLS_SEES") != NULL};
    peridot_status status = cmd_toolbox_answer(&result, t, &one, 1, editor);
    if (status == PERIDOT_OK) printf("%s\n", result.text);
    for (size_t i = 0; i < result.n_images; i++) printf("%s\n", result.images[i]);
    if (status == PERIDOT_OK) puts(".");
    fflush(stdout);
    cmd_tool_result_free(&result);
    return status;
}

int main(int argc, char **argv)
{
    struct cmd_toolbox *t;
    struct cmd_editor *editor = NULL;
    int n_sources = 0;
    while (1 + n_sources < argc && strcmp(argv[1 + n_sources], "--") != 0) n_sources++;
    cmd_interrupt_watch();
    peridot_status status = cmd_toolbox_open(&t, (const char *const *)(argv + 1), (size_t)n_sources);
    if (status == PERIDOT_OK && isatty(STDIN_FILENO)) status = cmd_editor_open(&editor, complete, NULL);
    int i = n_sources + 2;
    if (status == PERIDOT_OK && i >= argc) puts(cmd_toolbox_json(t));
    for (; status == PERIDOT_OK && i + 1 < argc; i += 2) status = call(t, argv[i], argv[i + 1], editor);
    int result = cmd_exit(status);
    cmd_editor_close(editor);
    cmd_toolbox_close(t);
    cmd_interrupt_raise();
    return result;
}
