/* The second half of `peridot devices`: what a device's compiler makes of the kernels. */
#include "cli.h"

#include "../base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What drivers call the same thing; a column is the sum of those that a driver has. */
enum { MAX_NAMES = 5 };
static const struct column {
    const char *title;
    int width;
    const char *names[MAX_NAMES];
} columns[] = {
    {"registers", 9, {"VGPRs", "Max live registers", "Register Count", "Number of GPRs", "Registers used"}},
    {"spills", 6, {"Spilled VGPRs", "Spilled SGPRs", "Spill Count", "Fill Count", "STP Count"}},
    {"scratch", 7, {"Scratch size", "Scratch Memory Size", "Local Memory Size", "SLM Size"}},
    {"waves", 5, {"Subgroups per SIMD", "Max Waves Per Core"}},
    {"instructions", 12, {"Instructions", "Instruction Count", "Instruction count"}},
    {"code", 7, {"Code size", "Binary Size", "Code Size"}},
};

struct output {
    const peridot_device_info *device;
    uint32_t n_pipelines, n_statistics;
    bool json, assembly;
    yyjson_mut_doc *doc;
    yyjson_mut_val *pipelines, *unused;
};

/* ---- text ---- */

static void spec_text(char *out, size_t size, const peridot_pipeline *p)
{
    size_t at = (size_t)snprintf(out, size, "%s", p->n_spec ? "" : "-");
    for (uint32_t i = 0; i < p->n_spec && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%u", i ? "," : "", (unsigned)p->spec[i]);
}

/* The sum of a column's statistics; NAN when the driver has none of them. */
static double column_value(const struct column *column, const peridot_pipeline *p)
{
    double sum = NAN;
    for (uint32_t i = 0; i < p->n_statistics; i++)
        for (int name = 0; name < MAX_NAMES && column->names[name]; name++)
            if (strcmp(p->statistics[i].name, column->names[name]) == 0)
                sum = (isnan(sum) ? 0 : sum) + p->statistics[i].value;
    return sum;
}

static void print_title(void)
{
    printf("%-19s %-22s %8s", "kernel", "specialisation", "subgroup");
    for (size_t i = 0; i < PD_COUNT(columns); i++) printf(" %*s", columns[i].width, columns[i].title);
    puts("");
}

/* A driver that has nothing by a name known here is quoted in its own words. */
static void print_own_words(const peridot_pipeline *p)
{
    for (uint32_t i = 0; i < p->n_statistics; i++)
        printf("    %s: %.15g\n", p->statistics[i].name, p->statistics[i].value);
}

static void print_indented(const char *text)
{
    for (size_t n; *text; text += n + (text[n] != 0)) {
        n = strcspn(text, "\n");
        printf("    %.*s\n", (int)n, text);
    }
}

static void print_pipeline(const peridot_pipeline *p, bool assembly)
{
    char spec[128], size[16] = "-";
    bool known = false;
    spec_text(spec, sizeof spec, p);
    if (p->subgroup_size) snprintf(size, sizeof size, "%u", (unsigned)p->subgroup_size);
    printf("%-19s %-22s %8s", p->kernel, spec, size);
    for (size_t i = 0; i < PD_COUNT(columns); i++) {
        double value = column_value(&columns[i], p);
        if (isnan(value)) printf(" %*s", columns[i].width, "-");
        else printf(" %*.0f", columns[i].width, value);
        known = known || !isnan(value);
    }
    puts("");
    if (!known) print_own_words(p);
    if (assembly && p->assembly) print_indented(p->assembly);
}

/* ---- JSON ---- */

static void add_pipeline(struct output *o, const peridot_pipeline *p)
{
    yyjson_mut_val *pipeline = yyjson_mut_arr_add_obj(o->doc, o->pipelines);
    yyjson_mut_obj_add_strcpy(o->doc, pipeline, "kernel", p->kernel);
    yyjson_mut_val *spec = yyjson_mut_obj_add_arr(o->doc, pipeline, "spec");
    for (uint32_t i = 0; i < p->n_spec; i++) yyjson_mut_arr_add_uint(o->doc, spec, p->spec[i]);
    yyjson_mut_obj_add_strcpy(o->doc, pipeline, "executable", p->executable);
    yyjson_mut_obj_add_uint(o->doc, pipeline, "subgroup_size", p->subgroup_size);
    if (o->assembly && p->assembly) yyjson_mut_obj_add_strcpy(o->doc, pipeline, "assembly", p->assembly);
    yyjson_mut_val *statistics = yyjson_mut_obj_add_obj(o->doc, pipeline, "statistics");
    for (uint32_t i = 0; i < p->n_statistics; i++) {
        double value = p->statistics[i].value;
        bool whole = value == floor(value) && fabs(value) <= 0x1p53;
        yyjson_mut_obj_put(statistics, yyjson_mut_strcpy(o->doc, p->statistics[i].name),
                           whole ? yyjson_mut_sint(o->doc, (int64_t)value) : yyjson_mut_real(o->doc, value));
    }
}

static void begin_json(struct output *o)
{
    o->doc = cmd_json_new();
    yyjson_mut_val *root = yyjson_mut_obj(o->doc);
    yyjson_mut_doc_set_root(o->doc, root);
    yyjson_mut_obj_add_str(o->doc, root, "device", o->device->name);
    yyjson_mut_obj_add_str(o->doc, root, "driver", o->device->driver);
    yyjson_mut_obj_add_str(o->doc, root, "driver_info", o->device->driver_info);
    o->pipelines = yyjson_mut_obj_add_arr(o->doc, root, "pipelines");
    o->unused = yyjson_mut_obj_add_arr(o->doc, root, "unused");
}

/* ---- both ---- */

static bool pipeline(void *user, const peridot_pipeline *p)
{
    struct output *o = user;
    if (o->json && !o->doc) begin_json(o);
    if (!o->json && o->n_pipelines == 0) print_title();
    o->n_pipelines++;
    o->n_statistics += p->n_statistics;
    if (!p->used && o->json) yyjson_mut_arr_add_strcpy(o->doc, o->unused, p->kernel);
    else if (!p->used) printf("%-19s is not used on this device\n", p->kernel);
    else if (o->json) add_pipeline(o, p);
    else print_pipeline(p, o->assembly);
    return true;
}

peridot_status cmd_pipelines_print(const char *device, bool json, bool assembly)
{
    peridot_device_info info;
    struct output o = {.device = &info, .json = json, .assembly = assembly};
    if (!device) device = getenv("PERIDOT_DEVICE");
    peridot_status status = peridot_pipelines(device && *device ? device : NULL, &info, pipeline, &o);
    if (status == PERIDOT_OK && json) status = cmd_json_print(o.doc, "the list of pipelines");
    else yyjson_mut_doc_free(o.doc);
    if (status == PERIDOT_OK && o.n_statistics == 0)
        fprintf(stderr, "%s: this driver has no statistics of compiled kernels\n", info.name);
    return status;
}
