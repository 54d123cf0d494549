/* Opens a tokenizer from what people have: a tokenizer.model, a Hugging Face directory, a GGUF file. Gathers what those
 * say beside the pieces: which ids stop generation, and whether the model was tuned to chat. */
#include "text/tokenizer_private.h"

#include "base/os.h"

#include <stdlib.h>
#include <string.h>

/* Hints for the chat template; texts need not be terminated, NULL when absent. */
struct hints {
    const char *jinja;
    size_t jinja_size;
    const char *names[2];
    size_t names_size[2];
};

/* Over the end of a line no merge reaches if no piece has a line break beside another character. */
static bool lines_apart(const struct pd_pieces *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const char *text = pd_pieces_text(p, i);
        size_t breaks = 0;
        if (p->piece[i].type == PD_PIECE_CONTROL || !memchr(text, '\n', p->piece[i].size)) continue;
        for (size_t k = 0; k < p->piece[i].size; k++) breaks += text[k] == '\n';
        if (breaks != p->piece[i].size) return false;
    }
    return true;
}

static peridot_status create_sentencepiece(struct pd_tokenizer *t)
{
    struct pd_text_buffer model = {0};
    peridot_status status = pd_pieces_write_model(&model, &t->pieces);
    if (status == PERIDOT_OK) status = pd_sentencepiece_create(&t->sentencepiece, model.data, model.size);
    free(model.data);
    return status;
}

/* What follows once the pieces are read. */
static peridot_status build(struct pd_tokenizer *t)
{
    PD_TRY(create_sentencepiece(t));
    PD_TRY(pd_special_create(&t->special, &t->pieces));
    pd_chat_mark_stops(&t->pieces, &t->special);
    t->lines_apart = lines_apart(&t->pieces);
    return PERIDOT_OK;
}

static void find_chat(struct pd_tokenizer *t, const struct hints *h)
{
    if (h->jinja) {
        t->chat = pd_chat_by_template(h->jinja, h->jinja_size, &t->special, &t->pieces);
        return;
    }
    for (int i = 0; i < 2 && !t->chat; i++)
        if (h->names[i]) t->chat = pd_chat_by_name(h->names[i], h->names_size[i], &t->special, &t->pieces);
}

/* ---- GGUF ---- */

static void hint_meta(const char **out, size_t *size, const struct pd_checkpoint *c, const char *key)
{
    struct pd_string s;
    const struct pd_meta *m = pd_checkpoint_find_meta(c, key);
    if (!m || m->type != PD_META_STRING || !pd_meta_string(&s, m, 0)) return;
    *out = s.data ? s.data : "";
    *size = s.size;
}

static peridot_status open_gguf(struct pd_tokenizer *t, const struct pd_checkpoint *c)
{
    struct hints h = {0};
    PD_TRY(pd_pieces_read_gguf(&t->pieces, c));
    PD_TRY(build(t));
    hint_meta(&h.jinja, &h.jinja_size, c, "tokenizer.chat_template");
    hint_meta(&h.names[0], &h.names_size[0], c, "general.name");
    hint_meta(&h.names[1], &h.names_size[1], c, "general.finetune");
    find_chat(t, &h);
    return PERIDOT_OK;
}

/* ---- tokenizer.model ---- */

static peridot_status read_model_file(struct pd_tokenizer *t, const char *path)
{
    struct pd_map map;
    PD_TRY(pd_map_open(&map, path));
    peridot_status status = pd_pieces_read_model(&t->pieces, map.data, map.size);
    pd_map_close(&map);
    if (status == PERIDOT_OK) status = build(t);
    return status == PERIDOT_OK ? status : pd_fail_prefix(status, path);
}

/* ---- Hugging Face directory ---- */

/* *out is NULL when the directory has no such file. */
static peridot_status read_json(yyjson_doc **out, const char *directory, const char *name)
{
    *out = NULL;
    char *path = pd_path_join(directory, name);
    if (!path) return pd_fail_alloc(strlen(directory), "file name");
    peridot_status status = PERIDOT_OK;
    if (pd_is_file(path)) {
        yyjson_read_err e;
        *out = yyjson_read_file(path, 0, NULL, &e);
        if (!*out) status = pd_fail(PERIDOT_ERROR_FORMAT, "%s: %s (byte %zu)", path, e.msg, e.pos);
    }
    free(path);
    return status;
}

/* eos_token_id: a number, or several. */
static bool mark_stops(struct pd_pieces *p, yyjson_doc *doc)
{
    yyjson_val *eos = yyjson_obj_get(yyjson_doc_get_root(doc), "eos_token_id"), *id;
    size_t i, n;
    if (yyjson_is_int(eos)) pd_pieces_mark_stop(p, yyjson_get_sint(eos));
    yyjson_arr_foreach(eos, i, n, id) if (yyjson_is_int(id)) pd_pieces_mark_stop(p, yyjson_get_sint(id));
    return eos != NULL;
}

static peridot_status read_stops(struct pd_tokenizer *t, const char *directory)
{
    static const char *const names[] = {"generation_config.json", "config.json"};
    bool found = false;
    for (int i = 0; i < 2 && !found; i++) {
        yyjson_doc *doc;
        PD_TRY(read_json(&doc, directory, names[i]));
        found = mark_stops(&t->pieces, doc);
        yyjson_doc_free(doc);
    }
    return PERIDOT_OK;
}

/* A template is a string, or several with names, of which "default" counts. */
static yyjson_val *find_jinja(yyjson_doc *doc)
{
    yyjson_val *v = yyjson_obj_get(yyjson_doc_get_root(doc), "chat_template"), *item;
    size_t i, n;
    if (yyjson_is_str(v)) return v;
    yyjson_arr_foreach(v, i, n, item)
        if (yyjson_equals_str(yyjson_obj_get(item, "name"), "default")) return yyjson_obj_get(item, "template");
    return NULL;
}

static void hint_folder(struct hints *h, const char *directory)
{
    size_t end = strlen(directory);
    while (end && directory[end - 1] == '/') end--;
    size_t begin = end;
    while (begin && directory[begin - 1] != '/') begin--;
    h->names[0] = directory + begin;
    h->names_size[0] = end - begin;
}

static void use_hints(struct pd_tokenizer *t, const char *directory, yyjson_doc *config, const struct pd_map *jinja)
{
    struct hints h = {0};
    yyjson_val *v = find_jinja(config);
    if (yyjson_is_str(v)) {
        h.jinja = yyjson_get_str(v);
        h.jinja_size = yyjson_get_len(v);
    } else if (jinja->data) {
        h.jinja = (const char *)jinja->data;
        h.jinja_size = (size_t)jinja->size;
    }
    hint_folder(&h, directory);
    find_chat(t, &h);
}

/* The template is in tokenizer_config.json, or (newer) in a file of its own. */
static peridot_status read_chat(struct pd_tokenizer *t, const char *directory)
{
    yyjson_doc *config;
    struct pd_map jinja = {0};
    char *path = pd_path_join(directory, "chat_template.jinja");
    if (!path) return pd_fail_alloc(strlen(directory), "file name");
    peridot_status status = read_json(&config, directory, "tokenizer_config.json");
    if (status == PERIDOT_OK && pd_is_file(path)) status = pd_map_open(&jinja, path);
    if (status == PERIDOT_OK) use_hints(t, directory, config, &jinja);
    pd_map_close(&jinja);
    yyjson_doc_free(config);
    free(path);
    return status;
}

static peridot_status open_directory(struct pd_tokenizer *t, const char *directory)
{
    char *path = pd_path_join(directory, "tokenizer.model");
    if (!path) return pd_fail_alloc(strlen(directory), "file name");
    peridot_status status = pd_is_file(path) ? read_model_file(t, path)
                          : pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: no tokenizer.model (no other tokenizer is supported)",
                                    directory);
    free(path);
    PD_TRY(status);
    PD_TRY(read_stops(t, directory));
    return read_chat(t, directory);
}

/* ---- any ---- */

/* Hands over what was opened, or frees it. */
static peridot_status finish(struct pd_tokenizer **out, struct pd_tokenizer *t, peridot_status status)
{
    if (status == PERIDOT_OK) *out = t;
    else pd_tokenizer_close(t);
    return status;
}

peridot_status pd_tokenizer_from_checkpoint(struct pd_tokenizer **out, const struct pd_checkpoint *c)
{
    *out = NULL;
    const char *path = pd_checkpoint_path(c);
    struct pd_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return pd_fail_alloc(sizeof *t, "tokenizer");
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_HF) return finish(out, t, open_directory(t, path));
    peridot_status status = open_gguf(t, c);
    return finish(out, t, status == PERIDOT_OK ? status : pd_fail_prefix(status, path));
}

enum file_kind { FILE_GGUF, FILE_JSON, FILE_OTHER };

static peridot_status look(enum file_kind *out, const char *path)
{
    struct pd_map map;
    uint64_t i = 0;
    PD_TRY(pd_map_open(&map, path));
    while (i < map.size && strchr(" \t\r\n", map.data[i]) && map.data[i]) i++;
    if (map.size >= 4 && memcmp(map.data, "GGUF", 4) == 0) *out = FILE_GGUF;
    else *out = i < map.size && map.data[i] == '{' ? FILE_JSON : FILE_OTHER;
    pd_map_close(&map);
    return PERIDOT_OK;
}

static peridot_status open_checkpoint(struct pd_tokenizer **out, const char *path)
{
    struct pd_checkpoint *c;
    PD_TRY(pd_checkpoint_open(&c, path, false));
    peridot_status status = pd_tokenizer_from_checkpoint(out, c);
    pd_checkpoint_close(c);
    return status;
}

peridot_status pd_tokenizer_open(struct pd_tokenizer **out, const char *path)
{
    *out = NULL;
    enum file_kind kind = FILE_OTHER;
    bool directory = pd_is_directory(path);
    if (!directory) PD_TRY(look(&kind, path));
    if (kind == FILE_GGUF) return open_checkpoint(out, path);
    if (kind == FILE_JSON)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: a JSON tokenizer is not supported; a sentencepiece model is", path);
    struct pd_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return pd_fail_alloc(sizeof *t, "tokenizer");
    return finish(out, t, directory ? open_directory(t, path) : read_model_file(t, path));
}
