/* The models that are on this machine already, wherever another program put them: Hugging Face's cache, ollama's store,
 * LM Studio's folders, llama.cpp's cache, and the folders that PERIDOT_MODELS names. Files are found here, and not
 * opened: what is in them may be anything. */
#ifndef PERIDOT_COMMAND_MODELS_STORES_H
#define PERIDOT_COMMAND_MODELS_STORES_H

#include "../util.h"

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

#endif
