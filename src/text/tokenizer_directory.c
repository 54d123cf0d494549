/* The tokenizer of a Hugging Face directory: tokenizer.model or tokenizer.json, and what the files beside it say: which
 * ids stop generation, which begin a text, and whether the model was tuned to chat. */
#include "text/tokenizer_private.h"

#include "base/json.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

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
        PD_TRY(pd_json_open_optional(&doc, directory, names[i]));
        found = mark_stops(&t->pieces, doc);
        yyjson_doc_free(doc);
    }
    return PERIDOT_OK;
}

/* A template is a string, or several with names, of which "default" counts, else the first. */
static yyjson_val *find_jinja(yyjson_doc *doc)
{
    yyjson_val *v = yyjson_obj_get(yyjson_doc_get_root(doc), "chat_template"), *item;
    size_t i, n;
    if (yyjson_is_str(v)) return v;
    yyjson_arr_foreach(v, i, n, item)
        if (yyjson_equals_str(yyjson_obj_get(item, "name"), "default")) return yyjson_obj_get(item, "template");
    return yyjson_obj_get(yyjson_arr_get_first(v), "template");
}

static void hint_folder(struct pd_chat_hints *h, const char *directory)
{
    size_t end = strlen(directory);
    while (end && directory[end - 1] == '/') end--;
    size_t begin = end;
    while (begin && directory[begin - 1] != '/') begin--;
    h->names[0] = directory + begin;
    h->names_size[0] = end - begin;
}

static peridot_status use_hints(struct pd_tokenizer *t, const char *directory, yyjson_doc *config,
                                const struct pd_map *jinja)
{
    struct pd_chat_hints h = {0};
    yyjson_val *v = find_jinja(config);
    if (yyjson_is_str(v)) {
        h.jinja = yyjson_get_str(v);
        h.jinja_size = yyjson_get_len(v);
    } else if (jinja->data) {
        h.jinja = (const char *)jinja->data;
        h.jinja_size = (size_t)jinja->size;
    }
    hint_folder(&h, directory);
    pd_tokenizer_find_chat(t, &h);
    if (!h.jinja) return PERIDOT_OK;
    PD_TRY(pd_text_append(&t->jinja, h.jinja, h.jinja_size));
    return pd_text_terminate(&t->jinja);
}

/* The template is in tokenizer_config.json, or (newer) in a file of its own. */
static peridot_status read_chat(struct pd_tokenizer *t, const char *directory, yyjson_doc *config)
{
    struct pd_map jinja = {0};
    char *path = pd_path_join(directory, "chat_template.jinja");
    if (!path) return pd_fail_alloc(strlen(directory), "file name");
    peridot_status status = pd_is_file(path) ? pd_map_read(&jinja, path) : PERIDOT_OK;
    if (status == PERIDOT_OK) status = use_hints(t, directory, config, &jinja);
    pd_map_close(&jinja);
    free(path);
    return status;
}

/* ---- vocabulary ---- */

/* "bos_token": its text, or an object with "content". What is no piece is left to what the vocabulary said itself: some
 * files name a token that the model lacks. */
static void read_named(int32_t *id, const struct pd_pieces *p, yyjson_doc *config, const char *key)
{
    yyjson_val *name = yyjson_obj_get(yyjson_doc_get_root(config), key);
    if (yyjson_is_obj(name)) name = yyjson_obj_get(name, "content");
    if (!yyjson_is_str(name)) return;
    int32_t named = pd_pieces_find_control(p, yyjson_get_str(name), yyjson_get_len(name));
    if (named >= 0) *id = named;
}

/* eos ids that generation_config.json lists are marked elsewhere. */
static void use_config(struct pd_pieces *p, yyjson_doc *config)
{
    read_named(&p->bos, p, config, "bos_token");
    read_named(&p->eos, p, config, "eos_token");
    pd_pieces_mark_stop(p, p->eos);
    yyjson_val *add = yyjson_obj_get(yyjson_doc_get_root(config), "add_bos_token");
    p->no_bos = yyjson_is_false(add);
}

/* Llama 3's "tokenizer.model" is a list in base64, tiktoken's format, beside a tokenizer.json that says more. */
static bool is_tiktoken(const char *path)
{
    struct pd_map map;
    if (pd_map_open(&map, path) != PERIDOT_OK) return false;
    bool is = map.size > 7 && memcmp(map.data, "IQ== 0\n", 7) == 0;
    pd_map_close(&map);
    return is;
}

static peridot_status read_vocabulary(struct pd_tokenizer *t, const char *directory, const char *model,
                                      const char *json)
{
    if (pd_is_file(model) && !(pd_is_file(json) && is_tiktoken(model))) return pd_tokenizer_read_model(t, model);
    if (pd_is_file(json)) return pd_tokenizer_read_json(t, json);
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                   "%s: neither tokenizer.model nor tokenizer.json (no other tokenizer is supported)", directory);
}

static peridot_status find_vocabulary(struct pd_tokenizer *t, const char *directory)
{
    char *model = pd_path_join(directory, "tokenizer.model"), *json = pd_path_join(directory, "tokenizer.json");
    peridot_status status = model && json ? read_vocabulary(t, directory, model, json)
                                          : pd_fail_alloc(strlen(directory), "file name");
    free(model);
    free(json);
    return status;
}

static peridot_status build(struct pd_tokenizer *t, const char *directory)
{
    peridot_status status = pd_tokenizer_build(t);
    return status == PERIDOT_OK ? status : pd_fail_prefix(status, directory);
}

peridot_status pd_tokenizer_read_directory(struct pd_tokenizer *t, const char *directory)
{
    yyjson_doc *config;
    PD_TRY(find_vocabulary(t, directory));
    PD_TRY(pd_json_open_optional(&config, directory, "tokenizer_config.json"));
    use_config(&t->pieces, config);
    peridot_status status = build(t, directory);
    if (status == PERIDOT_OK) status = read_stops(t, directory);
    if (status == PERIDOT_OK) status = read_chat(t, directory, config);
    yyjson_doc_free(config);
    return status;
}
