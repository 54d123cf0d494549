/* Text for people and from them: wrapping, sizes, near misses, and reading a whole stream. */
#include "base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80 };

static bool is_font(char c) { return c >= CMD_BOLD[0] && c <= CMD_ROMAN[0]; }

static void text_put(const struct cmd_wrap *w, char c)
{
    static const char *const fonts[] = {"", "\\fB", "\\fI", "\\fR"};
    if (!w->man) {
        if (!is_font(c)) fputc(c, w->file);
    } else if (is_font(c)) {
        fputs(fonts[(unsigned char)c], w->file);
    } else {
        if (c == '-' || c == ' ' || c == '\\') fputc('\\', w->file);   /* a hyphen as typed, a space that is kept */
        fputc(c == '\\' ? 'e' : c, w->file);
    }
}

void cmd_wrap_word(struct cmd_wrap *w, const char *word, size_t size)
{
    int width = 0;
    for (size_t i = 0; i < size; i++) width += !is_font(word[i]);
    if (w->column && w->column + 1 + width > COLUMNS) cmd_wrap_end(w);
    if (w->column) w->column += fprintf(w->file, " ");
    else if (!w->man) w->column = fprintf(w->file, "%*s", w->indent, "");
    else if (size && (word[0] == '.' || word[0] == '\'')) fputs("\\&", w->file);   /* no request */
    for (size_t i = 0; i < size; i++) text_put(w, word[i]);
    w->column += width;
}

void cmd_wrap_text(struct cmd_wrap *w, const char *text)
{
    while (*text) {
        size_t size = strcspn(text, " \n");
        if (size) cmd_wrap_word(w, text, size);
        if (text[size] == '\n' && w->man) {
            size_t n = strspn(text + size, "\n");
            cmd_wrap_end(w);
            fputs(n > 1 ? ".PP\n" : ".br\n", w->file);
            size += n - 1;
        } else if (text[size] == '\n' && !w->column) {
            fputc('\n', w->file);
        } else if (text[size] == '\n') {
            cmd_wrap_end(w);
        }
        text += size + (text[size] != 0);
    }
}

void cmd_wrap_end(struct cmd_wrap *w)
{
    if (w->column) fputc('\n', w->file);
    w->column = 0;
}

const char *cmd_size_text(uint64_t size)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    static char buffers[4][24];
    static unsigned next;
    char *text = buffers[next++ % PD_COUNT(buffers)];
    double value = (double)size;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < PD_COUNT(units)) value /= 1000, unit++;
    int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, sizeof buffers[0], "%.*f %s", digits, value, units[unit]);
    return text;
}

const char *cmd_time_text(double seconds)
{
    static _Thread_local char text[32];
    const unsigned long long s = seconds < 1e9 ? (unsigned long long)(seconds + 0.5) : 1000000000;
    if (s < 100) snprintf(text, sizeof text, "%llu s", s);
    else if (s < 6000) snprintf(text, sizeof text, "%llu min %02llu s", s / 60, s % 60);
    else snprintf(text, sizeof text, "%llu h %02llu min", s / 3600, s / 60 % 60);
    return text;
}

const char *cmd_shown(const char *text)
{
    static _Thread_local char buffers[4][1024];
    static _Thread_local unsigned next;
    char *out = buffers[next++ % PD_COUNT(buffers)];
    peridot_printable(out, sizeof buffers[0], text, strlen(text));
    return out;
}

void cmd_print_column(FILE *file, const char *text, size_t size)
{
    static const char plain[] = "\t\n\r\\", letters[] = "tnr\\";
    for (size_t i = 0, n; i < size; i += n) {
        char shown[16];
        const char *at = text[i] ? strchr(plain, text[i]) : NULL;
        n = peridot_utf8_size(text + i, size - i);
        if (at) fprintf(file, "\\%c", letters[at - plain]);
        else if (n) fwrite(shown, 1, peridot_printable(shown, sizeof shown, text + i, n), file);
        else fputc(text[i], file), n = 1;
    }
}

/* Levenshtein's distance, one row of the table at a time. */
int cmd_distance(const char *a, size_t size, const char *b)
{
    int row[32];
    size_t n = strlen(b);
    if (n + 1 > PD_COUNT(row)) return CMD_NEAR + 1;
    for (size_t j = 0; j <= n; j++) row[j] = (int)j;
    for (size_t i = 1; i <= size; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            int replace = diagonal + (a[i - 1] != b[j - 1]);
            int other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = replace < other ? replace : other;
        }
    }
    return row[n] <= CMD_NEAR ? row[n] : CMD_NEAR + 1;
}

const char *cmd_nearest(const char *text, const char *(*at)(size_t i))
{
    const char *best = NULL;
    int distance = CMD_NEAR + 1;
    for (size_t i = 0; at(i); i++) {
        int d = cmd_distance(text, strlen(text), at(i));
        if (d < distance) best = at(i), distance = d;
    }
    return best;
}

/* A signal that was caught ended the waiting. */
static peridot_status fail_read(const char *name)
{
    return pd_fail(errno == EINTR ? PERIDOT_CANCELLED : PERIDOT_ERROR_IO, "%s: %s", name, strerror(errno));
}

peridot_status cmd_read_most(char **out, size_t *size, FILE *file, const char *name, size_t most)
{
    enum { STEP = 4096 };   /* with the zero at the end */
    struct pd_buffer b = {0};
    peridot_status status;
    *out = NULL, *size = 0;
    do {
        status = pd_array_reserve(&b.data, &b.capacity, b.size, STEP, 1, name);
        if (status == PERIDOT_OK) b.size += fread(b.data + b.size, 1, b.capacity - b.size - 1, file);
    } while (status == PERIDOT_OK && b.size + 1 == b.capacity && b.size <= most);
    if (status == PERIDOT_OK && ferror(file)) status = fail_read(name);
    if (status == PERIDOT_OK && b.size > most)
        status = pd_fail(PERIDOT_ERROR_IO, "%s: more than the %zu MiB that are read", name, most >> 20);
    if (status == PERIDOT_OK) status = pd_buffer_end(&b);
    if (status == PERIDOT_OK) *out = b.data, *size = b.size;
    else pd_buffer_free(&b);
    return status;
}

peridot_status cmd_read_all(char **out, size_t *size, FILE *file, const char *name)
{
    return cmd_read_most(out, size, file, name, CMD_TEXT_MAX);
}

peridot_status cmd_read_file(char **out, size_t *size, const char *path)
{
    *out = NULL, *size = 0;
    FILE *file = fopen(path, "rb");
    if (!file) return fail_read(path);
    peridot_status status = cmd_read_all(out, size, file, path);
    fclose(file);
    return status;
}

/* ---- base64 ---- */

static int digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* The character at *i, "%2B" as URLs have it; *i is then that of its end. */
static char text_take(size_t *i, const char *text, size_t size)
{
    if (text[*i] != '%' || size - *i < 3) return text[*i];
    const char hex[] = {text[*i + 1], text[*i + 2], 0};
    if (strspn(hex, "0123456789abcdefABCDEF") < 2) return text[*i];
    *i += 2;
    return (char)strtoul(hex, NULL, 16);
}

bool cmd_base64_decode(unsigned char *out, size_t *n_out, const char *text, size_t size)
{
    size_t n = 0, n_pad = 0;
    uint32_t bits = 0;
    *n_out = 0;
    for (size_t i = 0; i < size; i++) {
        const char c = text_take(&i, text, size);
        int value = digit((unsigned char)c);
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
        n_pad += c == '=';
        if (c == '=') continue;
        if (value < 0 || n_pad) return false;
        bits = bits << 6 | (uint32_t)value;
        if (n++ % 4) out[(*n_out)++] = (unsigned char)(bits >> (6 - 2 * ((n - 1) % 4)));
    }
    if (n % 4 == 1 || n_pad > 2 || (n_pad && (n + n_pad) % 4)) return false;
    return n % 4 == 0 || (bits & ((1u << 2 * (4 - n % 4)) - 1)) == 0;
}

char *cmd_base64_encode(char *out, const void *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16;
        if (i + 1 < size) bits |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < size) bits |= bytes[i + 2];
        *out++ = digits[bits >> 18];
        *out++ = digits[bits >> 12 & 63];
        *out++ = i + 1 < size ? digits[bits >> 6 & 63] : '=';
        *out++ = i + 2 < size ? digits[bits & 63] : '=';
    }
    *out = 0;
    return out;
}
