/* What a shell may put where someone presses Tab: asked by `peridot help --complete WORDS`, which the shells'
 * completions (tools/completions) call, and answered from the tables that the parser reads. */
#include "cli_.h"
#include "cli.h"
#include "../models/models.h"

#include <stdlib.h>
#include <string.h>

/* What is being typed: candidates begin with it. */
struct typed {
    const char *word;
    size_t joined;    /* the bytes "--name=" before a value, which candidates repeat */
};

/* A line "CANDIDATE<tab>MEANING"; of a meaning, its first sentence. */
static void offer(const struct typed *t, const char *candidate, const char *meaning)
{
    if (strncmp(candidate, t->word + t->joined, strlen(t->word + t->joined)) != 0) return;
    const char *end = meaning ? strstr(meaning, ". ") : NULL;
    printf("%.*s%s%s%.*s\n", (int)t->joined, t->word, candidate, meaning ? "\t" : "",
           meaning ? (int)(end ? (size_t)(end - meaning) : strcspn(meaning, "\n")) : 0, meaning ? meaning : "");
}

static void offer_list(const struct typed *t, const char *(*value)(size_t i))
{
    for (size_t i = 0; value(i); i++) offer(t, value(i), NULL);
}

static void offer_devices(const struct typed *t)
{
    const peridot_device_info **devices;
    size_t n;
    if (peridot_devices(&devices, &n) != PERIDOT_OK) return;
    for (size_t i = 0; i < n; i++) {
        char index[16];
        snprintf(index, sizeof index, "%u", (unsigned)devices[i]->index);
        if (!devices[i]->unusable[0]) offer(t, index, devices[i]->name);
    }
    peridot_free(devices);
}

static void offer_models(const struct typed *t)
{
    struct cmd_model_list list;
    peridot_status status = cmd_model_list_find(&list);
    for (size_t i = 0; i < list.n && status == PERIDOT_OK; i++) offer(t, list.items[i].name, list.items[i].store);
    cmd_model_list_free(&list);
}

static void offer_commands(const struct typed *t)
{
    const struct cmd_command *c;
    for (size_t i = 0; (c = cmd_command_at(i)) != NULL; i++) offer(t, c->name, c->summary);
}

static void offer_options(const struct typed *t, const struct cmd_command *c)
{
    for (size_t i = 0; i < c->n_options; i++) {
        char name[64];
        const struct cmd_option *o = &c->options[i];
        if (!o->name) continue;
        snprintf(name, sizeof name, "--%s", o->name);
        offer(t, name, o->help);
    }
    offer(t, "--help", "The manual of this command");
}

/* False: it may be a file, too. */
static bool offer_values(const struct typed *t, const struct cmd_option *o)
{
    if (o->value) offer_list(t, o->value);
    else if (strcmp(o->metavar, "TYPE") == 0) offer_list(t, peridot_convert_type);
    else if (strcmp(o->metavar, "DEVICE") == 0) offer_devices(t);
    else if (strcmp(o->metavar, "MODEL") == 0) return offer_models(t), false;
    else return o->kind != CMD_TEXT && o->kind != CMD_TEXTS;
    return true;
}

static const struct cmd_command *find_command(const char *name)
{
    const struct cmd_command *c = NULL;
    for (size_t i = 0; (c = cmd_command_at(i)) != NULL && strcmp(c->name, name) != 0;) i++;
    return c;
}

/* The option that a word is, NULL for an operand; *joined: where its value begins within the word, 0: it is the next
 * word. */
static const struct cmd_option *find_option(size_t *joined, const struct cmd_command *c, const char *word)
{
    size_t size = strcspn(word, "=");
    *joined = 0;
    for (size_t i = 0; word[0] == '-' && i < c->n_options; i++) {
        const struct cmd_option *o = &c->options[i];
        bool is_long = word[1] == '-' && o->name && strlen(o->name) == size - 2
                       && memcmp(word + 2, o->name, size - 2) == 0;
        bool is_short = word[1] && o->letter == word[1];
        if (!is_long && !is_short) continue;
        *joined = is_short ? (word[2] ? 2 : 0) : word[size] ? size + 1 : 0;
        return o;
    }
    return NULL;
}

int cmd_complete(int n, char **words)
{
    struct typed t = {.word = n ? words[n - 1] : ""};
    const struct cmd_command *c = n > 1 ? find_command(words[0]) : NULL;
    if (n < 2 || (n == 2 && strcmp(words[0], "help") == 0)) offer_commands(&t);
    if (n < 2) offer(&t, "help", "show the manual of a command");
    if (!c) return CMD_OK;
    const struct cmd_option *o = NULL, *operand = NULL;
    size_t joined = 0;
    bool only_operands = false;
    for (int i = 1; i < n - 1; i++) {
        if (o && o->kind != CMD_FLAG && !joined) o = NULL;   /* this word is its value */
        else if (!only_operands) o = find_option(&joined, c, words[i]);
        only_operands = only_operands || (!o && strcmp(words[i], "--") == 0);
    }
    if (o && o->kind != CMD_FLAG && !joined) return offer_values(&t, o) ? CMD_OK : CMD_FAILURE;
    o = only_operands ? NULL : find_option(&t.joined, c, t.word);
    if (t.joined && o->kind != CMD_FLAG) return offer_values(&t, o) ? CMD_OK : CMD_FAILURE;
    t.joined = 0;
    if (t.word[0] == '-' && !only_operands) {
        offer_options(&t, c);
        return CMD_OK;
    }
    for (size_t i = 0; i < c->n_options; i++)
        if (!c->options[i].name) operand = &c->options[i];
    return !operand || offer_values(&t, operand) ? CMD_OK : CMD_FAILURE;
}
