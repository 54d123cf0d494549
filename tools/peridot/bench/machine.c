/* The machine around the device, as far as its system tells: what it is, the state that it is in, which decides how
 * fast a laptop is, and what the device draws. Read from /proc and /sys of Linux, and of NVIDIA's driver, which has
 * nothing there, from its library NVML; elsewhere nothing is known. */
#define _XOPEN_SOURCE 700
#include "bench.h"

#include "peridot.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__

#include <glob.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { LINE = 256, PATH = 1024 };

/* ---- files of one value ---- */

/* The first line of the file, without its end and the blanks around it. */
static bool read_line(char *out, size_t size, const char *path)
{
    char line[LINE] = "";
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool any = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *text = line + strspn(line, " \t");
    size_t length = strlen(text);
    while (length && strchr(" \t\r\n", text[length - 1])) length--;
    peridot_printable(out, size, text, length);
    return any && length;
}

/* Expands "*" in the pattern, and "@" to the address. */
static bool find_files(glob_t *out, const char *root, const char *pattern, const char *pci)
{
    char path[PATH];
    const char *at = strchr(pattern, '@');
    int before = at ? (int)(at - pattern) : (int)strlen(pattern);
    int size = snprintf(path, sizeof path, "%s%.*s%s%s", root, before, pattern, at ? pci : "", at ? at + 1 : "");
    return size > 0 && (size_t)size < sizeof path && glob(path, 0, NULL, out) == 0;
}

/* ---- the device's state ---- */

#define OFFSET(member) offsetof(struct bench_conditions, member)
#define HWMON "/sys/bus/pci/devices/@/hwmon/hwmon*/"

/* Where drivers tell what. The first file with a number above 0 counts: idle GPUs tell clocks of 0. */
static const struct node {
    const char *path;            /* @: the device's PCI address; without: of a CPU */
    size_t offset;
    double unit;
} nodes[] = {
    {HWMON "power1_cap", OFFSET(power_limit_w), 1e-6},         /* amdgpu */
    {HWMON "power1_max", OFFSET(power_limit_w), 1e-6},         /* i915, xe */
    {HWMON "power2_max", OFFSET(power_limit_w), 1e-6},         /* xe, where 1 is the card's and unknown */
    {HWMON "power1_average", OFFSET(power_w), 1e-6},           /* amdgpu */
    {HWMON "power1_input", OFFSET(power_w), 1e-6},             /* amdgpu's APUs, nouveau */
    {HWMON "temp1_input", OFFSET(temperature_c), 1e-3},        /* amdgpu, nouveau, i915 */
    {HWMON "temp2_input", OFFSET(temperature_c), 1e-3},        /* xe */
    {HWMON "freq1_input", OFFSET(clock_hz), 1},                /* amdgpu */
    {HWMON "freq2_input", OFFSET(memory_clock_hz), 1},
    {"/sys/bus/pci/devices/@/current_link_speed", OFFSET(link_gt_s), 1},                   /* "16.0 GT/s PCIe" */
    {"/sys/bus/pci/devices/@/current_link_width", OFFSET(link_width), 1},
    {"/sys/bus/pci/devices/@/max_link_speed", OFFSET(link_max_gt_s), 1},
    {"/sys/bus/pci/devices/@/max_link_width", OFFSET(link_max_width), 1},
    {"/sys/bus/pci/devices/@/drm/card*/gt/gt0/rps_act_freq_mhz", OFFSET(clock_hz), 1e6},   /* i915 */
    {"/sys/bus/pci/devices/@/drm/card*/gt_act_freq_mhz", OFFSET(clock_hz), 1e6},
    {"/sys/bus/pci/devices/@/tile0/gt0/freq0/act_freq", OFFSET(clock_hz), 1e6},            /* xe */
    {"/sys/bus/platform/devices/coretemp.0/hwmon/hwmon*/temp1_input", OFFSET(temperature_c), 1e-3},
    {"/sys/bus/pci/drivers/k10temp/*/hwmon/hwmon*/temp1_input", OFFSET(temperature_c), 1e-3},
    {"/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", OFFSET(power_limit_w), 1e-6},
    {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", OFFSET(clock_hz), 1e3},
};

static double read_number(const char *root, const struct node *node, const char *pci, bool sum)
{
    glob_t files;
    double value = 0;
    if (!find_files(&files, root, node->path, pci)) return 0;
    for (size_t i = 0; i < files.gl_pathc && (value <= 0 || sum); i++) {
        char text[LINE];
        if (read_line(text, sizeof text, files.gl_pathv[i])) value += strtod(text, NULL) * node->unit;
    }
    globfree(&files);
    return value > 0 && value < 1e15 ? value : 0;
}

/* Value of a file beside the one at `path`. */
static bool sibling_is(const char *path, const char *name, const char *value)
{
    char other[PATH], text[LINE];
    const char *slash = strrchr(path, '/');
    snprintf(other, sizeof other, "%.*s%s", (int)(slash + 1 - path), path, name);
    return read_line(text, sizeof text, other) && strcmp(text, value) == 0;
}

/* Batteries of mice and the like have the scope "Device". */
static const char *power_source(const char *root)
{
    glob_t files;
    bool mains = false, charged = false, battery = false;
    if (!find_files(&files, root, "/sys/class/power_supply/*/type", "")) return "";
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *path = files.gl_pathv[i];
        if (sibling_is(path, "scope", "Device")) continue;
        if (!sibling_is(path, "type", "Battery")) mains = mains || sibling_is(path, "online", "1");
        else if (sibling_is(path, "status", "Discharging")) battery = true;
        else charged = true;
    }
    globfree(&files);
    return mains ? "mains" : battery ? "battery" : charged ? "mains" : "";
}

void bench_conditions_read(struct bench_conditions *out, const char *root, const char *pci, bool is_cpu)
{
    char path[PATH];
    *out = (struct bench_conditions){0};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        double *to = (double *)(void *)((char *)out + nodes[i].offset);
        bool of_cpu = !strchr(nodes[i].path, '@');
        if (*to > 0 || of_cpu != is_cpu || (!is_cpu && !*pci)) continue;
        *to = read_number(root, &nodes[i], pci, false);
    }
    snprintf(out->power_source, sizeof out->power_source, "%s", power_source(root));
    snprintf(path, sizeof path, "%s/sys/firmware/acpi/platform_profile", root);
    read_line(out->power_profile, sizeof out->power_profile, path);
}

/* The first six lines of the file are the device's own windows: first address, last one, and flags. */
uint64_t bench_window_read(const char *root, const char *pci)
{
    enum { WINDOWS = 6, IS_MEMORY = 0x200 };
    char path[PATH], line[LINE];
    uint64_t largest = 0;
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/resource", root, pci);
    FILE *file = *pci ? fopen(path, "r") : NULL;
    for (int i = 0; file && i < WINDOWS && fgets(line, sizeof line, file); i++) {
        unsigned long long first, last, flags;
        if (sscanf(line, "%llx %llx %llx", &first, &last, &flags) == 3 && (flags & IS_MEMORY) && last > first)
            largest = pd_max(largest, (uint64_t)(last - first) + 1);
    }
    if (file) fclose(file);
    return largest;
}

/* ---- power ---- */

/* Counters come first. Of processors there is one for each package, the GPU in it included; a discrete GPU is in
 * none. */
static const struct source {
    const char *name;
    struct node node;
    bool counts, of_package;     /* counts: joules, else watts */
} sources[] = {
    {"hwmon", {HWMON "energy1_input", 0, 1e-6}, true, false},            /* i915, xe */
    {"hwmon", {HWMON "power1_average", 0, 1e-6}, false, false},          /* amdgpu */
    {"hwmon", {HWMON "power1_input", 0, 1e-6}, false, false},
    {"RAPL", {"/sys/class/powercap/intel-rapl:[0-9]/energy_uj", 0, 1e-6}, true, true},
};

/* Of NVML, whose functions give 0 when they succeed: of the device what `name` tells, in thousandths. A driver too old
 * for it, or another's device, gives 0. */
static double nvml_read(const char *pci, const char *name, bool counts)
{
    static const char library[] = "libnvidia-ml.so.1";
    static int (*find)(const char *, void **);
    static bool tried;
    unsigned long long joules = 0;
    unsigned watts = 0;
    void *device = NULL;
    if (!tried) {
        int (*init)(void) = (int (*)(void))pd_library_function(library, "nvmlInit_v2");
        if (init && init() == 0)
            find = (int (*)(const char *, void **))pd_library_function(library, "nvmlDeviceGetHandleByPciBusId_v2");
        tried = true;
    }
    pd_function read = find && find(pci, &device) == 0 ? pd_library_function(library, name) : NULL;
    if (!read) return 0;
    int failed = counts ? ((int (*)(void *, unsigned long long *))read)(device, &joules)
                        : ((int (*)(void *, unsigned *))read)(device, &watts);
    return failed ? 0 : 1e-3 * (counts ? (double)joules : watts);
}

/* The first that tells something; several packages are one. */
static double read_source(const char **name, bool *counts, const struct bench_meter *m)
{
    const bool discrete = m->type == PERIDOT_DEVICE_DISCRETE;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        const struct source *s = &sources[i];
        if (s->of_package ? discrete : m->type == PERIDOT_DEVICE_CPU || !*m->pci) continue;
        *name = s->name;
        *counts = s->counts;
        double value = read_number(m->root, &s->node, m->pci, s->of_package);
        if (value > 0) return value;
    }
    for (int i = 0; discrete && !*m->root && *m->pci && i < 2; i++) {
        *name = "NVML";
        *counts = i == 0;
        double value = nvml_read(m->pci, i ? "nvmlDeviceGetPowerUsage" : "nvmlDeviceGetTotalEnergyConsumption", !i);
        if (value > 0) return value;
    }
    return 0;
}

void bench_meter_begin(struct bench_meter *m)
{
    const char *name;
    bool counts = false;
    double value = read_source(&name, &counts, m);
    m->begin_j = value > 0 && counts ? value : 0;
}

void bench_meter_end(struct bench_meter *m, double seconds)
{
    const char *name;
    bool counts = false;
    double value = read_source(&name, &counts, m);
    if (value <= 0 || (counts && (m->begin_j <= 0 || value < m->begin_j))) return;   /* it began anew at its end */
    m->source = name;
    m->joules += counts ? value - m->begin_j : value * seconds;
    m->seconds += seconds;
}

double bench_meter_power(const struct bench_meter *m)
{
    return m->seconds >= 0.5 ? m->joules / m->seconds : 0;
}

/* ---- the machine ---- */

/* The value of the first line that begins with `key`, after the separator: "model name : X", "NAME="X"". */
static bool machine_find_value(char *out, size_t size, const char *root, const char *path, const char *key,
                               char separator)
{
    char full[PATH], line[LINE];
    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *file = fopen(full, "r");
    if (!file) return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        char *value = strchr(line, separator);
        if (!value || strncmp(line, key, strlen(key)) != 0) continue;
        value += 1 + strspn(value + 1, " \t\"");
        value[strcspn(value, "\"\r\n")] = 0;
        peridot_printable(out, size, value, strlen(value));
        found = *value;
    }
    fclose(file);
    return found;
}

void bench_machine_read(struct bench_machine *out, const char *root)
{
    char text[LINE], path[PATH];
    struct utsname system;
    *out = (struct bench_machine){0};
    snprintf(path, sizeof path, "%s/sys/firmware/devicetree/base/model", root);   /* what ARM has instead of a name */
    if (!machine_find_value(out->cpu, sizeof out->cpu, root, "/proc/cpuinfo", "model name", ':'))
        read_line(out->cpu, sizeof out->cpu, path);
    machine_find_value(out->os, sizeof out->os, root, "/etc/os-release", "PRETTY_NAME", '=');
    if (machine_find_value(text, sizeof text, root, "/proc/meminfo", "MemTotal", ':'))
        out->memory = (uint64_t)strtoull(text, NULL, 10) << 10;
    if (uname(&system) == 0)
        snprintf(out->kernel, sizeof out->kernel, "%.30s %.60s %.30s", system.sysname, system.release, system.machine);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    out->n_processors = n > 0 ? (uint32_t)n : 0;
}

#else

void bench_machine_read(struct bench_machine *out, const char *root)
{
    (void)root;
    *out = (struct bench_machine){0};
}

void bench_conditions_read(struct bench_conditions *out, const char *root, const char *pci, bool is_cpu)
{
    (void)root, (void)pci, (void)is_cpu;
    *out = (struct bench_conditions){0};
}

uint64_t bench_window_read(const char *root, const char *pci)
{
    (void)root, (void)pci;
    return 0;
}

void bench_meter_begin(struct bench_meter *m) { (void)m; }

void bench_meter_end(struct bench_meter *m, double seconds) { (void)m, (void)seconds; }

double bench_meter_power(const struct bench_meter *m)
{
    (void)m;
    return 0;
}

#endif
