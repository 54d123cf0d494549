/* Who may ask: those who have a key; without keys those who ask this machine by its own names; and which web pages, as
 * browsers say whose request it is. */
#define _DEFAULT_SOURCE   /* strcasecmp */
#include "http_.h"

#include <string.h>
#include <strings.h>

/* Takes as long whatever the first difference is. */
static bool is_key(const char *given, const char *key)
{
    size_t n = strlen(given), n_key = strlen(key);
    unsigned difference = n != n_key;
    for (size_t i = 0; i < n; i++) difference |= (unsigned char)(given[i] ^ key[n_key ? i % n_key : 0]);
    return difference == 0;
}

uint32_t serve_key_number(const struct serve_server *server, const struct serve_asker *asker)
{
    bool bears = asker->authorization && strncasecmp(asker->authorization, "Bearer ", 7) == 0;
    const char *given[] = {bears ? asker->authorization + 7 : NULL, asker->api_key};
    uint32_t found = 0;
    for (size_t k = 0; k < PD_COUNT(given); k++)
        for (size_t i = 0; given[k] && i < server->n_keys; i++)
            if (is_key(given[k], server->keys[i])) found = (uint32_t)i + 1;
    return found;
}

/* "localhost:8080" is host localhost. */
static bool is_host(const char *given, const char *host)
{
    size_t n = strlen(host);
    return strncasecmp(given, host, n) == 0 && (given[n] == 0 || given[n] == ':');
}

/* A page elsewhere can make a browser ask us by a name that leads here: without a key, only our own names count. */
static bool knows_host(const struct serve_server *server, const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    if (!host || server->n_keys || server->args->insecure || is_host(host, server->args->host)) return true;
    for (size_t i = 0; i < PD_COUNT(names); i++)
        if (is_host(host, names[i])) return true;
    return false;
}

/* Browsers say which page asks: our own, or one that --cors names. */
static bool knows_origin(const char *origin, const char *host, const char *cors)
{
    if (!origin || (cors && strcmp(origin, cors) == 0)) return true;
    const char *rest = strstr(origin, "://");
    return rest && host && strcasecmp(rest + 3, host) == 0;
}

bool serve_may_ask(struct serve_error *e, const struct serve_server *server, const struct serve_asker *asker,
                   enum serve_right right)
{
    const char *cors = right == SERVE_OWN_PAGE ? NULL : server->args->cors;
    if (!knows_host(server, asker->host))
        return serve_refuse(e, 403, NULL, NULL, "the host %s is not a name of this machine, and this server has no API "
                            "key: ask for localhost", asker->host);
    if (right == SERVE_OWN_PAGE && !asker->origin)   /* browsers send it with every POST */
        return serve_refuse(e, 403, NULL, NULL, "tools are for the page of this server");
    if (!knows_origin(asker->origin, asker->host, cors))
        return serve_refuse(e, 403, NULL, NULL, "web pages of %s may not use this server (--cors)", asker->origin);
    return right == SERVE_PUBLIC || server->n_keys == 0 || serve_key_number(server, asker)
        || serve_refuse(e, 401, "invalid_api_key", NULL,
                        "this server needs an API key, as Authorization: Bearer KEY or x-api-key: KEY");
}
