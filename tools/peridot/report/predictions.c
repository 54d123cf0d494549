/* What tests/reports/predictions.txt expects of a GPU, to be shown beside what was measured there. It is built in as
 * the text that it is: sections of a model, those of generation first, with a line for each GPU. */
#include "report_.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

extern const unsigned char report_predictions[];

/* Names of reports' models there. */
static const struct {
    const char *shape, *type, *title;
} models[] = {
    {"gemma3-1b", "q8_0", "Gemma 3 1B q8_0  "},
    {"gemma2-2b", "q4_k", "Gemma 2 2B q4_k  "},
};

static const char *find_title(const struct report *r)
{
    for (size_t i = 0; i < PD_COUNT(models); i++) {
        size_t size = strlen(models[i].shape);
        if (strncmp(r->model.name, models[i].shape, size) == 0 && strcmp(r->model.name + size, " random") == 0
            && strcmp(r->model.types, models[i].type) == 0) return models[i].title;
    }
    return NULL;
}

/* A device's name without the marks of registered names. */
static void strip(char *out, size_t size, const char *name)
{
    static const char *const marks[] = {"(R)", "(TM)", "(tm)"};
    size_t n = 0;
    while (*name && n + 1 < size) {
        size_t skip = 0;
        for (size_t i = 0; i < PD_COUNT(marks); i++)
            if (strncmp(name, marks[i], strlen(marks[i])) == 0) skip = strlen(marks[i]);
        if (skip) name += skip;
        else out[n++] = *name++;
    }
    out[n] = 0;
}

/* The words are there as they are: "RTX 4090" is neither that of a laptop nor a "RTX 4090 D". */
static bool has_words(const char *name, const char *words, size_t size)
{
    static const char *const after[] = {" (", " Graphics", " Series"};
    for (const char *at = name; (at = strchr(at, words[0])) != NULL; at++) {
        if ((at != name && at[-1] != ' ') || strncmp(at, words, size) != 0) continue;
        if (!at[size]) return true;
        for (size_t i = 0; i < PD_COUNT(after); i++)
            if (strncmp(at + size, after[i], strlen(after[i])) == 0) return true;
    }
    return false;
}

/* What a driver adds in parentheses has the code name: "(RADV PHOENIX)". */
static bool has_code(const char *name, const char *code, size_t size)
{
    for (const char *at = strchr(name, '('); at && *at; at++) {
        size_t i = 0;
        while (i < size && tolower((unsigned char)at[i]) == code[i]) i++;
        if (i == size && !isalnum((unsigned char)at[-1]) && !isalnum((unsigned char)at[i])) return true;
    }
    return false;
}

/* A line "phoenix  Ryzen 7 7840U (780M)   56.0 tokens/s predicted ...": 0 where it is not of this device. A processor's
 * GPU goes by the name in parentheses, which several may have, and by the code name. */
static double read_line(const char *line, const char *device)
{
    enum { NAME = 9, SPEED = 35 };   /* columns */
    const char *end = strstr(line, " tokens/s predicted"), *newline = strchr(line, '\n');
    if (!end || (newline && newline < end) || end - line < SPEED) return 0;
    const char *name = line + NAME, *number = end;
    while (number > name && strchr("0123456789.", number[-1])) number--;
    size_t size = (size_t)(number - name), code = strcspn(line, " ");
    while (size && name[size - 1] == ' ') size--;
    const char *inner = memchr(name, '(', size);
    bool is_it;
    if (inner) is_it = has_words(device, inner + 1, size - (size_t)(inner + 2 - name)) && has_code(device, line, code);
    else {
        static const char memory[] = " 16 GB";
        if (size > 6 && strncmp(name + size - 6, memory, 6) == 0) size -= 6;
        is_it = has_words(device, name, size);
    }
    return is_it ? strtod(number, NULL) : 0;
}

double report_predicted(const struct report *r, bool generation)
{
    const char *title = find_title(r), *at = (const char *)report_predictions;
    char device[REPORT_NAME];
    int section = generation ? 0 : 1;
    if (!title) return 0;
    strip(device, sizeof device, r->device.name);
    for (at = strstr(at, title); at && section > 0; section--) at = strstr(at + 1, title);
    for (at = at ? strchr(at, '\n') : NULL; at && at[1] && at[1] != '\n'; at = strchr(at + 1, '\n')) {
        double speed = read_line(at + 1, device);
        if (speed > 0) return speed;
    }
    return 0;
}
