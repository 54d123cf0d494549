/* What other programs' stores say: the list of a hub's files ('h'), none of which may lead out of the cache, and a
 * manifest of ollama ('o'). The first byte says which it is. */
#define _POSIX_C_SOURCE 200809L
#include "harness.h"

#include "models/models.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void check_file(const struct hub_file *f)
{
    size_t size = strlen(f->hash);
    FUZZ_CHECK(size == (f->is_large ? 64 : 40) && strspn(f->hash, "0123456789abcdef") == size);
    for (const char *part = f->path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        size = strcspn(part, "/");
        FUZZ_CHECK(size > 0 && strncmp(part, ".", size) != 0 && strncmp(part, "..", size) != 0);
    }
}

static void take_list(const char *text, size_t size)
{
    struct hub hub = {.repo = "a/b"};
    yyjson_doc *doc = yyjson_read(text, size, 0);
    fuzz_ok(hub_take_rows(&hub, yyjson_doc_get_root(doc)));
    yyjson_doc_free(doc);
    for (size_t i = 0; i < hub.n; i++) check_file(&hub.files[i]);
    hub_close(&hub);
}

static void take_manifest(const char *text, size_t size)
{
    static const char *const folders[] = {"manifests", "manifests/library"};
    struct cmd_model_list list;
    char path[600], *tower;
    for (size_t i = 0; i < PD_COUNT(folders); i++) {
        snprintf(path, sizeof path, "%s/%s", fuzz_folder(), folders[i]);
        mkdir(path, 0700);
    }
    fuzz_file("manifests/library/m", text, size);
    setenv("HOME", fuzz_folder(), 1);
    setenv("OLLAMA_MODELS", fuzz_folder(), 1);
    if (fuzz_ok(cmd_model_list_find(&list)))
        for (size_t i = 0; i < list.n; i++) {
            FUZZ_CHECK(strncmp(list.items[i].path, fuzz_folder(), strlen(fuzz_folder())) == 0);
            FUZZ_CHECK(cmd_ollama_vision(&tower, list.items[i].path) == PERIDOT_OK);
            free(tower);
        }
    cmd_model_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    if (size && data[0] == 'h') take_list(text, size - 1);
    else if (size && data[0] == 'o') take_manifest(text, size - 1);
    return 0;
}
