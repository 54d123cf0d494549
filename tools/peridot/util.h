/* What the files of the command share beneath its options: failures, arrays, numbers and clocks. */
#ifndef PERIDOT_COMMAND_UTIL_H
#define PERIDOT_COMMAND_UTIL_H

#include "peridot_tools.h"

#include <stdio.h>

#if defined(__MINGW32__)   /* whose printf is otherwise taken for Microsoft's */
#define CMD_PRINTF(text, args) __attribute__((format(gnu_printf, text, args)))
#elif defined(__GNUC__)
#define CMD_PRINTF(text, args) __attribute__((format(printf, text, args)))
#else
#define CMD_PRINTF(text, args)
#endif

#define CMD_COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Returns early when an expression of type peridot_status is a failure. */
#define CMD_TRY(expr)                                              \
    do {                                                           \
        peridot_status cmd_try_status = (expr);                    \
        if (cmd_try_status != PERIDOT_OK) return cmd_try_status;   \
    } while (0)

/* Sets the sentence that peridot_last_error gives, and gives back the status. */
peridot_status cmd_fail(peridot_status status, const char *format, ...) CMD_PRINTF(2, 3);
/* "out of memory for N bytes (WHAT)" */
peridot_status cmd_fail_alloc(size_t size, const char *what);

/* Makes room for `more` elements after the first n. `array` is the address of the pointer to them (NULL at first). On
 * failure all is as before; `what` is for the sentence. */
peridot_status cmd_array_reserve(void *array, size_t *capacity, size_t n, size_t more, size_t element_size,
                                 const char *what);

/* The plural's ending: "%zu token%s", n, CMD_S(n). */
#define CMD_S(n) ((n) == 1 ? "" : "s")

static inline uint64_t cmd_min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t cmd_max(uint64_t a, uint64_t b) { return a > b ? a : b; }
/* FNV-1a: begins with 0, goes on with what came before. */
uint64_t cmd_hash(uint64_t before, const void *data, size_t size);

/* Monotonic seconds. */
double cmd_now(void);
/* The most bytes of memory that this process has held at once, mapped files in memory included; 0 when unknown. */
uint64_t cmd_memory_peak(void);
bool cmd_is_file(const char *path);

#endif
