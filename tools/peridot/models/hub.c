/* A model hub that answers as huggingface.co does: what files a model has, and their bytes. The token goes to the hub
 * alone: where it redirects to another host for the bytes, that host gets none. */
#define _POSIX_C_SOURCE 200809L
#include "models.h"
#include "../console/console.h"
#include "../base/base.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The list of files has an end, with all its pages. */
enum { MAX_FILES = 100000, MAX_PAGES = 1000, MAX_LIST = 64 << 20, URL_SIZE = 8192 };
enum { LIST_SECONDS = 300, STALLED_SECONDS = 60, MAX_TRIES = 6 };

/* ---- requests ---- */

struct transfer {
    struct hub *hub;
    uint64_t offset;
    hub_take take;             /* NULL: the answer's body is wanted */
    void *user;
};

static peridot_status hub_on_body(void *user, struct cmd_http_answer *a, const char *data, size_t size)
{
    struct transfer *t = user;
    if (!t->take) return cmd_http_keep(a, data, size);
    return t->take(t->user, data, size, t->offset && !a->n_taken && a->code == 200);
}

static peridot_status hub_look(void *user, struct cmd_http_answer *a)
{
    const struct hub *hub = ((struct transfer *)user)->hub;
    (void)a;
    if (cmd_interrupted()) return pd_fail(PERIDOT_CANCELLED, "interrupted");
    if (!hub->list_end_s || pd_now() <= hub->list_end_s) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_IO, "%s: the list of the files of %s does not come within %d s", hub->endpoint,
                   hub->repo, LIST_SECONDS);
}

/* Explains an HTTP error, with what to do about it. */
static peridot_status explain_error(const struct hub *hub, const struct cmd_http_answer *a)
{
    char error[64];
    const char *repo = hub->repo, *at = hub->endpoint;
    snprintf(error, sizeof error, "%s", cmd_http_header(a, "X-Error-Code"));
    if (strcmp(error, "GatedRepo") == 0 && !hub->token_source)
        return pd_fail(PERIDOT_ERROR_IO, "%s is gated: accept its licence at %s/%s, then set HF_TOKEN to an access "
                       "token of that account (%s/settings/tokens)", repo, at, repo, at);
    if (strcmp(error, "GatedRepo") == 0)
        return pd_fail(PERIDOT_ERROR_IO, "%s is gated, and the account of the token in %s has no access to it: accept "
                       "its licence at %s/%s with that account, and let the token read gated models", repo,
                       hub->token_source, at, repo);
    if (strcmp(error, "RevisionNotFound") == 0)
        return pd_fail(PERIDOT_ERROR_IO, "%s has no revision %s", repo, hub->revision);
    if (a->code == 401 && hub->token_source && strcmp(error, "RepoNotFound") != 0)
        return pd_fail(PERIDOT_ERROR_IO, "%s refuses the token in %s: make a new one at %s/settings/tokens, or unset "
                       "it", at, hub->token_source, at);
    if (strcmp(error, "EntryNotFound") != 0 && (a->code == 404 || a->code == 401))
        return pd_fail(PERIDOT_ERROR_IO, "there is no model %s at %s, or it is private: check its name%s", repo, at,
                       hub->token_source ? "" : ", or set HF_TOKEN to a token that can read it");
    const char *message = cmd_http_header(a, "X-Error-Message");
    return pd_fail(PERIDOT_ERROR_IO, "%s: HTTP status %ld for %s%s%s", at, a->code, repo, *message ? ": " : "",
                   cmd_shown(message));
}

static peridot_status hub_get(struct cmd_http_answer *out, struct transfer *t, const char *url)
{
    struct hub *hub = t->hub;
    peridot_status status = cmd_http_ask(out, hub->http, &(struct cmd_http_request){
        .url = url, .headers = hub->token, .offset = t->offset, .connect_s = 30, .stalled_s = STALLED_SECONDS,
        .n_redirects = 8, .most = MAX_LIST - hub->n_listed, .user = t, .take = hub_on_body, .look = hub_look});
    hub->may_retry = out->end == CMD_HTTP_PASSING && hub->answers;
    if (out->end == CMD_HTTP_TOO_LARGE)
        return pd_fail(PERIDOT_ERROR_IO, "%s: the list of the files of %s has more than %d bytes", hub->endpoint,
                       hub->repo, MAX_LIST);
    if (out->end > CMD_HTTP_TOO_LARGE) return pd_fail_prefix(status, hub->endpoint);
    PD_TRY(status);
    hub->answers = true;
    hub->may_retry = out->code == 429 || out->code >= 500 || out->code == 408;
    return out->code == 200 || out->code == 206 ? PERIDOT_OK : explain_error(hub, out);
}

peridot_status hub_wait(int tries, peridot_status failure)
{
    if (tries == MAX_TRIES) return failure;
    double seconds = tries < 2 ? 0 : 1 << (tries - 2);   /* the first time at once */
    for (double end = pd_now() + seconds; pd_now() < end && !cmd_interrupted();)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    return cmd_interrupted() ? pd_fail(PERIDOT_CANCELLED, "interrupted") : PERIDOT_OK;
}

/* "a b/c" as a part of an address: "a%20b/c"; slashes go in as they are where `slashes`. */
static void encode_address(char out[URL_SIZE], const char *text, bool slashes)
{
    size_t n = 0;
    for (; *text && n + 4 < URL_SIZE; text++) {
        bool plain = isalnum((unsigned char)*text) || strchr("-._~", *text) || (slashes && *text == '/');
        n += (size_t)snprintf(out + n, URL_SIZE - n, plain ? "%c" : "%%%02X", (unsigned char)*text);
    }
    out[n] = 0;
}

/* ---- answers in JSON ---- */

static peridot_status get_json(yyjson_doc **out, struct hub *hub, const char *url)
{
    struct cmd_http_answer a;
    struct transfer t = {.hub = hub};
    peridot_status status;
    *out = NULL;
    for (int tries = 1;; tries++) {
        status = hub_get(&a, &t, url);
        hub->n_listed += a.body.size;
        if (status == PERIDOT_OK || !hub->may_retry || (status = hub_wait(tries, status)) != PERIDOT_OK) break;
        cmd_http_free(&a);
    }
    if (status == PERIDOT_OK) {
        *out = yyjson_read(a.body.data ? a.body.data : "", a.body.size, 0);
        snprintf(hub->next, sizeof hub->next, "%s", cmd_http_header(&a, "Link"));
    }
    cmd_http_free(&a);
    if (status != PERIDOT_OK || *out) return status;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: the answer about %s is not JSON: is this a hub?", hub->endpoint,
                   hub->repo);
}

static bool is_hash(const char *text, size_t size)
{
    return text && strlen(text) == size && strspn(text, "0123456789abcdef") == size;
}

/* It becomes a path in the cache: no component may lead out of that. */
static bool is_safe_path(const char *path)
{
    if (!path || !*path || strlen(path) > 1024) return false;
    for (const char *c = path; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f || *c == '\\') return false;
    for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
        size_t n = strcspn(at, "/");
        if (n == 0 || n > 255 || strncmp(at, "..", n) == 0) return false;
    }
    return true;
}

/* Adds a row of the listing, unless it is no file, or has a path or hash that is not acceptable. */
static peridot_status add_file(struct hub *hub, yyjson_val *row)
{
    yyjson_val *lfs = yyjson_is_obj(yyjson_obj_get(row, "lfs")) ? yyjson_obj_get(row, "lfs") : NULL;
    const char *path = yyjson_get_str(yyjson_obj_get(row, "path"));
    const char *type = yyjson_get_str(yyjson_obj_get(row, "type"));
    const char *hash = yyjson_get_str(yyjson_obj_get(lfs ? lfs : row, "oid"));
    yyjson_val *size = yyjson_obj_get(lfs ? lfs : row, "size");
    if (!type || strcmp(type, "file") != 0) return PERIDOT_OK;
    if (!is_safe_path(path) || !is_hash(hash, lfs ? 64 : 40) || !yyjson_is_uint(size)) return PERIDOT_OK;
    if (hub->n == MAX_FILES) return pd_fail(PERIDOT_ERROR_FORMAT, "%s has more than %d files", hub->repo, MAX_FILES);
    PD_TRY(pd_array_reserve(&hub->files, &hub->capacity, hub->n, 1, sizeof *hub->files, "list of files"));
    struct hub_file *file = &hub->files[hub->n];
    *file = (struct hub_file){.path = strdup(path), .size = yyjson_get_uint(size), .is_large = lfs != NULL};
    if (!file->path) return pd_fail_alloc(strlen(path), "list of files");
    strcpy(file->hash, hash);
    hub->n++;
    return PERIDOT_OK;
}

peridot_status hub_take_rows(struct hub *hub, yyjson_val *rows)
{
    yyjson_val *row;
    size_t i, n;
    yyjson_arr_foreach(rows, i, n, row) PD_TRY(add_file(hub, row));
    return PERIDOT_OK;
}

/* The address of the next page in "<URL>; rel="next"", on the hub; false: there is none. */
static bool find_next(char url[URL_SIZE], const struct hub *hub)
{
    const char *link = hub->next;
    size_t n = strlen(hub->endpoint), size = strcspn(link, ">");
    if (*link != '<' || !strstr(link, "rel=\"next\"") || strncmp(link + 1, hub->endpoint, n) != 0 || link[1 + n] != '/')
        return false;
    snprintf(url, URL_SIZE, "%.*s", (int)(size - 1), link + 1);
    return true;
}

static peridot_status list_files(struct hub *hub)
{
    char url[URL_SIZE];
    snprintf(url, sizeof url, "%s/api/models/%s/tree/%s?recursive=true", hub->endpoint, hub->repo, hub->commit);
    for (int page = 0; page < MAX_PAGES; page++) {
        yyjson_doc *doc;
        peridot_status status = get_json(&doc, hub, url);
        if (status == PERIDOT_OK) status = hub_take_rows(hub, yyjson_doc_get_root(doc));
        bool brings_some = yyjson_arr_size(yyjson_doc_get_root(doc)) != 0;
        yyjson_doc_free(doc);
        PD_TRY(status);
        if (!find_next(url, hub)) return PERIDOT_OK;
        if (!brings_some) break;
    }
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: the list of the files of %s has no end", hub->endpoint, hub->repo);
}

static peridot_status find_commit(struct hub *hub)
{
    char url[URL_SIZE], revision[URL_SIZE];
    yyjson_doc *doc;
    encode_address(revision, hub->revision, false);
    snprintf(url, sizeof url, "%s/api/models/%s/revision/%.1000s", hub->endpoint, hub->repo, revision);
    PD_TRY(get_json(&doc, hub, url));
    const char *commit = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "sha"));
    bool known = is_hash(commit, sizeof hub->commit - 1);
    if (known) strcpy(hub->commit, commit);
    yyjson_doc_free(doc);
    if (known) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s does not say which commit %s of %s is", hub->endpoint, hub->revision,
                   hub->repo);
}

/* ---- opening ---- */

/* The environment's, or that of `hf auth login`; *out is the caller's, NULL: there is none. */
static peridot_status find_token(char **out, struct hub *hub)
{
    static const char *const variables[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    static const char *const places[][2] = {{"HF_TOKEN_PATH", ""}, {"HF_HOME", "/token"},
        {"XDG_CACHE_HOME", "/huggingface/token"}, {"HOME", "/.cache/huggingface/token"}};
    static char path[CMD_PATH_SIZE];
    size_t size;
    *out = NULL;
    for (size_t i = 0; i < PD_COUNT(variables) && !hub->token_source; i++)
        if (getenv(variables[i]) && *getenv(variables[i])) hub->token_source = variables[i];
    if (hub->token_source) {
        *out = strdup(getenv(hub->token_source));
        if (!*out) return pd_fail_alloc(strlen(getenv(hub->token_source)), "token");
    } else {
        size_t i = 0;
        while (i < PD_COUNT(places) && !cmd_env_path(path, places[i][0], places[i][1])) i++;
        if (i == PD_COUNT(places) || !pd_is_file(path)) return PERIDOT_OK;
        PD_TRY(cmd_read_file(out, &size, path));
        hub->token_source = path;
    }
    char *end = *out + strlen(*out);
    while (end > *out && isspace((unsigned char)end[-1])) *--end = 0;
    for (const char *c = *out; *c; c++)
        if (*c <= ' ' || *c > '~')
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s does not hold an access token", hub->token_source);
    if (!**out) hub->token_source = NULL;
    return PERIDOT_OK;
}

static peridot_status add_token(struct hub *hub)
{
    char *token;
    int size = 0;
    peridot_status status = find_token(&token, hub);
    if (status == PERIDOT_OK && hub->token_source)
        size = snprintf(hub->token, sizeof hub->token, "Authorization: Bearer %s\n", token);
    free(token);
    if (size < (int)sizeof hub->token) return status;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s does not hold an access token", hub->token_source);
}

peridot_status hub_open(struct hub *out, const char *repo, const char *revision)
{
    static char endpoint[256];
    const char *given = getenv("HF_ENDPOINT");
    *out = (struct hub){.repo = repo, .revision = revision, .endpoint = endpoint};
    snprintf(endpoint, sizeof endpoint, "%s", given && *given ? given : "https://huggingface.co");
    for (size_t n = strlen(endpoint); n && endpoint[n - 1] == '/';) endpoint[--n] = 0;
    if (strncmp(endpoint, "https://", 8) != 0 && strncmp(endpoint, "http://", 7) != 0)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "HF_ENDPOINT: %s is not the address of a hub, such as "
                       "https://huggingface.co", cmd_shown(endpoint));
    if (!(out->http = cmd_http_open()))
        return pd_fail(PERIDOT_ERROR_MEMORY, "libcurl does not start: out of memory");
    PD_TRY(add_token(out));
    out->list_end_s = pd_now() + LIST_SECONDS;
    PD_TRY(find_commit(out));
    PD_TRY(list_files(out));
    out->list_end_s = 0;
    return PERIDOT_OK;
}

void hub_close(struct hub *hub)
{
    for (size_t i = 0; i < hub->n; i++) free(hub->files[i].path);
    free(hub->files);
    cmd_http_close(hub->http);
    *hub = (struct hub){0};
}

peridot_status hub_fetch(struct hub *hub, const struct hub_file *file, uint64_t offset, hub_take take, void *user)
{
    char url[2 * URL_SIZE], path[URL_SIZE];
    struct cmd_http_answer a;
    struct transfer t = {.hub = hub, .offset = offset, .take = take, .user = user};
    encode_address(path, file->path, true);
    snprintf(url, sizeof url, "%s/%s/resolve/%s/%s", hub->endpoint, hub->repo, hub->commit, path);
    peridot_status status = hub_get(&a, &t, url);
    cmd_http_free(&a);
    return status;
}
