/* The help pages, made from the tables: an option cannot be parsed and missing here. */
#include "commands.h"
#include "help.h"
#include "text.h"

#include <string.h>

enum { INDENT = 4 };

static const char exit_status[] =
    "0 on success, 1 on a failure, 2 on wrong usage. A command that Ctrl-C stops dies of that signal, which shells "
    "show as 130; what it had written stays.";

static void print_section(const char *title, const char *text)
{
    struct cmd_wrap w = {stdout, INDENT, 0};
    printf("\n%s\n", title);
    cmd_wrap_text(&w, text);
    cmd_wrap_end(&w);
}

/* "-m, --model MODEL" */
static void print_label(const struct cmd_option *o)
{
    printf("%*s", INDENT, "");
    if (o->letter) printf("-%c, ", o->letter);
    if (o->name) printf("--%s", o->name);
    printf("%s%s\n", o->name && o->metavar ? " " : "", o->metavar ? o->metavar : "");
}

static void print_option(const struct cmd_option *o)
{
    struct cmd_wrap w = {stdout, 2 * INDENT, 0};
    print_label(o);
    cmd_wrap_text(&w, o->help);
    if (o->value) cmd_wrap_text(&w, " One of:");
    for (size_t i = 0; o->value && o->value(i); i++) {
        char word[64];
        int size = snprintf(word, sizeof word, "%s%s", o->value(i), o->value(i + 1) ? "," : ".");
        cmd_wrap_word(&w, word, (size_t)size);
    }
    if (o->fallback) {
        cmd_wrap_text(&w, " Default:");
        cmd_wrap_text(&w, o->fallback);
        fputc('.', stdout);
    }
    cmd_wrap_end(&w);
}

/* One unit that a line break must not split: "[-m MODEL]". */
static void print_usage_word(struct cmd_wrap *w, const struct cmd_option *o)
{
    char name[64], word[128];
    if (o->letter) snprintf(name, sizeof name, "-%c", o->letter);
    else snprintf(name, sizeof name, "%s%s", o->name ? "--" : "", o->name ? o->name : "");
    int size = snprintf(word, sizeof word, "%s%s%s%s%s%s", o->required ? "" : "[", name,
                        name[0] && o->metavar ? " " : "", o->metavar ? o->metavar : "", o->required ? "" : "]",
                        o->kind == CMD_TEXTS ? "..." : "");
    cmd_wrap_word(w, word, (size_t)size);
}

static void print_synopsis(const struct cmd_command *c)
{
    struct cmd_wrap w = {stdout, INDENT, 0};
    puts("\nSYNOPSIS");
    cmd_wrap_text(&w, "peridot ");
    cmd_wrap_text(&w, c->name);
    w.indent = 2 * INDENT;
    for (size_t i = 0; i < c->n_options; i++) print_usage_word(&w, &c->options[i]);
    cmd_wrap_end(&w);
}

/* Example lines are printed as they are: breaking them would break what is pasted. */
static void print_examples(const char *lines)
{
    puts("\nEXAMPLES");
    while (*lines) {
        size_t size = strcspn(lines, "\n");
        printf("%*s%.*s\n", INDENT, "", (int)size, lines);
        lines += size + (lines[size] != 0);
    }
}

void cmd_help_command(const struct cmd_command *c)
{
    printf("NAME\n%*speridot %s - %s\n", INDENT, "", c->name, c->summary);
    print_synopsis(c);
    print_section("DESCRIPTION", c->description);
    if (c->n_options) puts("\nOPTIONS");
    for (size_t i = 0; i < c->n_options; i++) {
        if (i) puts("");
        print_option(&c->options[i]);
    }
    print_section("EXIT STATUS", exit_status);
    print_examples(c->examples);
}

static void print_commands(void)
{
    const struct cmd_command *c;
    puts("\nCOMMANDS");
    for (size_t i = 0; (c = cmd_command_at(i)) != NULL; i++) printf("%*s%-12s%s\n", INDENT, "", c->name, c->summary);
}

void cmd_help_overview(void)
{
    printf("NAME\n%*speridot - Gemma and Llama language models on any GPU, through Vulkan\n", INDENT, "");
    print_section("SYNOPSIS", "peridot COMMAND [OPTIONS]\nperidot help COMMAND\nperidot --version");
    print_section("DESCRIPTION",
                  "Results go to standard output, progress and statistics to standard error. A model is a .gguf file "
                  "or a Hugging Face directory; without one, commands use the small demo model that comes with "
                  "Peridot.");
    print_commands();
    print_section("ENVIRONMENT",
                  "PERIDOT_DEVICE: the device to use where no --device is given.\n"
                  "XDG_CACHE_HOME: compiled pipelines, and what peridot selftest found, are kept in its folder "
                  "peridot (without it, in ~/.cache/peridot); removing them only costs the time to do that again.\n"
                  "XDG_STATE_HOME: what is typed in peridot chat is kept in its folder peridot (without it, in "
                  "~/.local/state/peridot).");
    print_section("EXIT STATUS", exit_status);
    print_examples("peridot run \"Once upon a time\"\n"
                   "peridot run -m gemma-2-2b-it.gguf \"Why is the sky blue?\"\n"
                   "peridot devices");
}
