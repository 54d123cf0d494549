/* The arrays tokenizer.ggml.* of a GGUF file to pieces. Converters lose some of what a sentencepiece model says: the
 * unknown piece is often marked as control, user-defined spaces come unescaped, and defaults depend on the family. Of a
 * byte-level vocabulary they keep the merges, but of the steps around it only a name. */
#include "text/text_.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name
#define LLAMA3_BOS "<|begin_of_text|>"

static bool has_string(const struct pd_checkpoint *c, const char *key, struct pd_string *out)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(c, key);
    return m && m->type == PD_META_STRING && pd_meta_string(out, m, 0);
}

static bool is(struct pd_string s, const char *name)
{
    return s.size == strlen(name) && memcmp(s.data, name, s.size) == 0;
}

static peridot_status find_array(const struct pd_meta **out, const struct pd_checkpoint *c, const char *key, uint64_t n)
{
    *out = pd_checkpoint_find_meta(c, key);
    if (!*out) return pd_fail(PERIDOT_ERROR_FORMAT, "%s is missing", key);
    if ((*out)->type != PD_META_ARRAY) return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not an array", key);
    if (n && (*out)->n != n)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s has %llu elements for %llu pieces", key, (unsigned long long)(*out)->n,
                       (unsigned long long)n);
    return PERIDOT_OK;
}

static peridot_status pieces_gguf_read_pieces(struct pd_pieces *out, const struct pd_checkpoint *c)
{
    const struct pd_meta *tokens, *scores = NULL, *types;
    PD_TRY(find_array(&tokens, c, KEY("tokens"), 0));
    if (!pd_pieces_by_merges(out)) PD_TRY(find_array(&scores, c, KEY("scores"), tokens->n));
    PD_TRY(find_array(&types, c, KEY("token_type"), tokens->n));
    for (uint64_t i = 0; i < tokens->n; i++) {
        struct pd_string text;
        double score = 0;
        int64_t type;
        if (!pd_meta_string(&text, tokens, i)) return pd_fail(PERIDOT_ERROR_FORMAT, KEY("tokens") " holds no strings");
        if (scores && !pd_meta_float(&score, scores, i))
            return pd_fail(PERIDOT_ERROR_FORMAT, KEY("scores") " holds no numbers");
        if (!pd_meta_int(&type, types, i)) return pd_fail(PERIDOT_ERROR_FORMAT, KEY("token_type") " holds no integers");
        PD_TRY(pd_pieces_add(out, text.data, text.size, score, type));
    }
    return PERIDOT_OK;
}

peridot_status pd_pieces_read_gguf_id(int32_t *out, const struct pd_pieces *p, const struct pd_checkpoint *c,
                                      const char *key)
{
    *out = -1;
    const struct pd_meta *m = pd_checkpoint_find_meta(c, key);
    if (!m) return PERIDOT_OK;
    int64_t id;
    if (m->type == PD_META_ARRAY || !pd_meta_int(&id, m, 0))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not an integer", key);
    if (id == -1 || id == UINT32_MAX) return PERIDOT_OK;
    if (id < 0 || id >= p->n)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s is %lld, but the vocabulary has %u pieces", key, (long long)id, p->n);
    *out = (int32_t)id;
    return PERIDOT_OK;
}

/* The key, else the first of three names that is a control piece. */
static peridot_status read_named_id(int32_t *out, const struct pd_pieces *p, const struct pd_checkpoint *c,
                                    const char *key, const char *const names[3])
{
    PD_TRY(pd_pieces_read_gguf_id(out, p, c, key));
    for (int i = 0; i < 3 && *out < 0; i++) *out = pd_pieces_find_control(p, names[i], strlen(names[i]));
    return PERIDOT_OK;
}

/* Converters mark <unk> as control when the tokenizer's configuration calls it special, and Phi 3's first ones marked
 * what pads the vocabulary as unknown. */
static peridot_status restore_unknown(struct pd_pieces *p, const struct pd_checkpoint *c)
{
    int32_t id;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) n += p->piece[i].type == PD_PIECE_UNKNOWN;
    if (n == 1) return PERIDOT_OK;
    PD_TRY(read_named_id(&id, p, c, KEY("unknown_token_id"), (const char *const[]){"<unk>", "<UNK>", "[UNK]"}));
    if (id < 0) return PERIDOT_OK;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->piece[i].type == PD_PIECE_UNKNOWN) p->piece[i].type = PD_PIECE_UNUSED;
    p->piece[id].type = PD_PIECE_UNKNOWN;
    return PERIDOT_OK;
}

static bool is_phi(const struct pd_checkpoint *c)
{
    struct pd_string family;
    return has_string(c, "general.architecture", &family) && is(family, "phi3");
}

/* Phi's files know no flags of tokens: those whose tokenizer.json has "rstrip". Some call </s> user-defined, which
 * sentencepiece knows no flag of either. */
static void restore_rstrip(struct pd_pieces *p, const struct pd_checkpoint *c)
{
    static const char *const names[] = {"</s>", "<|assistant|>", "<|end|>", "<|system|>", "<|user|>"};
    for (size_t i = 0; i < PD_COUNT(names) && is_phi(c); i++) {
        int32_t id = pd_pieces_find(p, names[i], strlen(names[i]));
        if (id < 0) continue;
        p->piece[id].rstrip = true;
        if (p->piece[id].type == PD_PIECE_USER) p->piece[id].type = PD_PIECE_CONTROL;
    }
}

/* Ids beyond the pieces are ignored, as those of stops are. */
static peridot_status read_suppressed(struct pd_pieces *out, const struct pd_checkpoint *c)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(c, KEY("suppress_tokens"));
    for (uint64_t i = 0; m && i < m->n; i++) {
        int64_t id;
        if (m->type != PD_META_ARRAY || !pd_meta_int(&id, m, i))
            return pd_fail(PERIDOT_ERROR_FORMAT, KEY("suppress_tokens") " is not an array of integers");
        pd_pieces_suppress(out, id);
    }
    return PERIDOT_OK;
}

static bool has_brackets(const char *text, size_t size)
{
    return size > 2 && ((text[0] == '<' && text[size - 1] == '>') || (text[0] == '[' && text[size - 1] == ']'));
}

/* Bytes, and how many there may be: to look at one takes a while, and files may name any. */
enum { MAX_MARKER = 64, MAX_TEMPLATE = 1 << 20, MOST_MARKERS = 128 };

static int by_text(const void *a, const void *b)
{
    const struct pd_string *s = a, *t = b;
    if (s->size != t->size) return s->size < t->size ? -1 : 1;
    return memcmp(s->data, t->data, s->size);
}

/* What is in brackets in a template, sorted; to be freed. */
static peridot_status find_bracketed(struct pd_string **out, size_t *n, struct pd_string jinja)
{
    size_t capacity = 0;
    *out = NULL;
    *n = 0;
    for (uint64_t i = 0; i < jinja.size && jinja.size <= MAX_TEMPLATE; i++) {
        char end = jinja.data[i] == '<' ? '>' : ']';
        if (jinja.data[i] != '<' && jinja.data[i] != '[') continue;
        for (uint64_t size = 3; size <= MAX_MARKER && i + size <= jinja.size; size++) {
            if (jinja.data[i + size - 1] != end) continue;
            PD_TRY(pd_array_reserve(out, &capacity, *n, 1, sizeof **out, "markers"));
            (*out)[(*n)++] = (struct pd_string){jinja.data + i, size};
        }
    }
    if (*n) qsort(*out, *n, sizeof **out, by_text);
    return PERIDOT_OK;
}

/* Text can become it by a merge: of two pieces, where the file lists none. */
static bool is_made(const struct pd_pieces *p, const bool *merged, uint32_t id)
{
    const char *text = pd_pieces_text(p, id);
    size_t size = p->piece[id].size;
    if (merged[id]) return true;
    for (size_t n = 1; n < size && !pd_pieces_by_merges(p); n++)
        if (pd_pieces_find(p, text, n) >= 0 && pd_pieces_find(p, text + n, size - n) >= 0) return true;
    return false;
}

/* Some published files call markers normal, Gemma 4's among them. They are known by their names, or by what uses them:
 * the chat template, and the keys of ids; and text could never become them. (Of a byte-level vocabulary, names that are
 * not in its spelling are unused by now.) */
static void restore(struct pd_pieces *p, const bool *merged, const struct pd_string *bracketed, size_t n)
{
    for (uint32_t i = 0, n_used = 0; i < p->n && n_used < MOST_MARKERS; i++) {
        struct pd_piece *piece = &p->piece[i];
        const struct pd_string text = {pd_pieces_text(p, i), piece->size};
        bool normal = piece->type == PD_PIECE_NORMAL;
        bool unspelt = piece->type == PD_PIECE_UNUSED && p->algorithm == PD_ALGORITHM_BYTE_MERGES;
        if (!(normal || unspelt) || text.size > MAX_MARKER || !has_brackets(text.data, text.size)) continue;
        bool used = piece->stop || p->bos == (int32_t)i || p->eos == (int32_t)i
            || (n && bsearch(&text, bracketed, n, sizeof text, by_text));
        if (!used && !(normal && pd_pieces_is_marker(p, i))) continue;
        if (!is_made(p, merged, i)) piece->type = PD_PIECE_CONTROL;
        n_used++;
    }
}

static peridot_status restore_markers(struct pd_pieces *p, const struct pd_checkpoint *c)
{
    struct pd_string jinja = {"", 0}, *bracketed;
    size_t n;
    bool *merged = calloc((size_t)p->n + 1, sizeof *merged);
    if (!merged) return pd_fail_alloc(p->n, "pieces");
    for (uint32_t i = 0; i < p->n_merges; i++) merged[p->merges[i].made] = true;
    has_string(c, "tokenizer.chat_template", &jinja);
    peridot_status status = find_bracketed(&bracketed, &n, jinja);
    if (status == PERIDOT_OK) restore(p, merged, bracketed, n);
    free(bracketed);
    free(merged);
    return status;
}

/* A flag; `missing` when the key is absent. */
static peridot_status read_flag(bool *out, const struct pd_checkpoint *c, const char *key, bool missing)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(c, key);
    *out = missing;
    if (!m || (m->type != PD_META_ARRAY && pd_meta_bool(out, m, 0))) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not a flag", key);
}

static peridot_status pieces_gguf_read_ids(struct pd_pieces *out, const struct pd_checkpoint *c)
{
    int32_t id;
    bool ends;
    if (out->algorithm != PD_ALGORITHM_BYTE_MERGES) PD_TRY(restore_unknown(out, c));
    PD_TRY(read_named_id(&out->bos, out, c, KEY("bos_token_id"), (const char *const[]){"<bos>", "<s>", LLAMA3_BOS}));
    PD_TRY(read_named_id(&out->eos, out, c, KEY("eos_token_id"),
                         (const char *const[]){"<eos>", "</s>", "<|end_of_text|>"}));
    PD_TRY(pd_pieces_read_gguf_id(&id, out, c, KEY("eot_token_id")));
    pd_pieces_mark_stop(out, id);
    PD_TRY(pd_pieces_read_gguf_id(&id, out, c, KEY("eom_token_id")));
    pd_pieces_mark_stop(out, id);
    PD_TRY(read_flag(&ends, c, KEY("add_eos_token"), false));
    if (ends) out->end = out->eos;
    restore_rstrip(out, c);
    return read_suppressed(out, c);
}

/* Gemma 4's scores are all the same, so that its merges count; files that Ollama makes tell it from "llama" by
 * tokenizer.ggml.pre alone. */
static peridot_status read_kind(struct pd_pieces *out, const struct pd_checkpoint *c)
{
    struct pd_string kind, pre;
    bool remove;
    if (!has_string(c, KEY("model"), &kind)) return pd_fail(PERIDOT_ERROR_FORMAT, "the file has no tokenizer");
    bool gemma4 = is(kind, "gemma4") || (is(kind, "llama") && has_string(c, KEY("pre"), &pre) && is(pre, "gemma4"));
    if (gemma4) out->algorithm = PD_ALGORITHM_CHAR_MERGES;
    else if (is(kind, "llama")) out->algorithm = PD_ALGORITHM_BPE;
    else if (is(kind, "gpt2")) out->algorithm = PD_ALGORITHM_BYTE_MERGES;
    else
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "tokenizer \"%.*s\" is not supported; \"llama\" (sentencepiece), \"gpt2\" (byte-level BPE) and "
                       "\"gemma4\" (merges of characters) are",
                       (int)pd_min(kind.size, 40), kind.data);
    PD_TRY(read_flag(&remove, c, KEY("remove_extra_whitespaces"), false));
    if (remove) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, KEY("remove_extra_whitespaces") " is not supported");
    return PERIDOT_OK;
}

static peridot_status read_prefix(struct pd_pieces *out, const struct pd_checkpoint *c)
{
    struct pd_string family = {0};
    /* Early Gemma files lack the key, and no Gemma model has the prefix. */
    bool gemma =
        has_string(c, "general.architecture", &family) && family.size >= 5 && memcmp(family.data, "gemma", 5) == 0;
    PD_TRY(read_flag(&out->dummy_prefix, c, KEY("add_space_prefix"), !gemma));
    out->strip_prefix = out->dummy_prefix;
    /* Nothing in other programs' files says that text after a control token has none, or that text has none that begins
     * with a space; ours say it of vocabularies whose configuration has "legacy": false. */
    PD_TRY(read_flag(&out->prefix_each, c, KEY("add_space_prefix_each"), true));
    return read_flag(&out->prefix_unless_space, c, KEY("add_space_prefix_unless_space"), false);
}

/* Gemma 4 begins with bos whatever the file says. */
static peridot_status read_bos(struct pd_pieces *out, const struct pd_checkpoint *c)
{
    bool bos;
    PD_TRY(read_flag(&bos, c, KEY("add_bos_token"), !out->no_bos));
    out->no_bos = !bos && out->algorithm != PD_ALGORITHM_CHAR_MERGES;
    return PERIDOT_OK;
}

/* ---- byte-level vocabularies ---- */

/* The steps by name. Files from before the key existed lack it: of them, Llama 3's are known by their
 * bos. */
static peridot_status read_pattern(struct pd_pieces *out, const struct pd_checkpoint *c)
{
    struct pd_string pre = {"default", 7};
    bool prefix;
    char known[1024];
    has_string(c, KEY("pre"), &pre);
    if (is(pre, "default")) {
        bool llama3 = pd_pieces_find(out, LLAMA3_BOS, strlen(LLAMA3_BOS)) >= 0;
        pre = llama3 ? (struct pd_string){"llama-bpe", 9} : (struct pd_string){"gpt-2", 5};
    }
    const struct pd_pre *row = pd_pre_find(pre.data, (size_t)pre.size);
    if (!row)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, KEY("pre") " \"%.*s\" is not supported (known: %s)",
                       (int)pd_min(pre.size, 40), pre.data, pd_pre_known(known, sizeof known));
    PD_TRY(read_flag(&prefix, c, KEY("add_space_prefix"), false));
    if (prefix) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, KEY("add_space_prefix") " is not supported for \"gpt2\"");
    out->no_bos = row->no_bos;
    out->whole_words = row->whole_words;
    out->nfc = row->nfc;
    for (size_t i = 0; i < PD_MAX_PATTERNS && row->patterns[i]; i++)
        PD_TRY(pd_pieces_add_pattern(out, row->patterns[i]));
    return PERIDOT_OK;
}

static peridot_status read_lines(struct pd_merge_reader *r, const struct pd_meta *merges)
{
    for (uint64_t i = 0; i < merges->n; i++) {
        struct pd_string line;
        if (!pd_meta_string(&line, merges, i)) return pd_fail(PERIDOT_ERROR_FORMAT, KEY("merges") " holds no strings");
        PD_TRY(pd_merges_add_line(r, line.data, line.size));
    }
    return PERIDOT_OK;
}

static peridot_status read_merges(struct pd_pieces *out, const struct pd_checkpoint *c)
{
    const struct pd_meta *merges;
    struct pd_merge_reader r;
    PD_TRY(find_array(&merges, c, KEY("merges"), 0));
    peridot_status status = pd_merges_begin(&r, out);
    if (status == PERIDOT_OK) status = read_lines(&r, merges);
    return pd_merges_end(&r, status);
}

peridot_status pd_pieces_read_gguf(struct pd_pieces *out, const struct pd_checkpoint *c)
{
    *out = (struct pd_pieces){.bos = -1, .eos = -1, .end = -1};
    PD_TRY(read_kind(out, c));
    PD_TRY(pieces_gguf_read_pieces(out, c));
    PD_TRY(pieces_gguf_read_ids(out, c));
    bool bytes = out->algorithm == PD_ALGORITHM_BYTE_MERGES;
    PD_TRY(bytes ? read_pattern(out, c) : read_prefix(out, c));
    PD_TRY(read_bos(out, c));
    if (pd_pieces_by_merges(out)) PD_TRY(read_merges(out, c));
    PD_TRY(restore_markers(out, c));
    return pd_pieces_check(out);
}
