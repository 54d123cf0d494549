#include "base.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

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

void *cmd_curl_open(void)
{
    CURL *curl = curl_easy_init();
    const char *certificates = find_certificates();
    if (curl && certificates && curl_easy_setopt(curl, CURLOPT_CAINFO, certificates) != CURLE_OK) {
        curl_easy_cleanup(curl);
        return NULL;
    }
    return curl;
}
