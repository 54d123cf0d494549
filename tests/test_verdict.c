/* What a self-test found is remembered per device and driver, and minded: kernels that are off are not taken. */
#define _XOPEN_SOURCE 700
#include "damage.h"
#include "folder_fixture.h"
#include "base/base.h"
#include "probe/probe.h"
#include "selftest/selftest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct pd_gpu *gpu;

static int open_gpu(void **state)
{
    peridot_status status = pd_gpu_open(&gpu, NULL, NULL);
    if (status != PERIDOT_OK) print_error("%s\n", pd_error());
    return status == PERIDOT_OK ? make_folder(state) : -1;
}

static int close_gpu(void **state)
{
    (void)state;
    pd_gpu_close(gpu);
    return rmdir(folder);
}

static const char *verdict_file(void)
{
    char name[64];
    snprintf(name, sizeof name, "wrong-%s.txt", pd_gpu_info(gpu)->cache_key);
    return in_folder(name);
}

static uint32_t n_remembered(void)
{
    bool wrong[PD_N_KERNELS];
    uint32_t n = 0;
    pd_verdict_read(wrong, pd_gpu_info(gpu), folder);
    for (int id = 0; id < PD_N_KERNELS; id++) n += wrong[id];
    return n;
}

static void write_file(const void *data, size_t size)
{
    FILE *file = fopen(verdict_file(), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void set_wrong(enum pd_kernel_id a, enum pd_kernel_id b)
{
    bool wrong[PD_N_KERNELS] = {false};
    wrong[a] = wrong[b] = true;
    assert_int_equal(pd_verdict_set(gpu, folder, wrong), PERIDOT_OK);
}

static void set_right(void)
{
    static const bool none[PD_N_KERNELS];
    assert_int_equal(pd_verdict_set(gpu, folder, none), PERIDOT_OK);
}

static void test_round_trip(void **state)
{
    (void)state;
    set_right();
    assert_int_not_equal(access(verdict_file(), F_OK), 0);
    set_wrong(PD_KERNEL_matmul_q8_0, PD_KERNEL_topk);
    assert_int_equal(n_remembered(), 2);
    assert_true(pd_kernel_is_wrong(gpu, PD_KERNEL_topk) && !pd_kernel_is_wrong(gpu, PD_KERNEL_glu));
    struct pd_gpu *again;
    assert_int_equal(pd_gpu_open(&again, NULL, folder), PERIDOT_OK);
    assert_true(pd_kernel_is_wrong(again, PD_KERNEL_matmul_q8_0) && !pd_kernel_is_wrong(again, PD_KERNEL_matmul_f32));
    pd_gpu_close(again);
    peridot_verdict verdict = peridot_device_verdict(pd_gpu_info(gpu), folder);
    assert_string_equal(verdict.disabled, "matmul_q8_0");
    assert_string_equal(verdict.broken, "topk");
    peridot_device_info other = *pd_gpu_info(gpu);
    other.cache_key[0] ^= 1;
    verdict = peridot_device_verdict(&other, folder);
    assert_string_equal(verdict.disabled, "");
    set_right();
    assert_int_equal(n_remembered(), 0);
    assert_int_not_equal(access(verdict_file(), F_OK), 0);
}

static void append(void *user, peridot_log_level level, const char *message)
{
    char *text = user;
    size_t size = strlen(text);
    snprintf(text + size, 4096 - size, "%s: %s\n", level == PERIDOT_LOG_WARNING ? "warning" : "info", message);
}

/* Opening a model says which device it takes, and warns of kernels that failed. */
static void test_log(void **state)
{
    char text[4096] = "";
    peridot_model *model;
    peridot_model_params params = {.cache_dir = folder, .log = append, .user = text};
    (void)state;
    set_wrong(PD_KERNEL_matmul_q8_0, PD_KERNEL_topk);
    assert_int_equal(peridot_model_open(&model, PERIDOT_MODELS "/stories.gguf", &params), PERIDOT_OK);
    peridot_model_close(model);
    assert_non_null(strstr(text, "info: device: "));
    assert_non_null(strstr(text, "info: kernels: matmul="));
    assert_non_null(strstr(text, "warning: disabled, as they failed the self-test on this device and driver: "
                                 "matmul_q8_0\n"));
    assert_non_null(strstr(text, "warning: this device and driver give wrong answers with topk\n"));
    set_right();
    text[0] = 0;
    assert_int_equal(peridot_model_open(&model, PERIDOT_MODELS "/stories.gguf", &params), PERIDOT_OK);
    peridot_model_close(model);
    assert_null(strstr(text, "warning"));
}

/* Every prefix of a file has only kernels of the file; other content has none. */
static void test_damaged(void **state)
{
    (void)state;
    char text[512], changed[512];
    set_wrong(PD_KERNEL_matmul_q8_0, PD_KERNEL_topk);
    FILE *file = fopen(verdict_file(), "rb");
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_true(size >= 60 && size < sizeof text);
    for (size_t n = 0; n < size; n++) {
        write_file(text, n);
        assert_true(n_remembered() <= 1);
    }
    for (size_t i = 0; i < size; i++) {
        memcpy(changed, text, size);
        changed[i] ^= 1;
        write_file(changed, size);
        assert_true(n_remembered() <= 1);
    }
    static char large[200000];
    memset(large, 'x', sizeof large);
    memcpy(large, text, size);
    write_file(large, sizeof large);
    assert_int_equal(n_remembered(), 0);
    /* one bad line, wherever it is, spoils the file; lines of kernels that are gone or have changed do not */
    static const char *const lines[] = {"x\n", "\n", "topk\n", "topk 0123456789abcdeg\n", "topk 0123456789abcdef0\n",
        "topk  0123456789abcdef\n", "topk 0123456789abcdef", "topk 0123456789abcde\n"};
    for (size_t i = 0; i <= PD_COUNT(lines); i++) {
        int n = snprintf(changed, sizeof changed, "%.*s%s", (int)size, text,
                         i < PD_COUNT(lines) ? lines[i] : "topk 0123456789abcdef\nno_such_kernel 0123456789abcdef x\n");
        write_file(changed, (size_t)n);
        assert_int_equal(n_remembered(), i < PD_COUNT(lines) ? 0 : 2);
    }
    /* as many lines as there can be, each of another kernel than the one before */
    size_t at = size;
    for (int id = 0; at + 60 < 64 << 10; id = (id + 1) % PD_N_KERNELS)
        at += (size_t)sprintf(large + at, "%s %016llx\n", pd_kernel_name((enum pd_kernel_id)id), 0ull);
    write_file(large, at);
    double begin = pd_now();
    assert_int_equal(n_remembered(), 0);
    assert_true(pd_now() - begin < 1);
    memset(large, 0, sizeof large);
    write_file(large, 1000);
    assert_int_equal(n_remembered(), 0);
    assert_int_equal(unlink(verdict_file()), 0);
    assert_int_equal(mkdir(verdict_file(), 0700), 0);
    assert_int_equal(n_remembered(), 0);
    assert_int_equal(rmdir(verdict_file()), 0);
}

/* The folder is this user's alone, and so are its files; links are neither read nor followed. */
static void test_private(void **state)
{
    (void)state;
    struct stat st;
    bool wrong[PD_N_KERNELS] = {[PD_KERNEL_topk] = true};
    char victim[256], moved[256];
    set_wrong(PD_KERNEL_topk, PD_KERNEL_topk);
    assert_int_equal(stat(verdict_file(), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(pd_verdict_set(gpu, in_folder("made/cache"), wrong), PERIDOT_OK);
    assert_int_equal(stat(in_folder("made/cache"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    pd_private_remove(in_folder("made/cache"), strrchr(verdict_file(), '/') + 1);
    assert_int_equal(rmdir(in_folder("made/cache")) + rmdir(in_folder("made")), 0);
    assert_int_equal(n_remembered(), 1);
    assert_int_equal(chmod(verdict_file(), 0666), 0);   /* anyone could have written it */
    assert_int_equal(n_remembered(), 0);
    assert_int_equal(chmod(verdict_file(), 0600), 0);
    snprintf(victim, sizeof victim, "%s", in_folder("victim"));
    assert_int_equal(rename(verdict_file(), victim), 0);
    assert_int_equal(symlink(victim, verdict_file()), 0);
    assert_int_equal(n_remembered(), 0);
    set_wrong(PD_KERNEL_glu, PD_KERNEL_matmul_q8_0);
    assert_int_equal(n_remembered(), 2);
    assert_true(lstat(verdict_file(), &st) == 0 && S_ISREG(st.st_mode));
    assert_int_equal(unlink(victim), 0);
    for (int i = 0; i < 3; i++) {
        if (i == 1 && geteuid() != 0) continue;
        snprintf(moved, sizeof moved, "%s.moved", folder);
        if (i == 0) assert_int_equal(chmod(folder, 0770), 0);
        if (i == 1) assert_int_equal(chown(folder, 12345, (gid_t)-1), 0);
        if (i == 2) assert_int_equal(rename(folder, moved) + symlink(moved, folder), 0);
        assert_int_equal(n_remembered(), 0);
        assert_int_equal(pd_verdict_set(gpu, folder, wrong), PERIDOT_ERROR_IO);
        assert_int_equal(pd_private_check(folder), PERIDOT_ERROR_IO);
        assert_non_null(strstr(pd_error(), i == 0 ? "others can write" : i == 1 ? "another user" : "symbolic link"));
        if (i == 0) assert_int_equal(chmod(folder, 0700), 0);
        if (i == 1) assert_int_equal(chown(folder, geteuid(), (gid_t)-1), 0);
        if (i == 2) assert_int_equal(unlink(folder) + rename(moved, folder), 0);
        assert_int_equal(n_remembered(), 2);
    }
    set_right();
}

static void test_unwritable(void **state)
{
    (void)state;
    bool wrong[PD_N_KERNELS] = {[PD_KERNEL_topk] = true}, none[PD_N_KERNELS] = {false};
    write_file("", 0);
    char inside[256];
    snprintf(inside, sizeof inside, "%s/cache", verdict_file());
    assert_int_equal(pd_verdict_set(gpu, inside, wrong), PERIDOT_ERROR_IO);
    assert_non_null(strstr(pd_error(), inside));
    assert_true(pd_kernel_is_wrong(gpu, PD_KERNEL_topk));
    assert_int_equal(pd_verdict_set(gpu, inside, none), PERIDOT_OK);   /* nothing to write */
    set_right();
}

/* The product of a matrix of one type with many tokens, and whether it took the kernel. */
static bool takes(enum pd_kernel_id id, struct pd_variants variants)
{
    struct pd_trial t;
    struct pd_slice slice = {.dtype = PD_F16, .n_rows = 1, .row_size = 64};
    struct pd_linear linear = {.w = {.n_rows = 1, .n_cols = 32, .n_slices = 1, .slices = &slice}};
    assert_int_equal(pd_trial_open(&t, gpu), PERIDOT_OK);
    t.variants = variants;
    pd_trial_begin(&t, "which kernel");
    struct pd_trial_buffer *w = pd_trial_rows(&t, NULL, 1, 32), *x = pd_trial_rows(&t, NULL, 40, 32);
    struct pd_trial_buffer *y = pd_trial_rows(&t, NULL, 40, 1);
    slice.address = w->address;
    pd_op_linear(&t.r, pd_trial_rows_of(y), &linear, pd_trial_rows_of(x), 40);
    pd_trial_run(&t);
    assert_int_equal(t.status, PERIDOT_OK);
    bool has = pd_commands_has(t.commands, id);
    pd_trial_close(&t);
    return has;
}

static void test_off(void **state)
{
    (void)state;
    struct pd_variants tile = {.of = {[PD_VARIED_MATVEC] = PD_VARIANT_MATVEC_COLUMNS}}, chosen;
    pd_variants_force(&tile, PD_VARIANT_MATMUL_TILE);
    chosen = tile;
    chosen.forced[PD_VARIED_MATMUL] = false;
    assert_true(takes(PD_KERNEL_matmul_f16, chosen));
    set_wrong(PD_KERNEL_matmul_f16, PD_KERNEL_matmul_f16);
    assert_false(takes(PD_KERNEL_matmul_f16, chosen));
    assert_true(takes(PD_KERNEL_matvec_f16, chosen));
    assert_true(takes(PD_KERNEL_matmul_f16, tile));         /* asked for by name */
    set_wrong(PD_KERNEL_matmul_f16, PD_KERNEL_matvec_f16);  /* no kernel is right: the chosen one */
    assert_true(takes(PD_KERNEL_matmul_f16, chosen));
    set_wrong(PD_KERNEL_matmul_f32, PD_KERNEL_matmul_f32);
    assert_true(takes(PD_KERNEL_matmul_f16, chosen));
    set_right();
}

/* A variant that has no kernel for a type leaves it to the next, even where it was asked for by name; and where it has
 * taken over for another, it pays. */
static void test_partial(void **state)
{
    (void)state;
    const peridot_device_info *device = pd_gpu_info(gpu);
    enum pd_variant next = device->fp16_arithmetic ? PD_VARIANT_MATMUL_HALF : PD_VARIANT_MATMUL_TILE;
    enum pd_variant dot = pd_variant_available(device, PD_VARIANT_MATMUL_DOT) ? PD_VARIANT_MATMUL_DOT : next;
    struct pd_variants forced = {.of = {[PD_VARIED_MATVEC] = PD_VARIANT_MATVEC_COLUMNS}};
    pd_variants_force(&forced, PD_VARIANT_MATMUL_DOT);
    assert_true(takes(device->fp16_arithmetic ? PD_KERNEL_matmul_half_f16 : PD_KERNEL_matmul_f16, forced));
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATMUL_DOT, PD_F16), next);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATMUL_DOT, PD_Q8_0), dot);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATMUL_DOT, PD_IQ4_XS), dot);
    set_wrong(PD_KERNEL_matmul_dot_q8_0, PD_KERNEL_pack_f16);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATMUL_DOT, PD_Q8_0), next);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATMUL_DOT, PD_Q4_0), dot);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATMUL_COOP, PD_Q4_0),
                     device->integer_dot_instruction ? dot : next);
    set_wrong(PD_KERNEL_pack_q16, PD_KERNEL_pack_q16);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATMUL_DOT, PD_Q6_K), next);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATMUL_DOT, PD_Q5_K), dot);
    set_wrong(PD_KERNEL_pack_q8, PD_KERNEL_pack_q8);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATMUL_DOT, PD_Q6_K), dot);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATMUL_DOT, PD_Q5_K), next);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATVEC_DOT, PD_BF16), PD_VARIANT_MATVEC_COLUMNS);
    assert_int_equal(pd_variant_for_type(PD_VARIANT_MATVEC_DOT, PD_Q6_K), PD_VARIANT_MATVEC_DOT);
    set_wrong(PD_KERNEL_matvec_dot_q6_k, PD_KERNEL_matvec_dot_q6_k);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATVEC_DOT, PD_Q6_K), PD_VARIANT_MATVEC_COLUMNS);
    set_right();
}

/* Nothing that rounds takes the place of what does not, however fast the device would be with it. */
static void test_exact(void **state)
{
    (void)state;
    peridot_device_info *device = (peridot_device_info *)pd_gpu_info(gpu);
    bool has_instruction = device->integer_dot_instruction;
    device->integer_dot_instruction = true;
    set_wrong(PD_KERNEL_matvec_rows_q8_0, PD_KERNEL_matvec_rows_q8_0);
    assert_int_equal(pd_variant_working(gpu, PD_VARIANT_MATVEC_ROWS, PD_Q8_0), PD_VARIANT_MATVEC_COLUMNS);
    device->integer_dot_instruction = has_instruction;
    set_right();
}

static bool cancel(void *user, const peridot_kernel_check *check)
{
    (void)user;
    (void)check;
    return false;
}

/* What was found before it was cancelled counts; kernels that were not tried keep their verdict; a pass clears it. */
static void test_selftest(void **state)
{
    (void)state;
    set_wrong(PD_KERNEL_glu, PD_KERNEL_topk);
    struct pd_selftest test = {.only = "attention_reduce", .after_run = damage_numbers, .checked = cancel};
    assert_int_equal(pd_selftest(gpu, folder, &test), PERIDOT_CANCELLED);
    assert_int_equal(n_remembered(), 3);
    test = (struct pd_selftest){.only = "attention_reduce"};
    assert_int_equal(pd_selftest(gpu, folder, &test), PERIDOT_OK);
    assert_int_equal(n_remembered(), 2);
    assert_true(!pd_kernel_is_wrong(gpu, PD_KERNEL_attention_reduce) && pd_kernel_is_wrong(gpu, PD_KERNEL_glu));
    set_right();
}

/* What measures how fast a CPU reads is done without. */
static void test_measure(void **state)
{
    (void)state;
    peridot_rates rates;
    set_wrong(PD_KERNEL_rate_read, PD_KERNEL_rate_read);
    peridot_verdict verdict = peridot_device_verdict(pd_gpu_info(gpu), folder);
    assert_string_equal(verdict.disabled, "rate_read");
    assert_string_equal(verdict.broken, "");
    assert_int_equal(pd_measure(&rates, gpu), PERIDOT_OK);
    assert_true(rates.read > 1e6 && rates.read < 1e14);
    set_right();
}

/* A list that is too long for its text ends in dots. */
static void test_long_list(void **state)
{
    (void)state;
    bool wrong[PD_N_KERNELS];
    peridot_verdict verdict;
    memset(wrong, 1, sizeof wrong);
    pd_verdict_text(&verdict, wrong);
    assert_non_null(strstr(verdict.broken, "embed_f32, embed_f16"));
    assert_non_null(strstr(verdict.disabled, "matmul_f32, matmul_f16"));
    size_t n = strlen(verdict.broken);
    assert_true(strstr(verdict.broken, "measure") || strcmp(verdict.broken + n - 5, ", ...") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_log), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_private), cmocka_unit_test(test_unwritable),
        cmocka_unit_test(test_off), cmocka_unit_test(test_partial), cmocka_unit_test(test_exact),
        cmocka_unit_test(test_selftest), cmocka_unit_test(test_measure), cmocka_unit_test(test_long_list),
    };
    return cmocka_run_group_tests_name("verdict", tests, open_gpu, close_gpu);
}
