/* Reads reports. The tables below are the schema: keys that they don't know are no error (a later Peridot may add
 * some); keys that are missing, of another type or out of range are. Reports of schema 1 are read too: they lack what
 * is optional, and have the old key of what has one. A --quick run is a set of reports (schema 3). README.md beside
 * this file says what the keys mean. */
#define _POSIX_C_SOURCE 200809L
#include "../base/base.h"
#include "report.h"
#include "report_.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

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
#define DEVICE(kind, member) FIELD(report, "device", #member, kind, device.member)
#define MODEL(kind, member) FIELD(report, "model", #member, kind, model.member)
#define MACHINE(kind, member) NEW(report, "machine", #member, kind, machine.member)
#define CONDITION(moment, kind, member) NEW(report, #moment, #member, kind, moment.member)
#define CONDITIONS(moment) \
    CONDITION(moment, TEXT, power_source), CONDITION(moment, TEXT, power_profile), \
    CONDITION(moment, RATE, power_limit_w), CONDITION(moment, RATE, power_w), CONDITION(moment, RATE, temperature_c), \
    CONDITION(moment, RATE, clock_hz), CONDITION(moment, RATE, memory_clock_hz), \
    CONDITION(moment, RATE, link_gt_s), CONDITION(moment, RATE, link_width), CONDITION(moment, RATE, link_max_gt_s), \
    CONDITION(moment, RATE, link_max_width)
#define SPREAD(member) NEW(report, "rates_spread", #member, RATE, spread.member)
#define PLACEMENT(kind, member) NEW(report, "placement", #member, kind, placement.member)
#define BESIDE(kind, member) NEW(report, "beside_prompt", #member, kind, beside.member)
#define DRAFTS(text, kind, member) NEW(report, #text, #member, kind, text.member)
#define DRAFTED(text) \
    DRAFTS(text, U32, n_tokens), DRAFTS(text, U32, n_drafted), DRAFTS(text, U32, n_accepted), \
    DRAFTS(text, RATE, plain), DRAFTS(text, RATE, drafted)
#define TEXT_OF(kind, member) NEW(report, "text", #member, kind, text.member)
#define TEST(kind, member) FIELD(report_test, NULL, #member, kind, member)

static const struct field report_fields[] = {
    FIELD(report, NULL, "program", TEXT, program),
    NEW(report, NULL, "commit", TEXT, commit),
    FIELD(report, NULL, "date", TEXT, date),
    FIELD(report, NULL, "note", TEXT, note),
    NEW(report, NULL, "left_out", TEXT, left_out),
    MACHINE(TEXT, cpu), MACHINE(U32, n_processors), MACHINE(U64, memory), MACHINE(TEXT, os), MACHINE(TEXT, kernel),
    CONDITIONS(before), CONDITIONS(after),
    NEW(report, NULL, "meter", TEXT, meter),
    DEVICE(TEXT, name), DEVICE(TEXT, driver), DEVICE(TEXT, driver_info), DEVICE(TEXT, api_version),
    DEVICE(U64, heap_size), DEVICE(U64, max_allocation_size), DEVICE(U32, subgroup_size),
    DEVICE(U32, max_workgroup_invocations), DEVICE(U32, max_shared_size), DEVICE(BOOL, unified_memory),
    DEVICE(BOOL, fp16_arithmetic), DEVICE(BOOL, int8_arithmetic), DEVICE(BOOL, integer_dot),
    DEVICE(BOOL, subgroup_size_control), DEVICE(BOOL, cooperative_matrix), DEVICE(BOOL, external_host_memory),
    NEW(report, "device", "type", TEXT, device.type),
    NEW(report, "device", "uuid", TEXT, device.uuid),
    NEW(report, "device", "pci", TEXT, device.pci),
    NEW(report, "device", "window_size", U64, device.window_size),
    NEW(report, "device", "vendor_id", U32, device.vendor_id),
    NEW(report, "device", "device_id", U32, device.device_id),
    NEW(report, "device", "driver_version", U32, device.driver_version),
    NEW(report, "device", "off", TEXT, device.disabled),
    NEW(report, "device", "wrong", TEXT, device.broken),
    MODEL(TEXT, name), MODEL(TEXT, family), MODEL(TEXT, types), MODEL(BOOL, random_weights), MODEL(U32, n_layers),
    MODEL(U32, d_model), MODEL(U32, ffn_dim), MODEL(U32, n_heads), MODEL(U32, n_kv_heads), MODEL(U32, head_dim),
    MODEL(U32, window), MODEL(U32, vocab_size), MODEL(U64, n_params), MODEL(U64, size), MODEL(HASH, hash),
    FIELD(report, "session", "ctx", U32, ctx),
    FIELD(report, "session", "chunk", U32, chunk),
    FIELD(report, "session", "kv", TEXT, kv),
    NEW(report, "session", "kernels", TEXT, kernels),
    NEW(report, "session", "tuning", TEXT, tuning),
    PLACEMENT(U32, n_far_layers), PLACEMENT(U64, far_size), PLACEMENT(U64, decode_read_size),
    PLACEMENT(U64, decode_far_size),
    FIELD(report, "rates", "copy", REAL, rates.copy),
    FIELD(report, "rates", "read", REAL, rates.read),
    FIELD(report, "rates", "fp32", REAL, rates.fp32),
    NEW(report, "rates", "fp16", RATE, rates.fp16),
    NEW(report, "rates", "matrix", RATE, rates.matrix),
    SPREAD(copy), SPREAD(read), SPREAD(fp32), SPREAD(fp16), SPREAD(matrix),
    FIELD(report, NULL, "load_s", REAL, load_s),
    FIELD(report, NULL, "first_token_s", REAL, first_token_s),
    FIELD(report, NULL, "device_memory", U64, device_memory),
    FIELD(report, NULL, "host_memory", U64, host_memory),
    FIELD(report, NULL, "dispatches_per_token", U32, n_dispatches),
    BESIDE(U32, n_prompt), BESIDE(REAL, prompt_s), BESIDE(U32, n_gaps), BESIDE(U32, n_slow), BESIDE(REAL, median_s),
    BESIDE(REAL, p95_s), BESIDE(REAL, max_s),
    NEW(report, NULL, "draft", TEXT, draft), DRAFTED(drafts_story), DRAFTED(drafts_list),
    TEXT_OF(U32, n_reference), TEXT_OF(U32, n_agree), TEXT_OF(HASH, checksum),
    NEW(report, NULL, "made", BOOL, made),
};

static const struct field test_fields[] = {
    TEST(TEXT, name), TEST(BOOL, generation), TEST(U32, n_tokens), TEST(U32, depth),
    NEW(report_test, NULL, "n_sequences", U32, n_sequences),
    FIELD(report_test, "tokens_per_s", "median", REAL, median),
    FIELD(report_test, "tokens_per_s", "min", REAL, min),
    FIELD(report_test, "tokens_per_s", "max", REAL, max),
    FIELD(report_test, "tokens_per_s", "sd", REAL, sd),
    TEST(REAL, bytes_per_s), TEST(REAL, flop_per_s), TEST(REAL, bandwidth_part),
    NEW(report_test, NULL, "arithmetic", TEXT, arithmetic),
    {NULL, "arithmetic_part", REAL, offsetof(struct report_test, arithmetic_part), sizeof(double), false, "fp32_part"},
    NEW(report_test, NULL, "power_w", RATE, power_w),
    NEW(report_test, NULL, "j_per_token", RATE, j_per_token),
    FIELD(report_test, "logits", "checksum", HASH, checksum),
    FIELD(report_test, "logits", "finite", BOOL, finite),
    FIELD(report_test, "logits", "repeats_equal", BOOL, equal),
    FIELD(report_test, "logits", "top_token", U32, top_token),
    FIELD(report_test, "logits", "top_logit", SIGNED, top_logit),
    FIELD(report_test, "logits", "rms", REAL, rms),
    TEST(U32, n_profiled),
};

#define KERNEL(kind, member) FIELD(report_kernel, NULL, #member, kind, member)

static const struct field kernel_fields[] = {
    KERNEL(TEXT, kernel), KERNEL(U32, n), KERNEL(REAL, seconds),
};

#define RANK(kind, member) FIELD(report_rank, NULL, #member, kind, member)

static const struct field rank_fields[] = {
    RANK(TEXT, host), RANK(TEXT, device), RANK(U32, first_layer), RANK(U32, n_layers), RANK(U64, memory),
    RANK(REAL, busy), FIELD(report_rank, "link", "bandwidth", RATE, bandwidth),
    FIELD(report_rank, "link", "latency_s", RATE, latency),
};

static const double largest = 1e18;   /* of any number: sums of a few hundred stay finite */

struct reader {
    const char *path;
    bool labelled;     /* by the path */
    char report[40];   /* "reports[1]." of a set */
    char place[64];    /* "tests[3].", after that: both stand before the names of keys in sentences */
};

static peridot_status refuse_key(const struct reader *r, const char *section, const char *key, const char *what)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: %s%s%s%s%s %s", r->path, r->report, r->place, section ? section : "",
                   section ? "." : "", key, what);
}

/* A text is shown on terminals: control characters could do more there than be read. */
static bool read_is_plain(const char *text, size_t size)
{
    return strlen(text) == size && strcmp(cmd_shown(text), text) == 0;
}

static const char *read_take_text(char *to, size_t size, yyjson_val *value)
{
    if (!yyjson_is_str(value)) return "is not a string";
    if (yyjson_get_len(value) >= size) return "is too long";
    if (!read_is_plain(yyjson_get_str(value), yyjson_get_len(value))) return "has a control character";
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
    case TEXT: return read_take_text(to, f->size, value);
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
        if (wrong) return refuse_key(r, f->section, f->key, wrong);
    }
    return PERIDOT_OK;
}

static peridot_status read_list(yyjson_val **out, size_t *n, const struct reader *r, yyjson_val *object,
                                const char *key, size_t max)
{
    *out = yyjson_obj_get(object, key);
    *n = yyjson_arr_size(*out);
    if (!yyjson_is_arr(*out)) return refuse_key(r, NULL, key, "is not an array");
    return *n <= max ? PERIDOT_OK : refuse_key(r, NULL, key, "has too many entries");
}

static peridot_status read_speeds(struct report_test *test, const struct reader *r, yyjson_val *object)
{
    yyjson_val *list;
    size_t n;
    PD_TRY(read_list(&list, &n, r, yyjson_obj_get(object, "tokens_per_s"), "repeats", REPORT_REPEATS));
    test->n_repeats = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const char *wrong = take_real(&test->speed[i], yyjson_arr_get(list, i), 0);
        if (wrong) return refuse_key(r, "tokens_per_s", "repeats", wrong);
    }
    return PERIDOT_OK;
}

static peridot_status read_test(struct report_test *test, struct reader *r, yyjson_val *object, size_t i)
{
    yyjson_val *list;
    snprintf(r->place, sizeof r->place, "tests[%zu].", i);
    PD_TRY(read_fields(r, object, test_fields, PD_COUNT(test_fields), test));
    if (!test->n_sequences) test->n_sequences = 1;
    if (!test->arithmetic[0]) strcpy(test->arithmetic, "fp32");   /* what schema 1 held all prompts against */
    if (strcmp(test->arithmetic, "fp32") != 0 && strcmp(test->arithmetic, "matrix") != 0)
        return refuse_key(r, NULL, "arithmetic", "is neither fp32 nor matrix");
    PD_TRY(read_speeds(test, r, object));
    PD_TRY(read_list(&list, &test->n_kernels, r, object, "kernels", REPORT_KERNELS));
    for (size_t k = 0; k < test->n_kernels; k++) {
        snprintf(r->place, sizeof r->place, "tests[%zu].kernels[%zu].", i, k);
        PD_TRY(read_fields(r, yyjson_arr_get(list, k), kernel_fields, PD_COUNT(kernel_fields), &test->kernels[k]));
    }
    return PERIDOT_OK;
}

/* There are none where one device held all layers. */
static peridot_status read_ranks(struct report *out, struct reader *r, yyjson_val *root)
{
    yyjson_val *list;
    if (!yyjson_obj_get(root, "ranks")) return PERIDOT_OK;
    PD_TRY(read_list(&list, &out->n_ranks, r, root, "ranks", REPORT_RANKS));
    for (size_t i = 0; i < out->n_ranks; i++) {
        snprintf(r->place, sizeof r->place, "ranks[%zu].", i);
        PD_TRY(read_fields(r, yyjson_arr_get(list, i), rank_fields, PD_COUNT(rank_fields), &out->ranks[i]));
    }
    r->place[0] = 0;
    return PERIDOT_OK;
}

/* The schema of a report, or of a set of them: *out, of min to max. */
static peridot_status read_schema(uint64_t *out, const struct reader *r, yyjson_val *root, uint64_t max)
{
    yyjson_val *schema = yyjson_obj_get(root, "schema");
    if (!yyjson_is_uint(schema))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: not a report of peridot bench (%sit has no \"schema\")", r->path,
                       r->report);
    *out = yyjson_get_uint(schema);
    if (*out < 1 || *out > max)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
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

static peridot_status read_report(struct reports *list, struct reader *r, yyjson_val *root)
{
    struct report *out;
    yyjson_val *tests;
    uint64_t schema;
    r->place[0] = 0;
    PD_TRY(reports_append(&out, list));
    PD_TRY(read_schema(&schema, r, root, REPORT_SCHEMA));
    if (r->labelled) make_label(out->label, sizeof out->label, r->path);
    PD_TRY(read_fields(r, root, report_fields, PD_COUNT(report_fields), out));
    /* reports from before said so of what they had made themselves only */
    out->model.random_weights = out->model.random_weights || report_is_made(out->model.name);
    PD_TRY(read_ranks(out, r, root));
    PD_TRY(read_list(&tests, &out->n_tests, r, root, "tests", REPORT_TESTS));
    for (size_t i = 0; i < out->n_tests; i++) PD_TRY(read_test(&out->tests[i], r, yyjson_arr_get(tests, i), i));
    return PERIDOT_OK;
}

static peridot_status read_set(struct reports *list, struct reader *r, yyjson_val *root)
{
    size_t first = list->n, n;
    yyjson_val *reports;
    PD_TRY(read_list(&reports, &n, r, root, "reports", REPORT_SET));
    if (n == 0) return refuse_key(r, NULL, "reports", "has no entries");
    for (size_t i = 0; i < n; i++) {
        snprintf(r->report, sizeof r->report, "reports[%zu].", i);
        PD_TRY(read_report(list, r, yyjson_arr_get(reports, i)));
    }
    const char *set = yyjson_get_str(yyjson_obj_get(root, "set"));
    bool is_standard = set && strcmp(set, "standard") == 0;
    for (size_t i = 0; i < n; i++) {
        list->at[first + i]->is_standard = is_standard;
        list->at[first + i]->continues = i > 0;
    }
    if (!is_standard) report_set_score(list->at + first, n);
    return PERIDOT_OK;
}

/* Marks the file's reports, from `first` on. */
static peridot_status check_sum(struct reports *list, size_t first, yyjson_val *root, const char *json, size_t size)
{
    char sum[REPORT_CHECKSUM];
    yyjson_val *value = yyjson_obj_get(root, "checksum");
    if (!value) return PERIDOT_OK;
    PD_TRY(report_checksum(sum, json, size));
    for (size_t i = first; i < list->n; i++)
        list->at[i]->proof = yyjson_equals_str(value, sum) ? REPORT_PROVEN : REPORT_CHANGED;
    return PERIDOT_OK;
}

static peridot_status read_root(struct reports *list, struct reader *r, yyjson_val *root)
{
    uint64_t schema;
    PD_TRY(read_schema(&schema, r, root, REPORT_SET_SCHEMA));
    return schema == REPORT_SET_SCHEMA ? read_set(list, r, root) : read_report(list, r, root);
}

/* The document, or a failure where the text is none. */
static peridot_status parse_json(yyjson_doc **out, const char *json, size_t size, const char *path)
{
    yyjson_read_err error;
    *out = yyjson_read_opts((char *)(uintptr_t)json, size, 0, NULL, &error);   /* not written to without INSITU */
    return *out ? PERIDOT_OK
                : pd_fail(PERIDOT_ERROR_FORMAT, "%s: no JSON: %s at byte %zu", path, error.msg, error.pos);
}

static const char unnamed[] = "the report";   /* in sentences */

peridot_status reports_add(struct reports *list, const char *json, size_t size, const char *path)
{
    struct reader r = {.path = path ? path : unnamed, .labelled = path != NULL};
    yyjson_doc *doc;
    PD_TRY(parse_json(&doc, json, size, r.path));
    size_t first = list->n;
    peridot_status status = read_root(list, &r, yyjson_doc_get_root(doc));
    if (status == PERIDOT_OK) status = check_sum(list, first, yyjson_doc_get_root(doc), json, size);
    yyjson_doc_free(doc);
    return status;
}

peridot_status report_read_test(struct report_test *out, const char *json, size_t size)
{
    struct reader r = {.path = unnamed};
    yyjson_doc *doc;
    PD_TRY(parse_json(&doc, json, size, r.path));
    peridot_status status = read_test(out, &r, yyjson_doc_get_root(doc), 0);
    yyjson_doc_free(doc);
    return status;
}

/* ---- files ---- */

/* Saved reports: of a file, of a folder. */

/* A report of all tests that there may be has a tenth of it. */
static peridot_status check_size(const char *path)
{
    enum { LARGEST = 16 << 20 };
    FILE *file = fopen(path, "rb");
    if (!file) return PERIDOT_OK;   /* reading tells */
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    fclose(file);
    if (size <= LARGEST) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: larger than any report: %s", path, cmd_size_text((uint64_t)size));
}

static peridot_status read_file(struct reports *list, const char *path)
{
    char *text;
    size_t size;
    PD_TRY(check_size(path));
    PD_TRY(cmd_read_file(&text, &size, path));
    peridot_status status = reports_add(list, text, size, path);
    free(text);
    return status;
}

peridot_status reports_add_file(struct reports *list, const char *path)
{
    size_t first = list->n, at = strlen(list->left_out);
    peridot_status status = read_file(list, path);
    if (status == PERIDOT_OK || status == PERIDOT_ERROR_MEMORY || !list->skips) return status;
    while (list->n > first) free(list->at[--list->n]);
    snprintf(list->left_out + at, sizeof list->left_out - at, "%s%s", at ? "; " : "", cmd_shown(peridot_last_error()));
    return PERIDOT_OK;
}

void reports_skip_bad(struct reports *list) { list->skips = true; }

const char *reports_left_out(const struct reports *list) { return list->left_out; }

struct names {
    char **at;
    size_t n, capacity;
};

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static peridot_status read_add_name(struct names *names, const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    PD_TRY(pd_array_reserve(&names->at, &names->capacity, names->n, 1, sizeof *names->at, "names of reports"));
    char *path = names->at[names->n] = malloc(size);
    if (!path) return pd_fail_alloc(size, "name of a report");
    snprintf(path, size, "%s/%s", folder, name);
    names->n++;
    return PERIDOT_OK;
}

static peridot_status list_folder(struct names *names, DIR *dir, const char *folder)
{
    for (const struct dirent *entry; (entry = readdir(dir));) {
        size_t size = strlen(entry->d_name);
        if (size > 5 && strcmp(entry->d_name + size - 5, ".json") == 0)
            PD_TRY(read_add_name(names, folder, entry->d_name));
    }
    return PERIDOT_OK;
}

peridot_status reports_add_folder(struct reports *list, const char *path)
{
    struct names names = {0};
    DIR *dir = opendir(path);
    if (!dir) return reports_add_file(list, path);
    peridot_status status = list_folder(&names, dir, path);
    closedir(dir);
    if (names.n) qsort(names.at, names.n, sizeof *names.at, by_name);
    else if (status == PERIDOT_OK)
        status = pd_fail(PERIDOT_ERROR_IO, "%s: there are no reports (*.json) in this folder", path);
    for (size_t i = 0; i < names.n; i++) {
        if (status == PERIDOT_OK) status = reports_add_file(list, names.at[i]);
        free(names.at[i]);
    }
    free(names.at);
    return status;
}

/* ---- list ---- */

/* Lists of reports. */

peridot_status reports_create(struct reports **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? PERIDOT_OK : pd_fail_alloc(sizeof **out, "reports");
}

peridot_status reports_append(struct report **out, struct reports *list)
{
    *out = NULL;
    PD_TRY(pd_array_reserve(&list->at, &list->capacity, list->n, 1, sizeof *list->at, "reports"));
    *out = list->at[list->n] = calloc(1, sizeof **out);
    if (!*out) return pd_fail_alloc(sizeof **out, "report");
    list->n++;
    return PERIDOT_OK;
}

void reports_free(struct reports *list)
{
    if (!list) return;
    for (size_t i = 0; i < list->n; i++) free(list->at[i]);
    free(list->at);
    free(list);
}

struct report_score reports_score(const struct reports *list)
{
    return list->n ? list->at[0]->score : (struct report_score){0};
}
