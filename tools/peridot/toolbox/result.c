/* Results of tools, as a model gets them: valid UTF-8, no longer than allowed, with a note where something is left
 * out. */
#include "../console/console.h"
#include "toolbox.h"
#include "toolbox_.h"

#include <stdlib.h>
#include <string.h>

peridot_status result_add_text(struct pd_buffer *out, const char *text, size_t size)
{
    while (size && strchr(" \t\r\n", text[size - 1]) && text[size - 1]) size--;
    for (size_t i = 0, n; i < size; i += n) {
        size_t begin = i;
        while (i < size && text[i] && (n = peridot_utf8_size(text + i, size - i)) > 0) i += n;
        PD_TRY(pd_buffer_add(out, text + begin, i - begin));
        n = i < size;
        if (n) PD_TRY(pd_buffer_add(out, "\xef\xbf\xbd", 3));
    }
    return PERIDOT_OK;
}

peridot_status result_cut(struct pd_buffer *out, size_t most, size_t n_more)
{
    size_t size = out->size;
    if (size <= most && n_more == 0) return PERIDOT_OK;
    if (size > most)
        for (size = most; size > 0 && ((unsigned char)out->data[size] & 0xc0) == 0x80;) size--;
    n_more += out->size - size;
    out->size = size;
    return pd_buffer_print(out, "\n[cut here: %zu more bytes are left out]", n_more);
}

/* ---- answer ---- */

/* The calls of a reply: shown, asked for, carried out. */

enum decision { CALL, REFUSE, STOP };

/* The person sees all of the arguments, and whose tool it is. */
static void show_call(const struct cmd_toolbox *t, const struct cmd_tool_call *call)
{
    struct cmd_notice m;
    if (!cmd_notice_begin(&m)) return;
    cmd_write_text(m.file, call->name, strlen(call->name));
    fputs(" (", m.file);
    cmd_toolbox_print_source(m.file, t, call->name);
    fputs("): ", m.file);
    cmd_write_text(m.file, call->arguments, strlen(call->arguments));
    fputc('\n', m.file);
    cmd_notice_end(&m);
}

static void show_result(const char *result)
{
    enum { SHOWN = 160 };
    char line[SHOWN];
    peridot_printable(line, sizeof line, result, strlen(result));
    cmd_say("-> %s\n", line);
}

/* The name stands in the question, too: long arguments may have moved it off the screen. */
static enum decision ask(struct cmd_toolbox *t, const char *name, struct cmd_editor *editor)
{
    static const struct { const char *text; enum decision decision; bool always; } answers[] = {
        {"y", CALL, false}, {"yes", CALL, false}, {"n", REFUSE, false}, {"no", REFUSE, false}, {"a", CALL, true},
        {"always", CALL, true},
    };
    char question[192], shown[128];
    peridot_printable(shown, sizeof shown, name, strlen(name));
    snprintf(question, sizeof question, "call %s? (y)es, (n)o, (a)lways in this conversation: ", shown);
    for (;;) {
        const char *text;
        if (cmd_editor_ask(&text, editor, question) != CMD_EDITOR_MESSAGE) return STOP;
        for (size_t i = 0; i < PD_COUNT(answers); i++) {
            if (strcmp(text, answers[i].text) != 0) continue;
            if (answers[i].always) cmd_toolbox_allow(t, name);
            return answers[i].decision;
        }
    }
}

static enum decision decide(struct cmd_toolbox *t, const char *name, struct cmd_editor *editor)
{
    if (cmd_toolbox_is_allowed(t, name) || !cmd_toolbox_has(t, name)) return CALL;   /* the latter just fails */
    if (editor) return ask(t, name, editor);
    cmd_say("%s is not called: there is no terminal to ask at, and no \"allow\" in its file\n", name);
    return REFUSE;
}

static peridot_status answer(struct cmd_tool_result *result, struct cmd_toolbox *t, const struct cmd_tool_call *call,
                             struct cmd_editor *editor)
{
    static const char refused[] = "error: the user does not allow this call";
    show_call(t, call);
    enum decision decision = decide(t, call->name, editor);
    if (decision == STOP) return pd_fail(PERIDOT_CANCELLED, "stopped");
    if (decision == CALL) {
        PD_TRY(cmd_toolbox_call(result, t, call, NULL));
        show_result(result->text);
        return PERIDOT_OK;
    }
    result->text = malloc(sizeof refused);
    if (!result->text) return pd_fail_alloc(sizeof refused, "result");
    memcpy(result->text, refused, sizeof refused);
    return PERIDOT_OK;
}

peridot_status cmd_toolbox_answer(struct cmd_tool_result *results, struct cmd_toolbox *t,
                                  const struct cmd_tool_call *calls, size_t n, struct cmd_editor *editor)
{
    for (size_t i = 0; i < n; i++) results[i] = (struct cmd_tool_result){0};
    for (size_t i = 0; i < n; i++) PD_TRY(answer(&results[i], t, &calls[i], editor));
    return PERIDOT_OK;
}

/* ---- names ---- */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

bool toolbox_is_name(const char *text)
{
    size_t size = strspn(text, letters);
    return size > 0 && size < TOOLBOX_NAME_SIZE && !text[size];
}

static size_t append(char out[TOOLBOX_NAME_SIZE], size_t n, const char *text)
{
    for (; *text && n + 1 < TOOLBOX_NAME_SIZE; text++) out[n++] = strchr(letters, *text) ? *text : '_';
    return n;
}

void toolbox_make_name(char out[TOOLBOX_NAME_SIZE], const char *prefix, const char *text)
{
    size_t n = prefix ? append(out, append(out, 0, prefix), "_") : 0;
    out[append(out, n, text)] = 0;
}

bool toolbox_is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}
