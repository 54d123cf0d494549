/* Opens a tokenizer from what people have: a tokenizer.model, a tokenizer.json, a directory with one, a GGUF file.
 * First the pieces, then all that follows from them, then what the other files say: which ids stop generation, which
 * begin a text, and the chat template of a model that was tuned to chat. */
#include "text/text_.h"

#include "base/base.h"
#include "format/format.h"
#include "text/template/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pieces of one file ---- */

/* Of a tokenizer.json, or of a tokenizer.model. */
static peridot_status open_read_pieces(struct pd_tokenizer *t, const char *path, bool json)
{
    struct pd_map map;
    PD_TRY(pd_map_read(&map, path));
    peridot_status status = json ? pd_foreign_check_text(map.data, map.size, path, "JSON")
                                 : pd_foreign_check(map.data, map.size, path, "a sentencepiece model");
    if (status == PERIDOT_OK) {
        status = json ? pd_pieces_read_json(&t->pieces, map.data, map.size)
                      : pd_pieces_read_model(&t->pieces, map.data, map.size);
        if (status != PERIDOT_OK) pd_fail_prefix(status, path);
    }
    pd_map_close(&map);
    return status;
}

/* ---- what follows from the pieces ---- */

static peridot_status create_sentencepiece(struct pd_tokenizer *t)
{
    struct pd_buffer model = {0};
    peridot_status status = pd_pieces_write_model(&model, &t->pieces);
    bool lines_apart = pd_pieces_lines_apart(&t->pieces);
    if (status == PERIDOT_OK) status = pd_sentencepiece_create(&t->sentencepiece, model.data, model.size, lines_apart);
    free(model.data);
    return status;
}

/* See text_.h. Where text is dropped, or a run of it becomes one token, that is any number. */
static size_t find_longest(const struct pd_tokenizer *t)
{
    const struct pd_pieces *p = &t->pieces;
    bool bytes = p->algorithm == PD_ALGORITHM_BYTE_MERGES || pd_pieces_has_bytes(p);   /* else runs are unknown */
    size_t longest = 1;
    if (!bytes || p->remove_spaces || (t->bpe && pd_bpe_drops(t->bpe))) return 0;
    for (uint32_t i = 0; i < p->n; i++) {
        if (!pd_pieces_is_plain(p, i)) continue;
        if (p->piece[i].lstrip || p->piece[i].rstrip) return 0;
        longest = pd_max(longest, p->piece[i].size);
    }
    return p->nfc ? 3 * longest : longest;   /* form C makes three bytes of nine at most */
}

peridot_status pd_tokenizer_build(struct pd_tokenizer *t)
{
    PD_TRY(pd_pieces_by_merges(&t->pieces) ? pd_bpe_create(&t->bpe, &t->pieces) : create_sentencepiece(t));
    t->longest = find_longest(t);
    PD_TRY(pd_special_create(&t->special, &t->pieces, PD_SPECIAL_CONTROL));
    pd_chat_mark_stops(&t->pieces, &t->special);
    struct pd_thought_header header = {0};
    t->thoughts_named = pd_chat_find_thoughts(t->thoughts, &header, &t->special, &t->pieces);
    pd_infill_find(t->infill, &t->pieces, &t->special);
    if (t->thoughts[PD_THOUGHT_START] < 0) return PERIDOT_OK;
    int32_t piece = *header.piece ? pd_special_find(&t->special, &t->pieces, header.piece) : -1;
    t->channels = piece >= 0;
    if (t->channels) PD_TRY(pd_ids_append(&t->thought_header, &piece, 1));
    return pd_tokenizer_encode_plain(&t->thought_header, t, header.text, strlen(header.text), PD_PLACE_WITHIN);
}

static peridot_status build_at(struct pd_tokenizer *t, const char *path)
{
    peridot_status status = pd_tokenizer_build(t);
    return status == PERIDOT_OK ? status : pd_fail_prefix(status, path);
}

/* What a model's files say beside its vocabulary; texts need not be terminated, NULL when absent. */
struct chat_hints {
    const char *jinja, *tools_jinja;   /* the second of conversations with tools alone */
    size_t jinja_size, tools_jinja_size;
    const char *names[2];      /* of the model */
    size_t names_size[2];
};

/* A template that cannot be run, or does nothing with messages, gives way to its family's. */
static peridot_status read_program(struct pd_tokenizer *t, const struct chat_hints *h)
{
    PD_TRY(pd_buffer_add(&t->jinja, h->jinja, h->jinja_size));
    PD_TRY(pd_buffer_end(&t->jinja));
    peridot_status status = pd_template_parse(&t->program, h->jinja, h->jinja_size);
    if (status == PERIDOT_ERROR_MEMORY) return status;
    if (status != PERIDOT_OK) snprintf(t->program_error, sizeof t->program_error, "%s", pd_error());
    if (t->program && !pd_template_reads(t->program, "messages")) {
        snprintf(t->program_error, sizeof t->program_error, "it does not read messages");
        pd_template_free(t->program);
        t->program = NULL;
    }
    return PERIDOT_OK;
}

/* One that cannot be run is as if it were not there: the other says how tools are told of. */
static peridot_status read_tools_program(struct pd_tokenizer *t, const struct chat_hints *h)
{
    if (!t->program || !h->tools_jinja) return PERIDOT_OK;
    peridot_status status = pd_template_parse(&t->tools_program, h->tools_jinja, h->tools_jinja_size);
    if (status != PERIDOT_OK) return status == PERIDOT_ERROR_MEMORY ? status : PERIDOT_OK;
    PD_TRY(pd_buffer_add(&t->tools_jinja, h->tools_jinja, h->tools_jinja_size));
    PD_TRY(pd_buffer_end(&t->tools_jinja));
    if (pd_template_reads(t->tools_program, "messages") && pd_template_reads(t->tools_program, "tools"))
        return PERIDOT_OK;
    pd_template_free(t->tools_program);
    t->tools_program = NULL;
    return PERIDOT_OK;
}

static peridot_status find_chat(struct pd_tokenizer *t, const struct chat_hints *h)
{
    if (h->jinja) {
        PD_TRY(read_program(t, h));
        PD_TRY(read_tools_program(t, h));
        t->chat = pd_chat_by_template(h->jinja, h->jinja_size, &t->special, &t->pieces);
        t->published = t->chat && pd_chat_is_published(t->chat, pd_chat_hash(h->jinja, h->jinja_size));
        t->no_thought = t->chat && pd_chat_has_no_thought(t->chat, h->jinja, h->jinja_size);
        t->chat_origin = t->published || t->program ? PERIDOT_TEMPLATE_OWN
                       : t->chat ? PERIDOT_TEMPLATE_REPLACED : PERIDOT_TEMPLATE_UNKNOWN;
        return PERIDOT_OK;
    }
    for (int i = 0; i < 2 && !t->chat; i++)
        if (h->names[i]) t->chat = pd_chat_by_name(h->names[i], h->names_size[i], &t->special, &t->pieces);
    t->chat_origin = t->chat ? PERIDOT_TEMPLATE_BY_NAME : PERIDOT_TEMPLATE_NONE;
    return PERIDOT_OK;
}

/* ---- a Hugging Face directory ---- */

/* A number, or several. False where there is no such member. */
static bool mark_ids(struct pd_pieces *p, yyjson_doc *doc, const char *key, void (*mark)(struct pd_pieces *, int64_t))
{
    yyjson_val *ids = yyjson_obj_get(yyjson_doc_get_root(doc), key), *id;
    size_t i, n;
    if (yyjson_is_int(ids)) mark(p, yyjson_get_sint(ids));
    yyjson_arr_foreach(ids, i, n, id) if (yyjson_is_int(id)) mark(p, yyjson_get_sint(id));
    return ids != NULL;
}

/* What generation_config.json says of ids, or else config.json. */
static peridot_status read_generation(struct pd_tokenizer *t, const char *directory)
{
    static const char *const names[] = {"generation_config.json", "config.json"};
    bool found = false;
    for (int i = 0; i < 2 && !found; i++) {
        yyjson_doc *doc;
        PD_TRY(pd_json_open_optional(&doc, directory, names[i]));
        found = mark_ids(&t->pieces, doc, "eos_token_id", pd_pieces_mark_stop);
        mark_ids(&t->pieces, doc, "suppress_tokens", pd_pieces_suppress);
        yyjson_doc_free(doc);
    }
    return PERIDOT_OK;
}

/* Of several templates the one with that name. */
static yyjson_val *find_named(yyjson_val *templates, const char *name)
{
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach(templates, i, n, item)
        if (yyjson_equals_str(yyjson_obj_get(item, "name"), name)) return yyjson_obj_get(item, "template");
    return NULL;
}

/* A template is a string, or several with names, of which "default" counts, else the first; but "tool_use" where there
 * are tools. */
static void hint_config(struct chat_hints *h, yyjson_doc *config)
{
    yyjson_val *v = yyjson_obj_get(yyjson_doc_get_root(config), "chat_template");
    yyjson_val *tools = find_named(v, "tool_use"), *named = find_named(v, "default");
    if (yyjson_is_arr(v)) v = named ? named : yyjson_obj_get(yyjson_arr_get_first(v), "template");
    h->jinja = yyjson_get_str(v), h->jinja_size = yyjson_get_len(v);
    h->tools_jinja = yyjson_get_str(tools), h->tools_jinja_size = yyjson_get_len(tools);
}

static void hint_folder(struct chat_hints *h, const char *directory)
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
    struct chat_hints h = {0};
    hint_config(&h, config);
    if (!h.jinja && jinja->data) {
        h.jinja = (const char *)jinja->data;
        h.jinja_size = (size_t)jinja->size;
    }
    hint_folder(&h, directory);
    return find_chat(t, &h);
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

/* eos ids that generation_config.json lists are marked elsewhere. Gemma 4 begins with bos whatever the file says: it is
 * known by its mark of a turn. */
static void use_config(struct pd_pieces *p, yyjson_doc *config)
{
    bool gemma4 = pd_pieces_find_control(p, "<|turn>", strlen("<|turn>")) >= 0;
    read_named(&p->bos, p, config, "bos_token");
    read_named(&p->eos, p, config, "eos_token");
    pd_pieces_mark_stop(p, p->eos);
    yyjson_val *add = yyjson_obj_get(yyjson_doc_get_root(config), "add_bos_token");
    p->no_bos = (p->no_bos || yyjson_is_false(add)) && !gemma4;
    bool ends = yyjson_is_true(yyjson_obj_get(yyjson_doc_get_root(config), "add_eos_token"));
    if (ends && p->end < 0) p->end = p->eos;
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

/* The configuration names added tokens past the pieces of tokenizer.model: Phi 3's, and those of other models that were
 * tuned from Llama 2 or Mistral 7B. */
static bool adds_tokens(const struct pd_pieces *p, yyjson_doc *config)
{
    yyjson_val *id, *token, *added = yyjson_obj_get(yyjson_doc_get_root(config), "added_tokens_decoder");
    size_t i, n;
    if (added) yyjson_obj_foreach(added, i, n, id, token)
        if (strtoul(yyjson_get_str(id), NULL, 10) >= p->n) return true;
    return false;
}

/* Where text has a dummy prefix: a tokenizer.model says whether there is one. The rest is in the tokenizer.json beside
 * it, or else in the configuration, as transformers reads it; "legacy" is true where it is not said. */
static peridot_status read_prefix(struct pd_pieces *p, const char *json, yyjson_doc *config)
{
    struct pd_map map;
    struct pd_json_steps steps = {0};
    yyjson_doc *doc = NULL;
    yyjson_val *root = yyjson_doc_get_root(config);
    p->prefix_each = !yyjson_is_false(yyjson_obj_get(root, "legacy"));
    p->prefix_unless_space = !p->prefix_each;
    if (!json && yyjson_is_false(yyjson_obj_get(root, "add_prefix_space"))) p->dummy_prefix = p->strip_prefix = false;
    if (!json || !p->dummy_prefix) return PERIDOT_OK;
    PD_TRY(pd_map_read(&map, json));
    peridot_status status = pd_json_read(&doc, map.data, map.size);
    pd_map_close(&map);
    if (status == PERIDOT_ERROR_MEMORY) return status;
    if (status == PERIDOT_OK) status = pd_json_steps_read(&steps, yyjson_doc_get_root(doc));
    if (status == PERIDOT_OK) {   /* one that cannot be read is not needed */
        p->dummy_prefix = steps.prefix;
        p->prefix_each = steps.prefix_each;
        p->prefix_unless_space = steps.prefix_unless_space;
    }
    yyjson_doc_free(doc);
    return PERIDOT_OK;
}

static peridot_status read_vocabulary(struct pd_tokenizer *t, const char *directory, const char *model,
                                      const char *json, yyjson_doc *config)
{
    bool has_json = pd_is_file(json);
    if (pd_is_file(model) && !(has_json && is_tiktoken(model))) {
        PD_TRY(open_read_pieces(t, model, false));
        if (!has_json || !adds_tokens(&t->pieces, config))
            return read_prefix(&t->pieces, has_json ? json : NULL, config);
        pd_pieces_free(&t->pieces);
    }
    if (has_json) return open_read_pieces(t, json, true);
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                   "%s: neither tokenizer.model nor tokenizer.json (other forms, such as Mistral's tekken.json, are "
                   "not supported)", directory);
}

static peridot_status find_vocabulary(struct pd_tokenizer *t, const char *directory, yyjson_doc *config)
{
    char *model = pd_path_join(directory, "tokenizer.model"), *json = pd_path_join(directory, "tokenizer.json");
    peridot_status status = model && json ? read_vocabulary(t, directory, model, json, config)
                                          : pd_fail_alloc(strlen(directory), "file name");
    free(model);
    free(json);
    return status;
}

static peridot_status read_directory(struct pd_tokenizer *t, const char *directory)
{
    yyjson_doc *config;
    PD_TRY(pd_json_open_optional(&config, directory, "tokenizer_config.json"));
    peridot_status status = find_vocabulary(t, directory, config);
    if (status == PERIDOT_OK) use_config(&t->pieces, config);
    if (status == PERIDOT_OK) status = build_at(t, directory);
    if (status == PERIDOT_OK) status = read_generation(t, directory);
    if (status == PERIDOT_OK) status = read_chat(t, directory, config);
    yyjson_doc_free(config);
    return status;
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
    struct chat_hints h = {0};
    PD_TRY(pd_pieces_read_gguf(&t->pieces, c));
    PD_TRY(pd_tokenizer_build(t));
    if (!pd_tokenizer_has_infill(t)) PD_TRY(pd_infill_read_gguf(t->infill, &t->pieces, c));
    hint_meta(&h.jinja, &h.jinja_size, c, "tokenizer.chat_template");
    hint_meta(&h.tools_jinja, &h.tools_jinja_size, c, "tokenizer.chat_template.tool_use");
    hint_meta(&h.names[0], &h.names_size[0], c, "general.name");
    hint_meta(&h.names[1], &h.names_size[1], c, "general.finetune");
    return find_chat(t, &h);
}

/* ---- a file by itself ---- */

static peridot_status open_open_file(struct pd_tokenizer *t, const char *path, bool json)
{
    PD_TRY(open_read_pieces(t, path, json));
    return build_at(t, path);
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
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_HF) return finish(out, t, read_directory(t, path));
    peridot_status status = pd_checkpoint_check(open_gguf(t, c), c);
    return finish(out, t, status == PERIDOT_OK ? status : pd_fail_prefix(status, path));
}

enum file_kind { FILE_GGUF, FILE_JSON, FILE_OTHER };

static peridot_status open_look(enum file_kind *out, const char *path)
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
    if (!directory) PD_TRY(open_look(&kind, path));
    if (kind == FILE_GGUF) return open_checkpoint(out, path);
    struct pd_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return pd_fail_alloc(sizeof *t, "tokenizer");
    return finish(out, t, directory ? read_directory(t, path) : open_open_file(t, path, kind == FILE_JSON));
}

/* ---- tokenizer gguf ---- */

/* A tokenizer as the keys tokenizer.* of a GGUF file: the inverse of pieces_gguf.c. */

#define KEY(name) "tokenizer.ggml." name

/* Strings in one buffer: it moves while it grows, so that pointers into it are made last. */
struct list {
    struct pd_buffer text;
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

static peridot_status append_piece(struct pd_buffer *out, const struct pd_pieces *p, uint32_t id)
{
    const char *text = pd_pieces_text(p, id);
    const struct pd_piece *piece = &p->piece[id];
    bool bytes = p->algorithm == PD_ALGORITHM_BYTE_MERGES;
    if (bytes && piece->type == PD_PIECE_NORMAL) return pd_byte_level_write(out, text, piece->size);
    /* User-defined pieces are matched before spaces are escaped, so files hold them with spaces. */
    if (!bytes && piece->type == PD_PIECE_USER) return pd_text_append_unescaped(out, text, piece->size);
    return pd_buffer_add(out, text, piece->size);
}

static peridot_status append_token(struct pd_buffer *out, const struct pd_pieces *p, uint32_t id)
{
    char pad[24];
    if (id < p->n) return append_piece(out, p, id);
    return pd_buffer_add(out, pad, (size_t)snprintf(pad, sizeof pad, "[PAD%u]", (unsigned)id));
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
static peridot_status append_half(struct pd_buffer *out, const struct pd_pieces *p, uint32_t id)
{
    if (p->algorithm == PD_ALGORITHM_BYTE_MERGES) return append_piece(out, p, id);
    return pd_buffer_add(out, pd_pieces_text(p, id), p->piece[id].size);
}

static peridot_status append_merge(struct pd_buffer *out, const struct pd_pieces *p, const struct pd_merge *m)
{
    PD_TRY(append_half(out, p, m->left));
    PD_TRY(pd_buffer_add(out, " ", 1));
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
    if (!t->tools_program) return PERIDOT_OK;
    const struct pd_string tool_use = {"tool_use", strlen("tool_use")};   /* as llama.cpp's converter lists them */
    pd_gguf_writer_add_strings(w, "tokenizer.chat_templates", 1, &tool_use);
    pd_gguf_writer_add_string(w, "tokenizer.chat_template.tool_use", t->tools_jinja.data);
    return PERIDOT_OK;
}
