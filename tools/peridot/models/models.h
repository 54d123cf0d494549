/* Models by name: where they lie on this machine, and the hubs that they are had from. */
#ifndef PERIDOT_COMMAND_MODELS_MODELS_H
#define PERIDOT_COMMAND_MODELS_MODELS_H

#include "../base/base.h"
#include "../console/console.h"

#include <yyjson.h>

/* ---- names ---- */

/* The path of the model that `name` means: a path that exists, whatever else has that name, and of a
 * folder that is no model but has one GGUF model, that; a name of `peridot models`,
 * in whatever case; or a part of one that only one model has. *path is the caller's to free. A failure says which
 * models come near. A path of a file that does not exist is left as it is, for the library to refuse. */
peridot_status cmd_model_resolve(char **path, const char *name);
/* Whether a model of that name is on this machine; `part`: a part of its name will do. */
bool cmd_model_is_here(const char *name, bool part);

/* ---- hub ---- */

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
    struct cmd_http *http;
    const char *endpoint;
    const char *token_source;      /* NULL: there is no token */
    bool answers;                  /* it has answered once */
    double list_end_s;             /* when it must have said what files there are (pd_now); 0: it has */
    size_t n_listed;               /* bytes of the answers that say it */
    char next[4096];               /* the header "Link" of the last of them */
    char token[1024];              /* a header; "": there is none */
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

/* ---- stores ---- */

enum { CMD_PATH_SIZE = 4096 };

struct cmd_model_file {
    char *name;           /* what -m takes: "google/gemma-3-1b-it", "gemma3:1b", "unsloth/gemma-3-1b-it-GGUF:Q4_K_M" */
    char *path;           /* a .gguf file, or a Hugging Face directory */
    const char *store;    /* "Hugging Face", "ollama", ... */
    uint64_t size;        /* bytes of its weights' files, all shards */
};

struct cmd_model_list {
    struct cmd_model_file *items;   /* in the order of their stores, and by name within one */
    size_t n, capacity;
    uint32_t n_visits;              /* entries of folders looked at */
};

/* Folders that cannot be read have no models; what is wrong is said on stderr where it is not just missing. *out must
 * be freed even on failure. */
peridot_status cmd_model_list_find(struct cmd_model_list *out);
void cmd_model_list_free(struct cmd_model_list *list);

/* The GGUF models of a folder itself, unless it has safetensors as well. The same holds for *out. */
peridot_status cmd_model_list_folder(struct cmd_model_list *out, const char *folder);

/* The vision tower that a manifest of ollama's names beside the blob of a model, to be freed; NULL: none. */
peridot_status cmd_ollama_vision(char **path, const char *model);

/* Hugging Face's cache, where `peridot pull` writes; false: neither it nor a home is known. */
bool cmd_hub_cache(char path[CMD_PATH_SIZE]);
/* The value of an environment variable, if it is set, with `below` behind it; `variable` NULL: just that. */
bool cmd_env_path(char path[CMD_PATH_SIZE], const char *variable, const char *below);
/* A file of lines, in folders that are made where they are not there. It replaces what is there. */
peridot_status cmd_write_file(const char *path, const char *text);

/* The type in a name of a file, "Q4_K_M" of "dir/gemma-3-1b-it-Q4_K_M.gguf", with its publisher's marker where it has
 * one ("UD-Q4_K_XL"): its bytes in *size, or NULL. */
const char *cmd_type_label(size_t *size, const char *name);
/* Bytes of that marker at the beginning of a type of `size` bytes. */
size_t cmd_type_marker(const char *label, size_t size);
/* Where "-00001-of-00003.gguf" begins in the name of a shard, *i and *n the two numbers; NULL: it is none. */
const char *cmd_shard(uint32_t *i, uint32_t *n, const char *name);
/* Whether a file's name says that it is a vision tower by itself ("mmproj"). */
bool cmd_vision_is_named(const char *path);
/* Whether `text` ends so, in whatever case. */
bool cmd_ends_with(const char *text, const char *end);

/* ---- hub cache ---- */

struct hub_cache {
    char folder[CMD_PATH_SIZE];     /* .../models--OWNER--NAME */
    char locks[CMD_PATH_SIZE];
    char snapshot[CMD_PATH_SIZE];
};

/* Makes its folders. */
peridot_status hub_cache_open(struct hub_cache *out, const struct hub *hub);
/* Bytes of a file that are still to be fetched. */
uint64_t hub_cache_missing(const struct hub_cache *cache, const struct hub_file *file);
/* Fails, with the numbers, where the disk has not so many bytes left. */
peridot_status hub_cache_check_room(const struct hub_cache *cache, uint64_t size);
/* Fetches a file unless it is there, checks its hash, and puts it into the snapshot. What came before a failure stays,
 * for the next time. */
struct hub_progress {
    struct cmd_progress line;
    uint64_t before, total;     /* bytes of the files before this one, and of all */
};
peridot_status hub_cache_fetch(const struct hub_cache *cache, struct hub *hub, const struct hub_file *file,
                               struct hub_progress *progress);
/* The revision is the snapshot's commit from now on. */
peridot_status hub_cache_set_revision(const struct hub_cache *cache, const struct hub *hub);

/* ---- cache files ---- */

/* True where the folder is there, or is made. */
bool cache_make_folder(const char *path);
/* For reading and writing, made where it is not there, never through a link; -1: it cannot be. */
int cache_open(const char *path);
/* What was written is on the disk. */
bool cache_sync(int fd);
/* Replaces what is there. Nobody has either of them open. */
bool cache_move(const char *from, const char *to);
/* Makes `path` what leads to the file `blob`, which `target` names from path's folder, whatever was there. */
bool cache_link(const char *path, const char *target, const char *blob);
/* Bytes that the folder's disk has free for this user. */
bool cache_space(uint64_t *left, const char *folder);

enum cache_lock { CACHE_HELD, CACHE_BUSY, CACHE_FAILED };
/* Held until the descriptor is closed. */
enum cache_lock cache_lock(int *fd, const char *path);

/* ---- vision ---- */

/* How well the name of one suits a model's file, the more the better: by what it has of the model's name, and then its
 * type, f16 or else q8_0 before others. */
size_t cmd_vision_rank(const char *path, const char *model);
/* The one that belongs to a model's file: in the same folder, at the top of its repository in Hugging Face's cache, or
 * named in a manifest of ollama's. *path is to be freed; NULL: there is none. *fits (NULL is allowed): it opens, and is
 * a tower of that model; one that is not is given where no other is. */
peridot_status cmd_vision_find(char **path, bool *fits, const char *model);

#endif
