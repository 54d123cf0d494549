#define _POSIX_C_SOURCE 200809L
#include "ids.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

peridot_status cmd_ids_text(char **text, size_t *size, const char **name, const char *given)
{
    bool standard = strcmp(given, "-") == 0;
    *name = given[0] == '@' ? given + 1 : standard ? "standard input" : "--tokens";
    if (given[0] == '@') return cmd_read_file(text, size, *name);
    if (standard) return cmd_read_all(text, size, stdin, *name);
    *size = strlen(given);
    *text = strdup(given);
    return *text ? PERIDOT_OK : cmd_fail_alloc(*size, *name);
}

static bool is_separator(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Reads the digits at text[*i] and steps over them. */
static bool parse_id(int32_t *out, const char *text, size_t size, size_t *i)
{
    size_t begin = *i;
    int64_t value = 0;
    for (; *i < size && text[*i] >= '0' && text[*i] <= '9'; ++*i) {
        value = 10 * value + (text[*i] - '0');
        if (value > INT32_MAX) return false;
    }
    *out = (int32_t)value;
    return *i > begin && (*i == size || is_separator(text[*i]));
}

static peridot_status refuse_word(const char *word, size_t size, size_t offset, const char *name)
{
    int n = 0;
    while ((size_t)n < size && n < 16 && !is_separator(word[n])) n++;
    return cmd_fail(PERIDOT_ERROR_ARGUMENT, "%s: %.*s at byte %zu is not a token id", name, n, word, offset);
}

peridot_status cmd_ids_parse(int32_t **out, size_t *n, const char *text, size_t size, const char *name)
{
    *out = NULL, *n = 0;
    int32_t *ids = malloc((size / 2 + 1) * sizeof *ids);   /* an id and its separator take two bytes at least */
    if (!ids) return cmd_fail_alloc(size, name);
    for (size_t i = 0; i < size;) {
        size_t begin = i;
        if (is_separator(text[i])) {
            i++;
        } else if (!parse_id(&ids[(*n)++], text, size, &i)) {
            free(ids);
            *n = 0;
            return refuse_word(text + begin, size - begin, begin, name);
        }
    }
    *out = ids;
    return PERIDOT_OK;
}

void cmd_ids_print(FILE *file, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) fprintf(file, "%s%" PRId32, i ? "," : "", ids[i]);
}
