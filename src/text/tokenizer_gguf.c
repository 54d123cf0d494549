/* A tokenizer as the keys tokenizer.* of a GGUF file: the inverse of pieces_gguf.c. */
#include "text/tokenizer.h"

#include "base/num.h"
#include "format/gguf_write.h"
#include "text/byte_level.h"
#include "text/pre.h"
#include "text/scores.h"
#include "text/tokenizer_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name

/* Strings in one buffer: it moves while it grows, so that pointers into it are made last. */
struct list {
    struct pd_text_buffer text;
    struct pd_string *strings;
    uint32_t n;
};

static peridot_status list_alloc(struct list *l, uint32_t n)
{
    *l = (struct list){.strings = calloc(n ? n : 1, sizeof *l->strings)};
    return l->strings ? PERIDOT_OK : pd_fail_alloc(n * sizeof *l->strings, "list of tokens");
}

static void list_free(struct list *l)
{
    free(l->text.data);
    free(l->strings);
}

/* What was appended to the text since the last string is the next one. */
static void end_string(struct list *l, size_t begin) { l->strings[l->n++].size = l->text.size - begin; }

static void add_list(struct pd_gguf_writer *w, const char *key, struct list *l)
{
    size_t offset = 0;
    for (uint32_t i = 0; i < l->n; offset += l->strings[i++].size) l->strings[i].data = l->text.data + offset;
    pd_gguf_writer_add_strings(w, key, l->n, l->strings);
}

/* ---- tokens ---- */

static peridot_status append_piece(struct pd_text_buffer *out, const struct pd_pieces *p, uint32_t id)
{
    const char *text = pd_pieces_text(p, id);
    const struct pd_piece *piece = &p->piece[id];
    bool bytes = p->algorithm == PD_ALGORITHM_BYTE_MERGES;
    if (bytes && piece->type == PD_PIECE_NORMAL) return pd_byte_level_write(out, text, piece->size);
    /* User-defined pieces are matched before spaces are escaped, so files hold them with spaces. */
    if (!bytes && piece->type == PD_PIECE_USER) return pd_text_append_unescaped(out, text, piece->size);
    return pd_text_append(out, text, piece->size);
}

static peridot_status append_token(struct pd_text_buffer *out, const struct pd_pieces *p, uint32_t id)
{
    char pad[24];
    if (id < p->n) return append_piece(out, p, id);
    return pd_text_append(out, pad, (size_t)snprintf(pad, sizeof pad, "[PAD%u]", (unsigned)id));
}

static peridot_status add_tokens(struct pd_gguf_writer *w, const struct pd_pieces *p, uint32_t n)
{
    struct list tokens;
    peridot_status status = list_alloc(&tokens, n);
    for (uint32_t i = 0; i < n && status == PERIDOT_OK; i++) {
        size_t begin = tokens.text.size;
        status = append_token(&tokens.text, p, i);
        if (status == PERIDOT_OK) end_string(&tokens, begin);
    }
    if (status == PERIDOT_OK) add_list(w, KEY("tokens"), &tokens);
    list_free(&tokens);
    return status;
}

static peridot_status add_scores(struct pd_gguf_writer *w, const struct pd_pieces *p, uint32_t n, bool from_merges)
{
    float *scores = malloc((size_t)pd_max(n, p->n) * sizeof *scores);
    if (!scores) return pd_fail_alloc(n * sizeof *scores, "list of tokens");
    for (uint32_t i = 0; i < n; i++) scores[i] = i < p->n ? p->piece[i].score : -10000;
    peridot_status status = from_merges ? pd_scores_from_merges(scores, p) : PERIDOT_OK;
    pd_gguf_writer_add_array(w, KEY("scores"), PD_META_FLOAT32, n, scores);
    free(scores);
    return status;
}

static peridot_status add_types(struct pd_gguf_writer *w, const struct pd_pieces *p, uint32_t n)
{
    int32_t *types = malloc(n * sizeof *types);
    if (!types) return pd_fail_alloc(n * sizeof *types, "list of tokens");
    for (uint32_t i = 0; i < n; i++) types[i] = i < p->n ? p->piece[i].type : PD_PIECE_UNUSED;
    pd_gguf_writer_add_array(w, KEY("token_type"), PD_META_INT32, n, types);
    free(types);
    return PERIDOT_OK;
}

/* Halves keep U+2581: a space parts them. */
static peridot_status append_half(struct pd_text_buffer *out, const struct pd_pieces *p, uint32_t id)
{
    if (p->algorithm == PD_ALGORITHM_BYTE_MERGES) return append_piece(out, p, id);
    return pd_text_append(out, pd_pieces_text(p, id), p->piece[id].size);
}

static peridot_status append_merge(struct pd_text_buffer *out, const struct pd_pieces *p, const struct pd_merge *m)
{
    PD_TRY(append_half(out, p, m->left));
    PD_TRY(pd_text_append(out, " ", 1));
    return append_half(out, p, m->right);
}

static peridot_status add_merges(struct pd_gguf_writer *w, const struct pd_pieces *p)
{
    struct list merges;
    peridot_status status = list_alloc(&merges, p->n_merges);
    for (uint32_t i = 0; i < p->n_merges && status == PERIDOT_OK; i++) {
        size_t begin = merges.text.size;
        status = append_merge(&merges.text, p, &p->merges[i]);
        if (status == PERIDOT_OK) end_string(&merges, begin);
    }
    if (status == PERIDOT_OK) add_list(w, KEY("merges"), &merges);
    list_free(&merges);
    return status;
}

/* ---- special ids ---- */

static void add_id(struct pd_gguf_writer *w, const char *key, int64_t id)
{
    if (id >= 0) pd_gguf_writer_add_u32(w, key, (uint32_t)id);
}

/* Keys for what the vocabulary has under usual names. */
static void add_named_ids(struct pd_gguf_writer *w, const struct pd_tokenizer *t)
{
    static const struct { const char *key, *name; } known[] = {
        {KEY("eot_token_id"), "<end_of_turn>"}, {KEY("eot_token_id"), "<|eot_id|>"},
        {KEY("eot_token_id"), "<|im_end|>"}, {KEY("eot_token_id"), "<turn|>"}, {KEY("eot_token_id"), "\u2581<EOT>"},
        {KEY("eom_token_id"), "<|eom_id|>"}, {KEY("eom_token_id"), "<|tool_response>"},
        {KEY("padding_token_id"), "<pad>"}, {KEY("padding_token_id"), "<|finetune_right_pad_id|>"},
        {KEY("padding_token_id"), "<|endoftext|>"},
        {KEY("fim_sep_token_id"), "<|file_separator|>"}, {KEY("fim_sep_token_id"), "<|file_sep|>"},
        {KEY("fim_sep_token_id"), "<file_sep>"},
    };
    const char *last = "";
    for (size_t i = 0; i < PD_COUNT(known); i++) {
        int32_t id = strcmp(last, known[i].key) ? pd_special_find(&t->special, &t->pieces, known[i].name) : -1;
        add_id(w, known[i].key, id);
        if (id >= 0) last = known[i].key;
    }
}

static peridot_status add_suppressed(struct pd_gguf_writer *w, const struct pd_pieces *p)
{
    uint32_t n = 0;
    if (p->n_suppressed == 0) return PERIDOT_OK;
    int32_t *ids = malloc(p->n_suppressed * sizeof *ids);
    if (!ids) return pd_fail_alloc(p->n_suppressed * sizeof *ids, "list of tokens");
    for (uint32_t i = 0; i < p->n; i++)
        if (p->piece[i].suppressed) ids[n++] = (int32_t)i;
    pd_gguf_writer_add_array(w, KEY("suppress_tokens"), PD_META_INT32, n, ids);
    free(ids);
    return PERIDOT_OK;
}

static void add_ids(struct pd_gguf_writer *w, const struct pd_tokenizer *t)
{
    const struct pd_pieces *p = &t->pieces;
    add_id(w, KEY("bos_token_id"), p->bos);
    add_id(w, KEY("eos_token_id"), p->end >= 0 ? p->end : p->eos);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->piece[i].type == PD_PIECE_UNKNOWN) add_id(w, KEY("unknown_token_id"), i);
    add_named_ids(w, t);
    add_id(w, KEY("fim_pre_token_id"), t->infill[PD_INFILL_PREFIX]);
    add_id(w, KEY("fim_suf_token_id"), t->infill[PD_INFILL_SUFFIX]);
    add_id(w, KEY("fim_mid_token_id"), t->infill[PD_INFILL_MIDDLE]);
    pd_gguf_writer_add_bool(w, KEY("add_bos_token"), p->bos >= 0 && !p->no_bos);
    pd_gguf_writer_add_bool(w, KEY("add_eos_token"), p->end >= 0);
}

/* ---- all ---- */

/* GGUF knows patterns by name only. */
static const char *pattern_name(const struct pd_pieces *p)
{
    return p->algorithm == PD_ALGORITHM_BYTE_MERGES ? pd_pre_name(p) : "default";
}

static peridot_status check_expressible(const struct pd_pieces *p)
{
    const char *what = p->algorithm != PD_ALGORITHM_BPE && !pd_pieces_by_merges(p) ? "another algorithm than BPE"
                     : p->remove_spaces ? "the removal of extra spaces"
                     : !pattern_name(p) ? "a pattern of words that has no name"
                     : p->algorithm == PD_ALGORITHM_CHAR_MERGES && p->whole_words ? "\"ignore_merges\"" : NULL;
    if (!what) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "its tokenizer has %s, which GGUF cannot express", what);
}

/* Programs expect merges under this name alone; other merges of characters are as well said by the scores. */
static bool is_gemma4(const struct pd_tokenizer *t)
{
    return t->pieces.algorithm == PD_ALGORITHM_CHAR_MERGES && pd_special_find(&t->special, &t->pieces, "<|turn>") >= 0;
}

peridot_status pd_tokenizer_add_gguf(struct pd_gguf_writer *w, const struct pd_tokenizer *t, uint32_t n_tokens)
{
    const struct pd_pieces *p = &t->pieces;
    bool bytes = p->algorithm == PD_ALGORITHM_BYTE_MERGES, gemma4 = is_gemma4(t);
    PD_TRY(check_expressible(p));
    pd_gguf_writer_add_string(w, KEY("model"), bytes ? "gpt2" : gemma4 ? "gemma4" : "llama");
    pd_gguf_writer_add_string(w, KEY("pre"), pattern_name(p));
    PD_TRY(add_tokens(w, p, n_tokens));
    if (!bytes) PD_TRY(add_scores(w, p, n_tokens, p->algorithm == PD_ALGORITHM_CHAR_MERGES && !gemma4));
    PD_TRY(add_types(w, p, n_tokens));
    if (bytes || gemma4) PD_TRY(add_merges(w, p));
    add_ids(w, t);
    PD_TRY(add_suppressed(w, p));
    pd_gguf_writer_add_bool(w, KEY("add_space_prefix"), p->dummy_prefix);
    if (p->dummy_prefix && !p->prefix_each)   /* keys of our own */
        pd_gguf_writer_add_bool(w, KEY("add_space_prefix_each"), false);
    if (p->dummy_prefix && p->prefix_unless_space)
        pd_gguf_writer_add_bool(w, KEY("add_space_prefix_unless_space"), true);
    if (t->jinja.data) pd_gguf_writer_add_string(w, "tokenizer.chat_template", t->jinja.data);
    return PERIDOT_OK;
}
