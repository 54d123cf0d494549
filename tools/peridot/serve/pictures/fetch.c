/* Pictures at URLs, for those hosts that --allow-url names: what a request asks for is fetched with this machine's
 * rights, so that nothing else is. */
#define _DEFAULT_SOURCE   /* strcasecmp, sockets */
#include "pictures_.h"
#include "pictures.h"
#include "../job/job.h"
#include "../../base/base.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#define CONNECT_SECONDS 10L
#define FETCH_SECONDS 30L
#define LOOK_SECONDS 0.2       /* between looks whether anybody waits */

struct transfer {
    struct serve_job *job;
    struct pd_buffer *out;
    size_t max;
    bool too_large, is_private;
    double looked_s;
};

/* ---- what may be fetched ---- */

/* `place`: "HOST", where the port is 443, or "HOST:PORT". */
static bool is_allowed(const struct cmd_texts *allowed, const char *place)
{
    for (size_t i = 0; i < allowed->n; i++)
        if (strcasecmp(allowed->at[i], place) == 0) return true;
    return false;
}

/* By the parts of the URL that libcurl itself goes by. */
static bool check_parts(struct serve_job *job, const char *name, CURLU *parts)
{
    char *scheme = NULL, *host = NULL, *port = NULL, *user = NULL, place[300] = "";
    bool good = curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && strcmp(scheme, "https") == 0;
    curl_url_get(parts, CURLUPART_HOST, &host, 0);
    curl_url_get(parts, CURLUPART_PORT, &port, CURLU_NO_DEFAULT_PORT);
    curl_url_get(parts, CURLUPART_USER, &user, 0);
    snprintf(place, sizeof place, "%s%s%s", host ? host : "", port ? ":" : "", port ? port : "");
    if (!good) serve_job_refuse_picture(job, name, "only https and data URLs are read");
    else if (user) good = serve_job_refuse_picture(job, name, "the URL has a user name");
    else if (!is_allowed(&job->server->args->allowed_urls, place))
        good = serve_job_refuse_picture(job, name, "this server does not fetch from %.100s: send a data URL, or start "
                                        "it with peridot serve --allow-url %.100s", place, place);
    curl_free(scheme), curl_free(host), curl_free(port), curl_free(user);
    return good;
}

/* ---- a transfer ---- */

static size_t fetch_on_body(char *data, size_t unused, size_t n, void *user)
{
    struct transfer *t = user;
    (void)unused;   /* 1 */
    t->too_large = t->out->size + n > t->max;
    if (t->too_large) return 0;
    pd_buffer_add(t->out, data, n);
    return t->out->failed ? 0 : n;
}

static int fetch_on_progress(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
    struct transfer *t = user;
    double now = pd_now();
    (void)down_total, (void)down, (void)up_total, (void)up;
    if (now - t->looked_s < LOOK_SECONDS) return 0;
    t->looked_s = now;
    return serve_job_is_gone(t->job) || t->job->server->draining;
}

/* A name may lead anywhere: what counts is the address that is connected to. */
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct transfer *t = user;
    (void)purpose;
    t->is_private = !serve_address_is_public(&a->addr);
    return t->is_private ? CURL_SOCKET_BAD : socket(a->family, a->socktype, a->protocol);
}

static void set_options(CURL *c, struct transfer *t, CURLU *parts)
{
    curl_easy_setopt(c, CURLOPT_CURLU, parts);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_PROXY, "");   /* whose addresses would not be seen here */
    curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, t);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, FETCH_SECONDS);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, fetch_on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, fetch_on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "peridot/" PERIDOT_VERSION);
}

static bool perform(struct transfer *t, CURL *c, const char *name)
{
    char why[CURL_ERROR_SIZE] = "";
    long code = 0;
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, why);
    CURLcode result = curl_easy_perform(c);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &code);
    struct serve_job *job = t->job;
    if (t->is_private && result != CURLE_OK)
        return serve_job_refuse_picture(job, name, "the URL's host has an address that is not of the public Internet");
    if (t->too_large) return serve_job_refuse_picture(job, name, "the file has more than %zu bytes", t->max);
    if (t->out->failed || result == CURLE_OUT_OF_MEMORY)
        return serve_refuse(&job->error, 500, NULL, NULL, "out of memory for %s", name);
    if (result == CURLE_ABORTED_BY_CALLBACK)
        return serve_refuse(&job->error, 503, NULL, NULL, "nobody waits for the answer, or the server is shutting "
                            "down");
    if (result != CURLE_OK)
        return serve_job_refuse_picture(job, name, "it cannot be fetched: %s",
                                        why[0] ? why : curl_easy_strerror(result));
    if (code != 200)
        return serve_job_refuse_picture(job, name, "it cannot be fetched: its host answers with status %ld%s", code,
                                        code / 100 == 3 ? ", and redirects are not followed" : "");
    return t->out->size || serve_job_refuse_picture(job, name, "the file at its URL is empty");
}

bool serve_fetch(struct pd_buffer *out, struct serve_job *job, const char *name, const char *url, size_t max)
{
    struct transfer t = {.job = job, .out = out, .max = max};
    CURLU *parts = curl_url();
    CURL *c = cmd_curl_open();
    bool good = (parts && c) || serve_refuse(&job->error, 500, NULL, NULL, "out of memory for %s", name);
    if (good && curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK)
        good = serve_job_refuse_picture(job, name, "it must be base64, a data URL or an https URL");
    good = good && check_parts(job, name, parts);
    if (good) {
        set_options(c, &t, parts);
        good = perform(&t, c, name);
    }
    curl_easy_cleanup(c);
    curl_url_cleanup(parts);
    return good;
}
