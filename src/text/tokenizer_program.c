/* A conversation to the ids of a prompt, by the Jinja program in the model's files. What it writes is one text to the
 * tokenizer, as where transformers tokenizes what apply_chat_template gave; but control tokens are matched in the bytes
 * that are the program's own, and never in those of messages. */
#include "text/text_.h"

#include "base/base.h"
#include "text/template/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stands for a reply whose ids are known: what a program writes after it ends the model's turn, and goes on. */
#define REPLY "\x02reply\x03"

/* ---- text to ids ---- */

/* Bytes from `at` on that are the program's own. */
static size_t count_own(const struct pd_template_output *text, size_t at)
{
    size_t end = at;
    while (end < text->size && text->own[end]) end++;
    return end - at;
}

struct encoding {
    struct pd_ids *out;
    const struct pd_tokenizer *t;
    const struct pd_template_output *text;
    struct pd_buffer plain;   /* text since the last control token */
    enum pd_text_place place;           /* of it */
    const struct pd_chat_prompt *prompt;
    struct pd_image_marks marks;   /* of images, where the messages have some */
    size_t n_images;               /* so far */
};

/* A control token, or an image where it marks one. */
static peridot_status put_control(struct encoding *e, int32_t id)
{
    const struct pd_pieces *p = &e->t->pieces;
    if (e->plain.size) e->plain.size -= pd_special_before(p, id, e->plain.data, e->plain.size, false);
    bool is_image = id == e->marks.marker && e->n_images < e->prompt->messages->n_images;
    if (is_image) {
        PD_TRY(pd_tokenizer_put_image(e->out, &e->plain, e->t, &e->marks, &e->prompt->images[e->n_images++], e->place));
    } else {
        PD_TRY(pd_tokenizer_encode_plain(e->out, e->t, e->plain.data, e->plain.size, e->place));
        PD_TRY(pd_ids_append(e->out, &id, 1));
        e->plain.size = 0;
    }
    e->place = PD_PLACE_AFTER_CONTROL;
    return PERIDOT_OK;
}

/* Programs may pass over images of other roles than the user's, whose place in the prompt would be another's. */
static peridot_status fail_images(const struct encoding *e)
{
    char roles[64] = "";
    size_t i, n, n_images = e->prompt->messages->n_images;
    yyjson_mut_val *message;
    yyjson_mut_arr_foreach(e->prompt->messages->list, i, n, message) {
        const char *role = yyjson_mut_get_str(yyjson_mut_obj_get(message, "role"));
        bool sees = yyjson_mut_is_arr(yyjson_mut_obj_get(message, "content"));
        size_t size = strlen(roles);
        if (sees && strcmp(role, "user") != 0 && !strstr(roles, role))
            snprintf(roles + size, sizeof roles - size, "%s%s", size ? " or " : "", role);
    }
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model's chat template wrote %zu of %zu image%s%s%s", e->n_images,
                   n_images, PD_S(n_images), *roles ? ": it has no place for all in messages of the role " : "", roles);
}

/* A control token of a call in the content of a message. */
static size_t match_marked(int32_t *id, const struct encoding *e, size_t i)
{
    char digits[PD_MARKED_ID + 1] = "";
    const char *mark = e->prompt->messages->mark, *text = e->text->text + i;
    size_t n = strlen(mark);
    if (!n || e->text->size - i < n + PD_MARKED_ID || memcmp(text, mark, n) != 0) return 0;
    memcpy(digits, text + n, PD_MARKED_ID);
    *id = (int32_t)strtoul(digits, NULL, 16);
    return n + PD_MARKED_ID;
}

static peridot_status encode_bytes(struct encoding *e, size_t begin)
{
    const struct pd_template_output *text = e->text;
    size_t i = begin, n_own = 0;
    while (i < text->size) {
        int32_t id;
        if (!n_own) n_own = count_own(text, i);
        size_t length = n_own ? pd_special_match(&id, &e->t->special, &e->t->pieces, text->text + i, n_own)
                              : match_marked(&id, e, i);
        if (length) {
            PD_TRY(pd_buffer_add(&e->plain, text->text + begin, i - begin));
            PD_TRY(put_control(e, id));
            length += pd_special_after(&e->t->pieces, id, text->text + i + length, text->size - i - length, false);
            begin = i + length;
        }
        i += length ? length : 1;
        n_own -= pd_min(n_own, length ? length : 1);
    }
    PD_TRY(pd_buffer_add(&e->plain, text->text + begin, text->size - begin));
    PD_TRY(pd_tokenizer_encode_plain(e->out, e->t, e->plain.data, e->plain.size, e->place));
    return e->n_images == e->prompt->messages->n_images ? PERIDOT_OK : fail_images(e);
}

/* From byte `begin` on, which is at `place`. */
static peridot_status encode_output(struct pd_ids *out, const struct pd_tokenizer *t, const struct pd_chat_prompt *c,
                                    const struct pd_template_output *text, size_t begin, enum pd_text_place place)
{
    struct encoding e = {.out = out, .t = t, .text = text, .place = place, .prompt = c, .marks.marker = -1};
    if (c->messages->n_images && !pd_tokenizer_image_marks(&e.marks, t))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the vocabulary has no tokens for images");
    peridot_status status = encode_bytes(&e, begin);
    free(e.plain.data);
    return status;
}

/* ---- a conversation to text ---- */

/* Of two programs that for tools, as transformers chooses; and for calls of past turns, of which the other knows
 * nothing. */
static bool takes_tools(const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    return t->tools_program && (c->tools || c->messages->has_calls);
}

static const struct pd_template *program_of(const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    return takes_tools(t, c) ? t->tools_program : t->program;
}

static bool add_others(yyjson_mut_doc *doc, yyjson_mut_val *root, yyjson_val *variables)
{
    bool good = true;
    yyjson_val *key, *value;
    size_t i, n;
    yyjson_obj_foreach(variables, i, n, key, value) {
        good = good && (yyjson_mut_obj_getn(root, yyjson_get_str(key), yyjson_get_len(key)) ||
                        yyjson_mut_obj_add(root, yyjson_val_mut_copy(doc, key), yyjson_val_mut_copy(doc, value)));
    }
    return good;
}

/* What transformers passes where there is none: that is defined, and None. */
static bool add_nothing(yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    static const char *const names[] = {"tools", "documents"};
    bool good = true;
    for (size_t i = 0; i < PD_COUNT(names); i++)
        good = good && (yyjson_mut_obj_get(root, names[i]) || yyjson_mut_obj_add_null(doc, root, names[i]));
    return good;
}

/* Programs read each tool's "function", whose type is beside it: functions by themselves, as Anthropic's interface and
 * OpenAI's responses have them, are put there. */
static yyjson_mut_val *copy_tools(yyjson_mut_doc *doc, yyjson_val *tools)
{
    size_t i, n;
    yyjson_val *each;
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    bool good = list != NULL;
    yyjson_arr_foreach(tools, i, n, each) {
        yyjson_mut_val *tool = yyjson_val_mut_copy(doc, each), *outer;
        if (!yyjson_obj_get(each, "function")) {
            outer = yyjson_mut_arr_add_obj(doc, list);
            yyjson_mut_obj_remove_key(tool, "type");
            good = good && yyjson_mut_obj_add_str(doc, outer, "type", "function")
                && yyjson_mut_obj_add_val(doc, outer, "function", tool);
        } else {
            good = good && yyjson_mut_arr_append(list, tool);
        }
    }
    return good ? list : NULL;
}

/* gpt-oss knows three, and its program writes any. */
static const char *effort_of(const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    static const struct { const char *effort, *nearest; } others[] = {
        {"none", "low"}, {"minimal", "low"}, {"xhigh", "high"}, {"max", "high"}};
    for (size_t i = 0; t->channels && i < PD_COUNT(others); i++)
        if (strcmp(c->effort, others[i].effort) == 0) return others[i].nearest;
    return c->effort;
}

static peridot_status make_variables(yyjson_doc **out, const struct pd_tokenizer *t, const struct pd_chat_prompt *c,
                                     bool opens)
{
    yyjson_mut_doc *doc = c->messages->doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const bool none = takes_tools(t, c) && !c->tools;
    const char *jinja = takes_tools(t, c) ? t->tools_jinja.data : t->jinja.data;
    bool good = pd_program_suit_messages(c->messages, jinja) &&
                yyjson_mut_obj_add_val(doc, root, "messages", c->messages->list) &&
                yyjson_mut_obj_add_bool(doc, root, "add_generation_prompt", opens) &&
                (!c->tools || yyjson_mut_obj_add_val(doc, root, "tools", copy_tools(doc, c->tools))) &&
                (!none || yyjson_mut_obj_add_arr(doc, root, "tools")) &&   /* which it goes through */
                (!pd_template_reads(program_of(t, c), "enable_thinking") ||
                 yyjson_mut_obj_add_bool(doc, root, "enable_thinking", c->think != PERIDOT_THINK_OFF)) &&
                (!c->effort || !pd_template_reads(program_of(t, c), "reasoning_effort") ||
                 yyjson_mut_obj_add_str(doc, root, "reasoning_effort", effort_of(t, c))) &&
                (!c->variables || add_others(doc, root, c->variables)) && add_nothing(doc, root);
    *out = good ? yyjson_mut_val_imut_copy(root, NULL) : NULL;
    return *out ? PERIDOT_OK : pd_fail_alloc(sizeof(yyjson_mut_val), "messages");
}

static peridot_status render(struct pd_template_output *out, const struct pd_tokenizer *t,
                             const struct pd_chat_prompt *c, bool opens)
{
    const struct pd_pieces *p = &t->pieces;
    const struct { const char *name; int32_t id; } names[] = {{"bos_token", p->bos}, {"eos_token", p->eos}};
    struct pd_buffer texts[PD_COUNT(names)] = {{0}};
    struct pd_template_word words[PD_COUNT(names)];
    struct pd_template_input in = {.words = words};
    peridot_status status = PERIDOT_OK;
    yyjson_doc *variables = NULL;
    *out = (struct pd_template_output){0};
    for (size_t i = 0; i < PD_COUNT(names) && status == PERIDOT_OK; i++) {
        if (names[i].id < 0) continue;
        uint32_t id = (uint32_t)names[i].id;
        status = pd_buffer_add(&texts[i], pd_pieces_text(p, id), p->piece[id].size);
        if (status == PERIDOT_OK) status = pd_buffer_end(&texts[i]);
        words[in.n_words++] = (struct pd_template_word){names[i].name, texts[i].data};
    }
    if (status == PERIDOT_OK) status = make_variables(&variables, t, c, opens);
    in.variables = yyjson_doc_get_root(variables);
    pd_local_time(&in.now);
    if (status == PERIDOT_OK) status = pd_template_render(out, program_of(t, c), &in);
    if (status != PERIDOT_OK) pd_template_output_free(out);
    yyjson_doc_free(variables);
    for (size_t i = 0; i < PD_COUNT(names); i++) free(texts[i].data);
    return status;
}

static peridot_status add_reply(struct pd_template_output *out, const struct pd_tokenizer *t,
                                const struct pd_chat_prompt *c)
{
    const uint32_t mark = (uint32_t)t->thoughts[PD_THOUGHT_BEGIN];
    size_t end = out->size, size = t->thoughts[PD_THOUGHT_BEGIN] >= 0 ? t->pieces.piece[mark].size : 0;
    while (end && strchr(" \n", out->text[end - 1])) end--;
    if (size && end >= size && memcmp(out->text + end - size, pd_pieces_text(&t->pieces, mark), size) == 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model's replies begin with a thought: they cannot be begun");
    char *text = realloc(out->text, out->size + c->reply_size + 1);
    if (text) out->text = text;
    unsigned char *own = text ? realloc(out->own, out->size + c->reply_size + 1) : NULL;
    if (!own) return pd_fail_alloc(out->size + c->reply_size, "prompt");
    out->own = own;
    memcpy(text + out->size, c->reply, c->reply_size);
    memset(own + out->size, 0, c->reply_size);
    out->size += c->reply_size;
    text[out->size] = 0;
    return PERIDOT_OK;
}

/* Some programs take the arguments of calls for text, and fail where they are not. */
static peridot_status render_either(struct pd_template_output *out, const struct pd_tokenizer *t,
                                    const struct pd_chat_prompt *c, bool opens)
{
    peridot_status status = render(out, t, c, opens);
    if (status == PERIDOT_ERROR_FORMAT && c->messages->has_calls) {
        PD_TRY(pd_program_write_arguments(c->messages));
        status = render(out, t, c, opens);
    }
    return status == PERIDOT_OK && c->reply_size ? add_reply(out, t, c) : status;
}

/* ---- a conversation that goes on ---- */

/* Before the messages: a turn of the user's, and the reply. */
static peridot_status put_reply_first(struct pd_messages *m)
{
    const peridot_message before[] = {{"user", "."}, {"assistant", REPLY}};
    bool good = true;
    for (size_t i = PD_COUNT(before); i-- > 0 && good;) {
        yyjson_mut_val *o = yyjson_mut_obj(m->doc);
        good = o && yyjson_mut_obj_add_str(m->doc, o, "role", before[i].role) &&
               yyjson_mut_obj_add_str(m->doc, o, "content", before[i].content) && yyjson_mut_arr_prepend(m->list, o);
    }
    return good ? PERIDOT_OK : pd_fail_alloc(sizeof(yyjson_mut_val), "messages");
}

static peridot_status find_reply(size_t *after, const struct pd_template_output *text)
{
    size_t n = strlen(REPLY);
    for (*after = n; *after <= text->size; ++*after)
        if (memcmp(text->text + *after - n, REPLY, n) == 0) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model's chat template does not write replies as they are");
}

/* Of ids that follow, those that the ids so far end with, or that their stop token, the first of them, stands for. */
static size_t count_known(const struct pd_tokenizer *t, const struct pd_chat_prompt *c, const struct pd_ids *next)
{
    const int32_t *end = c->ids + c->n_ids;
    size_t n_known = 0, n_stops = 0;
    for (size_t k = 1; k <= pd_min(8, next->n); k++) {
        n_stops += pd_tokenizer_is_stop(t, next->data[k - 1]);
        bool stands = n_stops == 1 && end[-1] == next->data[k - 1] && pd_tokenizer_is_stop(t, end[-1]);
        if (stands || (k <= c->n_ids && memcmp(end - k, next->data, k * sizeof *end) == 0)) n_known = k;
    }
    return n_known;
}

static peridot_status encode_next(struct pd_ids *out, const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    struct pd_template_output text;
    size_t after = 0;
    bool opens = yyjson_mut_arr_size(c->messages->list) > 0;
    PD_TRY(put_reply_first(c->messages));
    PD_TRY(render_either(&text, t, c, opens));
    peridot_status status = find_reply(&after, &text);
    if (status == PERIDOT_OK) status = encode_output(out, t, c, &text, after, PD_PLACE_WITHIN);
    pd_template_output_free(&text);
    if (status != PERIDOT_OK || out->n == 0) return status;
    size_t n_known = count_known(t, c, out);
    out->n -= n_known;
    memmove(out->data, out->data + n_known, out->n * sizeof *out->data);
    return PERIDOT_OK;
}

/* ---- either ---- */

bool pd_tokenizer_program_thinks(const struct pd_tokenizer *t)
{
    bool told = pd_template_reads(t->program, "enable_thinking");
    bool headers = t->thoughts[PD_THOUGHT_START] >= 0;   /* of which the model chooses */
    return t->thoughts[0] >= 0 && (told || headers);
}

peridot_status pd_tokenizer_run_program(struct pd_ids *out, const struct pd_tokenizer *t,
                                        const struct pd_chat_prompt *c)
{
    struct pd_template_output text;
    if (c->think != PERIDOT_THINK_OFF && !pd_tokenizer_program_thinks(t))
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "the model cannot be told to think: its chat template does not know of thoughts");
    if (c->n_ids) return encode_next(out, t, c);
    if (yyjson_mut_arr_size(c->messages->list) == 0)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the conversation has no messages");
    PD_TRY(render_either(&text, t, c, true));
    peridot_status status = encode_output(out, t, c, &text, 0, PD_PLACE_FIRST);
    pd_template_output_free(&text);
    return status;
}
