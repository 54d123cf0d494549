/* Images: rows of embeddings that stand in prompts. Rows have ids, as tokens do, but negative ones that follow from the
 * picture's pixels: so sequences that share a prefix, forks and saved sequences know an image without its rows, which
 * are computed when they are first evaluated. Images of a model are in a list, where the passes of its sessions find
 * them by these ids; any thread may make and free them, the session's thread computes. */
#ifndef PD_ENGINE_VISION_IMAGE_H
#define PD_ENGINE_VISION_IMAGE_H

#include "base/refs.h"
#include "engine/vision/tower.h"
#include "picture/picture.h"

#include <pthread.h>

struct pd_image {
    struct pd_refs refs;
    struct pd_images *images;
    struct pd_image *next;         /* in the list */
    uint32_t n;                    /* rows */
    int32_t *ids;                  /* [n] */
    float *rows;                   /* [n][d_out]; NULL until they are computed, and then */
    struct pd_patches patches;     /* there are none */
};

struct pd_images {
    struct pd_refs refs;           /* its model, and each image */
    pthread_mutex_t lock;          /* of the list, and of counts that may become 0 */
    struct pd_image *first;
    struct pd_image *at_work;      /* whose rows the tower computes, with a reference; NULL: none */
};

peridot_status pd_images_create(struct pd_images **out);
/* The picture that is at work is left. */
void pd_images_leave(struct pd_images *images, struct pd_tower *tower);
/* The model has gone; images may be held for longer. NULL is allowed. */
void pd_images_free(struct pd_images *images);

/* The first row's ids are below all others', so that ids by themselves say where an image begins. -1 is no token's. */
#define PD_FIRST_ROW_BELOW (-(1 << 30))
static inline bool pd_is_image_row(int32_t id) { return id < -1; }
/* Whether it is in an image, but not its first row: no sequence ends before it. */
static inline bool pd_is_inner_row(int32_t id) { return id < -1 && id >= PD_FIRST_ROW_BELOW; }
/* The last place at or before n where ids [n_all] are not within an image. */
static inline uint32_t pd_image_border(const int32_t *ids, uint32_t n, uint32_t n_all)
{
    while (n > 0 && n < n_all && pd_is_inner_row(ids[n])) n--;
    return n;
}

/* The picture in the tower's size. One that is there already is shared. */
peridot_status pd_image_create(struct pd_image **out, struct pd_images *images, const struct pd_tower_config *config,
                               const struct pd_picture *picture);
struct pd_image *pd_image_ref(struct pd_image *image);
void pd_image_free(struct pd_image *image);
/* The image whose rows the first of n ids are, with a reference; NULL: there is none, or some rows are missing. */
struct pd_image *pd_images_find(struct pd_images *images, const int32_t *ids, size_t n);
/* Computes its rows, unless they are there. One picture is at work at a time, and is finished first, whoever has it;
 * where watch->most_s is over before, image->rows is still NULL. */
peridot_status pd_image_encode(struct pd_image *image, struct pd_tower *tower, const struct pd_tower_watch *watch);

#endif
