/* JSON: strings for results that are written line by line, and whole documents. */
#include "base.h"

#include "peridot_tools.h"

#include <stdlib.h>

/* What a terminal must not see is in the first plane. */
static bool is_control(const char *text, size_t size)
{
    char shown[16];
    return peridot_printable(shown, sizeof shown, text, size) != size;
}

static unsigned json_code_of(const char *text, size_t size)
{
    const unsigned char *c = (const unsigned char *)text;
    if (size == 1) return c[0];
    if (size == 2) return (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
    return (c[0] & 0xfu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
}

void cmd_json_string(FILE *file, const char *text, size_t size)
{
    fputc('"', file);
    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        unsigned char c = (unsigned char)text[i];
        n = peridot_utf8_size(text + i, size - i);
        if (n == 0) fputs("\\ufffd", file);
        else if (c == '"' || c == '\\') fprintf(file, "\\%c", c);
        else if (is_control(text + i, n)) fprintf(file, "\\u%04x", json_code_of(text + i, n));
        else fwrite(text + i, 1, n, file);
    }
    fputc('"', file);
}

/* ---- documents ---- */

static _Thread_local bool incomplete;

void cmd_json_fail(void) { incomplete = true; }

static void *watched(void *memory)
{
    if (!memory) cmd_json_fail();
    return memory;
}

static void *allocate(void *user, size_t size)
{
    (void)user;
    return watched(malloc(size));
}

static void *resize(void *user, void *memory, size_t old_size, size_t size)
{
    (void)user, (void)old_size;
    return watched(realloc(memory, size));
}

static void give(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static const yyjson_alc allocator = {allocate, resize, give, NULL};

yyjson_mut_doc *cmd_json_new(void)
{
    incomplete = false;
    return yyjson_mut_doc_new(&allocator);
}

char *cmd_json_end(yyjson_mut_doc *doc, yyjson_write_flag flags, size_t *size)
{
    char *text = incomplete ? NULL : yyjson_mut_write_opts(doc, flags, &allocator, size, NULL);
    yyjson_mut_doc_free(doc);
    return text;
}

peridot_status cmd_json_print(yyjson_mut_doc *doc, const char *what)
{
    char *text = cmd_json_end(doc, YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
    if (!text) return pd_fail(PERIDOT_ERROR_MEMORY, "out of memory for %s as JSON", what);
    puts(text);
    free(text);
    return PERIDOT_OK;
}
