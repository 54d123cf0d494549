/* What a report says of its program, its machine, its device and its model. */
#define _POSIX_C_SOURCE 200809L
#include "bench.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

extern const char bench_commit[];   /* made by commit.cmake */

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

void bench_describe(struct bench_report *r, const peridot_model_info *m, const struct bench_plan *plan)
{
    time_t now = time(NULL);
    struct tm utc;
    snprintf(r->program, sizeof r->program, "peridot %s", peridot_version());
    snprintf(r->commit, sizeof r->commit, "%s", bench_commit);
    strftime(r->date, sizeof r->date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    snprintf(r->note, sizeof r->note, "%s", plan->note ? plan->note : "");
    snprintf(r->model.name, sizeof r->model.name, "%s", m->name);
    snprintf(r->model.family, sizeof r->model.family, "%s", m->family);
    snprintf(r->model.types, sizeof r->model.types, "%s", m->types);
    snprintf(r->kv, sizeof r->kv, "%s", cmd_kv_name(plan->kv));
    snprintf(r->kernels, sizeof r->kernels, "%s", m->kernels);
    snprintf(r->tuning, sizeof r->tuning, "%s", m->tuning);
    r->device = *m->device;
    r->verdict = peridot_device_verdict(m->device, cmd_cache_dir());
    snprintf(r->device_type, sizeof r->device_type, "%s", cmd_device_type_name(m->device->type));
    bench_machine_read(&r->machine, "");
    r->model.random_weights = plan->shape || bench_is_made(m->name);
    r->model.n_layers = m->n_layers, r->model.d_model = m->d_model, r->model.ffn_dim = m->ffn_dim;
    r->model.n_heads = m->n_heads, r->model.n_kv_heads = m->n_kv_heads, r->model.head_dim = m->head_dim;
    r->model.window = m->window, r->model.vocab_size = m->vocab_size;
    r->model.n_params = m->n_params;
    r->model.size = m->weights_size + m->in_place_size + m->host_resident_size;
    r->placement.n_far_layers = m->n_host_resident_layers, r->placement.far_size = m->host_resident_size;
    r->placement.decode_read_size = m->decode_read_size, r->placement.decode_far_size = m->decode_host_resident_size;
}
