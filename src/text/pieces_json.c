/* A tokenizer.json (Hugging Face's tokenizers) whose model is BPE to pieces: the vocabulary, the merges and the added
 * tokens. The steps around the model come last. */
#include "text/text_.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* One id while the pieces are gathered: the vocabulary is in any order, and added tokens say more of some of its
 * pieces. */
struct entry {
    const char *text;    /* NULL: not seen yet */
    size_t size;
    uint8_t type;
    bool lstrip, rstrip;
};

struct json {
    yyjson_val *model, *vocab, *added, *config;
    struct pd_json_steps steps;
    struct entry *entries;
    uint64_t n;           /* of ids: 0 .. n-1 */
};

/* ---- the model's settings ---- */

#define SHOWN(text) pd_utf8_shown((char[PD_SHOWN_SIZE]){0}, text, strlen(text))

static bool is_off(yyjson_val *v) { return !v || yyjson_is_null(v) || yyjson_is_false(v) || yyjson_equals_str(v, ""); }

static peridot_status check_model(const struct json *j)
{
    static const char *const unknown[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    yyjson_val *type = yyjson_obj_get(j->model, "type");
    if (!yyjson_is_obj(j->model) && yyjson_obj_get(j->config, "pattern"))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "this is Mistral's tekken.json, which is not supported; the model's tokenizer.json is");
    if (!yyjson_is_obj(j->model)) return pd_fail(PERIDOT_ERROR_FORMAT, "not a tokenizer.json: it has no \"model\"");
    if (type && !yyjson_equals_str(type, "BPE"))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model \"%s\" is not supported; \"BPE\" is",
                       yyjson_is_str(type) ? SHOWN(yyjson_get_str(type)) : "(no string)");
    for (size_t i = 0; i < PD_COUNT(unknown); i++)
        if (!is_off(yyjson_obj_get(j->model, unknown[i])))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model's \"%s\" is not supported", unknown[i]);
    if (!yyjson_is_obj(j->vocab) || !yyjson_is_arr(yyjson_obj_get(j->model, "merges")))
        return pd_fail(PERIDOT_ERROR_FORMAT, "the model has no vocab object and merges array");
    return PERIDOT_OK;
}

/* ---- ids ---- */

/* Ids are 0 .. n-1 when each of n different ones is below n. Added tokens are in the vocabulary or follow it. */
static uint64_t count_ids(const struct json *j)
{
    uint64_t n = yyjson_obj_size(j->vocab), most = n + yyjson_arr_size(j->added);
    yyjson_val *token;
    size_t i, max;
    yyjson_arr_foreach(j->added, i, max, token) {
        yyjson_val *id = yyjson_obj_get(token, "id");
        if (yyjson_is_uint(id) && yyjson_get_uint(id) < most) n = pd_max(n, yyjson_get_uint(id) + 1);
    }
    return n;
}

static peridot_status read_id(struct entry **out, const struct json *j, yyjson_val *id, const char *name)
{
    if (!yyjson_is_uint(id) || yyjson_get_uint(id) >= j->n)
        return pd_fail(PERIDOT_ERROR_FORMAT, "piece \"%s\" of the vocabulary has no id below %llu", SHOWN(name),
                       (unsigned long long)j->n);
    *out = &j->entries[yyjson_get_uint(id)];
    return PERIDOT_OK;
}

static bool has_name(const char *text, size_t size, yyjson_val *name)
{
    return yyjson_is_str(name) && yyjson_get_len(name) == size && memcmp(yyjson_get_str(name), text, size) == 0;
}

static peridot_status read_vocab(struct json *j)
{
    yyjson_val *key, *id, *unknown = yyjson_obj_get(j->model, "unk_token");
    bool bytes = yyjson_is_true(yyjson_obj_get(j->model, "byte_fallback"));
    size_t i, n;
    yyjson_obj_foreach(j->vocab, i, n, key, id) {
        struct entry *e = NULL;
        const char *text = yyjson_get_str(key);
        size_t size = yyjson_get_len(key);
        PD_TRY(read_id(&e, j, id, text));
        if (e->text)
            return pd_fail(PERIDOT_ERROR_FORMAT, "pieces \"%s\" and \"%s\" of the vocabulary have one id, %llu",
                           SHOWN(e->text), SHOWN(text), (unsigned long long)yyjson_get_uint(id));
        bool byte = bytes && pd_pieces_is_byte_name(text, size);
        *e = (struct entry){.text = text, .size = size, .type = byte ? PD_PIECE_BYTE : PD_PIECE_NORMAL};
        if (has_name(text, size, unknown)) e->type = PD_PIECE_UNKNOWN;
    }
    return PERIDOT_OK;
}

/* A token is looked for in the text as it is written, or (normalized) as the steps leave it; the same here, unless they
 * put spaces before it. Control tokens are ours to find. */
static peridot_status check_added(const struct json *j, yyjson_val *token, const char *text, bool special)
{
    if (!is_off(yyjson_obj_get(token, "single_word")))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "added token \"%s\" is \"single_word\", which is not supported",
                       SHOWN(text));
    bool changes = j->steps.prefix && !j->steps.prefix_unless_space;
    if (special || !changes || is_off(yyjson_obj_get(token, "normalized"))) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "added token \"%s\" is \"normalized\", which is not supported",
                   SHOWN(text));
}

static peridot_status read_added(struct json *j, yyjson_val *token)
{
    yyjson_val *content = yyjson_obj_get(token, "content");
    const char *text = yyjson_get_str(content);
    size_t size = yyjson_get_len(content);
    bool special = yyjson_is_true(yyjson_obj_get(token, "special"));
    struct entry *e = NULL;
    if (!text) return pd_fail(PERIDOT_ERROR_FORMAT, "an added token has no content");
    PD_TRY(check_added(j, token, text, special));
    PD_TRY(read_id(&e, j, yyjson_obj_get(token, "id"), text));
    if (e->text && !has_name(e->text, e->size, content))
        return pd_fail(PERIDOT_ERROR_FORMAT, "added token \"%s\" has the id of piece \"%s\"", SHOWN(text),
                       SHOWN(e->text));
    bool unknown = e->text && e->type == PD_PIECE_UNKNOWN;
    *e = (struct entry){text, size, unknown ? PD_PIECE_UNKNOWN : special ? PD_PIECE_CONTROL : PD_PIECE_USER,
                        yyjson_is_true(yyjson_obj_get(token, "lstrip")),
                        yyjson_is_true(yyjson_obj_get(token, "rstrip"))};
    return PERIDOT_OK;
}

static peridot_status add_entries(struct pd_pieces *out, const struct json *j)
{
    for (uint64_t i = 0; i < j->n; i++) {
        const struct entry *e = &j->entries[i];
        if (!e->text)
            return pd_fail(PERIDOT_ERROR_FORMAT, "the vocabulary has no piece with id %llu", (unsigned long long)i);
        PD_TRY(pd_pieces_add(out, e->text, e->size, 0, e->type));
        out->piece[i].lstrip = e->lstrip;
        out->piece[i].rstrip = e->rstrip;
    }
    return PERIDOT_OK;
}

static peridot_status pieces_json_read_pieces(struct pd_pieces *out, struct json *j)
{
    yyjson_val *token;
    size_t i, n;
    j->n = count_ids(j);
    j->entries = calloc(j->n + 1, sizeof *j->entries);
    if (!j->entries) return pd_fail_alloc(j->n * sizeof *j->entries, "vocabulary");
    PD_TRY(read_vocab(j));
    yyjson_arr_foreach(j->added, i, n, token) PD_TRY(read_added(j, token));
    return add_entries(out, j);
}

/* ---- merges ---- */

/* ["t", "he"], or, in older files, "t he". */
static peridot_status read_merge(struct pd_merge_reader *r, yyjson_val *merge)
{
    if (yyjson_is_str(merge)) return pd_merges_add_line(r, yyjson_get_str(merge), yyjson_get_len(merge));
    yyjson_val *left = yyjson_arr_get(merge, 0), *right = yyjson_arr_get(merge, 1);
    if (yyjson_arr_size(merge) != 2 || !yyjson_is_str(left) || !yyjson_is_str(right))
        return pd_fail(PERIDOT_ERROR_FORMAT, "merge %u of the vocabulary is not two pieces", r->n_read);
    return pd_merges_add(r, yyjson_get_str(left), yyjson_get_len(left), yyjson_get_str(right), yyjson_get_len(right));
}

static peridot_status read_merges(struct pd_pieces *out, yyjson_val *merges)
{
    struct pd_merge_reader r;
    peridot_status status = pd_merges_begin(&r, out);
    yyjson_arr_iter iter = yyjson_arr_iter_with(merges);
    for (yyjson_val *merge; status == PERIDOT_OK && (merge = yyjson_arr_iter_next(&iter));)
        status = read_merge(&r, merge);
    return pd_merges_end(&r, status);
}

/* ---- all ---- */

/* The control piece named, or the first there is of the usual names. */
static int32_t find_control(const struct pd_pieces *p, const char *name, const char *const usual[3])
{
    for (int i = name ? -1 : 0; i < 3; i++) {
        const char *text = i < 0 ? name : usual[i];
        int32_t id = pd_pieces_find_control(p, text, strlen(text));
        if (id >= 0) return id;
    }
    return -1;
}

static peridot_status use_steps(struct pd_pieces *out, const struct pd_json_steps *s)
{
    out->dummy_prefix = s->prefix;
    out->prefix_each = s->prefix_each;
    out->prefix_unless_space = s->prefix_unless_space;
    out->split_spaces = s->split_spaces;
    out->strip_prefix = s->strip_prefix;
    out->nfc = s->nfc;
    out->drops_between = s->drops_between;
    out->no_bos = !s->bos;
    out->bos = find_control(out, s->bos, (const char *const[]){"<bos>", "<s>", "<|begin_of_text|>"});
    out->end = s->end ? pd_pieces_find_control(out, s->end, strlen(s->end)) : -1;
    out->eos = find_control(out, NULL, (const char *const[]){"<eos>", "</s>", "<|end_of_text|>"});
    for (uint32_t i = 0; i < s->n_patterns; i++) PD_TRY(pd_pieces_add_pattern(out, s->patterns[i]));
    return PERIDOT_OK;
}

static peridot_status read_root(struct pd_pieces *out, struct json *j, yyjson_val *root)
{
    j->model = yyjson_obj_get(root, "model");
    j->vocab = yyjson_obj_get(j->model, "vocab");
    j->added = yyjson_obj_get(root, "added_tokens");
    j->config = yyjson_obj_get(root, "config");
    PD_TRY(check_model(j));
    PD_TRY(pd_json_steps_read(&j->steps, root));
    out->algorithm = j->steps.byte_level ? PD_ALGORITHM_BYTE_MERGES : PD_ALGORITHM_CHAR_MERGES;
    out->whole_words = yyjson_is_true(yyjson_obj_get(j->model, "ignore_merges"));
    PD_TRY(pieces_json_read_pieces(out, j));
    PD_TRY(read_merges(out, yyjson_obj_get(j->model, "merges")));
    PD_TRY(use_steps(out, &j->steps));
    return pd_pieces_check(out);
}

peridot_status pd_pieces_read_json(struct pd_pieces *out, const uint8_t *data, uint64_t size)
{
    struct json j = {0};
    yyjson_doc *doc;
    *out = (struct pd_pieces){.bos = -1, .eos = -1, .end = -1};
    PD_TRY(pd_json_read(&doc, data, size));
    peridot_status status = read_root(out, &j, yyjson_doc_get_root(doc));
    free(j.entries);
    yyjson_doc_free(doc);
    return status;
}

/* ---- json steps ---- */

/* One kind of step: its type, and what it sets. False: its settings are not known. */
struct step {
    const char *type;
    bool (*read)(struct pd_json_steps *out, yyjson_val *step);
};

static bool is_str(yyjson_val *object, const char *key, const char *value)
{
    return yyjson_equals_str(yyjson_obj_get(object, key), value);
}

/* A flag; `missing` when it is not there. */
static bool flag(yyjson_val *object, const char *key, bool missing)
{
    yyjson_val *v = yyjson_obj_get(object, key);
    return yyjson_is_bool(v) ? yyjson_get_bool(v) : missing;
}

/* ---- normalizer ---- */

static bool read_prepend(struct pd_json_steps *out, yyjson_val *step)
{
    out->prefix = out->prefix_each = true;
    return is_str(step, "prepend", PD_SPACE);
}

static bool read_escape(struct pd_json_steps *out, yyjson_val *step)
{
    out->escape = true;
    return is_str(yyjson_obj_get(step, "pattern"), "String", " ") && is_str(step, "content", PD_SPACE);
}

static bool read_nfc(struct pd_json_steps *out, yyjson_val *step)
{
    (void)step;
    return out->nfc = true;
}

static const struct step normalizers[] = {
    {"Prepend", read_prepend}, {"Replace", read_escape}, {"NFC", read_nfc}, {NULL, NULL},
};

/* ---- pre_tokenizer ---- */

static bool pieces_json_add_pattern(struct pd_json_steps *out, const char *pattern)
{
    if (out->byte_level || out->drops_between || out->n_patterns == PD_MAX_PATTERNS) return false;
    out->patterns[out->n_patterns++] = pattern;
    return true;
}

/* By a pattern; or, in Gemma's files, at the spaces, of which the normalizer has left none. */
static bool read_split(struct pd_json_steps *out, yyjson_val *step)
{
    yyjson_val *pattern = yyjson_obj_get(step, "pattern"), *regex = yyjson_obj_get(pattern, "Regex");
    if (is_str(pattern, "String", " ")) return out->escape;
    bool drops = is_str(step, "behavior", "Removed") && flag(step, "invert", false) && out->n_patterns == 0;
    if (!drops && !is_str(step, "behavior", "Isolated")) return false;
    if (!yyjson_is_str(regex) || strlen(yyjson_get_str(regex)) != yyjson_get_len(regex)) return false;
    if (!pieces_json_add_pattern(out, yyjson_get_str(regex))) return false;
    out->drops_between = drops;
    return true;
}

static bool read_digits(struct pd_json_steps *out, yyjson_val *step)
{
    return flag(step, "individual_digits", false) && pieces_json_add_pattern(out, pd_split_digit);
}

static bool read_byte_level(struct pd_json_steps *out, yyjson_val *step)
{
    if (flag(step, "add_prefix_space", true)) return false;
    if (flag(step, "use_regex", true) && !pieces_json_add_pattern(out, pd_split_gpt2)) return false;
    return out->byte_level = true;
}

/* "add_prefix_space" is what older files have instead of "prepend_scheme". */
static bool read_scheme(bool *prefix, bool *each, yyjson_val *step)
{
    yyjson_val *scheme = yyjson_obj_get(step, "prepend_scheme");
    *prefix = scheme ? !yyjson_equals_str(scheme, "never") : flag(step, "add_prefix_space", true);
    *each = *prefix && !yyjson_equals_str(scheme, "first");
    bool known = !scheme || !*prefix || !*each || yyjson_equals_str(scheme, "always");
    return known && is_str(step, "replacement", PD_SPACE);
}

static bool read_metaspace(struct pd_json_steps *out, yyjson_val *step)
{
    if (out->prefix) return false;
    out->escape = out->prefix_unless_space = true;
    out->split_spaces = flag(step, "split", true);
    return read_scheme(&out->prefix, &out->prefix_each, step);
}

static const struct step pre_tokenizers[] = {
    {"Split", read_split}, {"Digits", read_digits}, {"ByteLevel", read_byte_level}, {"Metaspace", read_metaspace},
    {NULL, NULL},
};

/* ---- decoder ---- */

static bool read_byte_decoder(struct pd_json_steps *out, yyjson_val *step)
{
    (void)step;
    return out->byte_decoder = true;
}

static bool read_unescape(struct pd_json_steps *out, yyjson_val *step)
{
    out->space_decoder = true;
    return is_str(yyjson_obj_get(step, "pattern"), "String", PD_SPACE) && is_str(step, "content", " ");
}

/* Bytes and text are one stream of bytes here. */
static bool read_nothing(struct pd_json_steps *out, yyjson_val *step)
{
    (void)out, (void)step;
    return true;
}

static bool read_strip(struct pd_json_steps *out, yyjson_val *step)
{
    out->strip_prefix = true;
    return is_str(step, "content", " ") && yyjson_get_int(yyjson_obj_get(step, "start")) == 1 &&
           yyjson_get_int(yyjson_obj_get(step, "stop")) == 0;
}

static bool read_metaspace_decoder(struct pd_json_steps *out, yyjson_val *step)
{
    bool each;
    out->space_decoder = true;
    return read_scheme(&out->strip_prefix, &each, step);
}

static const struct step decoders[] = {
    {"ByteLevel", read_byte_decoder}, {"Replace", read_unescape}, {"ByteFallback", read_nothing},
    {"Fuse", read_nothing}, {"Strip", read_strip}, {"Metaspace", read_metaspace_decoder}, {NULL, NULL},
};

/* ---- post_processor ---- */

/* What it puts before a text, and what behind one, which only whole texts have: a prompt goes on. */
static bool read_template(struct pd_json_steps *out, yyjson_val *step)
{
    yyjson_val *single = yyjson_obj_get(step, "single"), *first = yyjson_arr_get_first(single);
    yyjson_val *last = yyjson_arr_size(single) > 1 ? yyjson_arr_get_last(single) : NULL;
    out->end = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(last, "SpecialToken"), "id"));
    out->bos = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(first, "SpecialToken"), "id"));
    return true;
}

static const struct step post_processors[] = {
    {"TemplateProcessing", read_template}, {"ByteLevel", read_nothing}, {NULL, NULL},
};

/* ---- all ---- */

static const struct {
    const char *key, *list;          /* in the root; in a step of type Sequence */
    const struct step *steps;
} kinds[] = {
    {"normalizer", "normalizers", normalizers}, {"pre_tokenizer", "pretokenizers", pre_tokenizers},
    {"decoder", "decoders", decoders}, {"post_processor", "processors", post_processors},
};

static peridot_status read_step(struct pd_json_steps *out, yyjson_val *step, size_t kind)
{
    const char *type = yyjson_get_str(yyjson_obj_get(step, "type"));
    for (const struct step *s = kinds[kind].steps; type && s->type; s++) {
        if (strcmp(s->type, type) != 0) continue;
        if (s->read(out, step)) return PERIDOT_OK;
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the %s \"%s\" has settings, or a place, that Peridot does not know",
                       kinds[kind].key, type);
    }
    char shown[PD_SHOWN_SIZE];
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the %s \"%s\" is not supported", kinds[kind].key,
                   type ? pd_utf8_shown(shown, type, strlen(type)) : "(no type)");
}

static peridot_status read_kind(struct pd_json_steps *out, yyjson_val *root, size_t kind)
{
    yyjson_val *step = yyjson_obj_get(root, kinds[kind].key), *item;
    size_t i, n;
    if (!step || yyjson_is_null(step)) return PERIDOT_OK;
    if (!is_str(step, "type", "Sequence")) return read_step(out, step, kind);
    yyjson_val *list = yyjson_obj_get(step, kinds[kind].list);
    if (!yyjson_is_arr(list))
        return pd_fail(PERIDOT_ERROR_FORMAT, "the %s \"Sequence\" has no %s", kinds[kind].key, kinds[kind].list);
    yyjson_arr_foreach(list, i, n, item) PD_TRY(read_step(out, item, kind));
    return PERIDOT_OK;
}

/* Before merging and after it, texts are spelt alike. */
static peridot_status check_spelling(const struct pd_json_steps *s)
{
    if (s->byte_level && (s->escape || s->prefix))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "a byte-level tokenizer that escapes spaces is not supported");
    if (!s->byte_level && !s->escape)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "a tokenizer that neither is byte-level nor escapes spaces is not supported");
    if (!s->byte_level && s->nfc)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the normalizer \"NFC\" is supported for byte-level tokenizers only");
    if (!s->byte_level && s->n_patterns)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "the pre_tokenizer \"Split\" is supported for byte-level tokenizers only");
    if (s->byte_decoder != s->byte_level || s->space_decoder != s->escape)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "a decoder that does not undo what is done to spaces and bytes is not supported");
    return PERIDOT_OK;
}

peridot_status pd_json_steps_read(struct pd_json_steps *out, yyjson_val *root)
{
    *out = (struct pd_json_steps){0};
    for (size_t kind = 0; kind < PD_COUNT(kinds); kind++) PD_TRY(read_kind(out, root, kind));
    return check_spelling(out);
}
