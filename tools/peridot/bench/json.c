/* Reports as JSON. The tables below are the schema: writing and reading go through the same rows, so that what is saved
 * can be read. Keys that the tables don't know are no error (a later Peridot may add some); keys that are missing, of
 * another type or out of range are. Reports of schema 1 are read too: they lack what is optional, and have the old key
 * of what has one. A --quick run is saved as its reports with their score (schema 3). ../report/README.md says what
 * the keys mean. */
#include "bench.h"
#include "../json.h"
#include "../text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    TEXT,      /* char[size] */
    U32, U64, BOOL,
    HASH,      /* uint64_t, as 16 hexadecimal digits: JSON's readers often keep 53 bits of a number */
    REAL,      /* double, not negative */
    RATE,      /* the same, with null for 0: the device has none */
    SIGNED     /* double */
};

struct field {
    const char *section;     /* the object that holds the key; NULL: the one at hand */
    const char *key;
    enum kind kind;
    size_t offset, size;
    bool optional;           /* reports from before it was there have none */
    const char *old_key;     /* NULL: none */
};

#define FIELD(type, section, key, kind, member) \
    {section, key, kind, offsetof(struct type, member), sizeof(((struct type *)NULL)->member), false, NULL}
#define NEW(type, section, key, kind, member) \
    {section, key, kind, offsetof(struct type, member), sizeof(((struct type *)NULL)->member), true, NULL}
#define DEVICE(kind, member) FIELD(bench_report, "device", #member, kind, device.member)
#define MODEL(kind, member) FIELD(bench_report, "model", #member, kind, model.member)
#define MACHINE(kind, member) NEW(bench_report, "machine", #member, kind, machine.member)
#define CONDITION(moment, kind, member) NEW(bench_report, #moment, #member, kind, moment.member)
#define CONDITIONS(moment) \
    CONDITION(moment, TEXT, power_source), CONDITION(moment, TEXT, power_profile), \
    CONDITION(moment, RATE, power_limit_w), CONDITION(moment, RATE, power_w), CONDITION(moment, RATE, temperature_c), \
    CONDITION(moment, RATE, clock_hz), CONDITION(moment, RATE, memory_clock_hz)
#define SPREAD(member) NEW(bench_report, "rates_spread", #member, RATE, rates.spread.member)
#define PLACEMENT(kind, member) NEW(bench_report, "placement", #member, kind, placement.member)
#define TEST(kind, member) FIELD(bench_test, NULL, #member, kind, member)

static const struct field report_fields[] = {
    FIELD(bench_report, NULL, "program", TEXT, program),
    NEW(bench_report, NULL, "commit", TEXT, commit),
    FIELD(bench_report, NULL, "date", TEXT, date),
    FIELD(bench_report, NULL, "note", TEXT, note),
    NEW(bench_report, NULL, "left_out", TEXT, left_out),
    MACHINE(TEXT, cpu), MACHINE(U32, n_processors), MACHINE(U64, memory), MACHINE(TEXT, os), MACHINE(TEXT, kernel),
    CONDITIONS(before), CONDITIONS(after),
    DEVICE(TEXT, name), DEVICE(TEXT, driver), DEVICE(TEXT, driver_info), DEVICE(TEXT, api_version),
    DEVICE(U64, heap_size), DEVICE(U64, max_allocation_size), DEVICE(U32, subgroup_size),
    DEVICE(U32, max_workgroup_invocations), DEVICE(U32, max_shared_size), DEVICE(BOOL, unified_memory),
    DEVICE(BOOL, fp16_arithmetic), DEVICE(BOOL, int8_arithmetic), DEVICE(BOOL, integer_dot),
    DEVICE(BOOL, subgroup_size_control), DEVICE(BOOL, cooperative_matrix), DEVICE(BOOL, external_host_memory),
    NEW(bench_report, "device", "type", TEXT, device_type),
    NEW(bench_report, "device", "uuid", TEXT, device.uuid),
    NEW(bench_report, "device", "pci", TEXT, device.pci),
    NEW(bench_report, "device", "vendor_id", U32, device.vendor_id),
    NEW(bench_report, "device", "device_id", U32, device.device_id),
    NEW(bench_report, "device", "driver_version", U32, device.driver_version),
    NEW(bench_report, "device", "off", TEXT, verdict.disabled),
    NEW(bench_report, "device", "wrong", TEXT, verdict.broken),
    MODEL(TEXT, name), MODEL(TEXT, family), MODEL(TEXT, types), MODEL(BOOL, random_weights), MODEL(U32, n_layers),
    MODEL(U32, d_model), MODEL(U32, ffn_dim), MODEL(U32, n_heads), MODEL(U32, n_kv_heads), MODEL(U32, head_dim),
    MODEL(U32, window), MODEL(U32, vocab_size), MODEL(U64, n_params), MODEL(U64, size), MODEL(HASH, hash),
    FIELD(bench_report, "session", "ctx", U32, ctx),
    FIELD(bench_report, "session", "chunk", U32, chunk),
    FIELD(bench_report, "session", "kv", TEXT, kv),
    NEW(bench_report, "session", "kernels", TEXT, kernels),
    NEW(bench_report, "session", "tuning", TEXT, tuning),
    PLACEMENT(U32, n_far_layers), PLACEMENT(U64, far_size), PLACEMENT(U64, decode_read_size),
    PLACEMENT(U64, decode_far_size),
    FIELD(bench_report, "rates", "copy", REAL, rates.copy),
    FIELD(bench_report, "rates", "read", REAL, rates.read),
    FIELD(bench_report, "rates", "fp32", REAL, rates.fp32),
    NEW(bench_report, "rates", "fp16", RATE, rates.fp16),
    NEW(bench_report, "rates", "matrix", RATE, rates.matrix),
    SPREAD(copy), SPREAD(read), SPREAD(fp32), SPREAD(fp16), SPREAD(matrix),
    FIELD(bench_report, NULL, "load_s", REAL, load_s),
    FIELD(bench_report, NULL, "first_token_s", REAL, first_token_s),
    FIELD(bench_report, NULL, "device_memory", U64, device_memory),
    FIELD(bench_report, NULL, "host_memory", U64, host_memory),
    FIELD(bench_report, NULL, "dispatches_per_token", U32, n_dispatches),
};

static const struct field test_fields[] = {
    TEST(TEXT, name), TEST(BOOL, generation), TEST(U32, n_tokens), TEST(U32, depth),
    NEW(bench_test, NULL, "n_sequences", U32, n_sequences),
    FIELD(bench_test, "tokens_per_s", "median", REAL, median),
    FIELD(bench_test, "tokens_per_s", "min", REAL, min),
    FIELD(bench_test, "tokens_per_s", "max", REAL, max),
    FIELD(bench_test, "tokens_per_s", "sd", REAL, sd),
    TEST(REAL, bytes_per_s), TEST(REAL, flop_per_s), TEST(REAL, bandwidth_part),
    NEW(bench_test, NULL, "arithmetic", TEXT, arithmetic),
    {NULL, "arithmetic_part", REAL, offsetof(struct bench_test, arithmetic_part), sizeof(double), false, "fp32_part"},
    FIELD(bench_test, "logits", "checksum", HASH, checksum),
    FIELD(bench_test, "logits", "finite", BOOL, finite),
    FIELD(bench_test, "logits", "repeats_equal", BOOL, equal),
    FIELD(bench_test, "logits", "top_token", U32, top_token),
    FIELD(bench_test, "logits", "top_logit", SIGNED, top_logit),
    FIELD(bench_test, "logits", "rms", REAL, rms),
    TEST(U32, n_profiled),
};

#define SCORE(kind, member) FIELD(bench_score, NULL, #member, kind, member)

/* Not read: it is computed again. */
static const struct field score_fields[] = {
    SCORE(REAL, total), SCORE(REAL, prompt), SCORE(REAL, generation), SCORE(REAL, batch), SCORE(U32, n_parts),
    SCORE(BOOL, shortened),
};

#define KERNEL(kind, member) {NULL, #member, kind, offsetof(peridot_kernel_time, member), \
                              sizeof(((peridot_kernel_time *)NULL)->member), false, NULL}

static const struct field kernel_fields[] = {
    KERNEL(TEXT, kernel), KERNEL(U32, n), KERNEL(REAL, seconds),
};

/* ---- writing ---- */

static yyjson_mut_val *section_of(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *section)
{
    if (!section) return object;
    yyjson_mut_val *present = yyjson_mut_obj_get(object, section);
    return present ? present : yyjson_mut_obj_add_obj(doc, object, section);
}

static void add_hash(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

static void add_field(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct field *f, const void *from)
{
    switch (f->kind) {
    case TEXT: yyjson_mut_obj_add_str(doc, object, f->key, from); break;
    case U32: yyjson_mut_obj_add_uint(doc, object, f->key, *(const uint32_t *)from); break;
    case U64: yyjson_mut_obj_add_uint(doc, object, f->key, *(const uint64_t *)from); break;
    case BOOL: yyjson_mut_obj_add_bool(doc, object, f->key, *(const bool *)from); break;
    case HASH: add_hash(doc, object, f->key, *(const uint64_t *)from); break;
    case REAL: case SIGNED: yyjson_mut_obj_add_real(doc, object, f->key, *(const double *)from); break;
    case RATE:
        if (*(const double *)from > 0) yyjson_mut_obj_add_real(doc, object, f->key, *(const double *)from);
        else yyjson_mut_obj_add_null(doc, object, f->key);
        break;
    }
}

static void add_fields(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct field *fields, size_t n,
                       const void *base)
{
    for (size_t i = 0; i < n; i++)
        add_field(doc, section_of(doc, object, fields[i].section), &fields[i], (const char *)base + fields[i].offset);
}

#define RANK(kind, member) FIELD(cmd_rank, NULL, #member, kind, member)

static const struct field rank_fields[] = {
    RANK(TEXT, host), RANK(TEXT, device), RANK(U32, first_layer), RANK(U32, n_layers), RANK(U64, memory),
    RANK(REAL, busy), FIELD(cmd_rank, "link", "bandwidth", RATE, bandwidth),
    FIELD(cmd_rank, "link", "latency_s", RATE, latency),
};

static void add_test(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct bench_test *test)
{
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);
    add_fields(doc, object, test_fields, CMD_COUNT(test_fields), test);
    yyjson_mut_val *speeds = yyjson_mut_obj_add_arr(doc, section_of(doc, object, "tokens_per_s"), "repeats");
    for (uint32_t i = 0; i < test->n_repeats; i++) yyjson_mut_arr_add_real(doc, speeds, test->speed[i]);
    yyjson_mut_val *kernels = yyjson_mut_obj_add_arr(doc, object, "kernels");
    for (size_t i = 0; i < test->n_kernels; i++)
        add_fields(doc, yyjson_mut_arr_add_obj(doc, kernels), kernel_fields, CMD_COUNT(kernel_fields),
                   &test->kernels[i]);
}

static void add_report(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct bench_report *report)
{
    yyjson_mut_obj_add_uint(doc, root, "schema", BENCH_SCHEMA);
    add_fields(doc, root, report_fields, CMD_COUNT(report_fields), report);
    yyjson_mut_val *ranks = report->n_ranks ? yyjson_mut_obj_add_arr(doc, root, "ranks") : NULL;
    for (size_t i = 0; i < report->n_ranks; i++)
        add_fields(doc, yyjson_mut_arr_add_obj(doc, ranks), rank_fields, CMD_COUNT(rank_fields), &report->ranks[i]);
    yyjson_mut_val *tests = yyjson_mut_obj_add_arr(doc, root, "tests");
    for (size_t i = 0; i < report->n_tests; i++) add_test(doc, tests, &report->tests[i]);
}

static void add_set(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct bench_reports *list)
{
    yyjson_mut_obj_add_uint(doc, root, "schema", BENCH_SET_SCHEMA);
    add_fields(doc, yyjson_mut_obj_add_obj(doc, root, "score"), score_fields, CMD_COUNT(score_fields),
               &list->at[0]->score);
    yyjson_mut_val *reports = yyjson_mut_obj_add_arr(doc, root, "reports");
    for (size_t i = 0; i < list->n; i++) add_report(doc, yyjson_mut_arr_add_obj(doc, reports), list->at[i]);
}

/* NULL when memory is short. Freed by the caller. */
static char *to_text(const struct bench_reports *list)
{
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    if (list->at[0]->score.n_parts) add_set(doc, root, list);
    else add_report(doc, root, list->at[0]);
    /* A name may hold anything that its file or driver put there. */
    return cmd_json_end(doc, YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
}

static peridot_status no_text(void)
{
    return cmd_fail(PERIDOT_ERROR_MEMORY, "the report cannot be written as JSON");
}

peridot_status bench_json_write(FILE *file, const struct bench_reports *list)
{
    char *text = to_text(list);
    if (!text) return no_text();
    fprintf(file, "%s\n", text);
    free(text);
    return PERIDOT_OK;
}

peridot_status bench_json_save(const char *path, const struct bench_reports *list)
{
    peridot_output *file;
    char *text = to_text(list);
    if (!text) return no_text();
    peridot_status status = peridot_output_open(&file, path);
    if (status == PERIDOT_OK) status = peridot_output_write(file, text, strlen(text));
    if (status == PERIDOT_OK) status = peridot_output_write(file, "\n", 1);
    if (status == PERIDOT_OK) status = peridot_output_commit(file);
    else peridot_output_abort(file);
    free(text);
    return status;
}

/* ---- reading ---- */

static const double largest = 1e18;   /* of any number: sums of a few hundred stay finite */

struct reader {
    const char *path;
    char report[40];   /* "reports[1]." of a set */
    char place[64];    /* "tests[3].", after that: both stand before the names of keys in sentences */
};

static peridot_status refuse(const struct reader *r, const char *section, const char *key, const char *what)
{
    return cmd_fail(PERIDOT_ERROR_FORMAT, "%s: %s%s%s%s%s %s", r->path, r->report, r->place, section ? section : "",
                    section ? "." : "", key, what);
}

/* A text is shown on terminals: control characters could do more there than be read. */
static bool is_plain(const char *text, size_t size)
{
    return strlen(text) == size && strcmp(cmd_shown(text), text) == 0;
}

static const char *take_text(char *to, size_t size, yyjson_val *value)
{
    if (!yyjson_is_str(value)) return "is not a string";
    if (yyjson_get_len(value) >= size) return "is too long";
    if (!is_plain(yyjson_get_str(value), yyjson_get_len(value))) return "has a control character";
    memcpy(to, yyjson_get_str(value), yyjson_get_len(value) + 1);
    return NULL;
}

static const char *take_hash(uint64_t *to, yyjson_val *value)
{
    static const char digits[] = "0123456789abcdef";
    if (!yyjson_is_str(value) || yyjson_get_len(value) != 16 || strspn(yyjson_get_str(value), digits) != 16)
        return "is not a string of 16 hexadecimal digits";
    *to = strtoull(yyjson_get_str(value), NULL, 16);
    return NULL;
}

static const char *take_real(double *to, yyjson_val *value, double min)
{
    if (!yyjson_is_num(value)) return "is not a number";
    *to = yyjson_get_num(value);
    return *to >= min && *to <= largest ? NULL : "is out of range";
}

static const char *take_uint(uint64_t *to, yyjson_val *value, uint64_t max)
{
    if (!yyjson_is_uint(value)) return "is not a whole number";
    *to = yyjson_get_uint(value);
    return *to <= max ? NULL : "is out of range";
}

/* NULL, or what is wrong. */
static const char *take_field(const struct field *f, void *to, yyjson_val *value)
{
    uint64_t whole = 0;
    const char *wrong = NULL;
    if (!value) return f->optional ? NULL : "is missing";
    switch (f->kind) {
    case TEXT: return take_text(to, f->size, value);
    case U32:
        wrong = take_uint(&whole, value, UINT32_MAX);
        *(uint32_t *)to = (uint32_t)whole;
        return wrong;
    case U64: return take_uint(to, value, (uint64_t)largest);
    case BOOL:
        *(bool *)to = yyjson_get_bool(value);
        return yyjson_is_bool(value) ? NULL : "is not true or false";
    case HASH: return take_hash(to, value);
    case RATE:
        if (yyjson_is_null(value)) return NULL;
        return take_real(to, value, 0);
    case REAL: return take_real(to, value, 0);
    case SIGNED: return take_real(to, value, -largest);
    }
    return "is not known";
}

static peridot_status read_fields(const struct reader *r, yyjson_val *object, const struct field *fields, size_t n,
                                  void *base)
{
    for (size_t i = 0; i < n; i++) {
        const struct field *f = &fields[i];
        yyjson_val *section = f->section ? yyjson_obj_get(object, f->section) : object;
        yyjson_val *value = yyjson_obj_get(section, f->key);
        if (!value && f->old_key) value = yyjson_obj_get(section, f->old_key);
        const char *wrong = take_field(f, (char *)base + f->offset, value);
        if (wrong) return refuse(r, f->section, f->key, wrong);
    }
    return PERIDOT_OK;
}

static peridot_status read_list(yyjson_val **out, size_t *n, const struct reader *r, yyjson_val *object,
                                const char *key, size_t max)
{
    *out = yyjson_obj_get(object, key);
    *n = yyjson_arr_size(*out);
    if (!yyjson_is_arr(*out)) return refuse(r, NULL, key, "is not an array");
    return *n <= max ? PERIDOT_OK : refuse(r, NULL, key, "has too many entries");
}

static peridot_status read_speeds(struct bench_test *test, const struct reader *r, yyjson_val *object)
{
    yyjson_val *list;
    size_t n;
    CMD_TRY(read_list(&list, &n, r, yyjson_obj_get(object, "tokens_per_s"), "repeats", BENCH_REPEATS));
    test->n_repeats = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const char *wrong = take_real(&test->speed[i], yyjson_arr_get(list, i), 0);
        if (wrong) return refuse(r, "tokens_per_s", "repeats", wrong);
    }
    return PERIDOT_OK;
}

static peridot_status read_test(struct bench_test *test, struct reader *r, yyjson_val *object, size_t i)
{
    yyjson_val *list;
    snprintf(r->place, sizeof r->place, "tests[%zu].", i);
    CMD_TRY(read_fields(r, object, test_fields, CMD_COUNT(test_fields), test));
    if (!test->n_sequences) test->n_sequences = 1;
    if (!test->arithmetic[0]) strcpy(test->arithmetic, "fp32");   /* what schema 1 held all prompts against */
    if (strcmp(test->arithmetic, "fp32") != 0 && strcmp(test->arithmetic, "matrix") != 0)
        return refuse(r, NULL, "arithmetic", "is neither fp32 nor matrix");
    CMD_TRY(read_speeds(test, r, object));
    CMD_TRY(read_list(&list, &test->n_kernels, r, object, "kernels", BENCH_KERNELS));
    for (size_t k = 0; k < test->n_kernels; k++) {
        snprintf(r->place, sizeof r->place, "tests[%zu].kernels[%zu].", i, k);
        CMD_TRY(read_fields(r, yyjson_arr_get(list, k), kernel_fields, CMD_COUNT(kernel_fields), &test->kernels[k]));
    }
    return PERIDOT_OK;
}

/* There are none where one device held all layers. */
static peridot_status read_ranks(struct bench_report *out, struct reader *r, yyjson_val *root)
{
    yyjson_val *list;
    if (!yyjson_obj_get(root, "ranks")) return PERIDOT_OK;
    CMD_TRY(read_list(&list, &out->n_ranks, r, root, "ranks", CMD_RANKS_MAX));
    for (size_t i = 0; i < out->n_ranks; i++) {
        snprintf(r->place, sizeof r->place, "ranks[%zu].", i);
        CMD_TRY(read_fields(r, yyjson_arr_get(list, i), rank_fields, CMD_COUNT(rank_fields), &out->ranks[i]));
    }
    r->place[0] = 0;
    return PERIDOT_OK;
}

/* The schema of a report, or of a set of them: *out, of min to max. */
static peridot_status read_schema(uint64_t *out, const struct reader *r, yyjson_val *root, uint64_t max)
{
    yyjson_val *schema = yyjson_obj_get(root, "schema");
    if (!yyjson_is_uint(schema))
        return cmd_fail(PERIDOT_ERROR_FORMAT, "%s: not a report of peridot bench (%sit has no \"schema\")", r->path,
                        r->report);
    *out = yyjson_get_uint(schema);
    if (*out < 1 || *out > max)
        return cmd_fail(PERIDOT_ERROR_UNSUPPORTED,
                        "%s: %sschema %" PRIu64 " is not supported, only those up to %" PRIu64, r->path, r->report,
                        *out, max);
    return PERIDOT_OK;
}

/* The file's name without its folders and ".json". */
static void make_label(char *out, size_t size, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    size_t length = dot && strcmp(dot, ".json") == 0 ? (size_t)(dot - name) : strlen(name);
    peridot_printable(out, size, name, length);
}

static peridot_status read_report(struct bench_reports *list, struct reader *r, yyjson_val *root)
{
    struct bench_report *out;
    yyjson_val *tests;
    uint64_t schema;
    r->place[0] = 0;
    CMD_TRY(bench_reports_add(&out, list));
    CMD_TRY(read_schema(&schema, r, root, BENCH_SCHEMA));
    make_label(out->label, sizeof out->label, r->path);
    CMD_TRY(read_fields(r, root, report_fields, CMD_COUNT(report_fields), out));
    /* reports from before said so of what they had made themselves only */
    out->model.random_weights = out->model.random_weights || bench_is_made(out->model.name);
    CMD_TRY(read_ranks(out, r, root));
    CMD_TRY(read_list(&tests, &out->n_tests, r, root, "tests", BENCH_TESTS));
    for (size_t i = 0; i < out->n_tests; i++) CMD_TRY(read_test(&out->tests[i], r, yyjson_arr_get(tests, i), i));
    return PERIDOT_OK;
}

static peridot_status read_set(struct bench_reports *list, struct reader *r, yyjson_val *root)
{
    size_t first = list->n, n;
    yyjson_val *reports;
    CMD_TRY(read_list(&reports, &n, r, root, "reports", BENCH_SET));
    if (n == 0) return refuse(r, NULL, "reports", "has no entries");
    for (size_t i = 0; i < n; i++) {
        snprintf(r->report, sizeof r->report, "reports[%zu].", i);
        CMD_TRY(read_report(list, r, yyjson_arr_get(reports, i)));
    }
    bench_quick_score(list->at + first, n);
    return PERIDOT_OK;
}

static peridot_status read_root(struct bench_reports *list, struct reader *r, yyjson_val *root)
{
    uint64_t schema;
    CMD_TRY(read_schema(&schema, r, root, BENCH_SET_SCHEMA));
    return schema == BENCH_SET_SCHEMA ? read_set(list, r, root) : read_report(list, r, root);
}

peridot_status bench_json_read(struct bench_reports *list, const char *path)
{
    struct reader r = {.path = path};
    char *text;
    size_t size;
    yyjson_read_err error;
    CMD_TRY(cmd_read_file(&text, &size, path));
    yyjson_doc *doc = yyjson_read_opts(text, size, 0, NULL, &error);
    peridot_status status = doc ? read_root(list, &r, yyjson_doc_get_root(doc))
                                : cmd_fail(PERIDOT_ERROR_FORMAT, "%s: no JSON: %s at byte %zu", path, error.msg,
                                           error.pos);
    yyjson_doc_free(doc);
    free(text);
    return status;
}
