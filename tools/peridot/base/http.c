/* What the command asks of other machines. All of libcurl is here: each request is an easy handle of its own, which is
 * kept with its answer, and the multi handle that runs it has the connections. A thread waits for one request at a
 * time, and looks meanwhile whether anybody still wants its answer. */
#define _DEFAULT_SOURCE   /* strncasecmp, sockets */
#include "base.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { STEP_MS = 100, MAX_UNREAD = 1 << 20 };   /* the latter: bytes of the body of a redirection */

struct cmd_http {
    CURLM *multi;
};

struct cmd_http_transfer {
    const struct cmd_http_request *request;
    struct cmd_http_answer *answer;
    CURL *curl;
    CURLU *parts;              /* of the URL, where those are looked at */
    struct curl_slist *headers;
    bool unread;               /* the body of an error, which may have no end */
    bool no_address;           /* the last one may not be connected to */
    peridot_status status;     /* of what the request has called */
    char why[CURL_ERROR_SIZE];
};

/* ---- connections ---- */

/* A distribution's libcurl knows where its certificates are. One that came with an archive looks where distributions
 * have them. */
static const char *find_certificates(void)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt",   /* Debian, Ubuntu, Arch */
        "/etc/pki/tls/certs/ca-bundle.crt",     /* Fedora */
        "/etc/ssl/ca-bundle.pem",               /* openSUSE */
        "/etc/ssl/cert.pem",                    /* Alpine */
    };
    const curl_version_info_data *own = curl_version_info(CURLVERSION_NOW);
    const char *given = getenv("SSL_CERT_FILE");
    if (own->ssl_version && strncmp(own->ssl_version, "Schannel", 8) == 0) return NULL;   /* Windows keeps them */
    if (given && *given) return given;
    if (own->cainfo || own->capath) return NULL;
    for (size_t i = 0; i < PD_COUNT(places); i++)
        if (pd_is_file(places[i])) return places[i];
    return NULL;
}

struct cmd_http *cmd_http_open(void)
{
    struct cmd_http *http = calloc(1, sizeof *http);   /* libcurl may be begun by any thread, and again */
    if (http && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) http->multi = curl_multi_init();
    if (http && http->multi) return http;
    free(http);
    return NULL;
}

void cmd_http_close(struct cmd_http *http)
{
    if (!http) return;
    curl_multi_cleanup(http->multi);
    free(http);
}

/* ---- what comes ---- */

static void read_code(struct cmd_http_transfer *t)
{
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->answer->code);
}

static bool has_content(const struct cmd_http_transfer *t)
{
    return t->answer->code == 200 || t->answer->code == 206 || t->request->reads_errors;
}

peridot_status cmd_http_keep(struct cmd_http_answer *a, const char *data, size_t size)
{
    size_t most = a->transfer->request->most;
    if (size <= most - a->body.size) return pd_buffer_add(&a->body, data, size);
    a->end = CMD_HTTP_TOO_LARGE;
    return pd_fail(PERIDOT_ERROR_IO, "sent more than %zu bytes", most);
}

static size_t http_on_body(char *data, size_t one, size_t n, void *user)
{
    struct cmd_http_transfer *t = user;
    const struct cmd_http_request *r = t->request;
    (void)one;
    read_code(t);
    t->unread = !has_content(t);
    if (t->unread) return CURL_WRITEFUNC_ERROR;
    t->status = r->take ? r->take(r->user, t->answer, data, n) : cmd_http_keep(t->answer, data, n);
    t->answer->n_taken += n;
    return t->status == PERIDOT_OK ? n : CURL_WRITEFUNC_ERROR;
}

static size_t http_on_header(char *line, size_t one, size_t n, void *user)
{
    struct cmd_http_transfer *t = user;
    (void)one;
    read_code(t);
    bool is_end = n && (line[0] == '\r' || line[0] == '\n');
    t->unread = is_end && t->answer->code >= 400 && !has_content(t);
    return t->unread ? 0 : n;
}

static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct cmd_http_transfer *t = user;
    (void)purpose;
    t->no_address = !t->request->connects(&a->addr);
    return t->no_address ? CURL_SOCKET_BAD : socket(a->family, a->socktype, a->protocol);
}

/* ---- what is asked ---- */

/* A copy of the lines, with libcurl's own "Expect", which is not to be sent, taken back. */
static peridot_status add_headers(struct cmd_http_transfer *t)
{
    const char *lines = t->request->headers ? t->request->headers : "";
    char *copy = malloc(strlen(lines) + 1);
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    t->headers = list;
    if (copy) strcpy(copy, lines);
    for (char *line = copy, *end; list && line && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        list = curl_slist_append(t->headers, line);
    }
    bool good = copy && list;
    free(copy);
    return good ? PERIDOT_OK : pd_fail_alloc(0, "a request");
}

/* What is asked about are the parts that libcurl then goes by. */
static peridot_status check_place(struct cmd_http_transfer *t)
{
    const struct cmd_http_request *r = t->request;
    char *scheme = NULL, *host = NULL, *port = NULL, *user = NULL;
    if (!r->allows) return PERIDOT_OK;
    if (!(t->parts = curl_url())) return pd_fail_alloc(0, "a request");
    if (curl_url_set(t->parts, CURLUPART_URL, r->url, 0) != CURLUE_OK) {
        t->answer->end = CMD_HTTP_NO_URL;
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "is no URL");
    }
    curl_url_get(t->parts, CURLUPART_SCHEME, &scheme, 0);
    curl_url_get(t->parts, CURLUPART_HOST, &host, 0);
    curl_url_get(t->parts, CURLUPART_PORT, &port, CURLU_NO_DEFAULT_PORT);
    curl_url_get(t->parts, CURLUPART_USER, &user, 0);
    bool good = r->allows(r->user, &(struct cmd_http_place){scheme ? scheme : "", host ? host : "", port ? port : "",
                                                           user != NULL});
    curl_free(scheme), curl_free(host), curl_free(port), curl_free(user);
    curl_easy_setopt(t->curl, CURLOPT_CURLU, t->parts);
    return good ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_ARGUMENT, "may not be asked");
}

static void set_limits(CURL *c, const struct cmd_http_request *r)
{
    const char *schemes = strncasecmp(r->url, "https:", 6) == 0 ? "https" : "http,https";
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, schemes);
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, schemes);
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, (long)(r->n_redirects != 0));
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, r->n_redirects);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, r->connect_s);   /* 0: libcurl's own, five minutes */
    curl_easy_setopt(c, CURLOPT_TIMEOUT, r->whole_s);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)(r->stalled_s != 0));
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, r->stalled_s);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    if (r->direct) curl_easy_setopt(c, CURLOPT_PROXY, "");
}

static void set_request(struct cmd_http_transfer *t)
{
    const struct cmd_http_request *r = t->request;
    CURL *c = t->curl;
    char range[32];
    snprintf(range, sizeof range, "%llu-", (unsigned long long)r->offset);
    if (!t->parts) curl_easy_setopt(c, CURLOPT_URL, r->url);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, t->headers);   /* libcurl sends Authorization to the first host alone */
    curl_easy_setopt(c, CURLOPT_USERAGENT, "peridot/" PERIDOT_VERSION);
    if (r->offset) curl_easy_setopt(c, CURLOPT_RANGE, range);
    if (r->text) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, r->text);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->text_size);
    }
    if (r->method) curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method);
}

static void set_callbacks(struct cmd_http_transfer *t)
{
    CURL *c = t->curl;
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->why);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, http_on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, http_on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
    if (!t->request->connects) return;
    curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, t);
}

static peridot_status http_prepare(struct cmd_http_transfer *t)
{
    const char *certificates = find_certificates();
    if (!(t->curl = curl_easy_init())) return pd_fail_alloc(0, "a request");
    if (certificates && curl_easy_setopt(t->curl, CURLOPT_CAINFO, certificates) != CURLE_OK)
        return pd_fail_alloc(0, "a request");
    PD_TRY(check_place(t));
    PD_TRY(add_headers(t));
    set_limits(t->curl, t->request);
    set_request(t);
    set_callbacks(t);
    return PERIDOT_OK;
}

/* ---- the way of a request ---- */

/* What a redirection that is followed says is read by libcurl alone. */
static peridot_status check_unread(const struct cmd_http_transfer *t)
{
    curl_off_t size = 0;
    curl_easy_getinfo(t->curl, CURLINFO_SIZE_DOWNLOAD_T, &size);
    if (size <= MAX_UNREAD || has_content(t)) return PERIDOT_OK;
    t->answer->end = CMD_HTTP_WRONG;
    return pd_fail(PERIDOT_ERROR_IO, "a redirection has more than %d bytes", MAX_UNREAD);
}

static peridot_status http_look(struct cmd_http_transfer *t)
{
    const struct cmd_http_request *r = t->request;
    read_code(t);
    if (r->look) PD_TRY(r->look(r->user, t->answer));
    return check_unread(t);
}

/* Until the transfer has ended, or enough has come. */
static CURLcode http_run(struct cmd_http_transfer *t, CURLM *multi)
{
    const struct cmd_http_answer *a = t->answer;
    CURLcode result = CURLE_OK;
    int n_running = 1, n_left;
    double left = 1;
    CURLMcode added = curl_multi_add_handle(multi, t->curl);
    if (added != CURLM_OK) t->status = pd_fail_alloc(0, "a request");
    while (t->status == PERIDOT_OK && n_running && left > 0) {
        if (curl_multi_perform(multi, &n_running) != CURLM_OK) t->status = pd_fail_alloc(0, "a request");
        if (t->status == PERIDOT_OK) t->status = http_look(t);
        if (a->end_s) left = a->end_s - pd_now();
        int step_ms = left * 1e3 < STEP_MS ? (int)(left * 1e3) + 1 : STEP_MS;
        if (t->status == PERIDOT_OK && n_running && left > 0) curl_multi_poll(multi, NULL, 0, step_ms, NULL);
    }
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &n_left));)
        if (message->msg == CURLMSG_DONE && message->easy_handle == t->curl) result = message->data.result;
    if (added == CURLM_OK) curl_multi_remove_handle(multi, t->curl);
    return result;
}

/* What may go well another time: not what the other side itself has said, such as an address that is none. */
static bool is_passing(CURLcode result)
{
    static const CURLcode passing[] = {
        CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_PARTIAL_FILE,
        CURLE_OPERATION_TIMEDOUT, CURLE_SSL_CONNECT_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
        CURLE_HTTP2, CURLE_HTTP2_STREAM,
    };
    for (size_t i = 0; i < PD_COUNT(passing); i++)
        if (passing[i] == result) return true;
    return false;
}

static peridot_status http_explain(struct cmd_http_transfer *t, CURLcode result)
{
    struct cmd_http_answer *a = t->answer;
    if (result == CURLE_OK || t->unread) return PERIDOT_OK;
    a->end = CMD_HTTP_OWN;
    if (result == CURLE_OUT_OF_MEMORY) return pd_fail_alloc(0, "a request");
    a->end = t->no_address ? CMD_HTTP_NO_ADDRESS : is_passing(result) ? CMD_HTTP_PASSING : CMD_HTTP_WRONG;
    a->kind = curl_easy_strerror(result);
    return pd_fail(PERIDOT_ERROR_IO, "%s", cmd_shown(t->why[0] ? t->why : a->kind));
}

peridot_status cmd_http_ask(struct cmd_http_answer *out, struct cmd_http *http, const struct cmd_http_request *request)
{
    struct cmd_http_transfer *t = calloc(1, sizeof *t);
    *out = (struct cmd_http_answer){.end = CMD_HTTP_OWN, .kind = "", .transfer = t};
    if (!t) return pd_fail_alloc(sizeof *t, "a request");
    t->request = request, t->answer = out;
    PD_TRY(http_prepare(t));
    CURLcode result = http_run(t, http->multi);
    read_code(t);
    PD_TRY(t->status);
    out->end = CMD_HTTP_ANSWERED;
    return http_explain(t, result);
}

void cmd_http_free(struct cmd_http_answer *a)
{
    struct cmd_http_transfer *t = a->transfer;
    pd_buffer_free(&a->body);
    if (!t) return;
    curl_easy_cleanup(t->curl);
    curl_url_cleanup(t->parts);
    curl_slist_free_all(t->headers);
    free(t);
    a->transfer = NULL;
}

const char *cmd_http_header(const struct cmd_http_answer *a, const char *name)
{
    struct curl_header *header;
    return curl_easy_header(a->transfer->curl, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ? header->value : "";
}

const char *cmd_http_target(const struct cmd_http_answer *a)
{
    char *url = NULL;
    curl_easy_getinfo(a->transfer->curl, CURLINFO_REDIRECT_URL, &url);
    return url;
}
