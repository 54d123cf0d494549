/* Gemma 3's pan and scan against Hugging Face transformers: which parts of a picture become images. */
#include "format_fixture.h"

#include "arch/tower.h"
#include "base/json.h"

/* ---- where ---- */

static uint32_t number(yyjson_val *list, size_t i) { return (uint32_t)yyjson_get_uint(yyjson_arr_get(list, i)); }

static void test_boxes(void **state)
{
    (void)state;
    yyjson_doc *doc = yyjson_read_file(PERIDOT_GOLDEN "/pan-and-scan.json", 0, NULL, NULL);
    assert_non_null(doc);
    yyjson_val *row;
    size_t i, n, n_seen[1 + PD_TOWER_MOST_CROPS] = {0};
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, n, row) {
        struct pd_crop got[PD_TOWER_MOST_CROPS];
        yyjson_val *want = yyjson_arr_get(row, 2);
        uint32_t width = number(row, 0), height = number(row, 1), n_crops = pd_tower_crops(got, width, height);
        if (n_crops != yyjson_arr_size(want)) fail_msg("%u x %u: %u crops", width, height, n_crops);
        for (uint32_t k = 0; k < n_crops; k++) {
            yyjson_val *box = yyjson_arr_get(want, k);
            const struct pd_crop c = {number(box, 0), number(box, 1), number(box, 2), number(box, 3)};
            if (memcmp(&got[k], &c, sizeof c) != 0)
                fail_msg("%u x %u: crop %u is %u x %u at (%u, %u)", width, height, k, got[k].width, got[k].height,
                         got[k].x, got[k].y);
        }
        n_seen[n_crops]++;
    }
    assert_true(n_seen[0] > 10 && n_seen[2] > 10 && n_seen[3] > 10 && n_seen[4] > 10);
    yyjson_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes),
    };
    return cmocka_run_group_tests_name("crops", tests, NULL, NULL);
}
