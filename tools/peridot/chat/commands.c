/* The lines of a conversation that begin with /. */
#define _POSIX_C_SOURCE 200809L
#include "chat.h"
#include "../console/console.h"
#include "../cli/cli.h"
#include "../base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* What completes the value of a command. */
enum values { NO_VALUES, FILES, SETTINGS };

struct chat_command {
    const char *name, *metavar;
    const char *help;          /* NULL: another name of the row before it that has one */
    bool needs_value;
    enum values values;
    peridot_status (*run)(struct cmd_chat *chat, const char *value);   /* the value is NULL where there is none */
};

/* ---- settings ---- */

static bool has_setter(const char *name);

static const struct cmd_option settings[] = {
    CMD_CHAT_LENGTH_OPTION,
    CMD_CHAT_FULL_OPTION,
    CMD_THINK_OPTION(struct cmd_chat_args),
    CMD_SAMPLING_OPTIONS(struct cmd_chat_args, sampling),
};

static const struct cmd_command setting = {.name = "chat", .options = settings, .n_options = PD_COUNT(settings)};

/* A copy that the arguments may borrow. */
static const char *keep_value(struct cmd_chat *chat, const char *value)
{
    char *copy = chat->kept.n < CMD_TEXTS_MAX ? strdup(value) : NULL;
    if (copy) chat->kept.at[chat->kept.n++] = copy;
    return copy;
}

static int take_sampling(struct cmd_chat *chat)
{
    return cmd_sampling_make(&chat->sampling, chat->bias, &setting, &chat->args.sampling);
}

static peridot_status set(struct cmd_chat *chat, const char *name, const char *value)
{
    struct cmd_chat_args before = chat->args;
    if (value && !(value = keep_value(chat, value)))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "/set can be used %d times at most", CMD_TEXTS_MAX);
    if (cmd_option_set(&setting, &chat->args, name, value) != CMD_OK || take_sampling(chat) != CMD_OK) {
        chat->refused = true;
        chat->args = before;
        take_sampling(chat);
        return PERIDOT_OK;
    }
    cmd_chat_take_length(chat);
    peridot_status status = cmd_chat_take_think(chat);
    if (status != PERIDOT_OK) chat->args.think = before.think;
    return status == PERIDOT_OK ? peridot_set_sampling(chat->sequence, &chat->sampling) : status;
}

static peridot_status list_settings(const struct cmd_chat *chat)
{
    struct cmd_notice m;
    if (!cmd_notice_begin(&m)) return pd_fail_alloc(0, "list of settings");
    for (size_t i = 0; i < PD_COUNT(settings); i++) {
        fprintf(m.file, "%-20s ", settings[i].name);
        cmd_option_print(m.file, &settings[i], &chat->args);
        fputc('\n', m.file);
    }
    fputs("/set NAME VALUE sets one; peridot chat --help explains them\n", m.file);
    cmd_notice_end(&m);
    return PERIDOT_OK;
}

/* What is no setting, but an option of the program. */
static bool refuse_option(struct cmd_chat *chat, const char *name, const char *value)
{
    const struct cmd_option *o = cmd_hint_option(chat->command, name, strlen(name), true);
    for (size_t i = 0; o && i < PD_COUNT(settings); i++)
        if (strcmp(settings[i].name, o->name) == 0) return false;
    if (!o) return false;
    chat->refused = true;
    if (has_setter(o->name)) cmd_say("peridot: /%s %s sets it\n", o->name, o->metavar);
    else cmd_say("peridot: %s is fixed when the model is opened: start peridot chat with --%s %s\n", o->name, o->name,
                 value ? value : o->metavar ? o->metavar : "");
    return true;
}

static peridot_status run_set(struct cmd_chat *chat, const char *value)
{
    char name[64];
    if (!value) return list_settings(chat);
    size_t size = strcspn(value, " \t");
    if (size >= sizeof name) return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no setting %.40s...", value);
    memcpy(name, value, size);
    name[size] = 0;
    value += size + strspn(value + size, " \t");
    if (!*value) value = NULL;
    return refuse_option(chat, name, value) ? PERIDOT_OK : set(chat, name, value);
}

/* ---- turns ---- */

/* A text of the conversation, fit for a terminal. */
static void say_text(const char *label, const char *text)
{
    struct cmd_notice m;
    if (!cmd_notice_begin(&m)) return;
    fputs(label, m.file);
    cmd_write_text(m.file, text, strlen(text));
    fputc('\n', m.file);
    cmd_notice_end(&m);
}

static peridot_status run_system(struct cmd_chat *chat, const char *value)
{
    struct cmd_conversation *c = &chat->conversation;
    if (value) return cmd_conversation_set_system(c, strcmp(value, "off") == 0 ? NULL : value);
    const char *text = cmd_conversation_system(c);
    say_text("", text ? text : "there is no system prompt");
    return PERIDOT_OK;
}

static peridot_status run_reset(struct cmd_chat *chat, const char *value)
{
    (void)value;
    cmd_conversation_reset(&chat->conversation);
    return PERIDOT_OK;
}

static peridot_status run_undo(struct cmd_chat *chat, const char *value)
{
    struct cmd_conversation *c = &chat->conversation;
    (void)value;
    if (!cmd_conversation_undo(c)) return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no turn to take back");
    say_text("taken back: ", c->unsent);
    free(c->unsent);
    c->unsent = NULL;
    cmd_conversation_detach(c);
    return PERIDOT_OK;
}

/* Sends `text` in the place of the last message, or that message again (NULL). */
static peridot_status send_again(struct cmd_chat *chat, const char *text)
{
    struct cmd_conversation *c = &chat->conversation;
    if (!c->unsent && !cmd_conversation_undo(c))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no message to send again");
    char *copy = strdup(text ? text : c->unsent);
    if (!copy) return pd_fail_alloc(strlen(c->unsent), "message");
    peridot_status status = cmd_chat_answer(chat, copy);
    free(copy);
    return status;
}

static peridot_status run_retry(struct cmd_chat *chat, const char *value)
{
    (void)value;
    return send_again(chat, NULL);
}

static peridot_status run_edit(struct cmd_chat *chat, const char *value)
{
    const char *last = cmd_conversation_last(&chat->conversation);
    if (value || !last) return send_again(chat, value);
    if (!chat->editor) return pd_fail(PERIDOT_ERROR_ARGUMENT, "/edit needs a text where there is no terminal");
    enum cmd_editor_state state = cmd_editor_read(&value, chat->editor, last);
    if (state != CMD_EDITOR_MESSAGE) cmd_interrupt_clear();
    if (state == CMD_EDITOR_MESSAGE && value[strspn(value, " \t\n")]) return send_again(chat, value);
    cmd_say("nothing was changed\n");
    return PERIDOT_OK;
}

/* ---- files ---- */

/* ~/ stands for the home folder. NULL when there is no memory for it. */
static char *expand(const char *path)
{
    const char *home = getenv("HOME");
    if (strncmp(path, "~/", 2) != 0 || !home) return strdup(path);
    size_t size = strlen(home) + strlen(path);
    char *full = malloc(size);
    if (full) snprintf(full, size, "%s%s", home, path + 1);
    return full;
}

static peridot_status run_save(struct cmd_chat *chat, const char *value)
{
    const char *model;
    char *path = expand(value);
    if (!path) return pd_fail_alloc(strlen(value), "file name");
    peridot_status status = cmd_model_path(&model, chat->args.model.path);
    if (status == PERIDOT_OK) status = pd_writer_check(path, model);
    if (status == PERIDOT_OK) status = cmd_conversation_save(&chat->conversation, path);
    if (status == PERIDOT_OK) cmd_say("%zu message%s in %s\n", chat->conversation.n,
                                      chat->conversation.n == 1 ? " is" : "s are", path);
    free(path);
    return status;
}

static peridot_status run_image(struct cmd_chat *chat, const char *value)
{
    peridot_image *image;
    char *path;
    if (strcmp(value, "off") == 0) {
        cmd_conversation_detach(&chat->conversation);
        return PERIDOT_OK;
    }
    path = expand(value);
    if (!path) return pd_fail_alloc(strlen(value), "file name");
    peridot_status status = cmd_image_read(&image, chat->model, path, chat->args.model.pan_and_scan);
    if (status == PERIDOT_OK) {
        status = cmd_conversation_attach(&chat->conversation, path, image);
        peridot_image_free(image);
    }
    size_t n = chat->conversation.attached.n;
    if (status == PERIDOT_OK)
        cmd_say("%zu picture%s with the next message; /image off takes %s off\n", n, n == 1 ? " goes" : "s go",
                n == 1 ? "it" : "them");
    free(path);
    return status;
}

static peridot_status run_load(struct cmd_chat *chat, const char *value)
{
    struct cmd_conversation *c = &chat->conversation;
    char *path = expand(value);
    if (!path) return pd_fail_alloc(strlen(value), "file name");
    peridot_status status = cmd_conversation_load(c, path, &chat->encoding);
    if (status == PERIDOT_OK)
        cmd_say("%zu message%s%s\n", c->n, PD_S(c->n),
                c->unsent ? ", and one without a reply: /retry sends it" : "");
    free(path);
    return status;
}

/* ---- what there is ---- */

static peridot_status run_stats(struct cmd_chat *chat, const char *value)
{
    (void)value;
    if (chat->stats.n_prompt == 0) return pd_fail(PERIDOT_ERROR_ARGUMENT, "there was no reply yet");
    cmd_chat_print_stats(chat);
    return PERIDOT_OK;
}

static peridot_status run_thought(struct cmd_chat *chat, const char *value)
{
    (void)value;
    if (chat->thought.text.size == 0) return pd_fail(PERIDOT_ERROR_ARGUMENT, "the last reply had no thought");
    cmd_thought_show(&chat->thought);
    return PERIDOT_OK;
}

static peridot_status run_tools(struct cmd_chat *chat, const char *value)
{
    struct cmd_notice m;
    bool changed;
    (void)value;
    if (!chat->toolbox) return pd_fail(PERIDOT_ERROR_ARGUMENT, "there are no tools: start peridot chat with --tools");
    PD_TRY(cmd_toolbox_refresh(&changed, chat->toolbox));
    if (!cmd_toolbox_size(chat->toolbox)) cmd_say("there are no tools\n");
    if (!cmd_notice_begin(&m)) return pd_fail_alloc(0, "list of tools");
    cmd_toolbox_print(m.file, chat->toolbox);
    cmd_notice_end(&m);
    return PERIDOT_OK;
}

static bool is_model(const char *path)
{
    size_t size = strlen(path);
    char config[4096];
    if (path[size - 1] != '/') return size > 5 && strcmp(path + size - 5, ".gguf") == 0;
    snprintf(config, sizeof config, "%sconfig.json", path);
    return pd_is_file(config);
}

static void print_model(const char *path, bool open)
{
    struct stat st;
    bool is_file = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    cmd_say("%s%s%s%s\n", cmd_shown(path), is_file ? "  " : "", is_file ? cmd_size_text((uint64_t)st.st_size) : "",
            open ? "  (open)" : "");
}

/* The open model and those in its folder. */
static peridot_status run_models(struct cmd_chat *chat, const char *value)
{
    struct cmd_completions found = {0};
    const char *open;
    char folder[4096];
    (void)value;
    PD_TRY(cmd_model_path(&open, chat->args.model.path));
    snprintf(folder, sizeof folder, "%s", open);
    size_t size = strlen(folder);
    while (size > 1 && folder[size - 1] == '/') folder[--size] = 0;
    char *slash = strrchr(folder, '/');
    folder[slash ? slash + 1 - folder : 0] = 0;
    print_model(open, true);
    cmd_completions_add_files(&found, folder);
    for (size_t i = 0; i < found.n; i++) {
        if (is_model(found.at[i]) && strncmp(found.at[i], open, size) != 0) print_model(found.at[i], false);
        free(found.at[i]);
    }
    return PERIDOT_OK;
}

static peridot_status run_model(struct cmd_chat *chat, const char *value)
{
    if (!value) return run_models(chat, NULL);
    const char *name = keep_value(chat, value);
    if (!name) return pd_fail(PERIDOT_ERROR_ARGUMENT, "/model and /set can be used %d times at most", CMD_TEXTS_MAX);
    PD_TRY(cmd_chat_change_model(chat, name));
    cmd_say("%s, %" PRIu32 " positions of context\n", peridot_model_get_info(chat->model)->name, chat->encoding.ctx);
    return PERIDOT_OK;
}

static peridot_status run_exit(struct cmd_chat *chat, const char *value)
{
    (void)value;
    chat->leaves = true;
    return PERIDOT_OK;
}

static peridot_status run_help(struct cmd_chat *chat, const char *value);

/* ---- the table ---- */

static const struct chat_command commands[] = {
    {"help", NULL, "Lists the commands.", false, NO_VALUES, run_help},
    {"?", NULL, NULL, false, NO_VALUES, run_help},
    {"system", "TEXT", "Sets the system prompt, or shows it; off removes it.", false, NO_VALUES, run_system},
    {"reset", NULL, "Begins anew; the system prompt stays.", false, NO_VALUES, run_reset},
    {"clear", NULL, NULL, false, NO_VALUES, run_reset},
    {"undo", NULL, "Takes back the last turn.", false, NO_VALUES, run_undo},
    {"retry", NULL, "Has the last message answered anew.", false, NO_VALUES, run_retry},
    {"edit", "TEXT", "Changes the last message and sends it again.", false, NO_VALUES, run_edit},
    {"image", "FILE", "Shows a picture to the model, with the next message; a file that is dragged into the terminal "
     "does so too.", true, FILES, run_image},
    {"save", "FILE", "Writes the conversation to a file of JSON messages.", true, FILES, run_save},
    {"load", "FILE", "Goes on with the conversation in such a file.", true, FILES, run_load},
    {"set", "NAME VALUE", "Sets an option, as temp, top-k or length, which /temp 0.3 does, too; by itself lists "
     "them.", false, SETTINGS,
     run_set},
    {"stats", NULL, "Shows the speed of the last reply, and how full the context is.", false, NO_VALUES, run_stats},
    {"thought", NULL, "Shows what the model thought before the last reply.", false, NO_VALUES, run_thought},
    {"tools", NULL, "Lists the tools that the model may call.", false, NO_VALUES, run_tools},
    {"model", "NAME", "Goes on with another model; by itself lists those in the folder of this one.", false, FILES,
     run_model},
    {"models", NULL, "Lists the models in the folder of this one.", false, NO_VALUES, run_models},
    {"exit", NULL, "Leaves, as Ctrl-D does.", false, NO_VALUES, run_exit},
    {"quit", NULL, NULL, false, NO_VALUES, run_exit},
    {"bye", NULL, NULL, false, NO_VALUES, run_exit},
};

static const char *command_name(size_t i) { return i < PD_COUNT(commands) ? commands[i].name : NULL; }

/* A command of that name that takes a value. */
static bool has_setter(const char *name)
{
    size_t i = 0;
    while (i < PD_COUNT(commands) && strcmp(commands[i].name, name) != 0) i++;
    return i < PD_COUNT(commands) && commands[i].metavar;
}

static peridot_status run_help(struct cmd_chat *chat, const char *value)
{
    enum { LABEL = 21, NARROW = 60 };
    struct cmd_flow flow = cmd_flow_begin(stderr);
    char line[256];
    (void)chat, (void)value;
    flow.indent = flow.columns < NARROW ? LABEL / 5 : LABEL;
    for (size_t i = 0; i < PD_COUNT(commands); i++) {
        const struct chat_command *c = &commands[i];
        if (!c->help) continue;
        int size = snprintf(line, sizeof line, "/%-7s %-10s  %s\n", c->name, c->metavar ? c->metavar : "", c->help);
        cmd_flow_text(&flow, line, (size_t)size);
    }
    cmd_say("A line that ends in \\, and lines between \"\"\", make one message. Ctrl-C stops a reply.\n");
    return PERIDOT_OK;
}

static bool is_setting(const char *name)
{
    size_t i = 0;
    while (i < PD_COUNT(settings) && strcmp(settings[i].name, name) != 0) i++;
    return i < PD_COUNT(settings);
}

/* value: NULL where there is none, for the sentence. */
static const struct chat_command *find_command(const char *name, const char *value)
{
    for (size_t i = 0; i < PD_COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    const struct cmd_option *option = cmd_hint_option(&setting, name, strlen(name), true);
    if (option) {
        pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no command /%s: /%s %s sets that", name, option->name,
                value ? value : option->metavar ? option->metavar : "on");
        return NULL;
    }
    const char *nearest = cmd_nearest(name, command_name);
    if (nearest) pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no command /%s (did you mean /%s?)", name, nearest);
    else pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no command /%s; /help lists them, and a message that begins with / "
                 "is typed with a space before it", name);
    return NULL;
}

/* ---- dragged files ---- */

/* The next word of a line, as terminals write dragged paths: in quotes, or with a backslash before what a shell would
 * take for more than a character. False at the end. */
static bool next_word(char *out, const char **at)
{
    const char *p = *at + strspn(*at, " \t\r\n");
    char quote = 0;
    if (!*p) return false;
    for (; *p && (quote || !strchr(" \t\r\n", *p)); p++) {
        if (quote ? *p == quote : (*p == '\'' || *p == '"')) quote = quote ? 0 : *p;
        else if (*p == '\\' && quote != '\'' && p[1]) *out++ = *++p;
        else *out++ = *p;
    }
    *out = 0;
    *at = p;
    return true;
}

static bool is_picture(const char *path)
{
    static const char *const ends[] = {".jpg", ".jpeg", ".png", ".webp", ".gif"};
    const char *dot = strrchr(path, '.');
    bool known = false;
    for (size_t i = 0; dot && i < PD_COUNT(ends); i++) known = known || strcasecmp(dot, ends[i]) == 0;
    return known && pd_is_file(path);
}

bool cmd_chat_is_pictures(const char *line)
{
    char *word = malloc(strlen(line) + 1);
    bool all = word && *line;
    size_t n = 0;
    for (; all && next_word(word, &line); n++) all = is_picture(word);
    free(word);
    return all && n > 0;
}

peridot_status cmd_chat_attach(struct cmd_chat *chat, const char *line)
{
    char *word = malloc(strlen(line) + 1);
    peridot_status status = word ? PERIDOT_OK : pd_fail_alloc(strlen(line), "line");
    while (status == PERIDOT_OK && next_word(word, &line)) status = run_image(chat, word);
    free(word);
    return status;
}

peridot_status cmd_chat_command(struct cmd_chat *chat, const char *line)
{
    char *copy = strdup(line + 1);
    if (!copy) return pd_fail_alloc(strlen(line), "line");
    size_t size = strcspn(copy, " \t\r\n"), end = strlen(copy);
    while (end > size && strchr(" \t\r\n", copy[end - 1])) copy[--end] = 0;
    char *value = copy + size + strspn(copy + size, " \t\r\n");
    if (!*value) value = NULL;
    copy[size] = 0;
    if (is_setting(copy) && value) {
        peridot_status result = set(chat, copy, value);
        free(copy);
        return result;
    }
    const struct chat_command *c = find_command(copy, value);
    peridot_status status = PERIDOT_ERROR_ARGUMENT;
    if (c && value && !c->metavar) pd_fail(status, "/%s takes no value", c->name);
    else if (c && !value && c->needs_value) pd_fail(status, "/%s needs a %s", c->name, c->metavar);
    else if (c) status = c->run(chat, value);
    free(copy);
    return status;
}

/* ---- completion ---- */

static void complete_name(struct cmd_completions *out, const char *line)
{
    char text[64];
    for (size_t i = 0; i < PD_COUNT(commands); i++) {
        snprintf(text, sizeof text, "/%s%s", commands[i].name, commands[i].metavar ? " " : "");
        if (commands[i].help && strncmp(text, line, strlen(line)) == 0) cmd_completions_add(out, text);
    }
}

static void complete_setting(struct cmd_completions *out, const char *value)
{
    static const char *const switches[] = {"on", "off"};
    size_t size = strcspn(value, " ");
    const char *rest = value[size] ? value + size + 1 : NULL;
    char text[64];
    for (size_t i = 0; i < PD_COUNT(settings); i++) {
        const struct cmd_option *o = &settings[i];
        snprintf(text, sizeof text, "%s ", o->name);
        if (!rest && strncmp(o->name, value, size) == 0) cmd_completions_add(out, text);
        if (!rest || o->kind != CMD_FLAG || strncmp(text, value, size + 1) != 0) continue;
        out->begin += size + 1;
        for (size_t k = 0; k < PD_COUNT(switches); k++)
            if (strncmp(switches[k], rest, strlen(rest)) == 0) cmd_completions_add(out, switches[k]);
    }
}

void cmd_chat_complete(struct cmd_completions *out, void *user, const char *line)
{
    size_t size = strcspn(line, " ");
    (void)user;
    if (line[0] != '/') return;
    if (!line[size]) {
        complete_name(out, line);
        return;
    }
    for (size_t i = 0; i < PD_COUNT(commands); i++) {
        const struct chat_command *c = &commands[i];
        if (strlen(c->name) != size - 1 || memcmp(c->name, line + 1, size - 1) != 0) continue;
        out->begin = size + 1;
        if (c->values == FILES) cmd_completions_add_files(out, line + out->begin);
        if (c->values == SETTINGS) complete_setting(out, line + out->begin);
    }
}
