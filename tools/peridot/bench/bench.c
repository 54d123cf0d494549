/* peridot bench: how fast a model is on a device, and how near to what the device can do. */
#include "bench.h"
#include "../console/console.h"

#include <stdlib.h>
#include <string.h>

struct bench_args {
    struct cmd_model_args model;
    const char *shape, *type, *prompts, *lengths, *batches, *depths, *beside, *format, *save, *note, *compare;
    uint32_t n_repeats, ctx, chunk, kv;
    struct cmd_draft_args draft;
    bool tune, quick, standard;
    struct cmd_texts reports;
};

enum format { MD, CSV, JSON, HTML };

static const char *format_name(size_t i)
{
    static const char *const names[] = {[MD] = "md", [CSV] = "csv", [JSON] = "json", [HTML] = "html"};
    return i < PD_COUNT(names) ? names[i] : NULL;
}

#define OFFSET(member) offsetof(struct bench_args, member)

static const struct cmd_option options[] = {
    CMD_MODEL_OPTION,
    {.name = "shape", .metavar = "SHAPE", .kind = CMD_TEXT, .offset = OFFSET(shape), .value = peridot_shape_name,
     .help = "Instead of a model: random weights of this shape, in a temporary file (TMPDIR) that is removed."},
    {.name = "type", .metavar = "TYPE", .kind = CMD_TEXT, .offset = OFFSET(type),
     .help = "With --shape: type of the matrices, as peridot make takes it; without it, q8_0."},
    CMD_DEVICE_OPTIONS,
    CMD_LORA_OPTION,
    CMD_KERNEL_OPTION,
    {.letter = 'p', .name = "prompts", .metavar = "LIST", .kind = CMD_TEXT, .offset = OFFSET(prompts),
     .fallback = "512", .help = "Lengths of prompts to read, with commas between them; 0: none."},
    {.letter = 'n', .name = "lengths", .metavar = "LIST", .kind = CMD_TEXT, .offset = OFFSET(lengths),
     .fallback = "128", .help = "Numbers of tokens to generate; 0: none."},
    {.letter = 'b', .name = "batches", .metavar = "LIST", .kind = CMD_TEXT, .offset = OFFSET(batches), .fallback = "8",
     .help = "Numbers of sequences, 2 to 8, that each generate these tokens, all in one step; 0: none. Left out where "
             "memory is too small for their caches."},
    {.letter = 'd', .name = "depths", .metavar = "LIST", .kind = CMD_TEXT, .offset = OFFSET(depths), .fallback = "0",
     .help = "Tokens that are in the context before a test begins; every test is done at every depth."},
    {.letter = 'r', .name = "repeats", .metavar = "N", .kind = CMD_U32, .offset = OFFSET(n_repeats), .fallback = "5",
     .min = 1, .max = REPORT_REPEATS, .help = "Repeats of each test, after one that is not counted."},
    {.name = "beside", .metavar = "N", .kind = CMD_TEXT, .offset = OFFSET(beside),
     .help = "Tokens of a prompt that is read while a text is written in the same session, as by peridot serve, to "
             "measure the gaps between the text's tokens, or as many as the context holds; 0: none. Without it as many "
             "as the longest prompt of -p, 2048 at most."},
    {.letter = 'o', .name = "format", .metavar = "FORMAT", .kind = CMD_TEXT, .offset = OFFSET(format),
     .value = format_name,
     .help = "What to write to standard output; md unless given, and html with --compare."},
    {.name = "save", .metavar = "FILE", .kind = CMD_TEXT, .offset = OFFSET(save),
     .help = "Save the report as JSON in this file as well, to compare it later."},
    {.name = "note", .metavar = "TEXT", .kind = CMD_TEXT, .offset = OFFSET(note),
     .help = "A remark to put into the report, such as what else the machine was doing."},
    {.name = "ctx", .metavar = "N", .kind = CMD_U32, .offset = OFFSET(ctx), .fallback = "0",
     .help = "Positions of the context; 0: as many as the tests need."},
    CMD_CHUNK_OPTION(struct bench_args),
    CMD_KV_OPTION(struct bench_args),
    CMD_DRAFT_OPTIONS(struct bench_args, draft),
    {.name = "tune", .kind = CMD_FLAG, .offset = OFFSET(tune),
     .help = "Before measuring, tune the layout of the matrix kernels for this device, by some hundred steps of the "
             "model. The result is kept in the cache folder, and used by every command from then on."},
    {.name = "quick", .kind = CMD_FLAG, .offset = OFFSET(quick),
     .help = "Measure a fixed set in about a minute, and write three lines with a score to compare devices by."},
    {.name = "standard", .kind = CMD_FLAG, .offset = OFFSET(standard),
     .help = "Measure the set that boards of reports compare GPUs by: models of 1, 4 and 8 billion random weights, as "
             "far as they fit. Says first how long that takes, and keeps what was measured when it is stopped."},
    {.name = "compare", .metavar = "FOLDER", .kind = CMD_TEXT, .offset = OFFSET(compare),
     .help = "Compare all saved reports (*.json) of this folder on one page; nothing is measured."},
    {.metavar = "REPORT.json", .kind = CMD_TEXTS, .offset = OFFSET(reports),
     .help = "Saved reports to compare; nothing is measured."},
};

/* ---- arguments ---- */

enum { LARGEST = 1000000 };   /* tokens of one test: keeps sums of positions small */

static bool parse_list(struct bench_list *out, const char *text)
{
    out->n = 0;
    for (;;) {
        uint32_t value = 0;
        size_t size = strspn(text, "0123456789");
        if (size == 0 || size > 7 || out->n == BENCH_LIST) return false;
        for (size_t i = 0; i < size; i++) value = 10 * value + (uint32_t)(text[i] - '0');
        if (value > LARGEST) return false;
        out->at[out->n++] = value;
        text += size;
        if (*text == 0) return true;
        if (*text++ != ',') return false;
    }
}

static int take_list(struct bench_list *out, const struct cmd_command *command, const char *label, const char *text)
{
    if (parse_list(out, text)) return CMD_OK;
    return cmd_usage(command, "%s takes up to %d whole numbers below %d with commas between them, not %s", label,
                     BENCH_LIST, LARGEST, text);
}

/* Without the option a prompt that takes little longer than those that are measured anyway. */
static int take_beside(uint32_t *out, const struct cmd_command *command, const char *text,
                       const struct bench_list *prompts)
{
    struct bench_list list;
    *out = 0;
    if (text && (!parse_list(&list, text) || list.n > 1))
        return cmd_usage(command, "--beside takes a whole number below %d, not %s", LARGEST, text);
    if (text) *out = list.at[0];
    for (size_t i = 0; !text && i < prompts->n; i++) *out = (uint32_t)pd_max(*out, pd_min(prompts->at[i], 2048));
    return CMD_OK;
}

static bool is_zero(const struct bench_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i]) return false;
    return true;
}

static bool can_batch(const struct bench_list *batches)
{
    for (size_t i = 0; i < batches->n; i++)
        if (batches->at[i] == 1 || batches->at[i] > BENCH_SEQUENCES) return false;
    return true;
}

/* The options that --quick fixes have their defaults, as far as that can be seen. */
static bool is_fixed_set(const struct bench_args *a)
{
    return !a->model.path && !a->shape && !a->type && !a->model.gpu_memory && !a->model.kernels.n
        && (a->model.precision == PERIDOT_PRECISION_DEFAULT || a->standard) && !a->ctx && !a->kv && a->chunk == 256
        && a->n_repeats == 5 && strcmp(a->prompts, "512") == 0 && strcmp(a->lengths, "128") == 0
        && strcmp(a->batches, "8") == 0 && strcmp(a->depths, "0") == 0 && !a->beside && !a->draft.name;
}

static int make_plan(struct bench_plan *out, const struct cmd_command *command, const struct bench_args *args)
{
    *out = (struct bench_plan){.model = &args->model, .shape = args->shape, .type = args->type, .note = args->note,
                               .tune = args->tune, .n_repeats = args->n_repeats, .ctx = args->ctx,
                               .chunk = args->chunk, .kv = args->kv, .draft = args->draft};
    if (args->quick && args->standard) return cmd_usage(command, "--quick and --standard don't go together");
    if ((args->quick || args->standard) && !is_fixed_set(args))
        return cmd_usage(command, "%s measures a fixed set: only --device, %s--tune, --format, --save and --note go "
                                  "with it", args->quick ? "--quick" : "--standard",
                         args->quick ? "" : "--precision, ");
    if (args->type && !args->shape) return cmd_usage(command, "--type goes with --shape");
    if (args->shape && args->model.path) return cmd_usage(command, "-m/--model and --shape don't go together");
    int usage = take_list(&out->prompts, command, "-p/--prompts", args->prompts);
    if (usage == CMD_OK) usage = take_list(&out->lengths, command, "-n/--lengths", args->lengths);
    if (usage == CMD_OK) usage = take_list(&out->batches, command, "-b/--batches", args->batches);
    if (usage == CMD_OK && !can_batch(&out->batches))
        usage = cmd_usage(command, "-b/--batches takes numbers from 2 to %d, or 0, not %s", BENCH_SEQUENCES,
                          args->batches);
    if (usage == CMD_OK) usage = take_list(&out->depths, command, "-d/--depths", args->depths);
    if (usage == CMD_OK) usage = take_beside(&out->beside, command, args->beside, &out->prompts);
    if (usage == CMD_OK && is_zero(&out->prompts) && is_zero(&out->lengths))
        usage = cmd_usage(command, "with -p 0 and -n 0 there is nothing to measure");
    return usage;
}

/* ---- results ---- */

static bool is_format(const struct bench_args *args, enum format format)
{
    return args->format && strcmp(args->format, format_name(format)) == 0;
}

static enum report_format format_of(const struct bench_args *args)
{
    if (is_format(args, HTML) || (args->compare && !args->format)) return REPORT_HTML;
    if (is_format(args, CSV)) return REPORT_CSV;
    return args->quick || args->standard ? REPORT_LINES : REPORT_MD;
}

/* What was measured as text, JSON. */
struct result {
    char *json;
    size_t size;
    bool is_whole;               /* there is something to show */
};

static peridot_status save(const char *path, const struct result *r)
{
    struct pd_writer file;
    PD_TRY(pd_writer_open(&file, path));
    peridot_status status = pd_writer_write(&file, r->json, r->size);
    if (status == PERIDOT_OK) status = pd_writer_write(&file, "\n", 1);
    if (status == PERIDOT_OK) return pd_writer_commit(&file);
    pd_writer_abort(&file);
    return status;
}

static peridot_status show_result(const struct bench_args *args, const struct result *r)
{
    struct reports *list;
    if (is_format(args, JSON)) {
        fprintf(stdout, "%s\n", r->json);
        return PERIDOT_OK;
    }
    PD_TRY(reports_create(&list));
    peridot_status status = reports_add(list, r->json, r->size, NULL);
    if (status == PERIDOT_OK) status = reports_write(list, stdout, format_of(args));
    reports_free(list);
    return status;
}

/* A wrong type is the command line's fault, and only the library knows the types. */
static bool is_wrong_type(peridot_status status, const struct bench_args *args)
{
    return status == PERIDOT_ERROR_ARGUMENT && args->type && strstr(peridot_last_error(), "type");
}

static peridot_status check_save(const struct bench_args *args)
{
    const char *model;
    struct pd_writer file;
    if (args->standard) {   /* an hour is too long to learn that there is no such folder */
        PD_TRY(pd_writer_open(&file, args->save));
        pd_writer_abort(&file);
    }
    /* what they make is gone before anything is saved */
    if (args->quick || args->standard || args->shape) return PERIDOT_OK;
    PD_TRY(cmd_model_path(&model, args->model.path));
    return pd_writer_check(args->save, model);
}

static peridot_status no_json(void)
{
    return pd_fail(PERIDOT_ERROR_MEMORY, "the report cannot be written as JSON");
}

/* The score is computed by what reads the tests, as it is of saved ones. */
static peridot_status add_score(yyjson_mut_doc *doc, yyjson_mut_val *score, yyjson_mut_val *root)
{
    struct reports *list;
    size_t size;
    char *json = yyjson_mut_val_write(root, 0, &size);
    peridot_status status = json ? reports_create(&list) : no_json();
    if (status == PERIDOT_OK) {
        status = reports_add(list, json, size, NULL);
        struct report_score found = reports_score(list);
        bench_json_score(doc, score, &found);
        reports_free(list);
    }
    free(json);
    return status;
}

static peridot_status measure_set(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct bench_plan *plan)
{
    yyjson_mut_obj_add_uint(doc, root, "schema", REPORT_SET_SCHEMA);
    yyjson_mut_val *score = yyjson_mut_obj_add_obj(doc, root, "score");
    PD_TRY(bench_quick(doc, yyjson_mut_obj_add_arr(doc, root, "reports"), plan));
    return add_score(doc, score, root);
}

/* What was measured until it was stopped is a result, too. */
static peridot_status measure_standard(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct bench_plan *plan,
                                       bool *is_result)
{
    yyjson_mut_obj_add_uint(doc, root, "schema", REPORT_SET_SCHEMA);
    yyjson_mut_obj_add_str(doc, root, "set", "standard");
    yyjson_mut_val *reports = yyjson_mut_obj_add_arr(doc, root, "reports");
    peridot_status status = bench_standard(doc, reports, plan);
    *is_result = status == PERIDOT_OK || (status == PERIDOT_CANCELLED && yyjson_mut_arr_size(reports));
    return status;
}

static peridot_status measure_plan(struct result *out, const struct bench_args *args, const struct bench_plan *plan)
{
    peridot_rates rates;
    bool is_result = false;
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    peridot_status status;
    if (args->standard) status = measure_standard(doc, root, plan, &is_result);
    else {
        status = args->quick ? measure_set(doc, root, plan) : bench_measure(&rates, doc, root, plan);
        is_result = status == PERIDOT_OK;
    }
    out->json = cmd_json_end(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, &out->size);
    if (is_result && !out->json) return no_json();
    if (is_result) PD_TRY(report_add_checksum(&out->json, &out->size));
    out->is_whole = is_result;
    return status;
}

static int measure_model(const struct cmd_command *command, const struct bench_args *args)
{
    struct bench_plan plan;
    struct result result = {.json = NULL};
    int usage = make_plan(&plan, command, args);
    if (usage != CMD_OK) return usage;
    cmd_interrupt_watch();
    peridot_status status = args->save ? check_save(args) : PERIDOT_OK;
    if (status == PERIDOT_OK) status = measure_plan(&result, args, &plan);
    if (result.is_whole) {
        peridot_status shown = show_result(args, &result);
        /* a full disk costs no result */
        if (shown == PERIDOT_OK && args->save) shown = save(args->save, &result);
        if (status == PERIDOT_OK) status = shown;
    }
    free(result.json);
    if (is_wrong_type(status, args)) return cmd_usage(command, "%s", peridot_last_error());
    return cmd_exit(status);
}

static peridot_status compare_saved(struct reports *list, const struct bench_args *args)
{
    if (args->compare) PD_TRY(reports_add_folder(list, args->compare));
    for (size_t i = 0; i < args->reports.n; i++) PD_TRY(reports_add_file(list, args->reports.at[i]));
    return reports_write(list, stdout, format_of(args));
}

static int compare_reports(const struct cmd_command *command, const struct bench_args *args)
{
    struct reports *list;
    if (is_format(args, JSON)) return cmd_usage(command, "reports are compared as md, csv or html, not as json");
    if (args->compare && args->reports.n)
        return cmd_usage(command, "--compare takes a folder of reports, and no other reports beside it");
    if (args->model.path || args->shape || args->save || args->tune || args->quick || args->standard)
        return cmd_usage(command, "with saved reports nothing is measured: --model, --shape, --tune, --quick, "
                                  "--standard and --save don't go with them");
    peridot_status status = reports_create(&list);
    if (status == PERIDOT_OK) status = compare_saved(list, args);
    reports_free(list);
    return cmd_exit(status);
}

static int run_bench(const struct cmd_command *command, const void *arguments)
{
    const struct bench_args *args = arguments;
    return args->reports.n || args->compare ? compare_reports(command, args) : measure_model(command, args);
}

const struct cmd_command cmd_bench = {
    .name = "bench",
    .summary = "measure a model's speed, or compare saved reports",
    .description =
        "Measures prompts (p512: 512 tokens read), generation (n128: 128 tokens written) and generation of several "
        "sequences whose steps read the weights once (n128 b8: 128 tokens for each of 8), each -r times after a "
        "warm-up: median, least, most and standard deviation of the tokens per second, those of all sequences "
        "together. The same run measures what the device can do at best: reading memory, and multiplying and adding "
        "in fp32, in fp16 and with cooperative matrices. Generation is shown as a percentage of the memory bandwidth, "
        "which bounds it, and a prompt as one of the arithmetic rate of the kernels that read it, \"matrix\" or fp32."
        "\n\n"
        "Beside a prompt: at the end one sequence writes while another reads a prompt (--beside), and the gaps between "
        "the tokens that it writes are what somebody who reads them sees: their median, the 95th percentile, the "
        "longest, and how many were over 0.3 s.\n\n"
        "With --draft two texts follow, a story and a list, each written -r times with and without drafts, by turns: "
        "the best speeds, and how many guesses were accepted.\n\n"
        "A report also has the time of every kernel, dispatches per token, the time to load and to the first token "
        "(from opening the model; longer where pipelines are not yet in the cache), the most memory on device and "
        "host, and a checksum of the last logits, which is the same in every repeat of a test.\n\n"
        "On a GPU that was never tuned, bench first tunes the matrix kernels of generation for a few seconds, as "
        "peridot run does; --tune does so on any device, without a limit of time. It tries a range of layouts (rows "
        "and loads at a time, invocations of a workgroup and of a subgroup) in steps of the model. A layout that is "
        "faster than the default by more than 3 %, also when measured again, is used from then on for this device, "
        "driver and type of weights. The cache folder keeps it until the kernels change.\n\n"
        "--quick makes two models of random weights, of Gemma 3 1B's shape in Q8_0 and Gemma 2 2B's in Q4_K, in a "
        "temporary file, and measures p512, n128 and n128 b8 of each. The score is 100 times the geometric mean of the "
        "six speeds, each divided by a fixed one: 1000, 80 and 400 tokens/s of the first model, 400, 50 and 200 of the "
        "second. Slow devices do fewer tokens, which the result marks as shortened; a model that does not fit the "
        "device's memory is left out, and the score is then that of fewer parts.\n\n"
        "--standard makes models of random weights of Gemma 3 1B's shape in Q8_0, Qwen 3 4B's in Q4_0 and Llama 3.1 "
        "8B's in Q4_K, one after the other, and measures p512, p2048, n128, n128 @ d8192 and n128 b8 of each. What "
        "does not fit the device's memory is left out. Its report, which --save keeps in one file, is for boards that "
        "compare GPUs (peridot report --site). The models are the same everywhere, so it also compares the tokens "
        "that they go on with to those of a reference.\n\n"
        "A report names its machine: device, driver, processor, memory, operating system, and, where Linux knows them, "
        "power source, power limit, temperature and clocks before and after the tests, PCIe's link, and the power and "
        "energy of each test. A checksum at its end shows that it was not changed. A rate of more than 105 % of "
        "the measured limit puts that measurement in doubt, and says so.\n\n"
        "Formats: md is a table to paste, csv a line for each test, json one object with everything, html a page with "
        "plots that needs nothing else. Given reports saved as json, bench compares them with the first; given a "
        "folder of them (--compare), it writes one page of all machines.",
    .examples = "peridot bench\n"
                "peridot bench --shape gemma2-2b --type q4_0 -p 128,512 -d 0,4096 --save before.json\n"
                "peridot bench -m gemma-2-2b-it.gguf -o html > report.html\n"
                "peridot bench --quick --save my-machine.json\n"
                "peridot bench --standard --save my-gpu.json\n"
                "peridot bench --compare reports > compared.html\n"
                "peridot bench -o html before.json after.json > compared.html",
    CMD_ARGUMENTS(options, struct bench_args),
    .run = run_bench,
};
