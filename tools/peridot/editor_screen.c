#define _XOPEN_SOURCE 700
#include "editor_screen.h"

#include <string.h>
#include <wchar.h>

struct place {
    int row, column, columns;
};

/* As libedit draws it: control characters are ^X. */
static void advance(struct place *p, wchar_t c)
{
    enum { TAB = 8 };
    int width = c == '\t' ? TAB - p->column % TAB : wcwidth(c) < 0 ? 2 : wcwidth(c);
    if (c == '\n' || p->column + width > p->columns) {
        p->row++;
        p->column = 0;
    }
    if (c == '\n') return;
    p->column += width;
    if (p->column < p->columns) return;
    p->row++;
    p->column = 0;
}

int cmd_editor_rows(EditLine *edit, const char *prompt, int columns)
{
    struct place place = {.columns = columns > 2 ? columns : 2};
    const LineInfoW *line = el_wline(edit);
    mbstate_t state = {0};
    wchar_t c;
    size_t left = strlen(prompt);
    for (size_t n; left && (n = mbrtowc(&c, prompt, left, &state)) + 2 > 2; prompt += n, left -= n) advance(&place, c);
    for (const wchar_t *at = line->buffer; at < line->cursor; at++) advance(&place, *at);
    return place.row;
}

void cmd_editor_redraw(EditLine *edit, FILE *out, bool escapes, int rows)
{
    if (!escapes) fputc('\n', out);
    else if (rows) fprintf(out, "\033[%dA\r\033[J", rows);
    else fputs("\r\033[J", out);
    el_set(edit, EL_REFRESH);
}
