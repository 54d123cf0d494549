/* The table of families' chat templates, and by what a file or a vocabulary is told to be of one; and the marks of
 * fill-in-the-middle in the order that a family wants. */
#include "text/text_.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define LLAMA3_HEADER(role) \
    {PD_CHAT_PIECE, "<|start_header_id|>"}, {PD_CHAT_TEXT, role}, {PD_CHAT_PIECE, "<|end_header_id|>"}
#define LLAMA3_TURN(role) \
    {LLAMA3_HEADER(role), {PD_CHAT_TEXT, "\n\n"}, {PD_CHAT_CONTENT, NULL}, {PD_CHAT_PIECE, "<|eot_id|>"}}
#define LLAMA3_TURNS {LLAMA3_TURN("system"), LLAMA3_TURN("user"), LLAMA3_TURN("assistant")}
#define LLAMA3_OPEN {LLAMA3_HEADER("assistant"), {PD_CHAT_TEXT, "\n\n"}}

#define GEMMA_TURN(role) \
    {{PD_CHAT_PIECE, "<start_of_turn>"}, {PD_CHAT_TEXT, role "\n"}, {PD_CHAT_CONTENT, NULL}, \
     {PD_CHAT_PIECE, "<end_of_turn>"}, {PD_CHAT_TEXT, "\n"}}

#define GEMMA4_TURN(role) \
    {{PD_CHAT_PIECE, "<|turn>"}, {PD_CHAT_TEXT, role "\n"}, {PD_CHAT_CONTENT, NULL}, \
     {PD_CHAT_PIECE, "<turn|>"}, {PD_CHAT_TEXT, "\n"}}

#define CHATML_TURN(role) \
    {{PD_CHAT_PIECE, "<|im_start|>"}, {PD_CHAT_TEXT, role "\n"}, {PD_CHAT_CONTENT, NULL}, \
     {PD_CHAT_PIECE, "<|im_end|>"}, {PD_CHAT_TEXT, "\n"}}

#define PHI_TURN(piece) {{PD_CHAT_PIECE, piece}, {PD_CHAT_CONTENT, NULL}, {PD_CHAT_PIECE, "<|end|>"}}

/* A row that asks for more comes before one that asks for less: the first that fits is taken. */
static const struct pd_chat chats[] = {
    {
        /* Gemma 2's own template refuses a system message; Gemma 3's puts it here. */
        .name = "gemma", .mark = "<start_of_turn>", .stops = {"<end_of_turn>"},
        .published = {0x12759b5ec75d794d, 0x2254fa2c6e5bb0d5},   /* Gemma 1 and 2; 3 */
        .system = PD_CHAT_SYSTEM_JOINED, .system_begin = "", .system_end = "\n\n",
        .begin = {{PD_CHAT_BOS, NULL}},
        .turns = {[PD_CHAT_USER] = GEMMA_TURN("user"), [PD_CHAT_ASSISTANT] = GEMMA_TURN("model")},
        .open = {{PD_CHAT_PIECE, "<start_of_turn>"}, {PD_CHAT_TEXT, "model\n"}},
    },
    {
        .name = "gemma4", .mark = "<|turn>", .stops = {"<turn|>", "<|tool_response>", "<eos>"},
        .published = {0x37011d1aadec74c8},   /* 31B's */
        .system = PD_CHAT_SYSTEM_TURN, .joins_replies = true,
        .begin = {{PD_CHAT_BOS, NULL}},
        .block = {{PD_CHAT_PIECE, "<|turn>"}, {PD_CHAT_TEXT, "system\n"}, {PD_CHAT_PIECE, "<|think|>"},
                  {PD_CHAT_TEXT, "\n"}, {PD_CHAT_CONTENT, NULL}, {PD_CHAT_PIECE, "<turn|>"}, {PD_CHAT_TEXT, "\n"}},
        .turns = {GEMMA4_TURN("system"), GEMMA4_TURN("user"), GEMMA4_TURN("model")},
        .open = {{PD_CHAT_PIECE, "<|turn>"}, {PD_CHAT_TEXT, "model\n"}},
        .thinks = {"<|channel>", "<channel|>"}, .no_thought_mark = "<|channel>thought\\n<channel|>",
        .no_thought = {{PD_CHAT_PIECE, "<|channel>"}, {PD_CHAT_TEXT, "thought\n"}, {PD_CHAT_PIECE, "<channel|>"}},
    },
    {
        /* Llama 3.1, 3.2 and 3.3. "Today" is the date that the published program falls back to when it is given none,
         * so that the same prompt is the same ids tomorrow; a program that asks the clock (3.2's) gets this one too. */
        .name = "llama3.1", .mark = "Cutting Knowledge Date", .needs = "<|eom_id|>",
        .published = {0xbc84bb691be872e6, 0x459c74d174943416},   /* Llama 3.1 and 3.3; 3.2 */
        .stops = {"<|eot_id|>", "<|eom_id|>"},
        .system = PD_CHAT_SYSTEM_BLOCK,
        .begin = {{PD_CHAT_BOS, NULL}},
        .block = {LLAMA3_HEADER("system"),
                  {PD_CHAT_TEXT, "\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"},
                  {PD_CHAT_CONTENT, NULL}, {PD_CHAT_PIECE, "<|eot_id|>"}},
        .turns = LLAMA3_TURNS, .open = LLAMA3_OPEN,
    },
    {
        .name = "llama3", .mark = "<|start_header_id|>", .stops = {"<|eot_id|>"},
        .published = {0x51aa7549e98c6661, 0x9c46296e0ceea937},   /* today's; the first, which always opens a turn */
        .system = PD_CHAT_SYSTEM_TURN,
        .begin = {{PD_CHAT_BOS, NULL}},
        .turns = LLAMA3_TURNS, .open = LLAMA3_OPEN,
    },
    {
        /* Its marks are plain text, which a user can write as well; bos and eos are not. */
        .name = "llama2", .mark = "<<SYS>>", .published = {0x1c8a276e356f4059},
        .system = PD_CHAT_SYSTEM_JOINED, .system_begin = "<<SYS>>\n", .system_end = "\n<</SYS>>\n\n",
        .trim_joined = true,
        .turns = {
            [PD_CHAT_USER] = {{PD_CHAT_BOS, NULL}, {PD_CHAT_TEXT, "[INST] "}, {PD_CHAT_CONTENT, NULL},
                              {PD_CHAT_TEXT, " [/INST]"}},
            [PD_CHAT_ASSISTANT] = {{PD_CHAT_TEXT, " "}, {PD_CHAT_CONTENT, NULL}, {PD_CHAT_TEXT, " "},
                                   {PD_CHAT_EOS, NULL}},
        },
    },
    {
        /* Phi 3 and Phi-4-mini. The line breaks that Phi 3's program writes are taken by the tokens before them. */
        .name = "phi3", .mark = "<|end|>", .stops = {"<|end|>", "<|endoftext|>"},
        .system = PD_CHAT_SYSTEM_TURN, .untrimmed = true,
        .turns = {PHI_TURN("<|system|>"), PHI_TURN("<|user|>"), PHI_TURN("<|assistant|>")},
        .open = {{PD_CHAT_PIECE, "<|assistant|>"}},
    },
    {
        /* Qwen's and others'. Qwen 2.5's own program begins with a system's turn where there is none. */
        .name = "chatml", .mark = "<|im_start|>", .stops = {"<|im_end|>", "<|endoftext|>"},
        .system = PD_CHAT_SYSTEM_TURN, .untrimmed = true,
        .turns = {CHATML_TURN("system"), CHATML_TURN("user"), CHATML_TURN("assistant")},
        .open = {{PD_CHAT_PIECE, "<|im_start|>"}, {PD_CHAT_TEXT, "assistant\n"}},
    },
    {
        /* No family's: the messages as they are, for base models. */
        .name = "plain", .system = PD_CHAT_SYSTEM_TURN, .untrimmed = true,
        .begin = {{PD_CHAT_BOS, NULL}},
        .turns = {{{PD_CHAT_CONTENT, NULL}}, {{PD_CHAT_CONTENT, NULL}}, {{PD_CHAT_CONTENT, NULL}}},
        .between = {{PD_CHAT_TEXT, "\n\n"}},
    },
};

const char *pd_chat_name(size_t i) { return i < PD_COUNT(chats) ? chats[i].name : NULL; }

static bool chat_contains(const char *text, size_t size, const char *what)
{
    size_t n = strlen(what);
    for (size_t i = 0; n <= size && i <= size - n; i++)
        if (memcmp(text + i, what, n) == 0) return true;
    return false;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The program from jinja[i] on: what stands for the character there, *n bytes. In quotes "\n" is a newline. */
static char next_quoted(const char *jinja, size_t size, size_t i, size_t *n)
{
    bool newline = jinja[i] == '\\' && i + 1 < size && jinja[i + 1] == 'n';
    *n = newline ? 2 : 1;
    return newline ? '\n' : jinja[i];
}

uint64_t pd_chat_hash(const char *jinja, size_t size)
{
    uint64_t hash = 0;
    char tag = 0, quote = 0;   /* '{', '%' or '#', and ' or ", while they are open */
    size_t n = 1;
    for (size_t i = 0; i < size; i += n) {
        char c = jinja[i], next = i + 1 < size ? jinja[i + 1] : 0;
        n = 1;
        if (quote) {
            c = next_quoted(jinja, size, i, &n);
            if (c == quote) quote = 0;
        } else if (!tag && c == '{' && (next == '{' || next == '%' || next == '#')) {
            tag = next;
        } else if (tag && c == (tag == '{' ? '}' : tag) && next == '}') {
            bool comment = tag == '#';
            tag = 0;
            n = 2;
            if (comment) continue;
        } else if (tag && tag != '#' && (c == '\'' || c == '"')) {
            quote = c;
        }
        if (tag != '#' && (quote || !is_space(c))) hash = pd_hash(hash, &c, 1);
    }
    return hash;
}

bool pd_chat_is_published(const struct pd_chat *chat, uint64_t hash)
{
    for (size_t i = 0; i < PD_COUNT(chat->published); i++)
        if (chat->published[i] && chat->published[i] == hash) return true;
    return false;
}

/* What suits base models does without a bos where they have none. */
static bool has_part(const struct pd_chat *chat, const struct pd_chat_part *part, const struct pd_special *s,
                     const struct pd_pieces *p)
{
    if (part->kind == PD_CHAT_BOS) return p->bos >= 0 || chat->untrimmed;
    if (part->kind == PD_CHAT_EOS) return p->eos >= 0;
    return part->kind != PD_CHAT_PIECE || pd_special_find(s, p, part->text) >= 0;
}

/* Every row names all its pieces in the user's and the assistant's turn. */
static bool chat_fits(const struct pd_chat *chat, const struct pd_special *s, const struct pd_pieces *p)
{
    if (chat->needs && pd_special_find(s, p, chat->needs) < 0) return false;
    if (!has_part(chat, &chat->begin[0], s, p)) return false;
    for (int role = PD_CHAT_USER; role < PD_CHAT_N_ROLES; role++)
        for (const struct pd_chat_part *part = chat->turns[role]; part->kind != PD_CHAT_END; part++)
            if (!has_part(chat, part, s, p)) return false;
    return true;
}

const struct pd_chat *pd_chat_by_template(const char *jinja, size_t size, const struct pd_special *s,
                                          const struct pd_pieces *p)
{
    for (size_t i = 0; i < PD_COUNT(chats); i++)
        if (chats[i].mark && chat_contains(jinja, size, chats[i].mark) && chat_fits(&chats[i], s, p)) return &chats[i];
    return NULL;
}

peridot_status pd_chat_get(const struct pd_chat **out, const char *name, const struct pd_special *s,
                           const struct pd_pieces *p)
{
    char names[256] = "";
    *out = NULL;
    for (size_t i = 0, at = 0; i < PD_COUNT(chats); i++) {
        at += (size_t)snprintf(names + at, sizeof names - at, "%s\"%s\"", i ? ", " : "", chats[i].name);
        if (strcmp(chats[i].name, name) == 0) *out = &chats[i];
    }
    if (!*out) return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no chat template \"%.40s\"; there are %s", name, names);
    if (chat_fits(*out, s, p)) return PERIDOT_OK;
    *out = NULL;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the vocabulary lacks control tokens of the chat template \"%s\"", name);
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }
static bool is_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }

/* "gemma-2-2b-it", "Gemma 3 1B It", "it" (general.finetune), "Llama-3.2-1B-Instruct": a word by itself, in any case. */
static bool has_word(const char *text, size_t size, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; n <= size && i <= size - n; i++) {
        size_t k = 0;
        while (k < n && lower(text[i + k]) == word[k]) k++;
        bool alone = (i == 0 || !is_letter(text[i - 1])) && (i + n == size || !is_letter(text[i + n]));
        if (k == n && alone) return true;
    }
    return false;
}

const struct pd_chat *pd_chat_by_name(const char *name, size_t size, const struct pd_special *s,
                                      const struct pd_pieces *p)
{
    if (!has_word(name, size, "it") && !has_word(name, size, "instruct")) return NULL;
    for (size_t i = 0; i < PD_COUNT(chats); i++)
        if (chats[i].stops[0] && chat_fits(&chats[i], s, p)) return &chats[i];
    return NULL;
}

/* Marks of thoughts that are no row's, and what ends the turn of such models. */
static const struct thoughts {
    const char *marks[PD_N_THOUGHT_MARKS], *stops[2];
    struct pd_thought_header header;
} thoughts[] = {
    {.marks = {"<think>", "</think>"}},       /* of Qwen's, DeepSeek's and others' models */
    {.marks = {"[THINK]", "[/THINK]"}},       /* of Mistral's */
    {.marks = {"<|message|>", "<|eom|>", "<|start|>"}, .stops = {"<|eot|>"}, .header = {"", " to=self"}},   /* Muse's */
    {.marks = {"<|message|>", "<|end|>", "<|start|>"}, .stops = {"<|return|>", "<|call|>"},   /* gpt-oss's */
     .header = {"<|channel|>", "analysis"}},
};

/* -1: the vocabulary lacks some. */
static void chat_find_marks(int32_t ids[PD_N_THOUGHT_MARKS], const char *const marks[PD_N_THOUGHT_MARKS],
                            const struct pd_special *s, const struct pd_pieces *p)
{
    bool all = true;
    for (int k = 0; k < PD_N_THOUGHT_MARKS; k++) {
        ids[k] = marks[k] ? pd_special_find(s, p, marks[k]) : -1;
        all = all && (!marks[k] || ids[k] >= 0);
    }
    for (int k = 0; k < PD_N_THOUGHT_MARKS && !all; k++) ids[k] = -1;
}

static void find_thoughts(int32_t ids[PD_N_THOUGHT_MARKS], const struct thoughts *t, const struct pd_special *s,
                          const struct pd_pieces *p)
{
    bool has_header = !t->header.piece || !*t->header.piece || pd_special_find(s, p, t->header.piece) >= 0;
    chat_find_marks(ids, t->marks, s, p);
    for (int k = 0; k < PD_N_THOUGHT_MARKS && !has_header; k++) ids[k] = -1;
}

void pd_chat_mark_stops(struct pd_pieces *p, const struct pd_special *s)
{
    int32_t ids[PD_N_THOUGHT_MARKS], within = -1;   /* what ends a message, and not the turn */
    for (size_t i = 0; i < PD_COUNT(thoughts); i++) {
        find_thoughts(ids, &thoughts[i], s, p);
        for (size_t k = 0; k < PD_COUNT(thoughts[i].stops) && thoughts[i].stops[k] && ids[0] >= 0; k++)
            pd_pieces_mark_stop(p, pd_special_find(s, p, thoughts[i].stops[k]));
        if (ids[PD_THOUGHT_START] >= 0) within = ids[PD_THOUGHT_END];
    }
    for (size_t i = 0; i < PD_COUNT(chats); i++)
        for (size_t k = 0; k < PD_COUNT(chats[i].stops) && chats[i].stops[k]; k++) {
            int32_t id = pd_special_find(s, p, chats[i].stops[k]);
            if (id != within) pd_pieces_mark_stop(p, id);
        }
}

bool pd_chat_has_no_thought(const struct pd_chat *chat, const char *jinja, size_t size)
{
    return chat->no_thought_mark && chat_contains(jinja, size, chat->no_thought_mark);
}

bool pd_chat_find_thoughts(int32_t ids[PD_N_THOUGHT_MARKS], struct pd_thought_header *header,
                           const struct pd_special *s, const struct pd_pieces *p)
{
    for (int k = 0; k < PD_N_THOUGHT_MARKS; k++) ids[k] = -1;
    for (size_t i = 0; i < PD_COUNT(chats); i++) {
        if (!chats[i].thinks[0] || !chat_fits(&chats[i], s, p)) continue;
        chat_find_marks(ids, chats[i].thinks, s, p);
        return true;
    }
    for (size_t i = 0; i < PD_COUNT(thoughts) && ids[0] < 0; i++) {
        find_thoughts(ids, &thoughts[i], s, p);
        *header = thoughts[i].header;
    }
    return false;
}

/* ---- infill ---- */

/* False, and all are -1, where one of them is. */
static bool is_complete(int32_t ids[PD_N_INFILL])
{
    for (int i = 0; i < PD_N_INFILL; i++) {
        if (ids[i] >= 0) continue;
        for (int k = 0; k < PD_N_INFILL; k++) ids[k] = -1;
        return false;
    }
    return true;
}

void pd_infill_find(int32_t ids[PD_N_INFILL], struct pd_pieces *p, const struct pd_special *s)
{
    const struct pd_infill_names *names;
    for (size_t i = 0; (names = pd_infill_names(i)) != NULL; i++) {
        for (int k = 0; k < PD_N_INFILL; k++) ids[k] = pd_special_find(s, p, names->marks[k]);
        if (!is_complete(ids)) continue;
        for (size_t k = 0; k < PD_COUNT(names->ends) && names->ends[k]; k++)
            pd_pieces_mark_stop(p, pd_special_find(s, p, names->ends[k]));
        return;
    }
}

/* ---- keys of GGUF ---- */

#define KEY(name) "tokenizer.ggml." name "_token_id"

/* A reserve is none: converters write CodeGemma's ids into the files of every Gemma 1. */
static peridot_status read_control(int32_t *out, const struct pd_pieces *p, const struct pd_checkpoint *c,
                                   const char *key)
{
    PD_TRY(pd_pieces_read_gguf_id(out, p, c, key));
    if (*out >= 0 && (p->piece[*out].type != PD_PIECE_CONTROL || pd_pieces_is_reserve(p, (uint32_t)*out))) *out = -1;
    return PERIDOT_OK;
}

peridot_status pd_infill_read_gguf(int32_t ids[PD_N_INFILL], struct pd_pieces *p, const struct pd_checkpoint *c)
{
    static const char *const marks[PD_N_INFILL][2] = {   /* and as they were called before */
        {KEY("fim_pre"), KEY("prefix")}, {KEY("fim_suf"), KEY("suffix")}, {KEY("fim_mid"), KEY("middle")}};
    static const char *const ends[] = {KEY("fim_sep"), KEY("fsep"), KEY("fim_pad"), KEY("fim_rep")};
    for (int i = 0; i < PD_N_INFILL; i++) {
        PD_TRY(read_control(&ids[i], p, c, marks[i][0]));
        if (ids[i] < 0) PD_TRY(read_control(&ids[i], p, c, marks[i][1]));
    }
    if (!is_complete(ids)) return PERIDOT_OK;
    for (size_t i = 0; i < PD_COUNT(ends); i++) {
        int32_t end;
        PD_TRY(read_control(&end, p, c, ends[i]));
        pd_pieces_mark_stop(p, end);
    }
    return PERIDOT_OK;
}
