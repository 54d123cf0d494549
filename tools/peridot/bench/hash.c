/* What identifies a model in reports. */
#include "bench.h"

#include <inttypes.h>
#include <string.h>

static peridot_status hash_metadata(uint64_t *hash, const peridot_file *file)
{
    for (size_t i = 0; i < peridot_file_n_metadata(file); i++) {
        char *text;
        const char *key = peridot_file_metadata_key(file, i);
        CMD_TRY(peridot_file_metadata_text(&text, file, i));
        *hash = cmd_hash(*hash, key, strlen(key) + 1);
        *hash = cmd_hash(*hash, text, strlen(text) + 1);
        peridot_free(text);
    }
    for (size_t i = 0; i < peridot_file_n_tensors(file); i++) {
        const peridot_tensor_info *t = peridot_file_tensor(file, i);
        *hash = cmd_hash(*hash, t->name, strlen(t->name) + 1);
        *hash = cmd_hash(*hash, t->type, strlen(t->type) + 1);
        for (uint32_t d = 0; d < t->n_dims; d++) {
            char number[24];
            int size = snprintf(number, sizeof number, "%" PRIu64 ",", t->shape[d]);
            *hash = cmd_hash(*hash, number, (size_t)size);
        }
    }
    return PERIDOT_OK;
}

peridot_status bench_hash_file(uint64_t *hash, const char *path)
{
    peridot_file *file;
    CMD_TRY(peridot_file_open(&file, path));
    peridot_status status = hash_metadata(hash, file);
    peridot_file_close(file);
    return status;
}
