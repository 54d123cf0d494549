#include "grammar/calls/calls.h"

#include "base/base.h"
#include "grammar/grammar.h"

#include <string.h>

/* DeepSeek's tokens have U+FF5C for "|" and U+2581 for "_". */
#define DEEPSEEK(name) "<\xef\xbd\x9ctool\xe2\x96\x81" name "\xef\xbd\x9c>"
#define DEEPSEEK_CALLS(what) DEEPSEEK("calls\xe2\x96\x81" what)
#define DEEPSEEK_CALL(what) DEEPSEEK("call\xe2\x96\x81" what)
#define DEEPSEEK_OUTPUTS(what) DEEPSEEK("outputs\xe2\x96\x81" what)
#define DEEPSEEK_OUTPUT(what) DEEPSEEK("output\xe2\x96\x81" what)

static const char *const texts[] = {"<tool_call>", "</tool_call>", "<|tool_call>", "<tool_call|>", "<|\"|>",
                                    "<start_function_call>", "<end_function_call>", "<escape>", "<|python_tag|>",
                                    "[TOOL_CALLS]", "[ARGS]", "<|tool_call|>", "<|/tool_call|>", "<function_calls>",
                                    "</function_calls>", "[CALL_ID]", DEEPSEEK_CALLS("begin"), DEEPSEEK_CALLS("end"),
                                    DEEPSEEK_CALL("begin"), DEEPSEEK_CALL("end"), DEEPSEEK("sep"), "<|start|>",
                                    "<|message|>", "<|eom|>", "<|channel|>", "<|constrain|>", "<|end|>"};

#define TAG {.begin = "<tool_call>\n", .end = "\n</tool_call>", .commits = true}
#define TAGGED_JSON NAME_AND_ARGUMENTS, .separator = "\n", .result = "<tool_response>\n\2\n</tool_response>"
#define NAME_AND_ARGUMENTS \
    .before = "{\t\"name\": \"", .middle = "\", \"arguments\": ", .after = "\t}"
#define NAME_AND_PARAMETERS \
    .before = "{\t\"name\": \"", .middle = "\", \"parameters\": ", .after = "\t}"
#define LLAMA3_TYPED "{\t\"type\": \"function\", \"name\": \""

#define ATEM_START "<|start|>assistant"
#define ATEM_TO PD_CALL_SPACE "to="
#define ATEM_END "\n</atem:function_calls>"
/* gpt-oss's: a message goes to a channel, and maybe to a function, which its headers name before the channel (as the
 * published template writes past calls) or after it. */
#define HARMONY_START "<|start|>assistant"
#define HARMONY_CALL "<|channel|>commentary" HARMONY_TO
#define HARMONY_TO PD_CALL_SPACE "to=functions."
#define HARMONY_JSON PD_CALL_SPACE PD_CALL_MAYBE "<|constrain|>" PD_CALL_MAYBE "json<|message|>"
#define HARMONY_CHANNEL "<|channel|>commentary" HARMONY_JSON
#define HARMONY_TEXT(channel) "<|channel|>" channel "<|message|>"
static const struct pd_tags atem = {"<atem:parameter name=\"", "\">", "</atem:parameter>", "</atem:invoke>"};
static const struct pd_tags qwen3_coder = {"<parameter=", ">\n", "\n</parameter>", "</function>"};

/* The first row that fits a template is taken. */
static const struct pd_call_format formats[] = {
    {
        /* Its template sorts the members of arguments by name, and writes no quotes around names at any depth. */
        .name = "gemma4", .templates = {"<|tool_call>"},
        .shapes = {{.begin = "<|tool_call>", .end = "<tool_call|>", .commits = true}},
        .before = "call:", .middle = "", .after = "", .separator = "", .delimiter = "<|\"|>",
        .result = "<|tool_response>response:\1{value:<|\"|>\2<|\"|>}<tool_response|>",
    },
    {
        .name = "functiongemma", .templates = {"<start_function_call>"},
        .shapes = {{.begin = "<start_function_call>", .end = "<end_function_call>", .commits = true}},
        .before = "call:", .middle = "", .after = "", .separator = "", .delimiter = "<escape>",
        .result = "<start_function_response>response:\1{value:<escape>\2<escape>}<end_function_response>",
    },
    {
        /* Of NousResearch's Hermes 2 Pro and later, Qwen 2.5 and Qwen 3. Qwen 2.5 Coder likes to leave the tag, or to
         * write a fence in its place. */
        .name = "hermes", .templates = {"<tool_call>", "\"arguments"},
        .shapes = {TAG, {.begin = "```json\n", .end = "\n```"}, {.begin = "", .end = "", .only_first = true}},
        TAGGED_JSON,
    },
    {
        /* Also Qwen 3.5's. */
        .name = "qwen3-coder", .templates = {"<function=", "<parameter="},
        .shapes = {{.begin = "<tool_call>\n<function=", .end = "\n</tool_call>", .commits = true}},
        .before = "", .middle = ">\n", .after = "", .tags = &qwen3_coder,
        .separator = "\n", .result = "<tool_response>\n\2\n</tool_response>",
    },
    {
        /* Llama 3.1, 3.2 and 3.3 are told to answer with this object and nothing else. Some put the type first, as the
         * tools have it, and several calls after each other with semicolons. */
        .name = "llama3", .templates = {"ipython", "\"parameters\": "},
        .shapes = {{.begin = "", .end = "", .between = "; ", .only_first = true},
                   {.begin = "", .end = "", .between = "; ", .before = LLAMA3_TYPED, .only_first = true},
                   {.begin = "<|python_tag|>", .end = "", .between = "; ", .commits = true},
                   {.begin = "<|python_tag|>", .end = "", .between = "; ", .before = LLAMA3_TYPED, .commits = true}},
        NAME_AND_PARAMETERS, .separator = "; ", .result = "\2",
    },
    {
        /* Of Mistral's models since 2025: each call by itself, with its id in those of mid-2025. */
        .name = "mistral", .templates = {"[TOOL_CALLS]", "[ARGS]"},
        .shapes = {{.begin = "[TOOL_CALLS]", .end = "", .commits = true}},
        .before = "", .middle = PD_CALL_ID "[ARGS]", .after = "", .id = {"[CALL_ID]", ""}, .separator = "",
        .result = "[TOOL_RESULTS]\2[/TOOL_RESULTS]",
    },
    {
        /* Of those before. Their templates write an "id" after the arguments; models write or leave it. */
        .name = "mistral-v3", .templates = {"[TOOL_CALLS]"},
        .shapes = {{.begin = "[TOOL_CALLS] [\t", .end = "\t]", .between = ", ", .commits = true}},
        .before = "{\t\"name\": \"", .middle = "\", \"arguments\": ", .after = PD_CALL_ID "\t}",
        .id = {", \"id\": \"", "\""}, .separator = "", .result = "[TOOL_RESULTS] {\"content\": \2}[/TOOL_RESULTS]",
    },
    {
        .name = "phi4", .templates = {"<|tool|>"}, .in_system = true,   /* Phi-4-mini's */
        .shapes = {{.begin = "<|tool_call|>\t[\t", .end = "\t]<|/tool_call|>", .between = ", ", .commits = true}},
        NAME_AND_ARGUMENTS, .separator = "", .result = "<|tool_response|>\2<|/tool_response|>",
    },
    {
        /* Granite 3's; some of its models write the tag of Hermes. */
        .name = "granite", .templates = {"<|tool_call|>"},
        .shapes = {{.begin = "<|tool_call|>\t[\t", .end = "\t]", .between = ", ", .commits = true},
                   {.begin = "<tool_call>\t[\t", .end = "\t]", .between = ", ", .commits = true}},
        NAME_AND_ARGUMENTS, .separator = "", .result = "\2",
    },
    {
        .name = "olmo", .templates = {"<function_calls>"},   /* OLMo 3's */
        .shapes = {{.begin = "<function_calls>\t", .end = "\t</function_calls>", .between = "\n", .commits = true}},
        .before = "", .middle = "", .after = "", .keywords = true, .separator = "", .result = "\2",
    },
    {
        /* DeepSeek R1's and of the models that were distilled from it. */
        .name = "deepseek", .templates = {DEEPSEEK_CALL("begin"), "```json"},
        .shapes = {{.begin = DEEPSEEK_CALLS("begin"), .end = DEEPSEEK_CALLS("end"), .between = "\n", .commits = true}},
        .before = DEEPSEEK_CALL("begin") "function" DEEPSEEK("sep"), .middle = "\n```json\n",
        .after = "\n```" DEEPSEEK_CALL("end"), .separator = "",
        .result = DEEPSEEK_OUTPUTS("begin") DEEPSEEK_OUTPUT("begin") "\2" DEEPSEEK_OUTPUT("end")
                  DEEPSEEK_OUTPUTS("end"),
    },
    {
        /* Functionary 3.1's, which is a form of Llama 3.1's. */
        .name = "functionary", .templates = {"<function=", "<|python_tag|>"},
        .shapes = {{.begin = "<function=", .end = "</function>", .commits = true}},
        .before = "", .middle = ">", .after = "", .separator = "", .result = "\2",
    },
    {
        /* Muse Glimmer's. The prompt has the beginning of the first header, but where that is a thought's. */
        .name = "atem", .templates = {"<atem:invoke", "<|message|>"},
        .shapes = {{.begin = ATEM_TO, .end = ATEM_END, .only_first = true, .commits = true},
                   {.begin = ATEM_START ATEM_TO, .end = ATEM_END, .only_first = true, .commits = true},
                   {.begin = "<|eom|>" ATEM_START ATEM_TO, .end = ATEM_END, .commits = true}},
        .before = "", .after = "", .tags = &atem,
        .middle = "<|message|><atem:function_calls>\n<atem:invoke" PD_CALL_SPACE "name=\"" PD_CALL_NAME "\">\n",
        .headers = {ATEM_TO "user<|message|>", ATEM_START ATEM_TO "user<|message|>"}, .ends = "<|eom|>",
        .separator = "<|eom|>" ATEM_START, .result = "<tool_output name=\"\1\">\n\2\n</tool_output>",
    },
    {
        /* What ends a call ends the turn. Text in the commentary is told before calls. */
        .name = "harmony", .templates = {"<|channel|>commentary", "<|call|>"},
        .shapes = {{.begin = HARMONY_CALL, .end = "", .only_first = true, .commits = true},
                   {.begin = HARMONY_START HARMONY_CALL, .end = "", .only_first = true, .commits = true},
                   {.begin = "<|end|>" HARMONY_START HARMONY_CALL, .end = "", .commits = true},
                   {.begin = HARMONY_TO, .end = "", .middle = HARMONY_CHANNEL, .only_first = true, .commits = true},
                   {.begin = HARMONY_START HARMONY_TO, .end = "", .middle = HARMONY_CHANNEL, .only_first = true,
                    .commits = true},
                   {.begin = "<|end|>" HARMONY_START HARMONY_TO, .end = "", .middle = HARMONY_CHANNEL,
                    .commits = true}},
        .before = "", .middle = HARMONY_JSON, .after = "",
        .headers = {HARMONY_TEXT("final"), HARMONY_START HARMONY_TEXT("final"), HARMONY_TEXT("commentary"),
                    HARMONY_START HARMONY_TEXT("commentary")}, .ends = "<|end|>",
        .thoughts = {"<|channel|>analysis", HARMONY_START "<|channel|>analysis"},
        .separator = "<|end|>" HARMONY_START, .result = "\2",
    },
    {
        /* The object is that of Google's guide to function calling with Gemma 3, which has no token for it: such models
         * like to write it in a fence. */
        .name = "gemma3",
        .shapes = {{.begin = "```json\n", .end = "\n```"},
                   {.begin = "```json\n[\t", .end = "\t]\n```", .between = ", "},
                   {.begin = "", .end = "", .only_first = true},
                   {.begin = "[\t", .end = "\t]", .between = ", ", .only_first = true}},
        NAME_AND_PARAMETERS, .separator = "\n", .result = "```tool_output\n\2\n```",
    },
    /* For templates that write no calls. */
    {.name = "generic", .shapes = {TAG}, TAGGED_JSON},
};

const char *pd_call_mark(size_t i) { return i < PD_COUNT(texts) ? texts[i] : NULL; }
bool pd_call_format_has_headers(const struct pd_call_format *f) { return f->headers[0] != NULL; }
const char *pd_call_format_name(const struct pd_call_format *f) { return f->name; }
const char *pd_call_format_name_at(size_t i) { return i < PD_COUNT(formats) ? formats[i].name : NULL; }

const struct pd_call_format *pd_call_format_find(const char *name)
{
    for (size_t i = 0; i < PD_COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

static bool has(unsigned marks, size_t i) { return marks >> i & 1; }

char pd_call_mark_byte(unsigned marks, size_t i)
{
    unsigned n = 0;
    for (size_t k = 0; k < i; k++) n += has(marks, k);
    return (char)(PD_CALL_MARK + n);
}

size_t pd_call_mark_index(unsigned marks, char byte)
{
    for (size_t i = 0; i < PD_COUNT(texts); i++)
        if (has(marks, i) && pd_call_mark_byte(marks, i) == byte) return i;
    return SIZE_MAX;
}

static bool formats_contains(const char *text, size_t size, const char *what)
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
            fits = fits && formats_contains(jinja, size, f->templates[k]);
        if (fits) return f;
    }
    return NULL;
}

size_t pd_call_literal(char out[PD_CALL_LITERAL], const char *literal, unsigned marks)
{
    size_t n = 0;
    while (*literal) {
        size_t i = 0;
        while (i < PD_COUNT(texts) && !(has(marks, i) && strncmp(literal, texts[i], strlen(texts[i])) == 0)) i++;
        out[n++] = i < PD_COUNT(texts) ? pd_call_mark_byte(marks, i) : *literal;
        literal += i < PD_COUNT(texts) ? strlen(texts[i]) : 1;
    }
    out[n] = 0;
    return n;
}

const char *pd_call_delimiter(const struct pd_call_format *f, unsigned marks)
{
    static const char bytes[PD_MAX_CALL_MARKS][2] = {"\xf6", "\xf7", "\xf8", "\xf9", "\xfa", "\xfb", "\xfc", "\xfd",
                                                     "\xfe", "\xff"};
    for (size_t i = 0; f->delimiter && i < PD_COUNT(texts); i++)
        if (has(marks, i) && strcmp(f->delimiter, texts[i]) == 0)
            return bytes[(uint8_t)pd_call_mark_byte(marks, i) - PD_CALL_MARK];
    return f->delimiter;
}
