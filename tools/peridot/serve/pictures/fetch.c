/* Pictures at URLs, for those hosts that --allow-url names: what a request asks for is fetched with this machine's
 * rights, so that nothing else is. */
#define _DEFAULT_SOURCE   /* strcasecmp */
#include "pictures_.h"
#include "pictures.h"
#include "../job/job.h"
#include "../../base/base.h"

#include <string.h>
#include <strings.h>

enum { CONNECT_SECONDS = 10, FETCH_SECONDS = 30 };
#define LOOK_SECONDS 0.2       /* between looks whether anybody waits */

struct transfer {
    struct serve_job *job;
    const char *name;
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

static bool allows_place(void *user, const struct cmd_http_place *p)
{
    const struct transfer *t = user;
    char place[300];
    snprintf(place, sizeof place, "%s%s%s", p->host, *p->port ? ":" : "", p->port);
    if (strcmp(p->scheme, "https") != 0)
        return serve_job_refuse_picture(t->job, t->name, "only https and data URLs are read");
    if (p->has_user) return serve_job_refuse_picture(t->job, t->name, "the URL has a user name");
    return is_allowed(&t->job->server->args->allowed_urls, place)
        || serve_job_refuse_picture(t->job, t->name, "this server does not fetch from %.100s: send a data URL, or "
                                    "start it with peridot serve --allow-url %.100s", place, place);
}

/* ---- a transfer ---- */

static peridot_status fetch_look(void *user, struct cmd_http_answer *a)
{
    struct transfer *t = user;
    double now = pd_now();
    (void)a;
    if (now - t->looked_s < LOOK_SECONDS) return PERIDOT_OK;
    t->looked_s = now;
    return serve_job_is_gone(t->job) || t->job->server->draining ? pd_fail(PERIDOT_CANCELLED, "gone") : PERIDOT_OK;
}

/* What is wrong with the answer, if anything is. */
static bool check_answer(struct transfer *t, const struct cmd_http_answer *a, peridot_status status, size_t max)
{
    struct serve_job *job = t->job;
    const char *name = t->name;
    if (status == PERIDOT_ERROR_MEMORY)
        return serve_refuse(&job->error, 500, NULL, NULL, "out of memory for %s", name);
    if (status == PERIDOT_CANCELLED)
        return serve_refuse(&job->error, 503, NULL, NULL, "nobody waits for the answer, or the server is shutting "
                            "down");
    switch (a->end) {
    case CMD_HTTP_OWN: return false;   /* allows_place has said why */
    case CMD_HTTP_NO_URL: return serve_job_refuse_picture(job, name, "it must be base64, a data URL or an https URL");
    case CMD_HTTP_NO_ADDRESS:
        return serve_job_refuse_picture(job, name, "the URL's host has an address that is not of the public Internet");
    case CMD_HTTP_TOO_LARGE: return serve_job_refuse_picture(job, name, "the file has more than %zu bytes", max);
    case CMD_HTTP_ANSWERED: break;
    default: return serve_job_refuse_picture(job, name, "it cannot be fetched: %s", pd_error());
    }
    if (a->code != 200)
        return serve_job_refuse_picture(job, name, "it cannot be fetched: its host answers with status %ld%s", a->code,
                                        a->code / 100 == 3 ? ", and redirects are not followed" : "");
    return a->body.size || serve_job_refuse_picture(job, name, "the file at its URL is empty");
}

bool serve_fetch(struct pd_buffer *out, struct serve_job *job, const char *name, const char *url, size_t max)
{
    struct transfer t = {.job = job, .name = name};
    struct cmd_http_answer a;
    struct cmd_http *http = cmd_http_open();
    if (!http) return serve_refuse(&job->error, 500, NULL, NULL, "out of memory for %s", name);
    peridot_status status = cmd_http_ask(&a, http, &(struct cmd_http_request){
        .url = url, .connect_s = CONNECT_SECONDS, .whole_s = FETCH_SECONDS, .direct = true, .most = max, .user = &t,
        .allows = allows_place, .connects = serve_address_is_public, .look = fetch_look});
    bool good = check_answer(&t, &a, status, max);
    if (good) {
        *out = a.body;
        a.body = (struct pd_buffer){0};
    }
    cmd_http_free(&a);
    cmd_http_close(http);
    return good;
}
