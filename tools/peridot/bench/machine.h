/* The machine around the device, as far as its system tells: what it is, and the state that it is in, which decides how
 * fast a laptop is. Read from /proc and /sys of Linux; elsewhere nothing is known. */
#ifndef PERIDOT_COMMAND_BENCH_MACHINE_H
#define PERIDOT_COMMAND_BENCH_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* "" and 0: unknown. */
struct bench_machine {
    char cpu[128], os[128], kernel[128];
    uint32_t n_processors;
    uint64_t memory;             /* bytes */
};

/* At one moment. "" and 0: unknown. */
struct bench_conditions {
    char power_source[16];       /* "mains", "battery" */
    char power_profile[32];      /* ACPI's: "low-power", "balanced", "performance" */
    /* of the device: */
    double power_limit_w, power_w, temperature_c;
    double clock_hz, memory_clock_hz;
};

/* root: what stands before "/proc" and "/sys"; "" but in tests. */
void bench_machine_read(struct bench_machine *out, const char *root);
/* pci: the device's address; is_cpu: it is a software device, and the host's processor is what counts. */
void bench_conditions_read(struct bench_conditions *out, const char *root, const char *pci, bool is_cpu);

#endif
