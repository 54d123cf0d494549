/* A conversation: its messages, the ids that the model has for them, and files of JSON messages. The ids of replies are
 * kept as the model made them; text is only encoded again where the beginning changes: after a file was loaded, the
 * system prompt was changed, or the oldest turns were left out. */
#define _POSIX_C_SOURCE 200809L
#include "chat.h"
#include "../console/console.h"
#include "../cli/cli.h"
#include "../base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

static bool is_role(const struct cmd_message *m, const char *role) { return strcmp(m->role, role) == 0; }

void cmd_pictures_free(struct cmd_pictures *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->at[i].url);
        peridot_image_free(p->at[i].image);
    }
    free(p->at);
    *p = (struct cmd_pictures){0};
}

static void drop_after(struct cmd_conversation *c, size_t n)
{
    for (; c->n > n; c->n--) {
        free(c->messages[c->n - 1].text);
        free(c->messages[c->n - 1].json);
        cmd_pictures_free(&c->messages[c->n - 1].pictures);
    }
}

void cmd_conversation_forget_ids(struct cmd_conversation *c)
{
    c->n_ids = 0;
    for (size_t i = 0; i < c->n; i++) c->messages[i].begin = 0;
}

void cmd_conversation_free(struct cmd_conversation *c)
{
    drop_after(c, 0);
    cmd_pictures_free(&c->attached);
    free(c->messages);
    free(c->ids);
    free(c->unsent);
    *c = (struct cmd_conversation){0};
}

void cmd_conversation_reset(struct cmd_conversation *c)
{
    drop_after(c, cmd_conversation_system(c) ? 1 : 0);
    cmd_conversation_forget_ids(c);
    c->first = 0;
    free(c->unsent);
    c->unsent = NULL;
    cmd_pictures_free(&c->attached);
}

const char *cmd_conversation_system(const struct cmd_conversation *c)
{
    return c->n && is_role(&c->messages[0], "system") ? c->messages[0].text : NULL;
}

static peridot_status reserve_message(struct cmd_conversation *c)
{
    return pd_array_reserve(&c->messages, &c->capacity, c->n, 1, sizeof *c->messages, "messages");
}

static peridot_status copy_text(char **out, const char *text, size_t size)
{
    *out = malloc(size + 1);
    if (!*out) return pd_fail_alloc(size, "message");
    memcpy(*out, text, size);
    (*out)[size] = 0;
    return PERIDOT_OK;
}

/* [{"type": "image_url", "image_url": {"url": URL}}, ..., {"type": "text", "text": TEXT}] */
static void write_parts(FILE *file, const char *text, size_t text_size, const struct cmd_pictures *pictures)
{
    fputc('[', file);
    for (size_t i = 0; i < pictures->n; i++) {
        fputs("{\"type\": \"image_url\", \"image_url\": {\"url\": ", file);
        cmd_json_string(file, pictures->at[i].url, strlen(pictures->at[i].url));
        fputs("}}, ", file);
    }
    fputs("{\"type\": \"text\", \"text\": ", file);
    cmd_json_string(file, text, text_size);
    fputs("}]", file);
}

/* {"role": ROLE, "content": TEXT}; *out is the caller's. */
static peridot_status make_json(char **out, const char *role, const char *text, size_t text_size,
                                const struct cmd_pictures *pictures)
{
    size_t size = 0;
    FILE *file = cmd_memory_open(out, &size);
    if (!file) return pd_fail_alloc(text_size, "message");
    fprintf(file, "{\"role\": \"%s\", \"content\": ", role);
    if (pictures->n) write_parts(file, text, text_size, pictures);
    else cmd_json_string(file, text, text_size);
    fputc('}', file);
    if (cmd_memory_close(file, out, &size)) return PERIDOT_OK;
    free(*out);
    return pd_fail_alloc(size, "message");
}

/* The pictures go over to it. */
static peridot_status make_message(struct cmd_message *out, const char *role, const char *text, size_t size,
                                   struct cmd_pictures *pictures)
{
    *out = (struct cmd_message){.role = role, .is_plain = pictures->n == 0};
    PD_TRY(copy_text(&out->text, text, size));
    peridot_status status = make_json(&out->json, role, text, size, pictures);
    if (status != PERIDOT_OK) {
        free(out->text);
        return status;
    }
    out->pictures = *pictures;
    *pictures = (struct cmd_pictures){0};
    return PERIDOT_OK;
}

peridot_status cmd_conversation_set_system(struct cmd_conversation *c, const char *text)
{
    size_t had = cmd_conversation_system(c) != NULL, has = text != NULL;
    struct cmd_message message;
    struct cmd_pictures none = {0};
    if (has > had) PD_TRY(reserve_message(c));
    if (text) PD_TRY(make_message(&message, "system", text, strlen(text), &none));
    if (had) free(c->messages[0].text), free(c->messages[0].json);
    memmove(c->messages + has, c->messages + had, (c->n - had) * sizeof *c->messages);
    c->n += has - had;
    if (has) c->messages[0] = message;
    c->first = 0;
    cmd_conversation_forget_ids(c);
    return PERIDOT_OK;
}

peridot_status cmd_pictures_add(struct cmd_pictures *p, const char *prefix, const char *url, peridot_image *image)
{
    size_t size = strlen(prefix) + strlen(url) + 1;
    PD_TRY(pd_array_reserve(&p->at, &p->capacity, p->n, 1, sizeof *p->at, "pictures"));
    char *whole = malloc(size);
    if (!whole) return pd_fail_alloc(size, "file name");
    snprintf(whole, size, "%s%s", prefix, url);
    p->at[p->n++] = (struct cmd_picture){whole, peridot_image_ref(image)};
    return PERIDOT_OK;
}

peridot_status cmd_conversation_attach(struct cmd_conversation *c, const char *path, peridot_image *image)
{
    return cmd_pictures_add(&c->attached, CMD_FILE_URL, path, image);
}

void cmd_conversation_detach(struct cmd_conversation *c) { cmd_pictures_free(&c->attached); }

peridot_status cmd_conversation_add(struct cmd_conversation *c, const char *role, const char *text, size_t size)
{
    struct cmd_message message;
    struct cmd_pictures none = {0};
    bool is_users = strcmp(role, "user") == 0;
    PD_TRY(reserve_message(c));
    PD_TRY(make_message(&message, role, text, size, is_users ? &c->attached : &none));
    c->messages[c->n++] = message;
    return PERIDOT_OK;
}

peridot_status cmd_conversation_add_json(struct cmd_conversation *c, const char *role, const char *text, size_t size,
                                         char *json, struct cmd_pictures *pictures)
{
    struct cmd_message message = {.role = role, .json = json};
    peridot_status status = reserve_message(c);
    if (status == PERIDOT_OK) status = copy_text(&message.text, text, size);
    if (status != PERIDOT_OK) {
        free(json);
        return status;
    }
    if (pictures) {
        message.pictures = *pictures;
        *pictures = (struct cmd_pictures){0};
    }
    c->messages[c->n++] = message;
    return PERIDOT_OK;
}

void cmd_conversation_drop_last(struct cmd_conversation *c) { drop_after(c, c->n - 1); }

static peridot_status reserve_ids(struct cmd_conversation *c, size_t more)
{
    return pd_array_reserve(&c->ids, &c->ids_capacity, c->n_ids, more, sizeof *c->ids, "tokens");
}

peridot_status cmd_conversation_add_id(struct cmd_conversation *c, int32_t id)
{
    PD_TRY(reserve_ids(c, 1));
    c->ids[c->n_ids++] = id;
    return PERIDOT_OK;
}

static size_t last_user(const struct cmd_conversation *c)
{
    size_t i = c->n;
    while (i > 0 && !is_role(&c->messages[i - 1], "user")) i--;
    return i ? i - 1 : c->n;
}

bool cmd_conversation_undo(struct cmd_conversation *c)
{
    size_t i = last_user(c);
    if (i == c->n) return false;
    free(c->unsent);
    cmd_pictures_free(&c->attached);
    c->unsent = c->messages[i].text;
    c->attached = c->messages[i].pictures;
    c->messages[i].text = NULL;   /* drop_after frees the rest */
    c->messages[i].pictures = (struct cmd_pictures){0};
    c->n_ids = c->messages[i].begin;
    drop_after(c, i);
    if (c->first >= c->n) c->first = 0;   /* turns that were left out may fit again */
    return true;
}

const char *cmd_conversation_last(const struct cmd_conversation *c)
{
    size_t i = last_user(c);
    return c->unsent ? c->unsent : i < c->n ? c->messages[i].text : NULL;
}

size_t cmd_conversation_turns(const struct cmd_conversation *c, size_t begin, size_t end)
{
    size_t n = 0;
    for (size_t i = begin; i < end; i++) n += is_role(&c->messages[i], "user");
    return n;
}

/* ---- ids ---- */

/* What turns borrow. */
struct list {
    peridot_message *messages;
    peridot_image **images;
    size_t *n_images;
};

static void free_list(struct list *l)
{
    free(l->messages);
    free(l->images);
    free(l->n_images);
}

static peridot_status create_list(struct list *l, const struct cmd_conversation *c)
{
    size_t n_images = 0;
    for (size_t i = 0; i < c->n; i++) n_images += c->messages[i].pictures.n;
    *l = (struct list){malloc((c->n + 1) * sizeof *l->messages), malloc((n_images + 1) * sizeof *l->images),
                       malloc((c->n + 1) * sizeof *l->n_images)};
    if (l->messages && l->images && l->n_images) return PERIDOT_OK;
    free_list(l);
    return pd_fail_alloc((c->n + 1) * sizeof *l->messages, "messages");
}

/* The system's message, where it is wanted, and messages [first, n): *list, to be freed, is of *turns. They are whole
 * messages as JSON where there are tools, or one has more than a text. */
static peridot_status list_from(struct cmd_turns *turns, struct list *list, const struct cmd_conversation *c,
                                size_t first, const struct cmd_encoding *e)
{
    size_t n_images = 0;
    PD_TRY(create_list(list, c));
    *turns = (struct cmd_turns){.vocab = e->vocab, .template_name = e->template_name, .think = e->think, .ctx = e->ctx,
                                .reserve = e->reserve, .messages = list->messages, .tools = e->tools,
                                .json = e->tools, .images = list->images, .n_images = list->n_images};
    for (size_t i = first; i < c->n; i++) turns->json |= !c->messages[i].is_plain;
    for (size_t i = 0; i < c->n; i++) {
        const struct cmd_message *m = &c->messages[i];
        if (i < first && !(i == 0 && cmd_conversation_system(c))) continue;
        for (size_t k = 0; k < m->pictures.n; k++) list->images[n_images++] = m->pictures.at[k].image;
        list->n_images[turns->n] = m->pictures.n;
        list->messages[turns->n++] = (peridot_message){m->role, turns->json ? m->json : m->text};
    }
    return PERIDOT_OK;
}

/* Their ids. */
static peridot_status encode_from(int32_t **ids, size_t *n_ids, const struct cmd_conversation *c, size_t first,
                                  const struct cmd_encoding *e)
{
    struct cmd_turns turns;
    struct list list;
    size_t n_kept;
    *ids = NULL, *n_ids = 0;
    PD_TRY(list_from(&turns, &list, c, first, e));
    peridot_status status = cmd_turns_encode(ids, n_ids, &n_kept, &turns, 0);
    free_list(&list);
    return status;
}

/* The ids that the messages after the last reply add to those that there are. */
static peridot_status encode_next(int32_t **ids, size_t *n_ids, const struct cmd_conversation *c,
                                  const struct cmd_encoding *e)
{
    struct cmd_turns turns;
    struct list list;
    size_t first = c->n, n_kept;
    while (first > 0 && !is_role(&c->messages[first - 1], "assistant")) first--;
    *ids = NULL, *n_ids = 0;
    PD_TRY(list_from(&turns, &list, c, first, e));
    if (first > 0 && cmd_conversation_system(c)) turns.messages++, turns.n_images++, turns.n--;   /* among the ids */
    turns.ids = c->ids;
    turns.n_ids = c->n_ids;
    peridot_status status = cmd_turns_encode(ids, n_ids, &n_kept, &turns, 0);
    free_list(&list);
    return status;
}

/* Appends them. There is room for all that a context holds, so that they stay where they are while a reply is made. */
static peridot_status take_ids(struct cmd_conversation *c, const int32_t *ids, size_t n, uint32_t ctx)
{
    PD_TRY(reserve_ids(c, n + ctx + 1));
    c->messages[c->n - 1].begin = c->n_ids;
    memcpy(c->ids + c->n_ids, ids, n * sizeof *ids);
    c->n_ids += n;
    return PERIDOT_OK;
}

/* More turns than are left out already: see cli.h. */
static peridot_status find_left_out(size_t *n_left_out, const struct cmd_conversation *c, const struct cmd_encoding *e)
{
    struct cmd_turns turns;
    struct list list;
    PD_TRY(list_from(&turns, &list, c, c->first, e));
    peridot_status status = cmd_turns_leave_out(n_left_out, &turns, false);
    free_list(&list);
    return status;
}

static peridot_status leave_out(struct cmd_conversation *c, size_t *n_left_out, const struct cmd_encoding *e)
{
    size_t n, n_more = 0, first = c->first;
    int32_t *ids;
    PD_TRY(find_left_out(&n_more, c, e));
    for (size_t turn = 0; n_more && turn <= n_more; first++) {
        turn += is_role(&c->messages[first], "user");
        if (turn > n_more) break;
    }
    PD_TRY(encode_from(&ids, &n, c, first, e));
    peridot_status status = PERIDOT_OK;
    if (n > e->ctx)
        status = pd_fail(PERIDOT_ERROR_ARGUMENT,
                         "the message has %zu token%s, with the system prompt and the template, and the context "
                         "%" PRIu32 " position%s (--ctx)", n, PD_S(n), e->ctx, PD_S(e->ctx));
    if (status == PERIDOT_OK) {
        *n_left_out = n_more;
        cmd_conversation_forget_ids(c);
        c->first = first;
        status = take_ids(c, ids, n, e->ctx);
    }
    peridot_free(ids);
    return status;
}

static peridot_status refuse_full(size_t n, const struct cmd_encoding *e)
{
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "the context is full: with this message the conversation has %zu tokens, "
                   "and the context %" PRIu32 " positions; /undo takes back turns, /reset begins anew, --full drop "
                   "leaves out the oldest", n, e->ctx);
}

peridot_status cmd_conversation_encode(struct cmd_conversation *c, size_t *n_left_out, const struct cmd_encoding *e)
{
    int32_t *ids;
    size_t n;
    *n_left_out = 0;
    /* What a template writes of results may depend on the calls before them. */
    if (c->n && is_role(&c->messages[c->n - 1], "tool")) cmd_conversation_forget_ids(c);
    c->n_ids = peridot_drop_thoughts(e->vocab, c->ids, c->n_ids);
    PD_TRY(c->n_ids ? encode_next(&ids, &n, c, e) : encode_from(&ids, &n, c, c->first, e));
    bool only = cmd_conversation_turns(c, c->first, c->n) == 1;
    bool fits = c->n_ids + n + (only ? 0 : e->reserve) <= e->ctx;
    peridot_status status = fits ? take_ids(c, ids, n, e->ctx)
                          : e->refuses && !only ? refuse_full(c->n_ids + n, e) : leave_out(c, n_left_out, e);
    peridot_free(ids);
    return status;
}

/* ---- files ---- */

static void write_messages(FILE *file, const struct cmd_conversation *c)
{
    fputs("[", file);
    for (size_t i = 0; i < c->n; i++) fprintf(file, "%s\n  %s", i ? "," : "", c->messages[i].json);
    fputs("\n]\n", file);
}

peridot_status cmd_conversation_save(const struct cmd_conversation *c, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    struct pd_writer output;
    FILE *file = cmd_memory_open(&text, &size);
    if (file) write_messages(file, c);
    if (!file || !cmd_memory_close(file, &text, &size)) return pd_fail_alloc(size, "conversation");
    peridot_status status = pd_writer_open(&output, path);
    if (status == PERIDOT_OK) {
        status = pd_writer_write(&output, text, size);
        if (status == PERIDOT_OK) status = pd_writer_commit(&output);
        else pd_writer_abort(&output);
    }
    free(text);
    return status;
}

static bool has_same_ids(const peridot_image *a, const peridot_image *b)
{
    size_t n, m;
    const int32_t *ids = peridot_image_ids(a, &n), *others = peridot_image_ids(b, &m);
    return n == m && memcmp(ids, others, n * sizeof *ids) == 0;
}

/* *changed: one is not what it was. */
static void read_again(bool *changed, struct cmd_pictures *p, const struct cmd_encoding *e)
{
    for (size_t i = 0; i < p->n; i++) {
        peridot_image *image;
        if (cmd_image_read_url(&image, e->model, p->at[i].url, e->pan_and_scan) != PERIDOT_OK) {
            cmd_say("peridot: %s: messages with this picture cannot be sent again\n", peridot_last_error());
            continue;
        }
        if (!has_same_ids(image, p->at[i].image)) *changed = true;
        peridot_image_free(p->at[i].image);
        p->at[i].image = image;
    }
}

void cmd_conversation_read_again(struct cmd_conversation *c, const struct cmd_encoding *e)
{
    bool changed = false;
    for (size_t i = 0; i < c->n; i++) read_again(&changed, &c->messages[i].pictures, e);
    read_again(&changed, &c->attached, e);
    if (changed) cmd_conversation_forget_ids(c);
}

/* Pictures, which become attached, and one text, in any order. */
static peridot_status load_parts(struct cmd_conversation *c, const char **text, yyjson_val *parts, const char *path,
                                 size_t i, const struct cmd_encoding *e)
{
    yyjson_val *part;
    size_t k, n;
    *text = NULL;
    cmd_conversation_detach(c);
    yyjson_arr_foreach(parts, k, n, part) {
        const char *url = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(part, "image_url"), "url"));
        const char *here = yyjson_get_str(yyjson_obj_get(part, "text"));
        peridot_image *image;
        if (here && !*text) {
            *text = here;
            continue;
        }
        if (!url)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: message %zu has a part that is neither its text nor a picture",
                           path, i);
        PD_TRY(cmd_image_read_url(&image, e->model, url, e->pan_and_scan));
        peridot_status status = cmd_pictures_add(&c->attached, "", url, image);
        peridot_image_free(image);
        PD_TRY(status);
    }
    if (!*text) *text = "";
    return PERIDOT_OK;
}

static peridot_status load_message(struct cmd_conversation *c, yyjson_val *value, const char *path, size_t i,
                                   const struct cmd_encoding *e)
{
    static const char *const roles[][2] = {
        {"system", "system"}, {"developer", "system"}, {"user", "user"}, {"assistant", "assistant"}, {"tool", "tool"}};
    const char *role = yyjson_get_str(yyjson_obj_get(value, "role")), *known = NULL;
    yyjson_val *content = yyjson_obj_get(value, "content");
    yyjson_val *calls = yyjson_obj_get(value, "tool_calls");
    const char *text = calls && yyjson_is_null(content) ? "" : yyjson_get_str(content);
    size_t size = text ? yyjson_get_len(content) : 0;
    for (size_t k = 0; role && k < PD_COUNT(roles); k++)
        if (strcmp(role, roles[k][0]) == 0) known = roles[k][1];
    bool sees = yyjson_is_arr(content) && known && (strcmp(known, "user") == 0 || strcmp(known, "tool") == 0);
    if (sees) {
        PD_TRY(load_parts(c, &text, content, path, i, e));
        size = strlen(text);
    }
    if (!role || !text)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: message %zu has no role or no content that is text", path, i);
    if (!known)
        return pd_fail(PERIDOT_ERROR_FORMAT,
                       "%s: message %zu has the unknown role \"%.40s\"; roles are system, developer, user, "
                       "assistant and tool", path, i, role);
    if (strlen(text) != size)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: message %zu has a zero byte in its content", path, i);
    if (!calls && strcmp(known, "tool") != 0) return cmd_conversation_add(c, known, text, size);
    char *json = yyjson_val_write(value, 0, NULL);
    return json ? cmd_conversation_add_json(c, known, text, size, json, sees ? &c->attached : NULL)
                : pd_fail_alloc(size, "message");
}

static peridot_status load_messages(struct cmd_conversation *c, yyjson_val *root, const char *path,
                                    const struct cmd_encoding *e)
{
    yyjson_val *value, *list = yyjson_is_obj(root) ? yyjson_obj_get(root, "messages") : root;
    size_t i, n;
    if (!yyjson_is_arr(list))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: is no list of messages, [{\"role\": ..., \"content\": ...}, ...]",
                       path);
    yyjson_arr_foreach(list, i, n, value) PD_TRY(load_message(c, value, path, i, e));
    return PERIDOT_OK;
}

peridot_status cmd_conversation_check(const struct cmd_conversation *c, const struct cmd_encoding *e)
{
    int32_t *ids;
    size_t n;
    if (c->n == (cmd_conversation_system(c) ? 1 : 0)) return PERIDOT_OK;
    peridot_status status = encode_from(&ids, &n, c, 0, e);
    peridot_free(ids);
    return status;
}

static peridot_status check_loaded(const struct cmd_conversation *c, const char *path, const struct cmd_encoding *e)
{
    peridot_status status = cmd_conversation_check(c, e);
    if (status == PERIDOT_OK) return status;
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s", peridot_last_error());
    return pd_fail(status, "%s: %s", path, sentence);
}

peridot_status cmd_conversation_load(struct cmd_conversation *c, const char *path, const struct cmd_encoding *e)
{
    struct cmd_conversation loaded = {0};
    yyjson_read_err error;
    char *text;
    size_t size;
    PD_TRY(cmd_read_file(&text, &size, path));
    yyjson_doc *doc = yyjson_read_opts(text, size, 0, NULL, &error);
    peridot_status status = doc ? load_messages(&loaded, yyjson_doc_get_root(doc), path, e)
                                : pd_fail(PERIDOT_ERROR_FORMAT, "%s: byte %zu: %s: it is not JSON, as /save writes it",
                                          path, error.pos, error.msg);
    if (status == PERIDOT_OK) status = check_loaded(&loaded, path, e);
    yyjson_doc_free(doc);
    free(text);
    if (status != PERIDOT_OK) {
        cmd_conversation_free(&loaded);
        return status;
    }
    if (loaded.n && is_role(&loaded.messages[loaded.n - 1], "user")) cmd_conversation_undo(&loaded);
    cmd_conversation_free(c);
    *c = loaded;
    return PERIDOT_OK;
}
