/* The option parser. It knows -x VALUE, -xVALUE, --name VALUE, --name=VALUE, options after the operand, and "--" before
 * an operand that begins with a dash. Defaults go through the same conversion as what is typed, so a table cannot hold
 * a default that would be refused. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "../base/base.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct parser {
    const struct cmd_command *command;
    unsigned char *args;
    int argc, i;              /* argv[i] is the next argument */
    char **argv;
    uint64_t seen;            /* bit per row */
    bool only_operands;       /* after "--" */
};

/* How a sentence names an option: "-n/--length", "--temp", "PROMPT". One buffer: one sentence is made at a time. */
static const char *label(const struct cmd_option *o)
{
    static char text[64];
    if (o->name && o->letter) snprintf(text, sizeof text, "-%c/--%s", o->letter, o->name);
    else snprintf(text, sizeof text, "%s%s", o->name ? "--" : "", o->name ? o->name : o->metavar);
    return text;
}

static bool parse_u64(uint64_t *out, const char *text)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end || errno) return false;
    *out = value;
    return true;
}

static bool in_range(const struct cmd_option *o, double value)
{
    return (o->min == 0 && o->max == 0) || (value >= o->min && value <= o->max);
}

static bool store_u32(const struct cmd_option *o, void *to, const char *text)
{
    uint64_t value;
    if (!parse_u64(&value, text) || value > UINT32_MAX || !in_range(o, (double)value)) return false;
    *(uint32_t *)to = (uint32_t)value;
    return true;
}

static bool store_budget(const struct cmd_option *o, void *to, const char *text)
{
    bool on = strcmp(text, "on") == 0;
    if (!on && strcmp(text, "off") != 0) return store_u32(o, to, text);
    *(uint32_t *)to = on ? UINT32_MAX : 0;
    return true;
}

static bool store_f32(const struct cmd_option *o, void *to, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || !in_range(o, value)) return false;
    *(float *)to = (float)value;
    return true;
}

/* Decimal units, as sizes are shown. */
static bool store_size(void *to, const char *text)
{
    static const char units[] = "kMGT";
    char *end;
    double value = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1;
    if (!(value > 0)) return false;
    const char *unit = *end ? strchr(units, *end == 'K' ? 'k' : *end) : NULL;
    if (unit) value *= pow(1000, (double)(unit - units + 1)), end++;
    if ((*end && strcmp(end, "B") != 0) || value < 1 || value >= 1e18) return false;
    *(uint64_t *)to = (uint64_t)value;
    return true;
}

static bool store_texts(struct cmd_texts *to, const char *text)
{
    if (to->n == CMD_TEXTS_MAX) return false;
    to->at[to->n++] = text;
    return true;
}

/* Ten digits are enough to tell runs apart and short enough to type again. */
static uint64_t random_seed(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t x = (uint64_t)t.tv_sec * 1000000007u ^ (uint64_t)t.tv_nsec ^ (uint64_t)getpid() << 40;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;   /* splitmix64's finaliser */
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) & UINT32_MAX;
}

static bool store_seed(void *to, const char *text)
{
    uint64_t value = 0;
    if (strcmp(text, "random") == 0) value = random_seed();
    else if (!parse_u64(&value, text)) return false;
    *(uint64_t *)to = value;
    return true;
}

/* Index of text among the allowed values, or -1. */
static int options_find_value(const struct cmd_option *o, const char *text)
{
    for (int i = 0; o->value((size_t)i); i++)
        if (strcmp(o->value((size_t)i), text) == 0) return i;
    return -1;
}

static bool store(const struct cmd_option *o, void *to, const char *text)
{
    const char *value = o->spelling ? o->spelling(text) : NULL;
    if (value) text = value;
    if (o->value && options_find_value(o, text) < 0) return false;
    switch (o->kind) {
    case CMD_FLAG: *(bool *)to = true; return true;
    case CMD_TEXT: *(const char **)to = text; return true;
    case CMD_TEXTS: return store_texts(to, text);
    case CMD_U32: return store_u32(o, to, text);
    case CMD_BUDGET: return store_budget(o, to, text);
    case CMD_F32: return store_f32(o, to, text);
    case CMD_SIZE: return store_size(to, text);
    case CMD_SEED: return store_seed(to, text);
    case CMD_CHOICE: *(uint32_t *)to = (uint32_t)options_find_value(o, text); return true;
    }
    return false;
}

static int refuse_value(const struct parser *p, const struct cmd_option *o, const char *text)
{
    if (o->value) {
        const char *nearest = cmd_nearest(text, o->value);
        if (nearest) return cmd_usage(p->command, "%s does not know %s (did you mean %s?)", label(o), text, nearest);
        return cmd_usage(p->command, "%s does not know %s", label(o), text);
    }
    if (o->kind == CMD_TEXTS) return cmd_usage(p->command, "%s can be given %d times at most", label(o), CMD_TEXTS_MAX);
    if (o->kind == CMD_BUDGET)
        return cmd_usage(p->command, "%s takes on, off or a whole number, not %s", label(o), text);
    const char *noun = o->kind == CMD_F32 ? "number" : o->kind == CMD_SIZE ? "size such as 6G" : "whole number";
    if (o->min == 0 && o->max == 0) return cmd_usage(p->command, "%s takes a %s, not %s", label(o), noun, text);
    return cmd_usage(p->command, "%s takes a %s from %g to %g, not %s", label(o), noun, o->min, o->max, text);
}

static bool is_path(const struct cmd_option *o)
{
    static const char *const metavars[] = {"MODEL", "FILE", "FILE|URL", "FOLDER", "SRC", "DST", "REPORT.json"};
    for (size_t i = 0; i < PD_COUNT(metavars); i++)
        if (o->metavar && strcmp(o->metavar, metavars[i]) == 0) return true;
    return false;
}

static int set(struct parser *p, const struct cmd_option *o, const char *text)
{
    p->seen |= (uint64_t)1 << (o - p->command->options);
    if (is_path(o)) pd_path_clean((char *)text);   /* of argv */
    if (!store(o, p->args + o->offset, text)) return refuse_value(p, o, text);
    if (o->bit) *(uint32_t *)(p->args + o->given) |= o->bit;
    return CMD_OK;
}

/* The value is what is joined to the option, or else the next argument. */
static int take_value(struct parser *p, const struct cmd_option *o, const char *joined)
{
    if (o->kind == CMD_FLAG && joined) return cmd_usage(p->command, "%s takes no value", label(o));
    if (o->kind == CMD_FLAG || joined) return set(p, o, joined ? joined : "");
    if (p->i == p->argc) return cmd_usage(p->command, "%s needs a value, %s", label(o), o->metavar);
    return set(p, o, p->argv[p->i++]);
}

static const struct cmd_option *find_letter(const struct cmd_command *c, char letter)
{
    for (size_t i = 0; i < c->n_options; i++)
        if (c->options[i].letter == letter) return &c->options[i];
    return NULL;
}

static const struct cmd_option *find_name(const struct cmd_command *c, const char *name, size_t size)
{
    for (size_t i = 0; i < c->n_options; i++) {
        const char *own = c->options[i].name;
        if (own && strlen(own) == size && memcmp(own, name, size) == 0) return &c->options[i];
    }
    return NULL;
}

static const struct cmd_option *find_operand(const struct cmd_command *c)
{
    for (size_t i = 0; i < c->n_options; i++)
        if (!c->options[i].name) return &c->options[i];
    return NULL;
}

static int refuse_name(const struct cmd_command *c, const char *arg, size_t size, const struct cmd_option *hint)
{
    size_t dashes = strspn(arg, "-");
    const char *why = cmd_hint_no_option(c, arg + dashes);
    if (why) return cmd_usage(c, "there is no option %.*s: %s", (int)size, arg, why);
    const char *command = hint ? NULL : cmd_hint_command(arg + dashes, size - dashes, true, NULL);
    if (command) return cmd_usage(c, "there is no option %.*s (did you mean peridot %s?)", (int)size, arg, command);
    if (!hint) return cmd_usage(c, "there is no option %.*s", (int)size, arg);
    if (!hint->name)
        return cmd_usage(c, "there is no option %.*s (%s is given without one)", (int)size, arg, hint->metavar);
    return cmd_usage(c, "there is no option %.*s (did you mean --%s?)", (int)size, arg, hint->name);
}

static int take_long(struct parser *p, const char *arg)
{
    size_t size = strcspn(arg, "=");
    const struct cmd_option *o = find_name(p->command, arg + 2, size - 2);
    if (!o) return refuse_name(p->command, arg, size, cmd_hint_option(p->command, arg + 2, size - 2, false));
    return take_value(p, o, arg[size] ? arg + size + 1 : NULL);
}

/* A name of several letters after one dash, as other programs have them, is no letter with a value. */
static int take_short(struct parser *p, const char *arg)
{
    size_t size = strcspn(arg, "=");
    const struct cmd_option *o = find_letter(p->command, arg[1]);
    const struct cmd_option *hint = cmd_hint_option(p->command, arg + 1, size - 1, true);
    if (hint && (size > 2 || !o)) return refuse_name(p->command, arg, size, hint);
    if (!o) return refuse_name(p->command, arg, 2, cmd_hint_option(p->command, arg + 1, 1, true));
    return take_value(p, o, arg[2] ? arg + 2 : NULL);
}

static bool has_seen(const struct parser *p, const struct cmd_option *o)
{
    return p->seen >> (o - p->command->options) & 1;
}

/* Whether the text is a model's name, which was probably meant to follow -m. */
static enum cmd_model_hint misplaced_model(const struct parser *p, const char *text, bool misplaced)
{
    const struct cmd_option *m = find_letter(p->command, 'm');
    return m && !has_seen(p, m) ? cmd_hint_model(text, misplaced) : CMD_HINT_NO_MODEL;
}

/* Of a list, the first. */
static const char *operand_value(const struct parser *p, const struct cmd_option *o)
{
    const void *at = p->args + o->offset;
    return o->kind == CMD_TEXTS ? ((const struct cmd_texts *)at)->at[0] : *(const char *const *)at;
}

/* A second operand: the first was a model, or both are words of one text. */
static int refuse_second(const struct parser *p, const struct cmd_option *o, const char *arg)
{
    const char *first = operand_value(p, o);
    if (misplaced_model(p, first, true) == CMD_HINT_NO_MODEL)
        return cmd_usage(p->command, "%s is a second %s, and there can be only one (quote it if it has several words)",
                         arg, o->metavar);
    return cmd_usage(p->command, "%s is a model, not a %s (did you mean peridot %s -m %s \"%.60s%s\"?)", first,
                     o->metavar, p->command->name, first, arg, strlen(arg) > 60 ? "..." : "");
}

static int take_operand(struct parser *p, const char *arg)
{
    const struct cmd_option *o = find_operand(p->command);
    if (o && (o->kind == CMD_TEXTS || !has_seen(p, o))) return set(p, o, arg);
    if (o) return refuse_second(p, o, arg);
    if (misplaced_model(p, arg, true) == CMD_HINT_NO_MODEL)
        return cmd_usage(p->command, "%s is one argument too many", arg);
    return cmd_usage(p->command, "%s is one argument too many (did you mean peridot %s -m %s?)", arg,
                     p->command->name, arg);
}

/* Without -m the demo model would answer the name of another. "--" and --raw say that it is a text all the same. */
static int check_operand(const struct parser *p)
{
    const struct cmd_option *o = find_operand(p->command), *raw = find_name(p->command, "raw", 3);
    if (!o || !has_seen(p, o) || p->only_operands || (raw && has_seen(p, raw))) return CMD_OK;
    const char *text = operand_value(p, o);
    enum cmd_model_hint hint = misplaced_model(p, text, false);
    if (hint == CMD_HINT_NO_MODEL) return CMD_OK;
    return cmd_usage(p->command, "%s is a model, not a %s (did you mean peridot %s -m %s?)%s; -- %s takes it as the %s",
                     text, o->metavar, p->command->name, text, hint == CMD_HINT_MODEL_HERE ? ""
                     : "; it is not on this machine, see peridot models and peridot pull", text, o->metavar);
}

static int check_required(const struct parser *p)
{
    for (size_t i = 0; i < p->command->n_options; i++) {
        const struct cmd_option *o = &p->command->options[i];
        if (o->required && !has_seen(p, o)) return cmd_usage(p->command, "%s is needed", label(o));
    }
    return CMD_OK;
}

static void print_budget(FILE *file, uint32_t value)
{
    if (value && value < UINT32_MAX) fprintf(file, "%" PRIu32, value);
    else fputs(value ? "on" : "off", file);
}

static void set_defaults(const struct cmd_command *c, unsigned char *args)
{
    for (size_t i = 0; i < c->n_options; i++)
        if (c->options[i].fallback) store(&c->options[i], args + c->options[i].offset, c->options[i].fallback);
}

int cmd_options_parse(const struct cmd_command *command, void *args, int argc, char **argv)
{
    struct parser p = {.command = command, .args = args, .argc = argc, .argv = argv};
    int result = CMD_OK;
    set_defaults(command, args);
    while (p.i < argc && result == CMD_OK) {
        const char *arg = argv[p.i++];
        if (p.only_operands || arg[0] != '-' || !arg[1]) result = take_operand(&p, arg);   /* "-" alone is an operand */
        else if (strcmp(arg, "--") == 0) p.only_operands = true;
        else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
            return p.i < argc && strcmp(argv[p.i], "all") == 0 ? CMD_HELP_ALL : CMD_HELP;
        else if (arg[1] == '-') result = take_long(&p, arg);
        else result = take_short(&p, arg);
    }
    if (result == CMD_OK) result = check_operand(&p);
    return result == CMD_OK ? check_required(&p) : result;
}

int cmd_option_set(const struct cmd_command *command, void *args, const char *name, const char *value)
{
    struct parser p = {.command = command, .args = args};
    const struct cmd_option *o = find_name(command, name, strlen(name));
    if (!o) {
        char arg[64];
        snprintf(arg, sizeof arg, "--%s", name);
        return refuse_name(command, arg, strlen(arg), cmd_hint_option(command, name, strlen(name), false));
    }
    unsigned char *to = p.args + o->offset;
    if (o->kind == CMD_TEXTS && !value) {
        ((struct cmd_texts *)to)->n = 0;
        return CMD_OK;
    }
    if (!value) return cmd_usage(command, "%s needs a value, %s", label(o), o->metavar ? o->metavar : "on or off");
    if (o->kind != CMD_FLAG) return set(&p, o, value);
    bool on = strcmp(value, "on") == 0;
    if (!on && strcmp(value, "off") != 0) return cmd_usage(command, "%s takes on or off, not %s", label(o), value);
    *(bool *)to = on;
    return CMD_OK;
}

void cmd_option_print(FILE *file, const struct cmd_option *o, const void *args)
{
    const void *at = (const unsigned char *)args + o->offset;
    const struct cmd_texts *texts = at;
    const char *text = o->kind == CMD_TEXT ? *(const char *const *)at : NULL;
    switch (o->kind) {
    case CMD_FLAG: fputs(*(const bool *)at ? "on" : "off", file); break;
    case CMD_TEXT: fputs(text ? cmd_shown(text) : "", file); break;
    case CMD_TEXTS:
        for (size_t i = 0; i < texts->n; i++) fprintf(file, "%s%s", i ? ", " : "", cmd_shown(texts->at[i]));
        break;
    case CMD_U32: fprintf(file, "%" PRIu32, *(const uint32_t *)at); break;
    case CMD_BUDGET: print_budget(file, *(const uint32_t *)at); break;
    case CMD_F32: fprintf(file, "%g", (double)*(const float *)at); break;
    case CMD_SIZE:
    case CMD_SEED: fprintf(file, "%" PRIu64, *(const uint64_t *)at); break;
    case CMD_CHOICE: fputs(o->value(*(const uint32_t *)at), file); break;
    }
}
