/* peridot devices: every Vulkan device, as a page to read or as JSON. */
#include "../cli/cli.h"
#include "../base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct devices_args {
    bool json, pipelines, assembly;
    const char *device;
};

static const struct cmd_option options[] = {
    {.name = "json", .kind = CMD_FLAG, .offset = offsetof(struct devices_args, json),
     .help = "A JSON array with an object for each device; sizes are in bytes. With --pipelines, one object with all "
             "the driver's statistics under its own names for them."},
    {.name = "pipelines", .kind = CMD_FLAG, .offset = offsetof(struct devices_args, pipelines),
     .help = "Compile the kernels for one device, and show the results: subgroup size, registers, spills, scratch "
             "memory, waves in flight (occupancy), instructions and bytes of code, as far as the driver reports them."},
    {.name = "assembly", .kind = CMD_FLAG, .offset = offsetof(struct devices_args, assembly),
     .help = "With --pipelines: after each kernel what the driver compiled it to, in the driver's own assembly "
             "language, indented by four spaces; in JSON a text."},
    {.name = "device", .metavar = "DEVICE", .kind = CMD_TEXT, .offset = offsetof(struct devices_args, device),
     .help = "With --pipelines: an index, part of a name, a UUID or a PCI address. Without it, the environment "
             "variable PERIDOT_DEVICE, or else the fastest real GPU."},
};

/* One list for both forms: the JSON key is the word that the page prints, with _ for spaces. */
static const struct feature {
    const char *key, *text;
    size_t offset;
} features[] = {
    {"fp16_arithmetic", "fp16 arithmetic", offsetof(peridot_device_info, fp16_arithmetic)},
    {"int8_arithmetic", "int8 arithmetic", offsetof(peridot_device_info, int8_arithmetic)},
    {"int64_arithmetic", "int64 arithmetic", offsetof(peridot_device_info, int64_arithmetic)},
    {"byte_storage", "byte storage", offsetof(peridot_device_info, byte_storage)},
    {"subgroup_ballot", "subgroup ballot", offsetof(peridot_device_info, subgroup_ballot)},
    {"integer_dot", "integer dot product", offsetof(peridot_device_info, integer_dot)},
    {"integer_dot_instruction", "integer dot instruction", offsetof(peridot_device_info, integer_dot_instruction)},
    {"subgroup_size_control", "subgroup size control", offsetof(peridot_device_info, subgroup_size_control)},
    {"cooperative_matrix", "cooperative matrix", offsetof(peridot_device_info, cooperative_matrix)},
    {"external_host_memory", "external host memory", offsetof(peridot_device_info, external_host_memory)},
};

static bool has(const peridot_device_info *d, const struct feature *f)
{
    return *(const bool *)((const char *)d + f->offset);
}

static void print_features(const peridot_device_info *d)
{
    const char *between = "";
    printf("   features  ");
    for (size_t i = 0; i < PD_COUNT(features); i++) {
        if (!has(d, &features[i])) continue;
        printf("%s%s", between, features[i].text);
        between = ", ";
    }
    puts(*between ? "" : "the baseline only");
}

/* "matmul: tile (taken), matvec" */
static void print_kernels(const peridot_device_info *d)
{
    const char *operation = "";
    peridot_variant v;
    for (size_t i = 0; peridot_device_variant(&v, d, i); i++) {
        if (!v.available) continue;
        bool same = strcmp(operation, v.operation) == 0;
        if (!same) printf("%s%s: ", *operation ? "; " : "   kernels   ", v.operation);
        printf("%s%s%s", same ? ", " : "", v.name, v.chosen ? " (taken)" : "");
        operation = v.operation;
    }
    puts("");
}

static void print_verdict(const peridot_device_info *d)
{
    peridot_verdict v = peridot_device_verdict(d, cmd_cache_dir());
    if (v.disabled[0]) printf("   off       %s: failed in peridot selftest, and others do the same\n", v.disabled);
    if (v.broken[0]) printf("   WRONG     %s: failed in peridot selftest\n", v.broken);
}

static void print_device(const peridot_device_info *d)
{
    printf("%" PRIu32 "  %s\n", d->index, d->name);
    printf("   kind      %s\n", cmd_device_type_name(d->type));
    printf("   driver    %s, %s; Vulkan %s\n", d->driver, d->driver_info, d->api_version);
    printf("   address   %s%s%s\n", d->uuid, d->pci[0] ? ", PCI " : "", d->pci);
    printf("   memory    %s, of which %s are free now; %s largest block%s\n", cmd_size_text(d->heap_size),
           cmd_size_text(d->heap_budget), cmd_size_text(d->max_allocation_size),
           d->unified_memory ? "; shared with the host" : "");
    printf("   limits    subgroup of %" PRIu32 " (%" PRIu32 " to %" PRIu32 "), workgroup of %" PRIu32 ", %" PRIu32
           " bytes shared, %" PRIu32 " bytes pushed\n", d->subgroup_size, d->min_subgroup_size, d->max_subgroup_size,
           d->max_workgroup_invocations, d->max_shared_size, d->max_push_size);
    print_features(d);
    print_kernels(d);
    print_verdict(d);
    if (d->subset_lacks[0]) printf("   subset    of Vulkan without %s, which Peridot does not use\n", d->subset_lacks);
    printf("   usable    %s%s\n", d->unusable[0] ? "no: " : "yes", d->unusable);
}

static void add_kernels(yyjson_mut_doc *doc, yyjson_mut_val *o, const peridot_device_info *d)
{
    yyjson_mut_val *kernels = yyjson_mut_obj_add_obj(doc, o, "kernels");
    peridot_variant v;
    for (size_t i = 0; peridot_device_variant(&v, d, i); i++) {
        if (!v.available) continue;
        yyjson_mut_val *operation = yyjson_mut_obj_get(kernels, v.operation);
        if (!operation) {
            operation = yyjson_mut_obj_add_obj(doc, kernels, v.operation);
            yyjson_mut_obj_add_arr(doc, operation, "variants");
            yyjson_mut_obj_add_arr(doc, operation, "exact");
        }
        yyjson_mut_arr_add_str(doc, yyjson_mut_obj_get(operation, "variants"), v.name);
        if (v.exact) yyjson_mut_arr_add_str(doc, yyjson_mut_obj_get(operation, "exact"), v.name);
        if (v.chosen) yyjson_mut_obj_add_str(doc, operation, "taken", v.name);
    }
}

static void add_device(yyjson_mut_doc *doc, yyjson_mut_val *list, const peridot_device_info *d)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_uint(doc, o, "index", d->index);
    yyjson_mut_obj_add_str(doc, o, "name", d->name);
    yyjson_mut_obj_add_str(doc, o, "type", cmd_device_type_name(d->type));
    yyjson_mut_obj_add_str(doc, o, "driver", d->driver);
    yyjson_mut_obj_add_str(doc, o, "driver_info", d->driver_info);
    yyjson_mut_obj_add_str(doc, o, "api_version", d->api_version);
    yyjson_mut_obj_add_str(doc, o, "uuid", d->uuid);
    yyjson_mut_obj_add_str(doc, o, "pci", d->pci);
    yyjson_mut_obj_add_bool(doc, o, "usable", !d->unusable[0]);
    yyjson_mut_obj_add_str(doc, o, "unusable", d->unusable);
    yyjson_mut_obj_add_str(doc, o, "subset_lacks", d->subset_lacks);
    yyjson_mut_obj_add_uint(doc, o, "heap_size", d->heap_size);
    yyjson_mut_obj_add_uint(doc, o, "heap_budget", d->heap_budget);
    yyjson_mut_obj_add_uint(doc, o, "max_allocation_size", d->max_allocation_size);
    yyjson_mut_obj_add_uint(doc, o, "subgroup_size", d->subgroup_size);
    yyjson_mut_obj_add_uint(doc, o, "min_subgroup_size", d->min_subgroup_size);
    yyjson_mut_obj_add_uint(doc, o, "max_subgroup_size", d->max_subgroup_size);
    yyjson_mut_obj_add_uint(doc, o, "max_workgroup_invocations", d->max_workgroup_invocations);
    yyjson_mut_obj_add_uint(doc, o, "max_shared_size", d->max_shared_size);
    yyjson_mut_obj_add_uint(doc, o, "max_push_size", d->max_push_size);
    yyjson_mut_obj_add_bool(doc, o, "unified_memory", d->unified_memory);
    for (size_t i = 0; i < PD_COUNT(features); i++)
        yyjson_mut_obj_add_bool(doc, o, features[i].key, has(d, &features[i]));
    add_kernels(doc, o, d);
    peridot_verdict v = peridot_device_verdict(d, cmd_cache_dir());
    yyjson_mut_obj_add_strcpy(doc, o, "off", v.disabled);
    yyjson_mut_obj_add_strcpy(doc, o, "wrong", v.broken);
}

static peridot_status devices_print_json(const peridot_device_info **devices, size_t n)
{
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < n; i++) add_device(doc, list, devices[i]);
    return cmd_json_print(doc, "the list of devices");
}

static int run_devices(const struct cmd_command *command, const void *arguments)
{
    const struct devices_args *args = arguments;
    if (args->device && !args->pipelines) return cmd_usage(command, "--device goes with --pipelines only");
    if (args->assembly && !args->pipelines) return cmd_usage(command, "--assembly goes with --pipelines only");
    if (args->pipelines) return cmd_exit(cmd_pipelines_print(args->device, args->json, args->assembly));
    const peridot_device_info **devices = NULL;
    size_t n = 0;
    peridot_status status = peridot_devices(&devices, &n);
    if (status == PERIDOT_OK && args->json) status = devices_print_json(devices, n);
    else if (status == PERIDOT_OK && n == 0) status = pd_fail(PERIDOT_ERROR_DEVICE, "there is no Vulkan device (is a "
                                                                                    "driver installed?)");
    else if (status == PERIDOT_OK) {
        bool has_gpu = false;
        for (size_t i = 0; i < n; i++) {
            print_device(devices[i]);
            has_gpu |= devices[i]->type != PERIDOT_DEVICE_CPU;
        }
        if (!has_gpu) cmd_device_advise();
    }
    peridot_free(devices);
    return cmd_exit(status);
}

const struct cmd_command cmd_devices = {
    .name = "devices",
    .summary = "list the Vulkan devices and what they can do",
    .description =
        "Lists every Vulkan device with its driver, its limits, and the optional features that Peridot has kernels "
        "for; where several kernels can do an operation, which of them it has, and which is taken. Kernels that "
        "failed peridot selftest are named: those that are disabled, as another does the same (off), and those that "
        "no other can replace (WRONG). A device that Peridot cannot use is listed too, with the feature that it lacks."
        "\n\n"
        "With --pipelines the kernels are compiled as models need them: each published shape in one weight type, and "
        "two of them in all types. A row is a kernel with the values of its specialisation constants.",
    .examples = "peridot devices\nperidot devices --json\nperidot devices --pipelines --device 1",
    CMD_ARGUMENTS(options, struct devices_args),
    .run = run_devices,
};
