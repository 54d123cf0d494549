/* The help pages, as text and as man pages, made from the tables: an option cannot be parsed and missing here. */
#include "cli.h"
#include "cli_.h"
#include "../base/base.h"

#include <ctype.h>
#include <string.h>

enum { INDENT = 4 };

static const char exit_status[] =
    "0 on success, 1 on a failure, 2 on wrong usage. A command that Ctrl-C stops dies of that signal, which shells "
    "show as 130; what it had written stays.";

/* What only some need is explained by --help all and in the manual, under these titles. Names have a space around. */
static const struct group { const char *title, *names; } groups[] = {
    {"CHOICE OF TOKENS", " top-k top-p min-p top-n-sigma xtc-probability xtc-threshold repeat-penalty presence-penalty "
                         "frequency-penalty dry-multiplier dry-base dry-allowed-length dry-penalty-last-n "
                         "dry-sequence-breaker logit-bias verbose "},
    {"PROMPT AND REPLY", " raw suffix template special ids stop full "},
    {"PICTURES", " vision image-rows pan-and-scan "},
    {"MEMORY AND SPEED", " gpu-memory precision lora kernel chunk kv draft draft-tokens "},
    {"ACCESS", " api-key-file insecure cors allow-url "},
    {"REQUESTS AND LOG", " queue alias idle timeout log-format log-json log-prompts "},
    {"SERVICE", " install-service yes "},
};

/* NULL: what people use first. */
static const struct group *group_of(const struct cmd_option *o)
{
    char name[64];
    snprintf(name, sizeof name, " %s ", o->name ? o->name : "");
    for (size_t i = 0; o->name && i < PD_COUNT(groups); i++)
        if (strstr(groups[i].names, name)) return &groups[i];
    return NULL;
}

/* The first option of a group from row i on, or n_options. */
static size_t find_grouped(const struct cmd_command *c, const struct group *group, size_t i)
{
    while (i < c->n_options && group_of(&c->options[i]) != group) i++;
    return i;
}

static void print_heading(const struct cmd_wrap *w, const char *title)
{
    printf(w->man ? ".SH %s\n" : "\n%s\n", title);
}

static void print_section(struct cmd_wrap *w, const char *title, const char *text)
{
    print_heading(w, title);
    w->indent = INDENT;
    cmd_wrap_text(w, text);
    cmd_wrap_end(w);
}

/* The name of a page that begins with "peridot": its first section. */
static void print_name(struct cmd_wrap *w, const char *command, const char *summary)
{
    char name[64], title[64] = "";
    snprintf(name, sizeof name, "peridot%s%s", !command ? "" : w->man ? "-" : " ", command ? command : "");
    for (size_t i = 0; name[i]; i++) title[i] = (char)toupper((unsigned char)name[i]);
    if (w->man) printf(".TH %s 1 \"\" \"Peridot %s\"\n.SH NAME\n", title, peridot_version());
    else puts("NAME");
    w->indent = INDENT;
    cmd_wrap_text(w, name);
    cmd_wrap_text(w, "-");
    cmd_wrap_text(w, summary);
    cmd_wrap_end(w);
}

/* "-m, --model MODEL" */
static void print_label(struct cmd_wrap *w, const struct cmd_option *o)
{
    char label[128];
    int size = 0;
    if (o->letter) size = snprintf(label, sizeof label, CMD_BOLD "-%c" CMD_ROMAN ", ", o->letter);
    size += snprintf(label + size, sizeof label - (size_t)size,
                     CMD_BOLD "%s%s" CMD_ROMAN "%s" CMD_ITALIC "%s" CMD_ROMAN,
                     o->name ? "--" : "", o->name ? o->name : "", o->name && o->metavar ? " " : "",
                     o->metavar ? o->metavar : "");
    if (w->man) puts(".TP");
    w->indent = INDENT;
    cmd_wrap_word(w, label, (size_t)size);
    cmd_wrap_end(w);
}

static void print_option(struct cmd_wrap *w, const struct cmd_option *o)
{
    print_label(w, o);
    w->indent = 2 * INDENT;
    cmd_wrap_text(w, o->help);
    if (o->value) cmd_wrap_text(w, " One of:");
    for (size_t i = 0; o->value && o->value(i); i++) {
        char word[64];
        int size = snprintf(word, sizeof word, "%s%s", o->value(i), o->value(i + 1) ? "," : ".");
        cmd_wrap_word(w, word, (size_t)size);
    }
    if (o->fallback) {
        char word[64];
        int size = snprintf(word, sizeof word, "%s.", o->fallback);
        cmd_wrap_text(w, " Default:");
        cmd_wrap_word(w, word, (size_t)size);
    }
    cmd_wrap_end(w);
}

/* One unit that a line break must not split: "[-m MODEL]". */
static void print_usage_word(struct cmd_wrap *w, const struct cmd_option *o)
{
    char name[64], word[128];
    if (o->letter) snprintf(name, sizeof name, "-%c", o->letter);
    else snprintf(name, sizeof name, "%s%s", o->name ? "--" : "", o->name ? o->name : "");
    int size = snprintf(word, sizeof word, "%s" CMD_BOLD "%s" CMD_ROMAN "%s" CMD_ITALIC "%s" CMD_ROMAN "%s%s",
                        o->required ? "" : "[", name, name[0] && o->metavar ? " " : "", o->metavar ? o->metavar : "",
                        o->required ? "" : "]", o->kind == CMD_TEXTS ? "..." : "");
    cmd_wrap_word(w, word, (size_t)size);
}

static void print_synopsis(struct cmd_wrap *w, const struct cmd_command *c, bool all)
{
    static const struct cmd_option more = {.metavar = "OPTION", .kind = CMD_TEXTS};
    bool is_more = false;
    print_heading(w, "SYNOPSIS");
    w->indent = INDENT;
    cmd_wrap_text(w, "peridot ");
    cmd_wrap_text(w, c->name);
    w->indent = 2 * INDENT;
    for (size_t i = 0; i < c->n_options; i++) {
        bool shown = all || !group_of(&c->options[i]);
        if (shown) print_usage_word(w, &c->options[i]);
        else if (!is_more) print_usage_word(w, &more);
        is_more = is_more || !shown;
    }
    cmd_wrap_end(w);
}

static void print_options(struct cmd_wrap *w, const struct cmd_command *c, const struct group *group)
{
    size_t first = find_grouped(c, group, 0);
    if (first < c->n_options) print_heading(w, group ? group->title : "OPTIONS");
    for (size_t i = first; i < c->n_options; i = find_grouped(c, group, i + 1)) {
        if (i > first && !w->man) puts("");
        print_option(w, &c->options[i]);
    }
}

/* The names of what is not explained. */
static void print_more(struct cmd_wrap *w, const struct cmd_command *c)
{
    char text[128];
    size_t n = 0;
    for (size_t g = 0; g < PD_COUNT(groups); g++) {
        size_t i = find_grouped(c, &groups[g], 0), next;
        if (i < c->n_options && n++ == 0) {
            snprintf(text, sizeof text, "peridot %s --help all explains these, too.", c->name);
            print_section(w, "MORE OPTIONS", text);
        }
        if (i < c->n_options) puts("");
        for (; i < c->n_options; i = next) {
            next = find_grouped(c, &groups[g], i + 1);
            snprintf(text, sizeof text, "--%s%s", c->options[i].name, next < c->n_options ? "," : "");
            cmd_wrap_word(w, text, strlen(text));
        }
        cmd_wrap_end(w);
    }
}

/* Example lines are printed as they are: breaking them would break what is pasted. */
static void print_examples(struct cmd_wrap *w, const char *lines)
{
    print_heading(w, "EXAMPLES");
    if (w->man) puts(".EX");
    w->indent = INDENT;
    while (*lines) {
        size_t size = strcspn(lines, "\n");
        cmd_wrap_word(w, lines, size);
        cmd_wrap_end(w);
        lines += size + (lines[size] != 0);
    }
    if (w->man) puts(".EE");
}

void cmd_help_command(const struct cmd_command *c, bool man, bool all)
{
    struct cmd_wrap w = {.file = stdout, .man = man};
    print_name(&w, c->name, c->summary);
    print_synopsis(&w, c, all);
    print_section(&w, "DESCRIPTION", c->description);
    print_options(&w, c, NULL);
    for (size_t i = 0; all && i < PD_COUNT(groups); i++) print_options(&w, c, &groups[i]);
    if (!all) print_more(&w, c);
    print_section(&w, "EXIT STATUS", exit_status);
    print_examples(&w, c->examples);
    if (man) puts(".SH SEE ALSO\n.BR peridot (1)");
}

void cmd_help_commands(FILE *file)
{
    const struct cmd_command *c;
    for (size_t i = 0; (c = cmd_command_at(i)) != NULL; i++)
        fprintf(file, "%*s%-12s%s\n", INDENT, "", c->name, c->summary);
}

static void print_commands(struct cmd_wrap *w)
{
    const struct cmd_command *c;
    print_heading(w, "COMMANDS");
    if (!w->man) cmd_help_commands(w->file);
    for (size_t i = 0; w->man && (c = cmd_command_at(i)) != NULL; i++)
        printf(".TP\n.BR peridot\\-%s (1)\n%s\n", c->name, c->summary);
}

void cmd_help_overview(bool man)
{
    struct cmd_wrap w = {.file = stdout, .man = man};
    print_name(&w, NULL, "Gemma and Llama language models on any GPU, through Vulkan");
    print_section(&w, "SYNOPSIS", "peridot COMMAND [OPTIONS]\nperidot COMMAND --help [all]\n"
                  "peridot help [--man] COMMAND [all]\nperidot --version");
    print_section(&w, "DESCRIPTION",
                  "Results go to standard output, progress and statistics to standard error. A model is a .gguf file, "
                  "a Hugging Face directory, or the name of one that peridot models lists; without one, commands use "
                  "the small demo model that comes with Peridot, which only tells stories: peridot pull "
                  CMD_CHAT_MODEL " fetches one that chats.");
    print_commands(&w);
    print_section(&w, "ENVIRONMENT",
                  "PERIDOT_DEVICE: the device to use where no --device is given.\n"
                  "PERIDOT_MODELS: folders with models, with colons between them; peridot models names the places "
                  "where it finds others.\n"
                  "XDG_CACHE_HOME: compiled pipelines, and what peridot selftest found, are kept in its folder "
                  "peridot (without it, in ~/.cache/peridot); removing them only costs the time to do that again.\n"
                  "XDG_STATE_HOME: what is typed in peridot chat is kept in its folder peridot (without it, in "
                  "~/.local/state/peridot).");
    print_section(&w, "EXIT STATUS", exit_status);
    print_examples(&w, "peridot run \"Once upon a time\"\n"
                       "peridot run -m gemma-2-2b-it.gguf \"Why is the sky blue?\"\n"
                       "peridot devices");
    if (man) puts(".SH SEE ALSO\n.BR libperidot (3)");
}
