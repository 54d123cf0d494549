/* What reports say of the machine, read from made-up folders /proc and /sys as Linux's drivers fill them. */
#define _XOPEN_SOURCE 700
#include "bench/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define PCI "0000:03:00.0"
#define GPU "/sys/bus/pci/devices/" PCI "/"

static char root[] = "/tmp/peridot-machine-XXXXXX";

/* A file below root, with the folders above it. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + sizeof root; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int begin(void **state)
{
    (void)state;
    strcpy(root + strlen(root) - 6, "XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static struct bench_conditions conditions(bool is_cpu)
{
    struct bench_conditions c;
    bench_conditions_read(&c, root, is_cpu ? "" : PCI, is_cpu);
    return c;
}

static void test_amdgpu(void **state)
{
    (void)state;
    put(GPU "hwmon/hwmon4/power1_cap", "303000000\n");
    put(GPU "hwmon/hwmon4/power1_average", "21500000\n");
    put(GPU "hwmon/hwmon4/temp1_input", "41000\n");
    put(GPU "hwmon/hwmon4/freq1_input", "2371000000\n");
    put(GPU "hwmon/hwmon4/freq2_input", "1249000000\n");
    put("/sys/bus/pci/devices/0000:04:00.0/hwmon/hwmon5/temp1_input", "99000\n");   /* another GPU */
    struct bench_conditions c = conditions(false);
    assert_true(c.power_limit_w == 303 && c.power_w == 21.5 && c.temperature_c == 41);
    assert_true(c.clock_hz == 2371e6 && c.memory_clock_hz == 1249e6);
    assert_string_equal(c.power_source, "");
    bench_conditions_read(&c, root, "", false);   /* a GPU without an address */
    assert_true(c.power_limit_w == 0 && c.temperature_c == 0);
}

static void test_intel(void **state)
{
    (void)state;
    put(GPU "hwmon/hwmon2/power1_max", "0\n");
    put(GPU "hwmon/hwmon2/power2_max", "190000000\n");
    put(GPU "hwmon/hwmon2/temp2_input", "52000\n");
    put(GPU "drm/card1/gt_act_freq_mhz", "0\n");   /* idle */
    put(GPU "tile0/gt0/freq0/act_freq", "2050\n");
    struct bench_conditions c = conditions(false);
    assert_true(c.power_limit_w == 190 && c.temperature_c == 52 && c.clock_hz == 2050e6);
}

static void test_cpu(void **state)
{
    (void)state;
    put("/sys/bus/pci/drivers/k10temp/0000:00:18.3/hwmon/hwmon1/temp1_input", "63125\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3400000\n");
    put(GPU "hwmon/hwmon4/power1_cap", "303000000\n");
    struct bench_conditions c = conditions(true);
    assert_true(c.temperature_c == 63.125 && c.clock_hz == 3.4e9 && c.power_limit_w == 0);
}

static void test_supplies(void **state)
{
    (void)state;
    put("/sys/class/power_supply/hid-mouse/type", "Battery\n");
    put("/sys/class/power_supply/hid-mouse/scope", "Device\n");
    put("/sys/class/power_supply/hid-mouse/status", "Discharging\n");
    assert_string_equal(conditions(false).power_source, "");
    put("/sys/class/power_supply/BAT0/type", "Battery\n");
    put("/sys/class/power_supply/BAT0/status", "Discharging\n");
    put("/sys/class/power_supply/AC/type", "Mains\n");
    put("/sys/class/power_supply/AC/online", "0\n");
    assert_string_equal(conditions(false).power_source, "battery");
    put("/sys/class/power_supply/AC/online", "1\n");
    put("/sys/firmware/acpi/platform_profile", "low-power\n");
    assert_string_equal(conditions(false).power_source, "mains");
    assert_string_equal(conditions(true).power_profile, "low-power");
}

/* A counter of energy before and after, and where there is none what the driver says at the end. */
static void test_power(void **state)
{
    (void)state;
    struct bench_meter m = {.root = root, .pci = PCI, .type = PERIDOT_DEVICE_DISCRETE};
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n");   /* none of a discrete GPU */
    bench_meter_begin(&m);
    bench_meter_end(&m, 1);
    assert_true(!m.source && bench_meter_power(&m) == 0);
    put(GPU "hwmon/hwmon4/power1_average", "20000000\n");
    bench_meter_begin(&m);
    bench_meter_end(&m, 1);
    put(GPU "hwmon/hwmon4/power1_average", "50000000\n");
    bench_meter_end(&m, 2);
    assert_string_equal(m.source, "hwmon");
    assert_true(bench_meter_power(&m) == 40);
    m = (struct bench_meter){.root = root, .pci = PCI, .type = PERIDOT_DEVICE_DISCRETE};
    put(GPU "hwmon/hwmon4/energy1_input", "7000000\n");
    bench_meter_begin(&m);
    put(GPU "hwmon/hwmon4/energy1_input", "9000000\n");
    bench_meter_end(&m, 0.25);
    assert_true(bench_meter_power(&m) == 0);   /* too short to be sure */
    bench_meter_begin(&m);
    put(GPU "hwmon/hwmon4/energy1_input", "5000000\n");
    bench_meter_end(&m, 1);   /* it began anew: not counted */
    bench_meter_begin(&m);
    put(GPU "hwmon/hwmon4/energy1_input", "7000000\n");
    bench_meter_end(&m, 0.25);
    assert_true(bench_meter_power(&m) == 8);
}

static void test_power_of_package(void **state)
{
    (void)state;
    struct bench_meter m = {.root = root, .pci = "", .type = PERIDOT_DEVICE_CPU};
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n");
    put("/sys/class/powercap/intel-rapl:1/energy_uj", "2000000\n");
    put("/sys/class/powercap/intel-rapl:0:0/energy_uj", "900000\n");   /* a part of 0 */
    bench_meter_begin(&m);
    put("/sys/class/powercap/intel-rapl:1/energy_uj", "32000000\n");
    put("/sys/class/powercap/intel-rapl:0:0/energy_uj", "99000000\n");
    bench_meter_end(&m, 2);
    assert_string_equal(m.source, "RAPL");
    assert_true(bench_meter_power(&m) == 15);
}

static void test_link(void **state)
{
    (void)state;
    assert_true(conditions(false).link_gt_s == 0 && bench_window_read(root, PCI) == 0);
    assert_true(bench_window_read(root, "") == 0);
    put(GPU "current_link_speed", "2.5 GT/s PCIe\n");
    put(GPU "current_link_width", "8\n");
    put(GPU "max_link_speed", "16.0 GT/s PCIe\n");
    put(GPU "max_link_width", "16\n");
    put(GPU "resource", "0x000000e000000000 0x000000e3ffffffff 0x000000000014220c\n"
                        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                        "0x000000000000e000 0xffffffffffffe0ff 0x0000000000040101\n"
                        "garbage\n"
                        "0x00000000fce00000 0x00000000fcefffff 0x0000000000040200\n"
                        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                        "0x000000f000000000 0x000000ffffffffff 0x0000000000140200\n");   /* of virtual functions */
    struct bench_conditions c = conditions(false);
    assert_true(c.link_gt_s == 2.5 && c.link_width == 8 && c.link_max_gt_s == 16 && c.link_max_width == 16);
    assert_true(bench_window_read(root, PCI) == 16ull << 30);
}

/* Files may be empty, hold no number, or a terminal's escape sequences. */
static void test_hostile(void **state)
{
    (void)state;
    char longer[600] = "model name\t: ";
    put(GPU "hwmon/hwmon4/power1_cap", "");
    put(GPU "hwmon/hwmon4/temp1_input", "warm\n");
    put(GPU "hwmon/hwmon4/freq1_input", "-5\n");
    put(GPU "hwmon/hwmon4/freq2_input", "1e400\n");
    put("/sys/firmware/acpi/platform_profile", "\033[2J\n");
    struct bench_conditions c = conditions(false);
    assert_true(c.power_limit_w == 0 && c.temperature_c == 0 && c.clock_hz == 0 && c.memory_clock_hz == 0);
    assert_string_equal(c.power_profile, "\\x1b[2J");
    memset(longer + strlen(longer), 'x', 500);
    put("/proc/cpuinfo", longer);
    struct bench_machine m;
    bench_machine_read(&m, root);
    assert_true(strlen(m.cpu) < sizeof m.cpu && m.cpu[0] == 'x');
}

static void test_machine(void **state)
{
    (void)state;
    struct bench_machine m;
    bench_machine_read(&m, root);
    assert_string_equal(m.cpu, "");
    assert_true(m.memory == 0 && m.n_processors > 0);
    put("/sys/firmware/devicetree/base/model", "A small board");
    put("/proc/cpuinfo", "processor\t: 0\n");
    bench_machine_read(&m, root);
    assert_string_equal(m.cpu, "A small board");
    put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD Ryzen 7 7840U\nflags : fpu\nmodel name\t: another\n");
    put("/proc/meminfo", "MemFree: 5 kB\nMemTotal:       16000000 kB\n");
    put("/etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n");
    bench_machine_read(&m, root);
    assert_string_equal(m.cpu, "AMD Ryzen 7 7840U");
    assert_string_equal(m.os, "Debian GNU/Linux 13 (trixie)");
    assert_true(m.memory == 16000000ull << 10);
    assert_memory_equal(m.kernel, "Linux ", 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_amdgpu, begin, end),
        cmocka_unit_test_setup_teardown(test_intel, begin, end),
        cmocka_unit_test_setup_teardown(test_cpu, begin, end),
        cmocka_unit_test_setup_teardown(test_supplies, begin, end),
        cmocka_unit_test_setup_teardown(test_power, begin, end),
        cmocka_unit_test_setup_teardown(test_power_of_package, begin, end),
        cmocka_unit_test_setup_teardown(test_link, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile, begin, end),
        cmocka_unit_test_setup_teardown(test_machine, begin, end),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
