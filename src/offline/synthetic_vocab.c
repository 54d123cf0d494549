/* A made-up vocabulary of the right size for a synthetic model: control tokens and turn markers at their real ids, 256
 * bytes, the printable ASCII characters, and then strings of letters, with and without a space before them, shortest
 * first. sentencepiece splits any text with it. */
#include "offline/offline_.h"

#include "base/base.h"

#include <assert.h>
#include <stdio.h>

#define SPACE "\xe2\x96\x81"   /* U+2581, sentencepiece's space */

static bool full(const struct pd_synthetic_vocab *v, uint32_t limit) { return v->n >= limit || v->failed; }

/* Normal pieces have the score of their rank: sentencepiece merges the pair with the highest first. */
static void set_token(struct pd_synthetic_vocab *v, uint32_t id, const char *text, enum pd_token_type type)
{
    char *copy = pd_arena_string(&v->arena, text, strlen(text));
    v->failed = v->failed || !copy;
    v->tokens[id] = (struct pd_string){copy, strlen(text)};
    v->scores[id] = type == PD_TOKEN_NORMAL ? -(float)id : 0;
    v->types[id] = type;
}

static void add_token(struct pd_synthetic_vocab *v, const char *text, enum pd_token_type type)
{
    assert(v->n < v->capacity);
    set_token(v, v->n++, text, type);
}

static void add_numbered(struct pd_synthetic_vocab *v, const char *prefix, uint32_t limit)
{
    for (char text[32]; !full(v, limit);) {
        snprintf(text, sizeof text, "%s%u>", prefix, (unsigned)v->n);
        add_token(v, text, PD_TOKEN_UNUSED);
    }
}

/* What Gemma 4's published vocabulary has for control, as far as it reaches. */
static const struct { uint32_t id; const char *text; } gemma4_control[] = {
    {4, "<mask>"}, {46, "<|tool>"}, {47, "<tool|>"}, {48, "<|tool_call>"}, {49, "<tool_call|>"},
    {50, "<|tool_response>"}, {51, "<tool_response|>"}, {52, "<|\"|>"}, {98, "<|think|>"}, {100, "<|channel>"},
    {101, "<channel|>"}, {105, "<|turn>"}, {106, "<turn|>"}, {255999, "<|image>"}, {256000, "<|audio>"},
    {258880, "<|image|>"}, {258881, "<|audio|>"}, {258882, "<image|>"}, {258883, "<audio|>"}, {258884, "<|video|>"},
};

/* In the places of what is there: words whose pieces they were are split further. */
static void set_gemma4_control(struct pd_synthetic_vocab *v)
{
    for (size_t i = 0; i < PD_COUNT(gemma4_control) && gemma4_control[i].id < v->n; i++)
        set_token(v, gemma4_control[i].id, gemma4_control[i].text, PD_TOKEN_CONTROL);
}

static void add_control(struct pd_synthetic_vocab *v, const struct pd_family_traits *family)
{
    if (!family->start_of_turn) {   /* as in Llama 2, whose tokenizer is sentencepiece too */
        add_token(v, "<unk>", PD_TOKEN_UNKNOWN);
        add_token(v, "<s>", PD_TOKEN_CONTROL);
        add_token(v, "</s>", PD_TOKEN_CONTROL);
        v->bos = 1;
        v->eos = 2;
        return;
    }
    add_token(v, "<pad>", PD_TOKEN_CONTROL);
    add_token(v, "<eos>", PD_TOKEN_CONTROL);
    add_token(v, "<bos>", PD_TOKEN_CONTROL);
    add_token(v, "<unk>", PD_TOKEN_UNKNOWN);
    add_numbered(v, "<unused", family->start_of_turn);
    add_token(v, "<start_of_turn>", PD_TOKEN_CONTROL);
    add_token(v, "<end_of_turn>", PD_TOKEN_CONTROL);
    add_token(v, "\n", PD_TOKEN_USER_DEFINED);
    v->eos = 1;
    v->bos = 2;
    v->unknown = 3;
    v->end_of_turn = v->n - 2;
    v->has_pad = true;
}

static void add_bytes_and_characters(struct pd_synthetic_vocab *v)
{
    char text[8];
    for (unsigned b = 0; b < 256; b++) {
        snprintf(text, sizeof text, "<0x%02X>", b);
        add_token(v, text, PD_TOKEN_BYTE);
    }
    add_token(v, SPACE, PD_TOKEN_NORMAL);
    for (char c = '!'; c <= '~'; c++) {
        snprintf(text, sizeof text, "%c", c);
        add_token(v, text, PD_TOKEN_NORMAL);
    }
}

/* Every string of letters has its halves, which are shorter, before it: so merging can reach it. */
static void add_words(struct pd_synthetic_vocab *v, uint32_t limit)
{
    uint32_t n_words = 26;
    for (int length = 1; length <= 5 && !full(v, limit); length++, n_words *= 26) {
        for (uint32_t i = 0; i < n_words && !full(v, limit); i++) {
            char text[16] = SPACE;
            uint32_t rest = i;
            for (int k = length; k-- > 0; rest /= 26) text[3 + k] = (char)('a' + rest % 26);
            if (length > 1) add_token(v, text + 3, PD_TOKEN_NORMAL);   /* single letters are there already */
            if (!full(v, limit)) add_token(v, text, PD_TOKEN_NORMAL);
        }
    }
}

peridot_status pd_synthetic_vocab_create(struct pd_synthetic_vocab *out, const struct pd_shape *shape)
{
    *out = (struct pd_synthetic_vocab){.capacity = shape->n_tokens};
    out->tokens = pd_arena_array(&out->arena, out->capacity, sizeof *out->tokens);
    out->scores = pd_arena_array(&out->arena, out->capacity, sizeof *out->scores);
    out->types = pd_arena_array(&out->arena, out->capacity, sizeof *out->types);
    if (out->tokens && out->scores && out->types) {
        add_control(out, &pd_families[shape->family]);
        add_bytes_and_characters(out);
        add_words(out, shape->n_pieces);
        add_numbered(out, "<pad", shape->n_tokens);
        if (shape->family == PD_GEMMA4) set_gemma4_control(out);
        if (!out->failed) return PERIDOT_OK;
    }
    pd_synthetic_vocab_free(out);
    return pd_fail_alloc(shape->n_tokens * sizeof *out->tokens, "synthetic vocabulary");
}

void pd_synthetic_vocab_free(struct pd_synthetic_vocab *v)
{
    pd_arena_free(&v->arena);
    *v = (struct pd_synthetic_vocab){0};
}
