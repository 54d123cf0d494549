/* Ctrl-R: what was typed before, found by a part of it. */
#define _XOPEN_SOURCE 700
#include "console_.h"
#include "../base/base.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { WANTED_SIZE = 256, CTRL_G = 7, CTRL_R = 18, BACKSPACE = 8, DELETE = 127 };

struct search {
    struct cmd_editor_search how;
    int rows;                          /* of the terminal, above the cursor's */
    char wanted[WANTED_SIZE];          /* UTF-8 */
    size_t size;
    char shown[WANTED_SIZE + 32];      /* the prompt */
};

static void replace_line(EditLine *edit, const char *text)
{
    const LineInfoW *line = el_wline(edit);
    el_cursor(edit, (int)(line->lastchar - line->cursor));
    el_deletestr(edit, (int)(line->lastchar - line->buffer));
    el_insertstr(edit, text);
}

/* The entry that has what is wanted, `skip` entries after the newest one; NULL: there is none. */
static const char *find_entry(const struct search *s, int skip)
{
    HistEvent event;
    for (int more = history(s->how.history, &event, H_FIRST); more >= 0; more = history(s->how.history, &event, H_NEXT))
        if (strstr(event.str, s->wanted) && skip-- == 0) return event.str;
    return NULL;
}

static void draw(struct search *s, const char *prompt)
{
    *s->how.prompt = prompt;
    cmd_editor_redraw(s->how.edit, s->how.out, s->how.escapes, s->rows);
    s->rows = cmd_editor_rows(s->how.edit, prompt, cmd_columns(s->how.out));
}

static void editor_search_show(struct search *s, bool found)
{
    snprintf(s->shown, sizeof s->shown, "%s \"%s\": ", found ? "search" : "not found", s->wanted);
    draw(s, s->shown);
}

/* False where the key is none that changes what is wanted. */
static bool change_wanted(struct search *s, wchar_t key)
{
    char bytes[16];
    if (key == BACKSPACE || key == DELETE) {
        while (s->size && ((unsigned char)s->wanted[s->size - 1] & 0xc0) == 0x80) s->size--;
        if (s->size) s->size--;
    } else {
        int n = key < ' ' ? -1 : wctomb(bytes, key);
        if (n <= 0) return false;
        if (s->size + (size_t)n < sizeof s->wanted) memcpy(s->wanted + s->size, bytes, (size_t)n), s->size += (size_t)n;
    }
    s->wanted[s->size] = 0;
    return true;
}

/* Gives the key that ended the search; 0: a signal did, or the end of what is typed. */
static wchar_t editor_search_look(struct search *s)
{
    int skip = 0;
    bool found = true;
    for (;;) {
        wchar_t key;
        editor_search_show(s, found);
        if (el_wgetc(s->how.edit, &key) != 1) return 0;
        if (key == CTRL_R) skip += found;
        else if (change_wanted(s, key)) skip = 0;
        else return key;
        const char *entry = s->size ? find_entry(s, skip) : NULL;
        found = entry || !s->size;
        if (entry) replace_line(s->how.edit, entry);
        else if (skip) skip--;   /* the last that was found stays */
    }
}

unsigned char cmd_editor_search(const struct cmd_editor_search *how)
{
    const char *before = *how->prompt;
    struct search s = {.how = *how, .rows = cmd_editor_rows(how->edit, before, cmd_columns(how->out))};
    const LineInfo *line = el_line(how->edit);
    char *text = strndup(line->buffer, (size_t)(line->lastchar - line->buffer));
    if (!text) return CC_ERROR;
    wchar_t key = editor_search_look(&s);
    char keys[2] = {(char)key, 0};
    if (key == CTRL_G) replace_line(how->edit, text);
    else if (key) el_push(how->edit, keys);
    free(text);
    draw(&s, before);
    return CC_NORM;
}
