/* All tests that need no program of their own, in one: each by itself would be linked with all kernels. The first
 * argument names the test, as test_base; the others are its own. tests.def is made by CMakeLists.txt: TEST_OF are those
 * that take arguments. */
#include "keep_gpu.h"

#include <stdio.h>
#include <string.h>

#define TEST(name) int name##_main(void);
#define TEST_OF(name) int name##_main(int argc, char **argv);
#include "tests.def"
#undef TEST
#undef TEST_OF

static const struct {
    const char *name;
    int (*main)(void);
    int (*main_of)(int argc, char **argv);
} tests[] = {
#define TEST(name) {#name, name##_main, NULL},
#define TEST_OF(name) {#name, NULL, name##_main},
#include "tests.def"
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof tests / sizeof *tests; i++) {
        if (strcmp(argv[1], tests[i].name) != 0) continue;
        int status = tests[i].main ? tests[i].main() : tests[i].main_of(argc - 1, argv + 1);
        close_kept_gpus();
        return status;
    }
    fprintf(stderr, "usage: peridot_tests TEST [ARGUMENT...]\n");
    return 2;
}
