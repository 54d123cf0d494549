/* Text on a terminal in lines that end between words, as it comes: words are whole, wide characters of East Asian
 * scripts may begin a line each, and what would drive the terminal is escaped (peridot_printable). Where the file is no
 * terminal, text is written as it is. */
#define _POSIX_C_SOURCE 200809L
#include "console.h"
#include "../base/base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TAB = 8, SHOWN_MAX = 16 };

/* ---- characters ---- */

struct range {
    uint32_t first, last;
};

static bool is_in(uint32_t code, const struct range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

/* Of the character that text[0..n) is. */
static uint32_t flow_code_of(const char *text, size_t n)
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t code = n == 1 ? bytes[0] : bytes[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) code = code << 6 | (bytes[i] & 0x3fu);
    return code;
}

/* Columns of a character, after Unicode's East Asian Width (W and F) and its marks without a width. */
static int width_of(uint32_t code)
{
    static const struct range wide[] = {
        {0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0x4dbf}, {0x4e00, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3},
        {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f},
        {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
    };
    static const struct range marks[] = {
        {0x300, 0x36f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f},
        {0xfe20, 0xfe2f},
    };
    return is_in(code, marks, PD_COUNT(marks)) ? 0 : 1 + is_in(code, wide, PD_COUNT(wide));
}

/* ---- words ---- */

static void end_line(struct cmd_flow *f)
{
    fputc('\n', f->file);
    f->column = f->spaces = 0;
}

static void put_spaces(struct cmd_flow *f, int n)
{
    for (int i = 0; i < n; i++) fputc(' ', f->file);
    f->column += n;
}

/* Writes what there is of the word, on the next line where it does not fit this one. */
static void put_word(struct cmd_flow *f)
{
    if (!f->goes_on && f->column && f->column + f->spaces + f->width > f->columns) {
        end_line(f);
        put_spaces(f, f->indent);
    }
    put_spaces(f, f->spaces);
    fwrite(f->word, 1, f->size, f->file);
    f->column += f->width;
    if (f->column > f->columns) f->column %= f->columns;   /* the terminal has begun another line */
    f->size = 0;
    f->width = f->spaces = 0;
}

static void end_word(struct cmd_flow *f)
{
    if (f->size) put_word(f);
    f->goes_on = false;
}

/* One character, escaped if need be, which is no space. */
static void add_character(struct cmd_flow *f, const char *text, size_t n)
{
    char shown[SHOWN_MAX];
    size_t size = peridot_printable(shown, sizeof shown, text, n);
    bool escaped = size != n || memcmp(shown, text, n) != 0;
    int width = escaped ? (int)size : width_of(flow_code_of(text, n));
    if (width == 2 && !escaped) end_word(f);
    memcpy(f->word + f->size, shown, size);
    f->size += size;
    f->width += width;
    if (width == 2 && !escaped) {
        end_word(f);
    } else if (f->width >= f->columns || f->size > sizeof f->word - SHOWN_MAX) {   /* no line holds it */
        put_word(f);
        f->goes_on = true;
    }
}

struct cmd_flow cmd_flow_begin(FILE *file) { return (struct cmd_flow){.file = file, .columns = cmd_columns(file)}; }

void cmd_flow_text(struct cmd_flow *f, const char *text, size_t size)
{
    if (!f->columns) fwrite(text, 1, size, f->file);
    for (size_t i = 0, n; f->columns && i < size; i += n) {
        n = (size_t)pd_max(peridot_utf8_size(text + i, size - i), 1);
        bool space = text[i] == ' ' || text[i] == '\t' || text[i] == '\n';
        if (!space) {
            add_character(f, text + i, n);
            continue;
        }
        end_word(f);
        if (text[i] == '\n') end_line(f);
        else f->spaces += text[i] == ' ' ? 1 : TAB - (f->column + f->spaces) % TAB;
    }
}

void cmd_flow_end(struct cmd_flow *f)
{
    if (f->columns) end_word(f);
}

static void say(const char *text, size_t size)
{
    struct cmd_flow flow = cmd_flow_begin(stderr);
    cmd_flow_text(&flow, text, size);
    cmd_flow_end(&flow);
}

void cmd_say(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (size > 0) say(line, (size_t)pd_min((uint64_t)size, sizeof line - 1));
}

bool cmd_notice_begin(struct cmd_notice *m)
{
    m->text = NULL;
    m->file = cmd_memory_open(&m->text, &m->size);
    return m->file != NULL;
}

void cmd_notice_end(struct cmd_notice *m)
{
    if (cmd_memory_close(m->file, &m->text, &m->size)) say(m->text, m->size);
    free(m->text);
}
