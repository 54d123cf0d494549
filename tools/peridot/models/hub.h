/* A model hub that answers as huggingface.co does: what files a model has, and their bytes. The token goes to the hub
 * alone: where it redirects to another host for the bytes, that host gets none. */
#ifndef PERIDOT_COMMAND_MODELS_HUB_H
#define PERIDOT_COMMAND_MODELS_HUB_H

#include "../util.h"

#include <curl/curl.h>
#include <yyjson.h>

struct hub_file {
    char *path;           /* in the repository */
    uint64_t size;
    char hash[65];        /* SHA-256 of a large file, else git's SHA-1: either names the file in the cache */
    bool is_large;        /* kept by git LFS or Xet */
    bool wanted;          /* set by who chooses */
};

struct hub {
    const char *repo, *revision;   /* "google/gemma-3-1b-it", "main"; borrowed */
    char commit[41];               /* what the revision is */
    struct hub_file *files;        /* [n] */
    size_t n, capacity;
    bool may_retry;                /* what failed last may go well another time */

    /* private */
    CURL *curl;
    struct curl_slist *headers;
    const char *endpoint;
    const char *token_source;      /* NULL: there is no token */
    bool answers;                  /* it has answered once */
    double list_end_s;             /* when it must have said what files there are (cmd_now); 0: it has */
    size_t n_listed;               /* bytes of the answers that say it */
    char error_code[64], error_message[256], next[4096];   /* headers of the last answer */
};

/* Asks for the revision and its files. *out must be closed even on failure. */
peridot_status hub_open(struct hub *out, const char *repo, const char *revision);
void hub_close(struct hub *hub);
/* Adds the files of a page of the hub's list: what hub_open does with what it gets. */
peridot_status hub_take_rows(struct hub *hub, yyjson_val *rows);

/* Bytes of a file as they come; from_begin: they are its first, though the transfer was to begin elsewhere. */
typedef peridot_status (*hub_take)(void *user, const void *data, size_t size, bool from_begin);
/* Fetches a file from the byte `offset` on. */
peridot_status hub_fetch(struct hub *hub, const struct hub_file *file, uint64_t offset, hub_take take, void *user);

/* How long to wait before trying for the `tries`-th time; a failure when that is too often, or after a signal. */
peridot_status hub_wait(int tries, peridot_status failure);

#endif
