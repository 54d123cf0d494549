#include "text/json_steps.h"

#include "base/num.h"
#include "base/utf8.h"
#include "text/buffer.h"
#include "text/split.h"

#include <string.h>

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

static bool add_pattern(struct pd_json_steps *out, const char *pattern)
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
    if (!add_pattern(out, yyjson_get_str(regex))) return false;
    out->drops_between = drops;
    return true;
}

static bool read_digits(struct pd_json_steps *out, yyjson_val *step)
{
    return flag(step, "individual_digits", false) && add_pattern(out, pd_split_digit);
}

static bool read_byte_level(struct pd_json_steps *out, yyjson_val *step)
{
    if (flag(step, "add_prefix_space", true)) return false;
    if (flag(step, "use_regex", true) && !add_pattern(out, pd_split_gpt2)) return false;
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
