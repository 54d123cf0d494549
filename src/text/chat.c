#include "text/chat.h"

#include "base/num.h"

#include <string.h>

static const struct pd_chat chats[] = {
    {
        .name = "gemma",
        .mark = "<start_of_turn>",
        .stop = "<end_of_turn>",
        .parts = {
            {PD_CHAT_PIECE, "<start_of_turn>"}, {PD_CHAT_TEXT, "user\n"}, {PD_CHAT_USER, NULL},
            {PD_CHAT_PIECE, "<end_of_turn>"}, {PD_CHAT_TEXT, "\n"},
            {PD_CHAT_PIECE, "<start_of_turn>"}, {PD_CHAT_TEXT, "model\n"},
        },
    },
};

static bool contains(const char *text, size_t size, const char *what)
{
    size_t n = strlen(what);
    for (size_t i = 0; n <= size && i <= size - n; i++)
        if (memcmp(text + i, what, n) == 0) return true;
    return false;
}

static bool fits(const struct pd_chat *chat, const struct pd_special *s, const struct pd_pieces *p)
{
    for (const struct pd_chat_part *part = chat->parts; part->kind != PD_CHAT_END; part++)
        if (part->kind == PD_CHAT_PIECE && pd_special_find(s, p, part->text) < 0) return false;
    return true;
}

const struct pd_chat *pd_chat_by_template(const char *jinja, size_t size, const struct pd_special *s,
                                          const struct pd_pieces *p)
{
    for (size_t i = 0; i < PD_COUNT(chats); i++)
        if (contains(jinja, size, chats[i].mark) && fits(&chats[i], s, p)) return &chats[i];
    return NULL;
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

const struct pd_chat *pd_chat_by_name(const char *name, size_t size, const struct pd_special *s, const struct pd_pieces *p)
{
    if (!has_word(name, size, "it") && !has_word(name, size, "instruct")) return NULL;
    for (size_t i = 0; i < PD_COUNT(chats); i++)
        if (fits(&chats[i], s, p)) return &chats[i];
    return NULL;
}

void pd_chat_mark_stops(struct pd_pieces *p, const struct pd_special *s)
{
    for (size_t i = 0; i < PD_COUNT(chats); i++) pd_pieces_mark_stop(p, pd_special_find(s, p, chats[i].stop));
}
