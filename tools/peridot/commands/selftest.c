/* peridot selftest: every kernel against plain C, on one device or on all. */
#include "../cli/cli.h"
#include "../base/base.h"
#include "../console/console.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct selftest_args {
    const char *device, *only;
    bool all, json;
};

static const struct cmd_option options[] = {
    {.name = "device", .metavar = "DEVICE", .kind = CMD_TEXT, .offset = offsetof(struct selftest_args, device),
     .help = "An index from peridot devices, part of a name, a UUID or a PCI address; or all, for every device that "
             "Peridot can use. Without it, the environment variable PERIDOT_DEVICE, or else the fastest real GPU."},
    {.name = "all", .kind = CMD_FLAG, .offset = offsetof(struct selftest_args, all),
     .help = "Every case on a software device, too: it compiles for some ten minutes. GPUs run every case always."},
    {.name = "only", .metavar = "NAME", .kind = CMD_TEXT, .offset = offsetof(struct selftest_args, only),
     .help = "Kernels whose names begin so: attention, matvec_q4_k. What is remembered of the others stays."},
    {.name = "json", .kind = CMD_FLAG, .offset = offsetof(struct selftest_args, json),
     .help = "A JSON array with an object for each device. An error that is no number is null."},
};

/* ---- a device ---- */

struct report {
    struct cmd_progress progress;
    bool begun;                      /* the heading, or the object of the device */
    yyjson_mut_doc *doc;             /* NULL: a table on stdout */
    yyjson_mut_val *list, *object, *kernels;
    struct pd_buffer failures;       /* a line each */
    peridot_selftest_result result;  /* device: known when the first kernel is done */
};

static void begin_table(const peridot_device_info *d)
{
    bool named = strstr(d->name, d->driver) != NULL;   /* "llvmpipe (LLVM 19)" needs no "llvmpipe" after it */
    printf("%" PRIu32 "  %s, %s%s%s\n", d->index, d->name, named ? "" : d->driver, named ? "" : " ", d->driver_info);
    puts("   kernel             cases  worst error  tolerance");
}

static void print_check(const peridot_kernel_check *c)
{
    printf("   %-16s  ", c->kernel);
    if (c->lacks) printf("not here: the device lacks %s\n", c->lacks);
    else printf("%6" PRIu32 "  %11.1e  %9.1e  %s\n", c->n_cases, c->error, c->tolerance, c->passed ? "ok" : "FAILED");
    fflush(stdout);
}

static void begin_object(struct report *r, const peridot_device_info *d)
{
    r->object = yyjson_mut_arr_add_obj(r->doc, r->list);
    yyjson_mut_obj_add_uint(r->doc, r->object, "index", d->index);
    yyjson_mut_obj_add_strcpy(r->doc, r->object, "name", d->name);
    yyjson_mut_obj_add_strcpy(r->doc, r->object, "driver", d->driver);
    yyjson_mut_obj_add_strcpy(r->doc, r->object, "driver_info", d->driver_info);
    yyjson_mut_obj_add_strcpy(r->doc, r->object, "uuid", d->uuid);
    r->kernels = yyjson_mut_obj_add_arr(r->doc, r->object, "kernels");
}

static void add_check(struct report *r, const peridot_kernel_check *c)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(r->doc, r->kernels);
    yyjson_mut_obj_add_str(r->doc, o, "kernel", c->kernel);
    if (c->lacks) {
        yyjson_mut_obj_add_strcpy(r->doc, o, "lacks", c->lacks);
        return;
    }
    yyjson_mut_obj_add_bool(r->doc, o, "passed", c->passed);
    yyjson_mut_obj_add_uint(r->doc, o, "cases", c->n_cases);
    if (isfinite(c->error)) yyjson_mut_obj_add_real(r->doc, o, "error", c->error);
    else yyjson_mut_obj_add_null(r->doc, o, "error");
    yyjson_mut_obj_add_real(r->doc, o, "tolerance", c->tolerance);
    if (!c->passed) yyjson_mut_obj_add_strcpy(r->doc, o, "failure", c->failure);
}

static bool take_check(void *user, const peridot_kernel_check *check)
{
    struct report *r = user;
    cmd_progress_end(&r->progress);
    if (!r->begun) r->doc ? begin_object(r, &r->result.device) : begin_table(&r->result.device);
    r->begun = true;
    if (!check->passed) pd_buffer_print(&r->failures, "   %s: %s\n", check->kernel, check->failure);
    if (r->doc) add_check(r, check);
    else print_check(check);
    r->progress = cmd_progress_begin(r->progress.label);   /* as the next kernel may be compiled for seconds */
    return !cmd_interrupted();
}

static bool is_right(const peridot_verdict *v) { return !v->disabled[0] && !v->broken[0]; }

static void end_table(const struct report *r)
{
    const peridot_verdict *v = &r->result.verdict;
    if (r->failures.data) fputs(r->failures.data, stdout);
    if (v->disabled[0]) printf("   Switched off on this device and driver, as others do the same: %s.\n", v->disabled);
    if (v->broken[0])
        printf("   With these kernels the device gives wrong answers, and no others do the same: %s.\n", v->broken);
}

static void end_object(struct report *r, peridot_status status)
{
    const peridot_verdict *v = &r->result.verdict;
    yyjson_mut_obj_add_bool(r->doc, r->object, "passed", status == PERIDOT_OK && is_right(v));
    yyjson_mut_obj_add_strcpy(r->doc, r->object, "off", v->disabled);
    yyjson_mut_obj_add_strcpy(r->doc, r->object, "wrong", v->broken);
    if (status != PERIDOT_OK) yyjson_mut_obj_add_strcpy(r->doc, r->object, "error", peridot_last_error());
}

/* ---- all of them ---- */

struct total {
    yyjson_mut_doc *doc;        /* NULL: tables */
    yyjson_mut_val *list;
    const struct selftest_args *args;
    uint32_t n_devices, n_right, n_cases;
    peridot_status status;      /* of the last device that could not be tested to the end */
};

static void test_device(struct total *t, const char *device)
{
    struct report r = {.progress = cmd_progress_begin("comparing kernels"), .doc = t->doc, .list = t->list};
    peridot_selftest_params params = {.device = device, .cache_dir = cmd_cache_dir(), .checked = take_check,
                                      .progress = cmd_progress_kernels, .user = &r, .all = t->args->all,
                                      .only = t->args->only};
    peridot_status status = peridot_selftest(&r.result, &params);
    cmd_progress_end(&r.progress);
    if (r.begun) r.doc ? end_object(&r, status) : end_table(&r);
    pd_buffer_free(&r.failures);
    t->n_devices++;
    t->n_right += status == PERIDOT_OK && is_right(&r.result.verdict);
    t->n_cases += r.result.n_cases;
    if (status == PERIDOT_OK) return;
    t->status = status;
    cmd_exit(status);   /* says why; another device may still pass */
}

static peridot_status test_all(struct total *t)
{
    const peridot_device_info **devices;
    size_t n;
    PD_TRY(peridot_devices(&devices, &n));
    for (size_t i = 0; i < n && t->status != PERIDOT_CANCELLED; i++) {
        char index[16];
        snprintf(index, sizeof index, "%" PRIu32, devices[i]->index);
        if (!devices[i]->unusable[0]) test_device(t, index);
        else fprintf(stderr, "device %s (%s) cannot be used: it lacks %s\n", index, devices[i]->name,
                     devices[i]->unusable);
    }
    peridot_free(devices);
    return t->n_devices ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_DEVICE, "no Vulkan device can be used");
}

static void print_total(const struct total *t)
{
    if (t->status == PERIDOT_CANCELLED)
        printf("Stopped: %" PRIu32 " case%s compared, and what was found is kept. The other kernels were not tested.\n",
               t->n_cases, t->n_cases == 1 ? " was" : "s were");
    else if (t->n_right == t->n_devices)
        printf("All kernels are right%s: %" PRIu32 " case%s the reference.\n",
               t->n_devices > 1 ? " on all devices" : "", t->n_cases,
               t->n_cases == 1 ? " agrees with" : "s agree with");
    else if (t->n_devices > 1)
        printf("Kernels failed on %" PRIu32 " of %" PRIu32 " devices.\n", t->n_devices - t->n_right, t->n_devices);
    else
        puts("Kernels failed on this device.");
}

static int run_selftest(const struct cmd_command *command, const void *arguments)
{
    (void)command;
    const struct selftest_args *args = arguments;
    const char *device = cmd_device_name(args->device);
    struct total t = {.doc = args->json ? cmd_json_new() : NULL, .args = args};
    peridot_status status = PERIDOT_OK;
    if (t.doc) yyjson_mut_doc_set_root(t.doc, t.list = yyjson_mut_arr(t.doc));
    cmd_interrupt_watch();
    if (device && strcmp(device, "all") == 0) status = test_all(&t);
    else test_device(&t, device);
    if (t.n_cases && status == PERIDOT_OK && args->json) status = cmd_json_print(t.doc, "the results");
    else yyjson_mut_doc_free(t.doc);
    if (t.n_cases && status == PERIDOT_OK && !args->json) print_total(&t);
    if (status != PERIDOT_OK) return cmd_exit(status);
    return t.status == PERIDOT_OK && t.n_right == t.n_devices ? CMD_OK : CMD_FAILURE;
}

const struct cmd_command cmd_selftest = {
    .name = "selftest",
    .summary = "check every kernel of a device against plain C",
    .description =
        "Runs every kernel that the device can run on small cases (odd shapes, ragged edges, every type of weight, "
        "windows, softcap, grouped heads, several columns) and compares the results with those of plain C on the "
        "host. It takes seconds on a GPU. A software device compiles for a minute or two, on all processors, and runs "
        "the cases of each kernel that share a few pipelines; --all runs them all. Ctrl-C ends it: what was found "
        "until then is printed and kept.\n\n"
        "For each kernel it prints the number of cases, the worst error and the tolerance that goes with it, and ok "
        "or FAILED. An error is relative: to the sum of magnitudes of a dot product, to the root mean square of a row "
        "elsewhere. Where cases of a kernel have different tolerances, the pair shown is the one that comes closest "
        "to failing. Below the table, the first case that failed is described for each kernel.\n\n"
        "What fails is remembered in the cache folder for this device and driver. Where another kernel does the same, "
        "the one that failed is disabled and the other is used from then on. A kernel without an alternative stays in "
        "use, and every command that opens a model on the device warns of it. peridot devices and peridot bench "
        "report both. What was found holds for this driver and these kernels only, and a selftest that passes clears "
        "it.\n\n"
        "The exit status is 0 when all kernels passed on all devices that were tested, 1 when one failed.",
    .examples = "peridot selftest\nperidot selftest --device all\nperidot selftest --device all --json > selftest.json",
    CMD_ARGUMENTS(options, struct selftest_args),
    .run = run_selftest,
};
