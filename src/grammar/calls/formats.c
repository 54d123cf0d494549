#include "grammar/calls/format.h"

#include "base/num.h"

#include <string.h>

static const char *const marks[] = {"<|tool_call>", "<tool_call|>", "<|\"|>", "<start_function_call>",
                                    "<end_function_call>", "<escape>", "<|python_tag|>"};

/* A row whose templates contain more comes before one whose contain less. */
static const struct pd_call_format formats[] = {
    {
        /* Of NousResearch's Hermes 2 Pro and later, Qwen 2.5 and Qwen 3. */
        .name = "hermes", .templates = {"<tool_call>", "\"arguments"},
        .shapes = {{.begin = "<tool_call>\n", .end = "\n</tool_call>", .commits = true}},
        .before = "{\t\"name\": \"", .middle = "\", \"arguments\": ", .after = "\t}",
        .result = "<tool_response>\n\2\n</tool_response>",
    },
    {
        /* For templates that write no calls. */
        .name = "generic",
        .shapes = {{.begin = "<tool_call>\n", .end = "\n</tool_call>", .commits = true}},
        .before = "{\t\"name\": \"", .middle = "\", \"arguments\": ", .after = "\t}",
        .result = "<tool_response>\n\2\n</tool_response>",
    },
};

const char *pd_call_mark(size_t i) { return i < PD_COUNT(marks) ? marks[i] : NULL; }
const char *pd_call_format_name(const struct pd_call_format *f) { return f->name; }
const char *pd_call_format_name_at(size_t i) { return i < PD_COUNT(formats) ? formats[i].name : NULL; }

const struct pd_call_format *pd_call_format_find(const char *name)
{
    for (size_t i = 0; i < PD_COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

static bool contains(const char *text, size_t size, const char *what)
{
    size_t n = strlen(what);
    for (size_t i = 0; n <= size && i <= size - n; i++)
        if (memcmp(text + i, what, n) == 0) return true;
    return false;
}

const struct pd_call_format *pd_call_format_of_template(const char *jinja, size_t size)
{
    for (size_t i = 0; i < PD_COUNT(formats); i++) {
        const struct pd_call_format *f = &formats[i];
        bool fits = f->templates[0] != NULL;
        for (size_t k = 0; k < PD_COUNT(f->templates) && f->templates[k]; k++)
            fits = fits && contains(jinja, size, f->templates[k]);
        if (fits) return f;
    }
    return NULL;
}

size_t pd_call_literal(char out[PD_CALL_LITERAL], const char *literal, unsigned of_vocabulary)
{
    size_t n = 0;
    while (*literal) {
        size_t i = 0;
        while (i < PD_COUNT(marks) && !(of_vocabulary >> i & 1 && strncmp(literal, marks[i], strlen(marks[i])) == 0))
            i++;
        out[n++] = i < PD_COUNT(marks) ? (char)(PD_CALL_MARK + i) : *literal;
        literal += i < PD_COUNT(marks) ? strlen(marks[i]) : 1;
    }
    out[n] = 0;
    return n;
}
