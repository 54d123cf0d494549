/* What was measured as JSON, in the order of ../report/README.md. Numbers that the device or its system does not tell
 * are null, and their texts "". */
#define _POSIX_C_SOURCE 200809L
#include "bench.h"
#include "../cli/cli.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

extern const char bench_commit[];   /* made by commit.cmake */

/* ---- values ---- */

void bench_json_text(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *text, size_t size)
{
    char shown[1024];
    peridot_printable(shown, (size_t)pd_min(size, sizeof shown), text, strlen(text));
    yyjson_mut_obj_add_strcpy(doc, object, key, shown);
}

/* 64-bit hashes are hexadecimal: JSON's readers often keep 53 bits of a number. */
static void add_hash(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

static void add_rate(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, double rate)
{
    if (rate > 0) yyjson_mut_obj_add_real(doc, object, key, rate);
    else yyjson_mut_obj_add_null(doc, object, key);
}

/* ---- the machine ---- */

static void add_machine(yyjson_mut_doc *doc, yyjson_mut_val *object)
{
    struct bench_machine m;
    bench_machine_read(&m, "");
    bench_json_text(doc, object, "cpu", m.cpu, REPORT_WORDS);
    yyjson_mut_obj_add_uint(doc, object, "n_processors", m.n_processors);
    yyjson_mut_obj_add_uint(doc, object, "memory", m.memory);
    bench_json_text(doc, object, "os", m.os, REPORT_WORDS);
    bench_json_text(doc, object, "kernel", m.kernel, REPORT_WORDS);
}

static void add_conditions(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct bench_conditions *c)
{
    bench_json_text(doc, object, "power_source", c->power_source, sizeof c->power_source);
    bench_json_text(doc, object, "power_profile", c->power_profile, sizeof c->power_profile);
    add_rate(doc, object, "power_limit_w", c->power_limit_w);
    add_rate(doc, object, "power_w", c->power_w);
    add_rate(doc, object, "temperature_c", c->temperature_c);
    add_rate(doc, object, "clock_hz", c->clock_hz);
    add_rate(doc, object, "memory_clock_hz", c->memory_clock_hz);
    add_rate(doc, object, "link_gt_s", c->link_gt_s);
    add_rate(doc, object, "link_width", c->link_width);
    add_rate(doc, object, "link_max_gt_s", c->link_max_gt_s);
    add_rate(doc, object, "link_max_width", c->link_max_width);
}

/* ---- the device ---- */

static void add_features(yyjson_mut_doc *doc, yyjson_mut_val *object, const peridot_device_info *d)
{
    const struct { const char *key; bool has; } features[] = {
        {"unified_memory", d->unified_memory}, {"fp16_arithmetic", d->fp16_arithmetic},
        {"int8_arithmetic", d->int8_arithmetic}, {"integer_dot", d->integer_dot},
        {"subgroup_size_control", d->subgroup_size_control}, {"cooperative_matrix", d->cooperative_matrix},
        {"external_host_memory", d->external_host_memory},
    };
    for (size_t i = 0; i < PD_COUNT(features); i++)
        yyjson_mut_obj_add_bool(doc, object, features[i].key, features[i].has);
}

static void add_device(yyjson_mut_doc *doc, yyjson_mut_val *object, const peridot_device_info *d)
{
    peridot_verdict verdict = peridot_device_verdict(d, cmd_cache_dir());
    bench_json_text(doc, object, "name", d->name, REPORT_NAME);
    bench_json_text(doc, object, "driver", d->driver, REPORT_NAME);
    bench_json_text(doc, object, "driver_info", d->driver_info, REPORT_NAME);
    bench_json_text(doc, object, "api_version", d->api_version, sizeof d->api_version);
    yyjson_mut_obj_add_uint(doc, object, "heap_size", d->heap_size);
    yyjson_mut_obj_add_uint(doc, object, "max_allocation_size", d->max_allocation_size);
    yyjson_mut_obj_add_uint(doc, object, "subgroup_size", d->subgroup_size);
    yyjson_mut_obj_add_uint(doc, object, "max_workgroup_invocations", d->max_workgroup_invocations);
    yyjson_mut_obj_add_uint(doc, object, "max_shared_size", d->max_shared_size);
    add_features(doc, object, d);
    yyjson_mut_obj_add_str(doc, object, "type", cmd_device_type_name(d->type));
    bench_json_text(doc, object, "uuid", d->uuid, sizeof d->uuid);
    bench_json_text(doc, object, "pci", d->pci, sizeof d->pci);
    yyjson_mut_obj_add_uint(doc, object, "window_size", bench_window_read("", d->pci));
    yyjson_mut_obj_add_uint(doc, object, "vendor_id", d->vendor_id);
    yyjson_mut_obj_add_uint(doc, object, "device_id", d->device_id);
    yyjson_mut_obj_add_uint(doc, object, "driver_version", d->driver_version);
    bench_json_text(doc, object, "off", verdict.disabled, sizeof verdict.disabled);
    bench_json_text(doc, object, "wrong", verdict.broken, sizeof verdict.broken);
}

/* ---- the model ---- */

static void add_shape(yyjson_mut_doc *doc, yyjson_mut_val *object, const peridot_model_info *m)
{
    const struct { const char *key; uint32_t value; } numbers[] = {
        {"n_layers", m->n_layers}, {"d_model", m->d_model}, {"ffn_dim", m->ffn_dim}, {"n_heads", m->n_heads},
        {"n_kv_heads", m->n_kv_heads}, {"head_dim", m->head_dim}, {"window", m->window}, {"vocab_size", m->vocab_size},
    };
    for (size_t i = 0; i < PD_COUNT(numbers); i++)
        yyjson_mut_obj_add_uint(doc, object, numbers[i].key, numbers[i].value);
}

static void json_add_model(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct bench_run *run)
{
    const peridot_model_info *m = run->model;
    bench_json_text(doc, object, "name", m->name, REPORT_NAME);
    bench_json_text(doc, object, "family", m->family, 32);
    bench_json_text(doc, object, "types", m->types, REPORT_WORDS);
    yyjson_mut_obj_add_bool(doc, object, "random_weights", run->plan->shape || report_is_made(m->name));
    add_shape(doc, object, m);
    yyjson_mut_obj_add_uint(doc, object, "n_params", m->n_params);
    yyjson_mut_obj_add_uint(doc, object, "size", m->weights_size + m->in_place_size + m->host_resident_size);
    add_hash(doc, object, "hash", run->model_hash);
}

static void add_session(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct bench_run *run)
{
    yyjson_mut_obj_add_uint(doc, object, "ctx", run->ctx);
    yyjson_mut_obj_add_uint(doc, object, "chunk", run->chunk);
    yyjson_mut_obj_add_str(doc, object, "kv", cmd_kv_name(run->plan->kv));
    bench_json_text(doc, object, "kernels", run->model->kernels, REPORT_WORDS);
    bench_json_text(doc, object, "tuning", run->model->tuning, REPORT_NOTE);
}

static void add_placement(yyjson_mut_doc *doc, yyjson_mut_val *object, const peridot_model_info *m)
{
    yyjson_mut_obj_add_uint(doc, object, "n_far_layers", m->n_host_resident_layers);
    yyjson_mut_obj_add_uint(doc, object, "far_size", m->host_resident_size);
    yyjson_mut_obj_add_uint(doc, object, "decode_read_size", m->decode_read_size);
    yyjson_mut_obj_add_uint(doc, object, "decode_far_size", m->decode_host_resident_size);
}

/* ---- a run ---- */

static void add_rates(yyjson_mut_doc *doc, yyjson_mut_val *report, const peridot_rates *r)
{
    yyjson_mut_val *rates = yyjson_mut_obj_add_obj(doc, report, "rates");
    yyjson_mut_val *spread = yyjson_mut_obj_add_obj(doc, report, "rates_spread");
    yyjson_mut_obj_add_real(doc, rates, "copy", r->copy);
    yyjson_mut_obj_add_real(doc, rates, "read", r->read);
    yyjson_mut_obj_add_real(doc, rates, "fp32", r->fp32);
    add_rate(doc, rates, "fp16", r->fp16);
    add_rate(doc, rates, "matrix", r->matrix);
    add_rate(doc, spread, "copy", r->spread.copy);
    add_rate(doc, spread, "read", r->spread.read);
    add_rate(doc, spread, "fp32", r->spread.fp32);
    add_rate(doc, spread, "fp16", r->spread.fp16);
    add_rate(doc, spread, "matrix", r->spread.matrix);
}

static void add_program(yyjson_mut_doc *doc, yyjson_mut_val *report, const struct bench_run *run)
{
    char program[32], date[32];
    time_t now = time(NULL);
    struct tm utc;
    snprintf(program, sizeof program, "peridot %s", peridot_version());
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    yyjson_mut_obj_add_uint(doc, report, "schema", REPORT_SCHEMA);
    yyjson_mut_obj_add_strcpy(doc, report, "program", program);
    yyjson_mut_obj_add_str(doc, report, "commit", bench_commit);
    yyjson_mut_obj_add_strcpy(doc, report, "date", date);
    bench_json_text(doc, report, "note", run->plan->note ? run->plan->note : "", REPORT_NOTE);
    bench_json_text(doc, report, "left_out", run->left_out, REPORT_NOTE);
}

static void add_beside(yyjson_mut_doc *doc, yyjson_mut_val *report, const struct bench_beside *b)
{
    if (!b->n_prompt) return;
    yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, report, "beside_prompt");
    yyjson_mut_obj_add_uint(doc, object, "n_prompt", b->n_prompt);
    yyjson_mut_obj_add_real(doc, object, "prompt_s", b->prompt_s);
    yyjson_mut_obj_add_uint(doc, object, "n_gaps", b->n_gaps);
    yyjson_mut_obj_add_uint(doc, object, "n_slow", b->n_slow);
    yyjson_mut_obj_add_real(doc, object, "median_s", b->median_s);
    yyjson_mut_obj_add_real(doc, object, "p95_s", b->p95_s);
    yyjson_mut_obj_add_real(doc, object, "max_s", b->max_s);
}

static void add_drafts(yyjson_mut_doc *doc, yyjson_mut_val *report, const struct bench_run *run)
{
    static const char *const keys[BENCH_DRAFT_TEXTS] = {"drafts_story", "drafts_list"};
    if (run->plan->draft.name) bench_json_text(doc, report, "draft", run->plan->draft.name, REPORT_NAME);
    for (int i = 0; i < BENCH_DRAFT_TEXTS; i++) {
        const struct bench_draft_text *t = &run->drafts.texts[i];
        if (!t->n_tokens) continue;
        yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, report, keys[i]);
        yyjson_mut_obj_add_uint(doc, object, "n_tokens", t->n_tokens);
        yyjson_mut_obj_add_uint(doc, object, "n_drafted", t->n_drafted);
        yyjson_mut_obj_add_uint(doc, object, "n_accepted", t->n_accepted);
        yyjson_mut_obj_add_real(doc, object, "plain", t->plain);
        yyjson_mut_obj_add_real(doc, object, "drafted", t->drafted);
    }
}

/* The ids as they are, and their hash for who compares many. */
static void add_text(yyjson_mut_doc *doc, yyjson_mut_val *report, const struct bench_text *t)
{
    uint64_t hash = 0;
    if (!t->n) return;
    yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, report, "text");
    yyjson_mut_obj_add_uint(doc, object, "n_reference", t->n_reference);
    yyjson_mut_obj_add_uint(doc, object, "n_agree", t->n_agree);
    yyjson_mut_val *tokens = yyjson_mut_obj_add_arr(doc, object, "tokens");
    for (uint32_t i = 0; i < t->n; i++) {
        const uint32_t id = (uint32_t)t->tokens[i];
        const unsigned char bytes[4] = {id & 255, id >> 8 & 255, id >> 16 & 255, id >> 24};
        yyjson_mut_arr_add_uint(doc, tokens, id);
        hash = pd_hash(hash, bytes, sizeof bytes);
    }
    add_hash(doc, object, "checksum", hash);
}

void bench_json_run(yyjson_mut_doc *doc, yyjson_mut_val *report, const struct bench_run *run)
{
    add_program(doc, report, run);
    add_machine(doc, yyjson_mut_obj_add_obj(doc, report, "machine"));
    add_conditions(doc, yyjson_mut_obj_add_obj(doc, report, "before"), &run->before);
    add_conditions(doc, yyjson_mut_obj_add_obj(doc, report, "after"), &run->after);
    yyjson_mut_obj_add_str(doc, report, "meter", run->meter ? run->meter : "");
    add_device(doc, yyjson_mut_obj_add_obj(doc, report, "device"), run->model->device);
    json_add_model(doc, yyjson_mut_obj_add_obj(doc, report, "model"), run);
    add_session(doc, yyjson_mut_obj_add_obj(doc, report, "session"), run);
    add_placement(doc, yyjson_mut_obj_add_obj(doc, report, "placement"), run->model);
    add_rates(doc, report, &run->rates);
    yyjson_mut_obj_add_real(doc, report, "load_s", run->load_s);
    yyjson_mut_obj_add_real(doc, report, "first_token_s", run->first_token_s);
    yyjson_mut_obj_add_uint(doc, report, "device_memory", run->device_memory);
    yyjson_mut_obj_add_uint(doc, report, "host_memory", run->host_memory);
    yyjson_mut_obj_add_uint(doc, report, "dispatches_per_token", run->n_dispatches);
    add_beside(doc, report, &run->beside);
    add_drafts(doc, report, run);
    add_text(doc, report, &run->text);
}

static void add_rank(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct cmd_rank *rank)
{
    bench_json_text(doc, object, "host", rank->host, sizeof rank->host);
    bench_json_text(doc, object, "device", rank->device, sizeof rank->device);
    yyjson_mut_obj_add_uint(doc, object, "first_layer", rank->first_layer);
    yyjson_mut_obj_add_uint(doc, object, "n_layers", rank->n_layers);
    yyjson_mut_obj_add_uint(doc, object, "memory", rank->memory);
    yyjson_mut_obj_add_real(doc, object, "busy", rank->busy);
    yyjson_mut_val *link = yyjson_mut_obj_add_obj(doc, object, "link");
    add_rate(doc, link, "bandwidth", rank->bandwidth);
    add_rate(doc, link, "latency_s", rank->latency);
}

void bench_json_ranks(yyjson_mut_doc *doc, yyjson_mut_val *report, const struct cmd_rank *ranks, size_t n)
{
    yyjson_mut_val *list = n ? yyjson_mut_obj_add_arr(doc, report, "ranks") : NULL;
    for (size_t i = 0; i < n; i++) add_rank(doc, yyjson_mut_arr_add_obj(doc, list), &ranks[i]);
}

/* ---- a test ---- */

static void add_speeds(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct bench_test *t)
{
    yyjson_mut_obj_add_real(doc, object, "median", t->median);
    yyjson_mut_obj_add_real(doc, object, "min", t->min);
    yyjson_mut_obj_add_real(doc, object, "max", t->max);
    yyjson_mut_obj_add_real(doc, object, "sd", t->sd);
    yyjson_mut_val *repeats = yyjson_mut_obj_add_arr(doc, object, "repeats");
    for (uint32_t i = 0; i < t->n_repeats; i++) yyjson_mut_arr_add_real(doc, repeats, t->speed[i]);
}

static void add_logits(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct bench_test *t)
{
    add_hash(doc, object, "checksum", t->checksum);
    yyjson_mut_obj_add_bool(doc, object, "finite", t->finite);
    yyjson_mut_obj_add_bool(doc, object, "repeats_equal", t->equal);
    yyjson_mut_obj_add_uint(doc, object, "top_token", t->top_token);
    yyjson_mut_obj_add_real(doc, object, "top_logit", t->top_logit);
    yyjson_mut_obj_add_real(doc, object, "rms", t->rms);
}

static void add_kernels(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct bench_test *t)
{
    for (size_t i = 0; i < t->n_kernels; i++) {
        yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_strcpy(doc, object, "kernel", t->kernels[i].kernel);
        yyjson_mut_obj_add_uint(doc, object, "n", t->kernels[i].n);
        yyjson_mut_obj_add_real(doc, object, "seconds", t->kernels[i].seconds);
    }
}

yyjson_mut_val *bench_json_test(yyjson_mut_doc *doc, yyjson_mut_val *tests, const struct bench_test *t)
{
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, tests);
    yyjson_mut_obj_add_strcpy(doc, object, "name", t->name);
    yyjson_mut_obj_add_bool(doc, object, "generation", t->generation);
    yyjson_mut_obj_add_uint(doc, object, "n_tokens", t->n_tokens);
    yyjson_mut_obj_add_uint(doc, object, "depth", t->depth);
    yyjson_mut_obj_add_uint(doc, object, "n_sequences", t->n_sequences);
    add_speeds(doc, yyjson_mut_obj_add_obj(doc, object, "tokens_per_s"), t);
    yyjson_mut_obj_add_real(doc, object, "bytes_per_s", t->bytes_per_s);
    yyjson_mut_obj_add_real(doc, object, "flop_per_s", t->flop_per_s);
    yyjson_mut_obj_add_real(doc, object, "bandwidth_part", t->bandwidth_part);
    yyjson_mut_obj_add_str(doc, object, "arithmetic", t->arithmetic);
    yyjson_mut_obj_add_real(doc, object, "arithmetic_part", t->arithmetic_part);
    add_rate(doc, object, "power_w", t->power_w);
    add_rate(doc, object, "j_per_token", t->median > 0 ? t->power_w / t->median : 0);
    add_logits(doc, yyjson_mut_obj_add_obj(doc, object, "logits"), t);
    yyjson_mut_obj_add_uint(doc, object, "n_profiled", t->n_profiled);
    add_kernels(doc, yyjson_mut_obj_add_arr(doc, object, "kernels"), t);
    return object;
}

/* ---- a set ---- */

void bench_json_score(yyjson_mut_doc *doc, yyjson_mut_val *score, const struct report_score *from)
{
    yyjson_mut_obj_add_real(doc, score, "total", from->total);
    yyjson_mut_obj_add_real(doc, score, "prompt", from->prompt);
    yyjson_mut_obj_add_real(doc, score, "generation", from->generation);
    yyjson_mut_obj_add_real(doc, score, "batch", from->batch);
    yyjson_mut_obj_add_uint(doc, score, "n_parts", from->n_parts);
    yyjson_mut_obj_add_bool(doc, score, "shortened", from->shortened);
}
