#include "infill.h"
#include "server.h"
#include "tasks.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 16 };           /* of a text for a token of the context: more of it is not even encoded */

struct ids {
    int32_t *at;               /* [n] */
    size_t n, capacity;
};

struct text {
    const char *data;
    size_t size;
};

static bool refuse_memory(struct serve_job *job)
{
    return serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
}

static bool put(struct ids *out, struct serve_job *job, const int32_t *ids, size_t n)
{
    if (cmd_array_reserve(&out->at, &out->capacity, out->n, n, sizeof *ids, "tokens") != PERIDOT_OK)
        return refuse_memory(job);
    if (n) memcpy(out->at + out->n, ids, n * sizeof *ids);
    out->n += n;
    return true;
}

/* Its tokens are the caller's to choose from: they have no limit but that of the text. */
static peridot_encode_limit limit_of(struct serve_job *job)
{
    peridot_encode_limit limit = serve_limit(job);
    limit.n_most = 0;
    return limit;
}

static bool put_text(struct ids *out, struct serve_job *job, const peridot_vocab *vocab, struct text text,
                     unsigned flags)
{
    int32_t *ids;
    size_t n;
    peridot_encode_limit limit = limit_of(job);
    peridot_status status = peridot_encode_within(&ids, &n, vocab, text.data, text.size, flags, &limit);
    bool good = status == PERIDOT_OK ? put(out, job, ids, n) : serve_refuse_encoding(job, &limit, status);
    peridot_free(ids);
    return good;
}

/* ---- the frame ---- */

/* The whole prompt of two texts: bos, where there is one, and the texts between three tokens. */
static bool encode(struct ids *out, struct serve_job *job, const peridot_vocab *vocab, struct text prefix,
                   struct text suffix)
{
    peridot_encode_limit limit = limit_of(job);
    const peridot_infill infill = {.size = sizeof infill, .prefix = prefix.data, .prefix_size = prefix.size,
                                   .suffix = suffix.data, .suffix_size = suffix.size, .limit = &limit};
    peridot_status status = peridot_encode_infill(&out->at, &out->n, vocab, &infill);
    return status == PERIDOT_OK || serve_refuse_encoding(job, &limit, status);
}

/* The parts of a text that an editor sends, without what could not fit by its bytes alone: of what stands before the
 * place its end, of what stands after it its beginning. Characters stay whole. */
static struct text last_of(struct text text, size_t most)
{
    size_t cut = text.size > most ? text.size - most : 0;
    while (cut && cut < text.size && ((unsigned char)text.data[cut] & 0xc0) == 0x80) cut++;
    return (struct text){text.data + cut, text.size - cut};
}

static struct text first_of(struct text text, size_t most)
{
    size_t size = cmd_min(text.size, most);
    while (size < text.size && size && ((unsigned char)text.data[size] & 0xc0) == 0x80) size--;
    return (struct text){text.data, size};
}

/* ---- other files ---- */

/* What vocabularies call the tokens before the name of a repository and before that of a file. */
static const char *const marks[][2] = {
    {"<|repo_name|>", "<|file_sep|>"},   /* Qwen Coder */
    {"<repo_name>", "<file_sep>"},       /* StarCoder 2 */
    {"<reponame>", "<filename>"},        /* StarCoder, Granite Code */
};

/* Row of `marks` that the vocabulary has; their count: none. */
static size_t find_marks(const peridot_vocab *vocab)
{
    size_t i, n_found = 0;
    for (i = 0; i < CMD_COUNT(marks) && n_found < 2; i += n_found < 2) {
        n_found = 0;
        for (size_t k = 0; k < 2; k++) {
            int32_t *ids;
            size_t n = 0;
            bool good = peridot_encode(&ids, &n, vocab, marks[i][k], strlen(marks[i][k]), PERIDOT_ENCODE_SPECIAL)
                     == PERIDOT_OK;
            n_found += good && n == 1;
            peridot_free(ids);
        }
    }
    return i;
}

/* "": there is none. */
static struct text text_of(yyjson_val *value)
{
    return yyjson_is_str(value) ? (struct text){yyjson_get_str(value), yyjson_get_len(value)} : (struct text){"", 0};
}

/* A file, or what stands between files where they have no names. */
static bool put_file(struct ids *out, struct serve_job *job, const peridot_vocab *vocab, size_t row, yyjson_val *file)
{
    static const char between[] = "\n\n--- snippet ---\n\n";
    yyjson_val *name = yyjson_obj_get(file, "filename");
    const struct text given = name ? text_of(name) : (struct text){"tmp", 3},
                      text = text_of(yyjson_obj_get(file, "text"));
    size_t most = (size_t)BYTES * job->model->ctx;
    job->cut = job->cut || text.size > most;
    if (row == CMD_COUNT(marks)) {
        if (!put_text(out, job, vocab, (struct text){between, sizeof between - 1}, 0)) return false;
    } else if (!put_text(out, job, vocab, (struct text){marks[row][1], strlen(marks[row][1])}, PERIDOT_ENCODE_SPECIAL)
               || !put_text(out, job, vocab, first_of(given, 256), 0)
               || !put_text(out, job, vocab, (struct text){"\n", 1}, 0)) return false;
    return put_text(out, job, vocab, first_of(text, most), 0);
}

static bool check_files(struct serve_job *job, yyjson_val *files)
{
    size_t i, n;
    yyjson_val *each;
    bool good = !files || yyjson_is_null(files) || yyjson_is_arr(files);
    yyjson_arr_foreach(files, i, n, each) {
        yyjson_val *name = yyjson_obj_get(each, "filename");
        good = good && yyjson_is_str(yyjson_obj_get(each, "text")) && (!name || yyjson_is_str(name));
    }
    return good
        || serve_refuse_type(&job->error, "input_extra", "must be a list of {\"filename\": ..., \"text\": ...}");
}

/* The files of the list that fit `room` tokens, the last first, in the list's order. */
static bool put_files(struct ids *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *files,
                      uint64_t room)
{
    static const char name[] = "myproject\n";   /* as llama.cpp's server has it: clients say none */
    size_t row = find_marks(vocab), n = yyjson_arr_size(files), first = n;
    struct ids all = {0}, file = {0};
    bool good = true, named = row < CMD_COUNT(marks);
    if (!n) return true;
    if (named)
        good = put_text(&all, job, vocab, (struct text){marks[row][0], strlen(marks[row][0])}, PERIDOT_ENCODE_SPECIAL)
            && put_text(&all, job, vocab, (struct text){name, sizeof name - 1}, 0);
    size_t n_all = all.n;
    while (good && first > 0) {   /* how many there is room for */
        file.n = 0;
        good = put_file(&file, job, vocab, row, yyjson_arr_get(files, first - 1));
        if (n_all + file.n > room) break;
        n_all += file.n;
        first--;
    }
    job->cut = job->cut || first > 0;
    for (size_t i = first; i < n && good; i++) good = put_file(&all, job, vocab, row, yyjson_arr_get(files, i));
    if (good && first < n) good = put(out, job, all.at, all.n);
    free(all.at);
    free(file.at);
    return good;
}

/* ---- all of it ---- */

/* The tokens of either text, without those of the frame around them. */
struct parts {
    struct ids frame, prefix, suffix;
    struct text given[2];
};

static bool encode_parts(struct parts *p, struct serve_job *job, const peridot_vocab *vocab)
{
    static const struct text none = {"", 0};
    size_t most = (size_t)BYTES * job->model->ctx;
    job->cut = p->given[0].size > most || p->given[1].size > most;
    return encode(&p->frame, job, vocab, none, none) && encode(&p->prefix, job, vocab, last_of(p->given[0], most), none)
        && encode(&p->suffix, job, vocab, none, first_of(p->given[1], most));
}

/* bos, files, PREFIX before SUFFIX after MIDDLE. Of `room` tokens the text before the place may have three quarters,
 * or what the other leaves. */
static bool compose(struct ids *out, struct serve_job *job, const peridot_vocab *vocab, struct parts *p,
                    yyjson_val *files)
{
    uint32_t ctx = job->model->ctx;
    uint64_t reply = job->max_given ? cmd_min(job->n_max, ctx / 2) : serve_reserve(ctx);
    size_t n_bos = p->frame.n - 3, n_prefix = p->prefix.n - p->frame.n, n_suffix = p->suffix.n - p->frame.n;
    uint64_t room = ctx > reply + p->frame.n + 1 ? ctx - reply - p->frame.n - 1 : 0;
    size_t most = (size_t)cmd_max(room - room / 4, room > n_suffix ? room - n_suffix : 0);
    size_t keep = (size_t)cmd_min(n_prefix, most), after = (size_t)cmd_min(n_suffix, room - keep);
    job->cut = job->cut || keep < n_prefix || after < n_suffix;
    const int32_t *mark = p->frame.at + n_bos;
    return put(out, job, p->frame.at, n_bos) && put_files(out, job, vocab, files, room - keep - after)
        && put(out, job, mark, 1) && put(out, job, p->prefix.at + n_bos + 1 + n_prefix - keep, keep)
        && put(out, job, mark + 1, 1) && put(out, job, p->suffix.at + n_bos + 2, after) && put(out, job, mark + 2, 1);
}

bool serve_read_infill(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    struct serve_buffer before = {0};
    struct ids all = {0};
    yyjson_val *files = yyjson_obj_get(root, "input_extra");
    const struct text prefix = text_of(yyjson_obj_get(root, "input_prefix")),
                      prompt = text_of(yyjson_obj_get(root, "prompt")),
                      suffix = text_of(yyjson_obj_get(root, "input_suffix"));
    (void)out;
    if (!peridot_vocab_has_infill(vocab))
        return serve_refuse(&job->error, 501, "unsupported_model", NULL, "infill is not supported: %s's vocabulary has "
                            "no tokens for fill-in-the-middle", job->model->id);
    if (!check_files(job, files)) return false;
    serve_put(&before, prefix.data, prefix.size);
    serve_put(&before, prompt.data, prompt.size);   /* what was typed at the place */
    struct parts p = {.given = {{before.size ? before.data : "", before.size}, suffix}};
    bool good = (!before.failed || refuse_memory(job)) && encode_parts(&p, job, vocab)
             && compose(&all, job, vocab, &p, files) && serve_tasks_make(job, 1) && serve_tasks_add(job, all.at, all.n);
    serve_buffer_free(&before);
    free(all.at);
    peridot_free(p.frame.at);
    peridot_free(p.prefix.at);
    peridot_free(p.suffix.at);
    return good;
}
